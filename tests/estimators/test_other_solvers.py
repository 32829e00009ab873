"""Which solver's answer a fit returns where that of its own violates the constraints or is poor."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fairconstrained import (
    ConvergenceWarning,
    FairHingeClassifier,
    FairLogisticClassifier,
    make_biased_classification,
)
from fairconstrained.constraints import PredictiveEquality
from fairconstrained.estimators import safeguard
from fairconstrained.estimators.fit import Fit
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.solvers import (
    IPC,
    PLADA,
    AugmentedLagrangian,
    ExactPenalty,
    Smoothing,
    Solver,
    SwitchingSubgradient,
    default_solver,
)
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.result import Status

X, Y, GROUPS = make_biased_classification(400, gap=0.4, random_state=0)
RARE = (np.arange(400) % 20 == 0).astype(int)


class StopsAt(Solver):
    """A solver that ends at a given point, short of its tolerance."""

    def __init__(self, w, *, max_iter=1, tol=1e-4):
        self.w = w
        self.max_iter = max_iter
        self.tol = tol

    def iterate(self, problem, start):
        yield Iterate(problem.at(self.w), None, 1)


@pytest.mark.parametrize(
    "status, tried", [(Status.INFEASIBLE, True), (Status.ITERATION_LIMIT, False)]
)
def test_a_second_solver_is_tried_before_a_fit_with_max_iter_is_called_infeasible(status, tried):
    """A user who limits the iterations gets what they reach, but no false claim."""
    estimator = FairLogisticClassifier(max_iter=1)
    fit = Fit.of(estimator, X, Y, None, GROUPS)
    result, at = AugmentedLagrangian(max_iter=1, polish=False).solve(fit.problem)
    assert result.violation > result.solver.tol
    known = replace(result, status=status), at
    found, _ = safeguard.solve(result.solver, fit.problem, estimator, known=known)
    assert found.violation <= found.solver.tol  # a constant model where no other solver is tried
    assert found.converged == tried


@pytest.mark.parametrize(
    "objective, status, preferred",
    [
        (0.999, Status.CONVERGED, True),
        (0.999, Status.STALLED, False),
        (0.99, Status.STALLED, False),
        (0.97, Status.STALLED, True),
        (1.1, Status.CONVERGED, False),
    ],
)
def test_an_answer_that_has_not_converged_must_be_clearly_better(objective, status, preferred):
    fit = Fit.of(FairLogisticClassifier(), X, Y, None, GROUPS)
    result = AugmentedLagrangian().minimize(fit.problem)
    assert result.converged
    found = replace(result, objective=objective * result.objective, status=status)
    assert safeguard._is_preferred(found, result) == preferred
    assert safeguard._is_preferred(result, found) != preferred


@pytest.mark.parametrize("seed", [0, 4, 6, 10])
def test_a_second_solver_is_tried_where_multipliers_are_large(seed):
    """On separable data with kappa = 0 the default solver alone ends at poor local solutions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 5))
    t = X @ rng.standard_normal(5)
    y, groups = (t > np.quantile(t, 0.92)).astype(int), rng.integers(0, 3, 150)
    clf = FairLogisticClassifier("predictive_equality", kappa=0.0)
    problem = Fit.of(clf, X, y, None, groups).problem
    alone, other = default_solver(problem).minimize(problem), ExactPenalty().minimize(problem)
    clf.fit(X, y, sensitive_features=groups)
    assert other.objective < 0.9 * alone.objective
    assert clf.result_.converged
    assert clf.objective_ <= other.objective + 1e-9
    whose, own = (type(one).__name__ for one in (clf.result_.solver, default_solver(problem)))
    assert whose in ("IPC", "ExactPenalty")
    assert f"The model is that of {whose}; {own} ended at" in clf.result_.message


def test_the_message_says_that_a_constant_model_is_kept():
    clf = FairLogisticClassifier(None, solver="plada", max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="The model is constant; PLADA ended at"):
        clf.fit(X, RARE)


@pytest.mark.parametrize(
    ("solver", "kept"),
    [
        (StopsAt(np.ones(X.shape[1] + 1)), False),
        (PLADA(max_iter=1, polish=False), True),
        (PLADA.paper(max_iter=1), True),
    ],
)
def test_the_answer_of_an_object_that_does_not_polish_is_kept(solver, kept):
    assert solver.replaceable is not kept and Smoothing(solver).replaceable is not kept
    """So that an estimator with `paper()` has the answer of the printed algorithm."""
    clf = FairLogisticClassifier("demographic_parity", 0.0, solver=solver)
    problem = Fit.of(clf, X, Y, None, GROUPS).problem
    start = Start(np.ones(problem.n_variables))
    alone = solver.minimize(problem, start.w)
    found, _ = safeguard.solve(solver, problem, clf, warm=start)
    assert alone.violation > solver.tol
    if kept:
        assert_allclose(found.w, alone.w)
        assert found.violation == alone.violation
    else:
        assert found.violation <= solver.tol
        assert f"; {type(solver).__name__} ended at" in found.message


