"""Fits end within their data passes, and are not worse than a feasible constant model."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fairconstrained import (
    ConvergenceWarning,
    FairHingeClassifier,
    FairLogisticClassifier,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.constraints import (
    CONSTRAINTS,
    BoundedGroupLoss,
    PartialDemographicParity,
    PredictiveEquality,
)
from fairconstrained.domains import L1Ball
from fairconstrained.estimators import safeguard
from fairconstrained.estimators.constant_models import least_constant_loss
from fairconstrained.estimators.fit import Fit
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.models.linear import LinearModel
from fairconstrained.solvers import (
    IPC,
    PLADA,
    SOLVERS,
    AugmentedLagrangian,
    ExactPenalty,
    LevelSearch,
    Smoothing,
    Solver,
    SwitchingSubgradient,
    default_solver,
)
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.result import Status
from fairconstrained.terms.cell_means import average

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
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "level-search"])
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
    assert f"This is the answer of {whose}; {own} ended at" in clf.result_.message


def test_the_message_says_that_a_constant_model_is_kept():
    clf = FairLogisticClassifier(None, solver="plada", max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the answer of a constant model; PLADA ended at"):
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


@pytest.mark.parametrize("seed", [3, 13])
def test_other_solvers_are_tried_for_the_least_unfairness_too(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((36, 20))
    t = X @ rng.standard_normal(20)
    y, groups = (t > np.quantile(t, 0.85)).astype(int), (np.arange(36) % 9 == 0).astype(int)
    clf = FairLogisticClassifier("partial_dp", goal="fairness", max_loss_increase=0.01)
    alone = clone(clf).set_params(solver=LevelSearch()).fit(X, y, sensitive_features=groups)
    clf.fit(X, y, sensitive_features=groups)
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
