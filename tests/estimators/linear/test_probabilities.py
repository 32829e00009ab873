"""Probabilities exist where the loss gives log odds, and exports keep the loss."""

import pytest

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.objectives import OBJECTIVES, resolve_objective

X, Y, GROUPS = make_biased_classification(300, 4, gap=0.3, random_state=0)


def fitted(loss, **options):
    return FairLogisticClassifier(None, loss=loss, **options).fit(X, Y)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_only_scores_that_are_log_odds_give_probabilities(name):
    clf = FairLogisticClassifier(loss=name)
    expected = name == "logistic"
    assert resolve_objective("loss", name).gives_log_odds is expected
    for method in ("predict_proba", "predict_log_proba"):
        assert hasattr(clf, method) is expected


def test_the_missing_method_says_why():
    with pytest.raises(AttributeError, match="predict_proba") as raised:
        _ = fitted("hinge").predict_proba
    assert "loss='hinge' gives scores that are not log odds" in str(raised.value.__cause__)


def test_a_loss_that_is_not_valid_is_reported_by_fit():
    clf = FairLogisticClassifier(loss="nonsense")
    assert not hasattr(clf, "predict_proba")
    with pytest.raises(ValueError, match="nonsense"):
        clf.fit(X, Y, sensitive_features=GROUPS)


def test_no_export_of_a_loss_of_pairs():
    with pytest.raises(ValueError, match="no linear classifier with loss='auc'"):
        fitted("auc").to_sklearn()