def few_rows(seed):
    """Return separable rows, fewer than 40 for each variable, and three groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 8))
    t = X @ rng.standard_normal(8)
    return X, (t > np.quantile(t, 0.8)).astype(int), rng.integers(0, 3, 90)


@pytest.mark.parametrize("solver", ["auto", "augmented-lagrangian"])
@pytest.mark.parametrize(
    ("constraint", "kappa", "seeds", "other"),
    [
        ("partial_dp", 0.1, (1, 21, 10, 5, 8, 33), IPC()),
        ("partial_dp", 0.1, (10, 1, 21, 5, 8, 33), ExactPenalty()),
        ("weak_partial_dp", 0.05, (26, 5, 8, 33), Smoothing(ExactPenalty())),
    ],
)
def test_other_solvers_are_tried_with_few_rows(constraint, kappa, seeds, other, solver):
    """The best solution is another solver's where the default one ends at a poor local solution.

    Where that is the case depends on the last digits: the first such rows are taken.
    """
    clf = FairLogisticClassifier(constraint, kappa, alpha=1e-6, solver=solver)
    for seed in seeds:
        X, y, groups = few_rows(seed)
        problem = Fit.of(clf, X, y, None, groups).problem
        alone, best = default_solver(problem).minimize(problem), other.minimize(problem)
        if best.converged and best.objective < 0.9 * alone.objective:
            break
    else:
        pytest.fail("the default solver alone ends at a good solution with all seeds")
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and clf.objective_ <= 1.001 * best.objective


@pytest.mark.parametrize("seed", [33, 47])
def test_other_solvers_are_tried_with_few_rows_and_variables(seed):
    """180 rows with two binary features have several local solutions."""
    rng = np.random.RandomState(seed)
    X = (rng.uniform(size=(180, 2)) < 0.5).astype(float)
    groups = rng.choice(3, 180, p=[0.55, 0.35, 0.1])
    y = (X[:, 0] + 0.8 * (groups == 0) + rng.normal(size=180) > 0.9).astype(int)
    constraint = PredictiveEquality(0.02, against="overall", surrogate=Sigmoid(0.3))
    clf = FairLogisticClassifier(constraint)
    problem = Fit.of(clf, X, y, None, groups).problem
    alone = default_solver(problem).minimize(problem)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and clf.objective_ < 0.99 * alone.objective


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("kappa", [0.0, 0.02])
def test_solvers_chosen_by_name_end_at_the_same_solution_with_few_rows(kappa, seed):
    """Each also tries the others, and the default one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((51, 12))
    t = X @ rng.standard_normal(12)
    y, groups = (t > np.quantile(t, 0.6)).astype(int), rng.integers(0, 2, 51)
    objectives = []
    for solver in ("auto", "ipc", "exact-penalty", "smoothing"):
        clf = FairHingeClassifier("weak_partial_dp", kappa, solver=solver)
        objectives.append(clf.fit(X, y, sensitive_features=groups).objective_)
        assert clf.result_.converged
    assert np.ptp(objectives) <= 1e-3 * np.min(objectives)


def test_the_solver_of_the_fit_goes_on_where_another_one_stops_at_a_better_point(monkeypatch):
    X, y, groups = few_rows(0)
    clf, strict = (FairLogisticClassifier("demographic_parity", kappa) for kappa in (0.1, 0.05))
    problem, stricter = (Fit.of(one, X, y, None, groups).problem for one in (clf, strict))
    solver = default_solver(problem)
    inside = solver.minimize(stricter).w
    assert not StopsAt(inside).minimize(problem).converged
    best, at = solver.solve(problem)
    poor = replace(best, objective=1.5 * best.objective)
    monkeypatch.setattr(safeguard, "_others", lambda problem, tol: [StopsAt(inside)])
    found, _ = safeguard.solve(solver, problem, clf, known=(poor, at))
    assert found.converged and isinstance(found.solver, type(solver))
    assert found.objective == pytest.approx(best.objective, rel=1e-4)
    assert found.data_passes > best.data_passes + 1


def test_other_solvers_are_tried_for_the_least_unfairness_too():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((36, 20))
    t = X @ rng.standard_normal(20)
    y, groups = (t > np.quantile(t, 0.85)).astype(int), (np.arange(36) % 9 == 0).astype(int)
    clf = FairLogisticClassifier("partial_dp", goal="fairness", max_loss_increase=0.01)
    solver = SwitchingSubgradient()
    alone = clone(clf).set_params(solver=solver).fit(X, y, sensitive_features=groups)
    clf.set_params(solver="ssg").fit(X, y, sensitive_features=groups)
    assert alone.result_.converged and clf.result_.converged and clf.violation_ <= 1e-4
    assert clf.result_.objective <= 0.93 * alone.result_.objective


def test_solvers_that_are_objects_are_left_alone():
    X, y, groups = few_rows(1)
    clf = FairLogisticClassifier("partial_dp", 0.1, alpha=1e-6, solver=AugmentedLagrangian())
    alone = AugmentedLagrangian().minimize(Fit.of(clf, X, y, None, groups).problem)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.objective_ == pytest.approx(alone.objective, rel=1e-9)


def test_a_problem_whose_constraints_are_met_far_away_is_not_called_infeasible():
    """The bound on the loss is met far away: the gradient of the violation is small before."""
    rng = np.random.default_rng(22)
    n = int(rng.integers(40, 120))
    X = rng.standard_normal((n, 11))
    t = 5.0 * X @ rng.standard_normal(11)
    y = (rng.logistic(size=n) < t - np.quantile(t, 0.88)).astype(int)
    groups = (np.arange(n) % 30 == 0).astype(int)
    clf = FairLogisticClassifier("bounded_group_loss", alpha=0.1)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and clf.violation_ <= 1e-4
