"""`threshold=SelectionRate(share)`: the threshold selects a share of the training rows."""

import warnings

import numpy as np
import pytest
from _support.classifiers import EVERY, SINGLE
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import (
    ConvergenceWarning,
    FairLogisticClassifier,
    InfeasibleConstraintWarning,
    SelectionRate,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss

GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.65)}


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(600, 4, gap=0.3, random_state=0)


def fitted(name, rows, constraint="demographic_parity", share=0.2, **options):
    X, y, groups = rows
    clf = SINGLE[name](constraint, threshold=SelectionRate(share), **options)
    return clf.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
@pytest.mark.parametrize("name", ["logistic", "hinge", "boosting"])
def test_the_share_of_the_rows_is_selected(rows, name, share):
    X, _, groups = rows
    clf = fitted(name, rows, share=share, kappa=0.05)
    decided, scores = clf.predict(X), clf.decision_function(X).round(9)
    equal = np.unique(scores, return_counts=True)[1].max()  # leaves give equal scores
    assert decided.mean() == pytest.approx(share, abs=equal / len(X))
    assert clf.violation_ <= clf.tol
    rates = [decided[groups == k].mean() for k in (0, 1)]
    assert clf.decision_gap_ == pytest.approx(abs(rates[0] - rates[1]))


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_networks_select_the_share_of_the_rows_they_are_trained_on(rows):
    X, _, _ = rows
    clf = fitted("network", rows, kappa=0.1)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_every_constraint_holds_or_is_reported(rows, name):
    X, _, _ = rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = fitted("logistic", rows, GIVEN.get(name, name), kappa=0.05)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X))
    if name not in ("error_rate_parity", "weak_partial_dp"):  # no threshold is its own quantile
        assert clf.violation_ <= clf.tol
    if clf.violation_ > clf.tol:
        assert any(f"{clf.violation_:.3g}" in str(one.message) for one in caught)
        assert any(
            "the search for the threshold did not converge" in str(one.message) for one in caught
        )


def test_the_solution_is_that_of_a_fit_at_the_threshold_found(rows):
    X, y, groups = rows
    clf = fitted("logistic", rows, kappa=0.05)
    same = FairLogisticClassifier(kappa=0.05, threshold=clf.threshold_)
    same.fit(X, y, sensitive_features=groups)
    assert clf.multipliers_.max() > 0.01  # the constraint is active
    assert clf.objective_ == pytest.approx(same.objective_, abs=1e-4)
    assert clf.gap_ == pytest.approx(0.05, abs=1e-4)
    assert clf.result_.converged
    assert clf.kkt_residual_ <= 2e-4


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_decisions_meet_the_bound_and_the_share(rows, name, constraint):
    X, _, _ = rows
    clf = fitted(name, rows, constraint, kappa=0.08, enforce="decision")
    assert clf.decision_search_.met
    assert clf.decision_gap_ <= 0.08
    margin = 0.03 if name == "network" else 1e-9  # rows for validation are not counted
    assert 0.98 * 0.2 - 2.0 / len(X) - margin <= clf.predict(X).mean() <= 0.2 + margin
    assert len(clf.multipliers_) == 2


def test_weights_count(rows):
    X, y, groups = rows
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    weight[:20] = 0.0
    clf = FairLogisticClassifier(threshold=SelectionRate(0.3))
    clf.fit(X, y, weight, sensitive_features=groups)
    share = np.average(clf.predict(X), weights=weight)
    assert share == pytest.approx(0.3, abs=2.0 / weight.sum())


def test_the_favourable_label_is_the_one_selected(rows):
    X, y, groups = rows
    names = np.where(y > 0, "accept", "reject")
    one = fitted("logistic", rows)
    other = FairLogisticClassifier(threshold=SelectionRate(0.2), pos_label="accept")
    other.fit(X, names, sensitive_features=groups)
    assert_array_equal(other.predict(X) == "accept", one.predict(X) == 1)
    assert other.threshold_ == pytest.approx(one.threshold_)


def test_without_constraints_it_is_the_quantile(rows):
    X, y, _ = rows
    clf = FairLogisticClassifier(None, threshold=SelectionRate(0.25)).fit(X, y)
    plain = FairLogisticClassifier(None).fit(X, y)
    assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=0.02)
    assert clf.threshold_ == pytest.approx(np.quantile(clf.predict_proba(X)[:, 1], 0.75), abs=0.01)


def test_least_unfairness_at_a_share(rows):
    X, _, _ = rows
    clf = fitted("logistic", rows, goal="fairness", max_loss_increase=0.02)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X))
    assert clf.violation_ <= 1e-4


def test_copies(rows):
    clf = fitted("logistic", rows)
    assert clone(clf).threshold.rate == 0.2
    assert "SelectionRate(rate=0.2)" in repr(clf)
    assert clf.set_params(threshold__rate=0.4).threshold.rate == 0.4


def test_a_bound_and_a_share_that_exclude_each_other_are_reported(rows):
    X, y, groups = rows
    odd = np.where(np.arange(len(y)) < 3, 2, groups)  # three rows: rates are thirds
    clf = FairLogisticClassifier(kappa=0.01, threshold=SelectionRate(0.2), enforce="decision")
    with pytest.warns((InfeasibleConstraintWarning, ConvergenceWarning), match="violation"):
        clf.fit(X, y, sensitive_features=odd)
    assert not clf.decision_search_.met


@pytest.mark.parametrize("wrong", [0.0, 1.0, "half", None, True])
@pytest.mark.parametrize("name", SINGLE)
def test_wrong_shares_are_named(rows, name, wrong):
    with pytest.raises(ValueError, match="SelectionRate: rate must be a number between 0 and 1"):
        fitted(name, rows, share=wrong)


def test_options_that_need_a_fixed_threshold(rows):
    X, y, groups = rows
    share = SelectionRate(0.2)
    sure = FairLogisticClassifier(threshold=share, enforce="decision", confidence=0.9)
    with pytest.raises(ValueError, match="is for decisions at a fixed threshold"):
        sure.fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="needs an intercept"):
        FairLogisticClassifier(threshold=share, fit_intercept=False).fit(
            X, y, sensitive_features=groups
        )
    with pytest.raises(ValueError, match="the models of a path have one threshold"):
        fairness_path(FairLogisticClassifier(threshold=share), X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="the models of a path have one threshold"):
        EVERY["cv"](threshold=share).fit(X, y, sensitive_features=groups)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    with pytest.raises(ValueError, match="not available for dask collections"):
        DaskClassifier(threshold=share).fit(da.from_array(X), da.from_array(y))


def test_equal_scores():
    rate, ones = SelectionRate(0.5), np.ones(4)
    assert rate.cut(np.array([1.0, 1.0, 1.0, 1.0]), ones) == 1.0
    assert rate.cut(np.array([0.0, 1.0, 1.0, 1.0]), ones) == 0.5
    assert rate.cut(np.array([3.0, 0.0, 1.0, 2.0]), ones) == 1.5
