"""Fits on many rows start from a sample: the answer is that of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.estimators.solving import sampled_start
from fairconstrained.problem.kkt import KKT

N_ROWS = 140_000


@pytest.fixture(scope="module")
def rows():
    """Rows of two large groups and a rare one."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b", "rare"], N_ROWS, p=[0.6, 0.3995, 0.0005])
    X = rng.standard_normal((N_ROWS, 6), dtype=np.float32)
    X[:, 0] += groups == "a"
    y = X[:, :3].sum(axis=1) + rng.logistic(size=N_ROWS) > 0.5
    return X, y, groups


def fitted(rows, constraint, **options):
    X, y, groups = rows
    clf = FairLogisticClassifier(constraint, 0.02, **options)
    return clf.fit(X, y, sensitive_features=None if constraint is None else groups)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_a_fit_from_a_sample_has_the_solution_of_all_rows_in_fewer_passes(rows, constraint):
    clf, direct = fitted(rows, constraint), fitted(rows, constraint, solver="sqp")
    assert direct.result_.solver.__class__ is clf.result_.solver.__class__
    assert clf.result_.converged and clf.multipliers_.max() > 1e-2
    assert clf.violation_ <= clf.tol and clf.kkt_residual_ <= clf.tol
    assert_allclose(clf.objective_, direct.objective_, atol=1e-4)
    assert_allclose(clf.coef_, direct.coef_, atol=5e-3)
    assert clf.result_.data_passes < 0.7 * direct.result_.data_passes


def test_a_model_without_constraints_starts_from_a_sample(rows):
    clf, direct = fitted(rows, None), fitted(rows, None, solver="augmented-lagrangian")
    assert_allclose(clf.objective_, direct.objective_, atol=1e-8)
    assert_allclose(clf.coef_, direct.coef_, atol=1e-3)
    assert clf.result_.data_passes < 0.7 * direct.result_.data_passes


def test_a_fit_from_a_sample_is_the_same_every_time(rows):
    first, second = (fitted(rows, "demographic_parity") for _ in range(2))
    assert_array_equal(first.coef_, second.coef_)
    assert first.result_.data_passes == second.result_.data_passes


@pytest.mark.parametrize("options", [{"solver": "augmented-lagrangian"}, {"max_iter": 50}])
def test_methods_that_are_asked_for_start_where_they_say(rows, options):
    X, y, groups = rows
    clf = FairLogisticClassifier("demographic_parity", 0.02, **options)
    fit = clf.bind(X, y, None, groups)
    assert sampled_start(fit.solver, fit.problem, clf) is None


def test_few_rows_are_not_sampled(rows):
    X, y, groups = (values[:5000] for values in rows)
    clf = FairLogisticClassifier("demographic_parity", 0.02)
    fit = clf.bind(X, y, None, groups)
    assert sampled_start(fit.solver, fit.problem, clf) is None


@pytest.mark.parametrize("constraint", [None, "demographic_parity", "equalized_odds"])
def test_the_sample_costs_less_than_a_pass_and_leads_near_the_solution(rows, constraint):
    X, y, groups = rows
    clf = FairLogisticClassifier(constraint, 0.02)
    fit = clf.bind(X, y, None, None if constraint is None else groups)
    _, start = sampled_start(fit.solver, fit.problem, clf)
    assert 0.0 < start.data_passes < 1.0
    first = fit.problem.at(fit.problem.start())
    at = fit.problem.at(start.w)
    before = KKT.of(first, np.zeros(fit.problem.n_constraints)).residual
    assert KKT.of(at, start.multipliers).residual < 0.1 * before
    assert at.violation < 0.02


def test_constraints_with_nearly_equal_gradients_take_few_passes():
    X, y, groups = make_biased_classification(150_000, gap=0.3, random_state=0)
    clf = FairLogisticClassifier("equalized_odds", 0.02).fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and np.sum(clf.multipliers_ > 0.1) == 2
    assert clf.result_.data_passes < 12.0
