"""Losses of pairs leave the intercept open: constraints on rates may be met by it alone."""

import re
import warnings

import numpy as np
import pytest
from _support.classifiers import EVERY, SINGLE
from sklearn.model_selection import GridSearchCV

from fairconstrained import (
    ConstantDecisionWarning,
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    FairRanker,
    fairness_path,
    make_biased_classification,
    make_biased_ranking,
)
from fairconstrained.exceptions import InputWarning

X, Y, GROUPS = make_biased_classification(600, 4, gap=0.3, random_state=0)


ONE_SIDE = "the threshold, and the constraints are met in this way only"


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_scores_on_one_side_of_the_threshold_are_reported(constraint):
    clf = FairLogisticClassifier(constraint, kappa=0.02, loss="auc")
    with pytest.warns(ConstantDecisionWarning, match=ONE_SIDE):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert len(set(clf.predict(X))) == 1


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


MESSAGE = re.compile(r"The bound of (\S+) is one on scores: .* is (\S+)\. .* enforce='decision'")


@pytest.fixture(scope="module")
def near_the_threshold():
    """Rows whose probabilities are near the threshold, so that predictions differ much."""
    rng = np.random.default_rng(0)
    groups = np.arange(400) % 2
    X = np.c_[groups + 0.3 * rng.normal(size=400), rng.normal(size=400)]
    return X, (rng.random(400) < 0.45 + 0.1 * groups).astype(int), groups


def told(action):
    """Return the messages about predictions that an action issues, as a user sees them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [one for one in found if MESSAGE.match(str(one.message))]


@pytest.mark.parametrize("name", EVERY)
def test_a_fit_on_scores_says_it_once_and_one_on_predictions_does_not(name, near_the_threshold):
    X, y, groups = near_the_threshold
    options = {} if name == "cv" else {"kappa": 0.12}
    model = EVERY[name](**options)
    found = told(lambda: model.fit(X, y, sensitive_features=groups))
    kappa = model.kappa_ if name == "cv" else model.kappa
    assert len(found) == int(model.decision_gap_ > kappa + 0.1)
    for one in found:
        bound, gap = MESSAGE.match(str(one.message)).groups()
        assert one.category is InputWarning and float(bound) == pytest.approx(kappa)
        assert float(gap) == pytest.approx(model.decision_gap_, abs=1e-3)
        assert one.filename == __file__
    if name != "cv":
        model.set_params(enforce="decision")
        assert not told(lambda: model.fit(X, y, sensitive_features=groups))


@pytest.mark.parametrize(
    ("constraint", "options"),
    [
        ("inter_group_auc", {}),
        ("roc_parity", {}),
        ("demographic_parity", {"goal": "fairness"}),
        (None, {}),
    ],
)
def test_other_constraints_and_goals_say_nothing(constraint, options, near_the_threshold):
    X, y, groups = near_the_threshold
    model = FairLogisticClassifier(constraint, **options)
    assert not told(lambda: model.fit(X, y, sensitive_features=groups))


def test_a_path_and_a_search_say_it_once(near_the_threshold):
    X, y, groups = near_the_threshold
    given = {"sensitive_features": groups}
    assert (
        len(told(lambda: fairness_path(FairLogisticClassifier(), X, y, n_kappas=4, **given))) == 1
    )
    search = FairLogisticClassifierCV(kappas=[0.08, 0.06], cv=2, max_gap=0.5)
    assert len(told(lambda: search.fit(X, y, **given))) == 1
    grid = GridSearchCV(FairLogisticClassifier(), {"kappa": [0.08, 0.07, 0.06]}, cv=2)
    assert len(told(lambda: grid.fit(X, y, **given))) == 1
    assert grid.best_estimator_.decision_gap_ > grid.best_params_["kappa"] + 0.1


DOCUMENTS, RELEVANT, QUERY, QUALITY = make_biased_ranking(30, 8, random_state=1)


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
