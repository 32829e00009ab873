"""Torch tensors under scikit-learn's array API dispatch are converted to arrays."""

import os
import subprocess
import sys
from textwrap import dedent

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightgbm")

PROGRAM = """
import warnings
import numpy as np
import sklearn
import torch
from fairconstrained import *
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("ignore")
X, y, groups = make_biased_classification(120, 4, gap=0.4, random_state=0)
of_groups = {"sensitive_features": groups}
with_groups = np.column_stack([X, groups])
rank_X, rank_y, query, members = make_biased_ranking(12, 4, random_state=0)
CASES = {
    "logistic": (FairLogisticClassifier(), X, y, of_groups),
    "columns": (FairLogisticClassifier(sensitive_columns=[-1]), with_groups, y, {}),
    "hinge": (FairHingeClassifier(), X, y, {**of_groups, "sample_weight": np.arange(120) % 3}),
    "cv": (FairLogisticClassifierCV(n_kappas=2, cv=2), X, y, of_groups),
    "boosting": (FairBoostingClassifier(n_estimators=5), X, y, of_groups),
    "network": (FairNetworkClassifier(max_epochs=3, random_state=0), X, y, of_groups),
    "thresholds": (FairThresholds(LogisticRegression(), cv=2), X, y, of_groups),
    "neyman-pearson": (NeymanPearsonClassifier(), X, y, {}),
    "ranker": (FairRanker(), rank_X, rank_y, {"query": query, "sensitive_features": members}),
}
for name, (model, rows, labels, others) in CASES.items():
    expected = sklearn.clone(model).fit(rows, labels, **others).predict(rows)
    with sklearn.config_context(array_api_dispatch=True):
        others = {key: torch.tensor(value) for key, value in others.items()}
        model.fit(torch.tensor(rows), torch.tensor(labels), **others)
        found = model.predict(torch.tensor(rows))
    print(name, isinstance(found, np.ndarray) and np.allclose(found, expected))
"""


def test_fit_and_predict_take_tensors():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", dedent(PROGRAM)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert dict(zip(lines[::2], lines[1::2], strict=True)) == dict.fromkeys(lines[::2], "True")
    assert len(lines) == 18
