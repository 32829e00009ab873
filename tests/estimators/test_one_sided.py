"""Losses of pairs leave the intercept open: constraints on rates may be met by it alone."""

import warnings

import pytest

from fairconstrained import (
    ConstantDecisionWarning,
    FairLogisticClassifier,
    FairRanker,
    make_biased_classification,
    make_biased_ranking,
)
from fairconstrained.constraints import ROCParity

X, Y, GROUPS = make_biased_classification(600, 4, gap=0.3, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = make_biased_ranking(30, 8, random_state=1)
ONE_SIDE = "the threshold, and the constraints are met in this way only"


@pytest.mark.parametrize(
    "constraint", ["demographic_parity", "equalized_odds", ROCParity(n_thresholds=20)]
)
def test_scores_on_one_side_of_the_threshold_are_reported(constraint):
    clf = FairLogisticClassifier(constraint, kappa=0.02, loss="auc")
    with pytest.warns(ConstantDecisionWarning, match=ONE_SIDE):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert len(set(clf.predict(X))) == 1


@pytest.mark.parametrize(
    ("constraint", "loss"),
    [("group_auc", "auc"), ("demographic_parity", "logistic"), (None, "auc")],
)
def test_other_fits_give_no_warning(constraint, loss):
    clf = FairLogisticClassifier(constraint, kappa=0.1, loss=loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The bound of 0.1 is one on scores")
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert len(set(clf.predict(X))) == 2


def test_rankers_with_another_origin_of_the_features():
    ranker = FairRanker("demographic_parity", kappa=0.02)
    rows = {"query": QUERY, "sensitive_features": QUALITY}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.fit(DOCUMENTS, RELEVANT, **rows)
    with pytest.warns(ConstantDecisionWarning, match=ONE_SIDE):
        ranker.fit(DOCUMENTS + 50.0, RELEVANT, **rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = FairRanker("group_auc", kappa=0.02).fit(DOCUMENTS, RELEVANT, **rows)
        other = FairRanker("group_auc", kappa=0.02).fit(DOCUMENTS + 50.0, RELEVANT, **rows)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)
