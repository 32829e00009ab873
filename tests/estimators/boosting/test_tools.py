"""FairBoostingClassifier with predictions bound, on paths, in searches and in reports."""

import warnings

import numpy as np
import pandas as pd
import pytest
from _support.boosting import fitted, rows, small
from numpy.testing import assert_allclose

from fairconstrained import (
    ConstantDecisionWarning,
    FairBoostingClassifier,
    InfeasibleConstraintWarning,
    fairness_path,
)
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss, MinorityRate
from fairconstrained.utils.numerics import ROUNDING

DATA = X, Y, GROUPS = rows()


def test_trees_whose_predictions_meet_the_bound_are_kept_as_they_are():
    X, y, groups = data = rows(4000)
    clf = fitted("error_rate_parity", data, kappa=0.05, enforce="decision", n_estimators=40)
    search = clf.decision_search_
    assert search.met and search.n_solves == 0
    wrong = clf.predict(X) != y
    assert abs(wrong[groups == 0].mean() - wrong[groups == 1].mean()) <= 0.05
    assert 30 < clf.n_estimators_ <= 40
    assert clf.result_.converged and "were not fitted again" in clf.result_.message


def test_a_path_refits_the_same_trees():
    path = fairness_path(
        small(), X, Y, sensitive_features=GROUPS, n_kappas=5,
        X_val=X[:500], y_val=Y[:500], sensitive_features_val=GROUPS[:500],
    )  # fmt: skip
    assert set(path.statuses) == {"converged"}
    assert np.all(np.diff(path.objectives) > -1e-6)
    assert_allclose(path.gaps[1:], path.kappas[1:], atol=1e-4)
    last = path.estimator_at(-1)
    assert_allclose(last.booster_.predict(X, raw_score=True), last.decision_function(X), atol=1e-12)
    trees = [
        [tree["tree_structure"]["split_feature"] for tree in one.booster_.dump_model()["tree_info"]]
        for one in path.estimators
    ]
    assert all(one == trees[0] for one in trees)
    with pytest.raises(AttributeError, match="coef_"):
        _ = path.coefs


KAPPA = 0.05
GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.5)}  # its kappa is a loss


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_bounds_on_predictions_hold_or_are_reported(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = fitted(GIVEN.get(name, name), kappa=KAPPA, enforce="decision")
    search = clf.decision_search_
    if not search.met or search.constant:
        kinds = InfeasibleConstraintWarning, ConstantDecisionWarning
        (message,) = [str(one.message) for one in caught if issubclass(one.category, kinds)]
        assert f"training accuracy {search.accuracy:.3f}" in message
    assert (search.violation == 0.0) == search.met
    if search.met:
        assert clf.result_.zero_one_violation <= ROUNDING


def test_reference_rows_take_part_in_growing_and_meet_the_bound():
    X, y, groups = rows(2400)
    seen, later = slice(0, 1600), slice(1600, None)
    rule = MinorityRate(0.4, minority=0, reference=X[later], reference_groups=groups[later])
    clf = fitted(rule, (X[seen], y[seen], groups[seen]))
    share = clf.predict_proba(X[later])[:, 1]
    assert share[groups[later] == 0].sum() / share.sum() >= 0.4 - 1e-3
    assert clf.multipliers_[0] > 0.0
    assert clf.result_.converged


pytest.importorskip("lightgbm", reason="the extra boosting is not installed")

TREES = {"n_estimators": 30, "n_jobs": 1}


@pytest.fixture(scope="module")
def risen():
    """Labels that rise and fall in both columns, and depend on a group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    groups = (rng.random(1500) < 0.5).astype(int)
    score = X[:, 0] + 0.5 * np.sin(4.0 * X[:, 0]) - X[:, 1] + 0.5 * np.sin(4.0 * X[:, 1])
    return X, (score + 0.8 * (groups - 0.5) > 0).astype(int), groups


def changes(scores_of, column):
    """Return the steps of the scores along a column, from the lowest to the highest value."""
    X = np.random.default_rng(1).normal(size=(50, 3))
    scores = []
    for value in np.linspace(-2.0, 2.0, 31):
        X[:, column] = value
        scores.append(scores_of(X))
    return np.diff(scores, axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"enforce": "decision"},
        {"goal": "fairness"},
        {"pos_label": 0, "monotone_constraints": [-1, 1, 0]},
        {"constraint": None},
        {"n_fitted_trees": None, "kappa": 0.01},
    ],
)
def test_scores_are_monotone_and_meet_the_bound(risen, options):
    X, y, groups = risen
    options = {"monotone_constraints": [1, -1, 0], **options}
    clf = FairBoostingClassifier(**TREES, **options).fit(X, y, sensitive_features=groups)
    assert changes(clf.decision_function, 0).min() >= -1e-12
    assert changes(clf.decision_function, 1).max() <= 1e-12
    assert clf.bound_met_ is not False and clf.result_.converged


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"age": 1}, "monotone_constraints: X has no column 'age'"),
        ({"b": 2}, "got 2 for 'b'"),
        ({"c": 1}, "got 1 for 'c' of a categorical column"),
    ],
)
def test_messages(risen, constraints, said):
    X, y, groups = risen
    table = pd.DataFrame(X, columns=list("abc")).assign(c=np.where(X[:, 2] > 0, "u", "v"))
    clf = FairBoostingClassifier(
        monotone_constraints=constraints, categorical_features=["c"], **TREES
    )
    with pytest.raises(ValueError, match=said):
        clf.fit(table, y, sensitive_features=groups)
