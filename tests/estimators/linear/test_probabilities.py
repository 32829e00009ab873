"""Probabilities exist where the loss gives log odds, and exports keep the loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.functions.losses import LOSSES
from fairconstrained.objectives import OBJECTIVES, resolve_objective

X, Y, GROUPS = make_biased_classification(300, 4, gap=0.3, random_state=0)
EXPORTS = {
    "logistic": LogisticRegression,
    "hinge": LinearSVC,
    "squared_hinge": LinearSVC,
    "quadratic": SGDClassifier,
}


def fitted(loss, **options):
    return FairLogisticClassifier(None, loss=loss, **options).fit(X, Y)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_only_scores_that_are_log_odds_give_probabilities(name):
    clf = FairLogisticClassifier(loss=name)
    expected = name == "logistic"
    assert resolve_objective("loss", name).gives_log_odds is expected
    for method in ("predict_proba", "predict_log_proba"):
        assert hasattr(clf, method) is expected


def test_the_population_minimiser_of_the_logistic_loss_alone_is_the_log_odds():
    p, scores = 0.8, np.linspace(-6.0, 6.0, 120001)
    for name, kind in LOSSES.items():
        loss = kind()
        risk = p * loss.value(scores) + (1.0 - p) * loss.value(-scores)
        is_log_odds = abs(scores[np.argmin(risk)] - np.log(p / (1.0 - p))) < 1e-3
        assert is_log_odds == loss.gives_log_odds, name


def test_the_missing_method_says_why():
    with pytest.raises(AttributeError, match="predict_proba") as raised:
        _ = fitted("hinge").predict_proba
    assert "loss='hinge' gives scores that are not log odds" in str(raised.value.__cause__)


def test_a_loss_that_is_not_valid_is_reported_by_fit():
    clf = FairLogisticClassifier(loss="nonsense")
    assert not hasattr(clf, "predict_proba")
    with pytest.raises(ValueError, match="nonsense"):
        clf.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("name", LOSSES)
def test_export(name):
    clf = fitted(name)
    if name not in EXPORTS:
        with pytest.raises(ValueError, match=f"no linear classifier with loss='{name}'"):
            clf.to_sklearn()
        return
    plain = clf.to_sklearn()
    assert type(plain) is EXPORTS[name]
    assert hasattr(plain, "predict_proba") == hasattr(clf, "predict_proba")
    assert_allclose(plain.decision_function(X), clf.decision_function(X), atol=1e-12)
    assert_array_equal(plain.predict(X), clf.predict(X))


def test_no_export_of_a_loss_of_pairs():
    with pytest.raises(ValueError, match="no linear classifier with loss='auc'"):
        fitted("auc").to_sklearn()
