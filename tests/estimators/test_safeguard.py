"""Fits end within their data passes, and are not worse than a feasible constant model."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairconstrained import (
    ConvergenceWarning,
    FairLogisticClassifier,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.constraints import (
    CONSTRAINTS,
    BoundedGroupLoss,
    PartialDemographicParity,
)
from fairconstrained.domains import L1Ball
from fairconstrained.estimators import safeguard
from fairconstrained.estimators.constant_models import least_constant_loss
from fairconstrained.estimators.fit import Fit
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.solvers import (
    IPC,
    SOLVERS,
    AugmentedLagrangian,
    ExactPenalty,
    SwitchingSubgradient,
)
from fairconstrained.solvers.result import Status
from fairconstrained.terms.cell_means import average

X, Y, GROUPS = make_biased_classification(400, gap=0.4, random_state=0)
RARE = (np.arange(400) % 20 == 0).astype(int)


def best_constant_loss(y):
    share = y.mean()
    return -(share * np.log(share) + (1.0 - share) * np.log(1.0 - share))


def test_constants_at_the_edge_of_the_bound_are_found():
    """The best feasible constant lies between the levels that are tried first."""
    y = np.where(np.arange(400) % 20 == 0, 1, 0)
    bound = BoundedGroupLoss(0.3, loss="logistic")
    clf = FairLogisticClassifier(bound, loss="squared_hinge", solver="plada", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y, sensitive_features=GROUPS)
    levels = np.linspace(-4.0, 0.0, 4001)
    groups = [y[group == GROUPS].mean() for group in np.unique(GROUPS)]
    met = [np.logaddexp(0, s) - share * s <= 0.3 for share in groups for s in [levels]]
    feasible = levels[np.all(met, axis=0)]
    share = y.mean()
    loss = share * np.maximum(0, 1 - feasible) ** 2 + (1 - share) * np.maximum(0, 1 + feasible) ** 2
    assert clf.violation_ <= 1e-4
    assert clf.objective_ <= loss.min() / 2.0 + 1e-3


def test_without_a_constraint_that_reads_rows_a_constant_is_not_better():
    """Every cell of the constraint is empty: the problem has no constraints."""
    y = (np.arange(400) % 20 == 0).astype(int)
    clf = FairLogisticClassifier(None, solver="plada", max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    assert clf.objective_ <= 1.001 * best_constant_loss(y)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_one_iteration_is_not_worse_than_a_constant(solver):
    clf = FairLogisticClassifier(PartialDemographicParity(ranks=(0.0, 0.25)), kappa=0.02)
    clf.set_params(solver=solver, max_iter=1, random_state=0)
    clf.fit(X, RARE, sensitive_features=GROUPS)
    assert clf.violation_ <= 1e-4
    assert clf.objective_ <= 1.001 * best_constant_loss(RARE)


def test_the_figures_are_those_of_the_model_that_is_kept():
    clf = FairLogisticClassifier(kappa=0.0, solver="ssg", max_iter=1, domain=L1Ball(0.5))
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, RARE, sensitive_features=GROUPS)
    scores = clf.decision_function(X)
    loss = np.logaddexp(0.0, -np.where(RARE, 1, -1) * scores).mean()
    assert clf.objective_ == pytest.approx(loss + 0.5e-4 * (clf.coef_**2).sum(), rel=1e-9)
    assert clf.result_.objective == pytest.approx(clf.objective_, rel=1e-9)


def test_a_bad_answer_is_left_for_a_better_one():
    """A solver that stops at a model worse than all constants; the default one goes on."""
    estimator = FairLogisticClassifier(solver="ssg")
    fit = Fit.of(estimator, X, RARE, None, GROUPS)
    bad = SwitchingSubgradient(max_iter=1, tol=1e-4, polish=False)
    found, at = safeguard.solve(bad, fit.problem, estimator)
    assert at.objective == pytest.approx(found.objective)
    alone = bad.minimize(fit.problem)
    assert alone.objective > best_constant_loss(RARE)
    assert found.violation <= 1e-4 and found.objective < best_constant_loss(RARE)
    assert found.data_passes > alone.data_passes


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_models_of_several_classes_have_thresholds_of_their_own(fit_intercept):
    constraint = PartialDemographicParity(0.05, ranks=(0.7, 1.0))
    y = np.arange(400) % 7 // 2  # shares of 2/7 and 1/7
    clf = FairLogisticClassifier(constraint, solver="plada", max_iter=1, random_state=0)
    clf.set_params(fit_intercept=fit_intercept)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y, sensitive_features=GROUPS)
    shares = np.bincount(y) / len(y)
    best = -(shares @ np.log(shares)) if fit_intercept else np.log(4.0)
    assert clf.violation_ <= 1e-4
    assert clf.objective_ <= best + 1e-6


def test_default_fits_end_at_their_data_passes(monkeypatch):
    monkeypatch.setattr(safeguard, "_PASSES", 3.0)
    with pytest.warns(ConvergenceWarning, match="data pass limit"):
        clf = FairLogisticClassifier(kappa=0.01)
        clf.fit(X[:, :5], Y, sensitive_features=GROUPS)  # many rows for each coefficient
    assert clf.result_.data_passes <= 2.0 * safeguard.data_pass_limit(_problem(), 1e-4)


def test_one_iteration_keeps_to_the_limit_as_well(monkeypatch):
    monkeypatch.setattr(safeguard, "_PASSES", 3.0)
    with pytest.warns(ConvergenceWarning):
        clf = FairLogisticClassifier(kappa=0.01, max_iter=1).fit(X, Y, sensitive_features=GROUPS)
    assert clf.result_.data_passes <= 2.0 * safeguard.data_pass_limit(_problem(), 1e-4)


def test_more_iterations_than_the_default_raise_the_limit(monkeypatch):
    monkeypatch.setattr(safeguard, "_PASSES", 3.0)
    clf = FairLogisticClassifier(kappa=0.01, max_iter=10_000).fit(X, Y, sensitive_features=GROUPS)
    assert clf.result_.converged


def test_points_of_a_path_keep_to_the_limit(monkeypatch):
    monkeypatch.setattr(safeguard, "_PASSES", 1.0)
    with pytest.warns(ConvergenceWarning, match="data pass limit"):
        path = fairness_path(
            FairLogisticClassifier(), X[:, :5], Y, sensitive_features=GROUPS, kappas=[0.1, 0.01]
        )
    assert np.all(path.data_passes <= 5.0 * safeguard.data_pass_limit(_problem(), 1e-4))


def test_points_of_a_path_are_not_worse_than_a_constant():
    """Few iterations in a small ball end worse than the best constant."""
    clf = FairLogisticClassifier(solver="plada", max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        path = fairness_path(clf, X, RARE, sensitive_features=GROUPS, kappas=[0.1, 0.05, 0.001])
    for k in range(3):
        assert path.estimator_at(k).violation_ <= 1e-4
        assert path.estimator_at(k).objective_ <= 1.001 * best_constant_loss(RARE)


def test_the_limit_grows_with_constraints_and_accuracy():
    problem = _problem()
    free = problem.with_constraints([])
    assert safeguard.data_pass_limit(free, 1e-4) < safeguard.data_pass_limit(problem, 1e-4)
    assert safeguard.data_pass_limit(problem, 1e-4) < safeguard.data_pass_limit(problem, 1e-6)


def _problem():
    return Fit.of(FairLogisticClassifier(), X, Y, None, GROUPS).problem


def test_the_least_constant_loss_of_a_term_is_the_same_every_time():
    y, weight = np.array([1.0, 1.0, -1.0]), np.array([1.0, 2.0, 1.0])
    term, model = average(Logistic(), y, weight), LinearModel(np.zeros((3, 1)))
    expected = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    first = least_constant_loss(term, model)
    assert_allclose(first, expected, atol=1e-3)
    assert least_constant_loss(term, model) == first
    other = average(Logistic(), y, np.ones(3))
    assert least_constant_loss(other, model) != first


@pytest.mark.parametrize("name", sorted(set(CONSTRAINTS) - {"query_parity"}))
def test_a_higher_limit_of_iterations_is_that_of_the_chosen_solver_only(name):
    """Other solvers make no more data passes than a usual fit."""
    clf = FairLogisticClassifier(name)
    problem = Fit.of(clf, X[:50], Y[:50], None, GROUPS[:50]).problem
    usual = safeguard.data_pass_limit(problem, 1e-4)
    for limit in (None, usual, 10.0 * usual):
        assert safeguard._other_passes(problem, 1e-4, limit) <= usual
    assert safeguard._other_passes(problem, 1e-4, 5.0) == 5.0


def test_all_other_solvers_together_have_a_limit(monkeypatch):
    made = []

    def never_converges(self, problem, *, warm=None, max_data_passes=None, **options):
        made.append(max_data_passes)
        at = problem.at(problem.start())
        result = AugmentedLagrangian().minimize(problem)
        return replace(result, data_passes=max_data_passes, status=Status.PASS_LIMIT), at

    clf = FairLogisticClassifier("demographic_parity", 0.0)
    problem = Fit.of(clf, X[:50], Y[:50], None, GROUPS[:50]).problem
    found = AugmentedLagrangian().solve(problem)
    monkeypatch.setattr(ExactPenalty, "solve", never_converges)
    monkeypatch.setattr(IPC, "solve", never_converges)
    safeguard.solve(AugmentedLagrangian(), problem, clf, known=found)
    assert made and sum(made) <= 2.0 * safeguard.data_pass_limit(problem, 1e-4)


def test_an_infeasible_answer_is_moved_towards_a_constant_model():
    clf = FairLogisticClassifier(kappa=0.02, solver="plada", max_iter=1)
    fit = Fit.of(clf, X, Y, None, GROUPS)
    free = fit.unconstrained.result
    at = fit.problem.at(free.w)
    known = replace(free, solver=fit.solver, violation=at.violation, status=Status.ITERATION_LIMIT)
    found, there = safeguard.solve(fit.solver, fit.problem, clf, known=(known, at))
    assert at.violation > 0.1
    assert found.violation <= found.solver.tol
    assert found.objective < best_constant_loss(Y) - 1e-3
    assert "between a constant model and that of the solver" in found.message
    assert found.data_passes > known.data_passes
    assert there.objective == found.objective
