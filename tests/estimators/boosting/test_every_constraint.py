"""Every constraint of the registry with boosted trees."""

import warnings

import numpy as np
import pytest
from _support.boosting import fitted, rows, small

from fairconstrained import ConstantDecisionWarning, InfeasibleConstraintWarning
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss, MinorityRate
from fairconstrained.utils.rounding import ROUNDING

KAPPA = 0.05
GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.5)}  # its kappa is a loss


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_bounds_on_scores_hold(name):
    clf = fitted(GIVEN.get(name, name), kappa=KAPPA)
    assert clf.result_.converged
    assert clf.violation_ <= clf.tol
    assert clf.kkt_residual_ <= clf.tol


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


def test_an_infeasible_bound_is_reported_with_its_violation():
    with pytest.warns(InfeasibleConstraintWarning, match="least violation is") as caught:
        clf = fitted(BoundedGroupLoss(0.05))
    assert f"{clf.violation_:.3g}" in str(caught[0].message)


def test_reference_rows_take_part_in_growing_and_meet_the_bound():
    X, y, groups = rows(2400)
    seen, later = slice(0, 1600), slice(1600, None)
    rule = MinorityRate(0.4, minority=0, reference=X[later], reference_groups=groups[later])
    clf = fitted(rule, (X[seen], y[seen], groups[seen]))
    share = clf.predict_proba(X[later])[:, 1]
    assert share[groups[later] == 0].sum() / share.sum() >= 0.4 - 1e-3
    assert clf.multipliers_[0] > 0.0
    assert clf.result_.converged


def test_rows_without_a_group_count_in_the_loss_only():
    X, y, groups = rows()
    known = groups.astype(float)
    known[::7] = np.nan
    clf = fitted("group_auc", (X, y, known), kappa=0.05, groups_missing="ignore_in_constraint")
    assert clf.violation_ <= 1e-4 and clf.result_.converged


@pytest.mark.filterwarnings("ignore:The same class is predicted")  # kappa is far below the usual
def test_curved_surrogates_of_pairs_do_not_make_boosting_diverge():
    X, y, groups = rows(4000, gap=0.6)
    groups = np.where(np.arange(4000) % 6 == 0, groups, 1)  # a small group
    data = np.column_stack([X, groups]), np.where(groups, y | (X[:, 1] > -1.0), y), groups
    clf = fitted("group_auc", data, kappa=0.01, n_estimators=60, num_leaves=15)
    assert clf.result_.converged and clf.violation_ <= 1e-4
    assert abs(clf.decision_function(data[0])).max() < 20.0


def test_many_similar_constraints_that_become_active_together_do_not_make_boosting_diverge():
    X, y, groups = rows(gap=0.6)
    fit = small("roc_parity", kappa=0.05).bind(X, y, None, groups)
    grown = fit.problem.at(fit.grown.first.w)
    assert fit.problem.n_constraints == 800
    assert grown.violation <= 0.02
    assert grown.objective < np.log(2.0)
