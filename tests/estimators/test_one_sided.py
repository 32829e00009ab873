"""Losses of pairs leave the intercept open: constraints on rates may be met by it alone."""

import re
import warnings

import numpy as np
import pytest
from _support.classifiers import SINGLE

from fairconstrained import (
    ConstantDecisionWarning,
    FairLogisticClassifier,
    FairRanker,
    make_biased_classification,
    make_biased_ranking,
)
from fairconstrained.constraints import GroupAUCParity

X, Y, GROUPS = make_biased_classification(600, 4, gap=0.3, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = make_biased_ranking(30, 8, random_state=1)
ONE_SIDE = "the threshold, and the constraints are met in this way only"


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
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


RARE = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:60]]
USUAL = r"kappa=0.05 bounds .* of scores, not probabilities: values from 0.1 to 10 are usual"


@pytest.mark.parametrize("constraint", ["group_auc", "inter_group_auc", "intra_group_auc"])
@pytest.mark.parametrize("make", SINGLE.values(), ids=SINGLE)
def test_equal_predictions_at_the_default_kappa_name_the_usual_values(make, constraint):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        clf = make(constraint).fit(X[RARE], Y[RARE], sensitive_features=GROUPS[RARE])
    constant = len(set(clf.predict(X[RARE]))) == 1
    usual = [one for one in found if re.search(USUAL, str(one.message))]
    assert len(usual) == int(constant)
    assert all(one.category is ConstantDecisionWarning for one in usual)
    assert constant or make is not SINGLE["logistic"]


def test_several_classes_and_dask_collections_name_the_usual_values():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    on_dask = pytest.importorskip("fairconstrained.dask", reason="dask is not installed")
    rows, groups = X[RARE], GROUPS[RARE]
    three = np.where(rows[:, 0] > 2.0, 2, Y[RARE])
    with pytest.warns(ConstantDecisionWarning, match=USUAL):
        FairLogisticClassifier("group_auc").fit(rows, three, sensitive_features=groups)
    parts = [da.from_array(one, chunks=150) for one in (rows, Y[RARE], groups)]
    with pytest.warns(ConstantDecisionWarning, match=USUAL):
        on_dask.FairLogisticClassifier("group_auc").fit(*parts[:2], sensitive_features=parts[2])


@pytest.mark.parametrize(
    "options",
    [{"constraint": GroupAUCParity(1.0)}, {"constraint": GroupAUCParity(surrogate="sigmoid")},
     {"constraint": "group_auc", "enforce": "decision"}],
    ids=["usual", "probabilities", "decisions"],
)  # fmt: skip
def test_bounds_in_the_usual_range_and_on_probabilities_give_no_warning(options):
    clf = FairLogisticClassifier(**options)
    clf.fit(X[RARE], Y[RARE], sensitive_features=GROUPS[RARE])
    assert clf.bound_met_
