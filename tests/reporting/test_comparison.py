"""compare: the table of several models against formulas and the single measures."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairconstrained import (
    FairLogisticClassifier,
    FairThresholds,
    compare,
    make_biased_classification,
)
from fairconstrained.metrics import rate_gaps


class ByRule(ClassifierMixin, BaseEstimator):
    """A classifier of another kind: labels only."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(int)]


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(3000, 4, gap=0.3, random_state=0)
    return X, y, np.array(["a", "b", "c"])[groups + (X[:, 1] > 1.0)]


@pytest.fixture(scope="module")
def models(data):
    X, y, groups = (one[:1500] for one in data)
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    return {
        "logistic": logistic,
        "forest": RandomForestClassifier(10, random_state=0).fit(X, y),
        "svm": LinearSVC(random_state=0).fit(X, y),
        "rule": ByRule().fit(X, y),
        "fair": FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups),
        "thresholds": FairThresholds(logistic, kappa=0.05, per_group=True, cv="prefit").fit(
            X, y, sensitive_features=groups
        ),
    }


def test_the_measures_are_those_of_each_model(models, data):
    X, y, groups = (one[1500:] for one in data)
    table = compare(models, X, y, groups)
    assert table.index.tolist() == list(models) and table.index.name == "model"
    for name, model in models.items():
        row = table.loc[name]
        known = {"sensitive_features": groups} if name == "thresholds" else {}
        decisions = model.predict(X, **known)
        assert row["accuracy"] == pytest.approx(np.mean(decisions == y))
        assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
        assert row["selection_rate"] == pytest.approx(decisions.mean())
        gaps = rate_gaps(y, decisions, sensitive_features=groups)
        for rate in ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy"):
            for ending, column in {"": "gap", "_low": "low", "_high": "high"}.items():
                assert row[f"{rate}_gap{ending}"] == pytest.approx(gaps.loc[rate, column])
        if hasattr(model, "predict_proba"):
            probability = model.predict_proba(X)[:, 1]
            assert row["brier"] == pytest.approx(brier_score_loss(y, probability))
        else:
            assert np.isnan(row["brier"])
    scores = models["svm"].decision_function(X)
    assert table.loc["svm", "auc"] == pytest.approx(roc_auc_score(y, scores))
    assert np.isnan(table.loc["rule", "auc"])
    least = table["selection_rate_gap"].idxmin()
    assert least == "thresholds" and table.loc[least, "cost"] > 0.0


def test_the_cost_is_relative_to_the_reference(models, data):
    X, y, groups = (one[1500:] for one in data)
    table = compare(models, X, y, groups, reference="rule")
    expected = table.loc["rule", "accuracy"] - table["accuracy"]
    np.testing.assert_allclose(table["cost"], expected, atol=1e-12)
    assert table.loc["rule", ["cost", "cost_low", "cost_high"]].tolist() == [0.0, 0.0, 0.0]
    others = table.drop("rule")
    assert np.all(others["cost_low"] < others["cost"])
    assert np.all(others["cost"] < others["cost_high"])


def test_weights_and_missing_groups(models, data):
    X, y, groups = (one[1500:] for one in data)
    weight = np.where(np.arange(len(y)) % 3 > 0, 2.0, 0.0)
    kept = weight > 0
    del models["thresholds"]
    weighted = compare(models, X, y, groups, sample_weight=weight)
    pd.testing.assert_frame_equal(weighted, compare(models, X[kept], y[kept], groups[kept]))
    some = np.where(np.arange(len(y)) % 5 == 0, None, groups)
    table = compare(models, X, y, some, groups_missing="ignore_in_constraint")
    known = some != None  # noqa: E711
    for column in ("selection_rate_gap", "selection_rate_gap_high"):
        inside = compare(models, X[known], y[known], groups[known])[column]
        pd.testing.assert_series_equal(table[column], inside)


def test_bad_arguments(models, data):
    X, y, groups = data
    with pytest.raises(ValueError, match="models must be a mapping"):
        compare(models["fair"], X, y, groups)
    with pytest.raises(ValueError, match="reference='other' is not the name"):
        compare(models, X, y, groups, reference="other")
    with pytest.raises(ValueError, match="empty mapping"):
        compare({}, X, y, groups)
    with pytest.raises(ValueError, match="No groups are known"):
        compare({"forest": models["forest"]}, X, y)
    with pytest.raises(ValueError, match="confidence"):
        compare(models, X, y, groups, confidence=1.5)
