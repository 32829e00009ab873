"""Torch tensors under scikit-learn's array API dispatch are converted to arrays."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    FairBoostingClassifier,
    FairHingeClassifier,
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    FairNetworkClassifier,
    FairRanker,
    FairThresholds,
    NeymanPearsonClassifier,
    make_biased_classification,
    make_biased_ranking,
)

torch = pytest.importorskip("torch")
pytest.importorskip("lightgbm")

X, y, GROUPS = make_biased_classification(120, 4, gap=0.4, random_state=0)
ROWS = {"X": X, "y": y, "sensitive_features": GROUPS}
NAMES = ("X", "y", "query", "sensitive_features")
RANKINGS = dict(zip(NAMES, make_biased_ranking(12, 4, random_state=0), strict=True))
CASES = {
    "logistic": (FairLogisticClassifier(), ROWS),
    "columns": (
        FairLogisticClassifier(sensitive_columns=[-1]),
        {"X": np.column_stack([X, GROUPS]), "y": y},
    ),
    "hinge": (FairHingeClassifier(), ROWS | {"sample_weight": np.arange(120) % 3}),
    "cv": (FairLogisticClassifierCV(n_kappas=2, cv=2), ROWS),
    "boosting": (FairBoostingClassifier(n_estimators=5), ROWS),
    "network": (FairNetworkClassifier(max_epochs=3, random_state=0), ROWS),
    "thresholds": (FairThresholds(LogisticRegression(), cv=2), ROWS),
    "neyman-pearson": (NeymanPearsonClassifier(), {"X": X, "y": y}),
    "ranker": (FairRanker(), RANKINGS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_fit_and_predict_take_tensors(name):
    model, data = CASES[name]
    expected = sklearn.clone(model).fit(**data).predict(data["X"])
    with sklearn.config_context(array_api_dispatch=True):  # which SCIPY_ARRAY_API allows
        tensors = {key: torch.tensor(value) for key, value in data.items()}
        found = sklearn.clone(model).fit(**tensors).predict(tensors["X"])
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected)
