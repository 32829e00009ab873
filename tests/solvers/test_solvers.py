"""Every solver on every problem, against scipy, and what SQP does besides."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, rate_between, reference
from numpy.testing import assert_allclose

import fairconstrained as fc
from fairconstrained import constraints, solvers
from fairconstrained.constraints.base import Constraint
from fairconstrained.problem import Problem
from fairconstrained.problem.kkt import KKT
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.curvature import QuasiNewton
from fairconstrained.solvers.sqp import next_step
from fairconstrained.utils.arrays import capped_dual

# Relative error of the objective that is allowed, of solvers that are to end converged.
EXACT = {"idca": 1e-3, "exact-penalty": 1e-3}
EXACT |= dict.fromkeys(("ipc", "augmented-lagrangian", "sqp", "smoothing"), 1e-4)
INFEASIBLE = {
    "contradiction": rate_between(0.6, 0.2),
    "ball": rate_between(0.97, 0.99, fc.domains.L2Ball(0.5)),
    "box": rate_between(0.97, 0.99, fc.domains.Box(-0.2, 0.2)),
}
SLOW = ("3s-econ-stochastic", "plada-stochastic", "idca-stochastic", "ssg-stochastic", "ipp-conex")
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in solvers.SOLVERS]


@cache
def solution(name: str) -> float:
    return reference(PROBLEMS[name]())


@pytest.mark.parametrize("increase", [0.001, 0.05])
@pytest.mark.parametrize("problem_name", ["demographic parity", "equalized odds, 3 groups"])
def test_the_least_unfairness_is_what_scipy_finds(problem_name: str, increase: float) -> None:
    problem = PROBLEMS[problem_name]()
    best = solvers.AugmentedLagrangian(tol=1e-7).minimize(problem.with_constraints(()))
    epigraph = problem.epigraph((1.0 + increase) * best.objective)
    solver = solvers.default_solver(epigraph)
    result = solver.minimize(epigraph)
    assert isinstance(solver, solvers.SQP)
    assert result.status is solvers.Status.CONVERGED
    assert result.objective == pytest.approx(reference(epigraph), abs=1e-4)
    assert epigraph.at(result.w).constraints[-1] > -1e-4, "the constraint on the loss is active"
    assert KKT.of(epigraph.at(result.w), result.multipliers).holds(1e-4)


@pytest.mark.parametrize("problem_name", PROBLEMS)
@pytest.mark.parametrize("solver_name", NAMES)
def test_solver_finds_the_solution_that_scipy_finds(solver_name: str, problem_name: str) -> None:
    problem = PROBLEMS[problem_name]()
    result = solvers.SOLVERS[solver_name]().minimize(problem, random_state=0)
    expected, error = solution(problem_name), EXACT.get(solver_name, 1e-2)
    assert result.violation <= 1e-4
    assert abs(result.objective - expected) <= error * abs(expected)
    assert np.allclose(problem.domain.project(result.w), result.w, atol=1e-12)
    at = problem.at(result.w)
    kkt = KKT.of(at, result.multipliers)
    assert kkt.residual == pytest.approx(result.kkt_residual, rel=1e-9, abs=1e-15)
    assert kkt.violation == pytest.approx(result.violation, abs=1e-15)
    if solver_name in EXACT:
        assert result.status is solvers.Status.CONVERGED
        assert result.kkt_residual <= 1e-4
    if problem.n_constraints:
        assert at.constraints.max() > -1e-2, "no constraint is active"
        assert np.all(result.multipliers >= 0.0)
        assert result.multipliers.max() > 0.0


def test_automatic_takes_the_first_preferred_one() -> None:
    assert isinstance(solvers.default_solver(PROBLEMS["demographic parity"]()), solvers.SQP)
    assert isinstance(solvers.default_solver(PROBLEMS["truncated logistic"]()), solvers.SQP)
    assert isinstance(solvers.default_solver(PROBLEMS["L2 ball"]()), solvers.SQP)
    assert isinstance(solvers.default_solver(NON_SMOOTH["hinge"]()), solvers.Smoothing)
    assert isinstance(solvers.default_solver(NON_SMOOTH["ramp"]()), solvers.Smoothing)


@pytest.mark.parametrize("kind", [solvers.IPC, solvers.AugmentedLagrangian, solvers.SQP])
def test_mismatch_names_what_is_missing_and_who_can(kind: type[solvers.Solver]) -> None:
    with pytest.raises(fc.IncompatibleSolverError, match=r"functions:.*smoothing") as raised:
        kind().minimize(NON_SMOOTH["ramp"]())
    can = str(raised.value).split("use one of the solvers ")[1].rstrip(".").split(", ")
    assert can == solvers.available_solvers(NON_SMOOTH["ramp"]())
    assert can[0] == "smoothing"
    assert not {"ipc", "augmented-lagrangian", "ipp-ssg", "exact-penalty"} & set(can)


@pytest.mark.parametrize("solver_name", NAMES)
@pytest.mark.parametrize("problem", INFEASIBLE.values(), ids=INFEASIBLE)
def test_infeasible_problem_is_distinguished_from_a_slow_one(solver_name: str, problem) -> None:
    result = solvers.SOLVERS[solver_name]().minimize(problem, random_state=0)
    assert result.status is solvers.Status.INFEASIBLE
    assert result.violation > 0.05
    assert "loosen the bound (kappa" in result.message


CONTRADICTED = [
    *((solvers.SQP(memory=memory), 1e-5) for memory in (None, 30, 0)),
    (solvers.IPC(), 1e-2),
    (solvers.IDCA(), 1e-2),
    (solvers.IDCA(solvers.ConEx(max_iter=100)), 1e-2),
    (solvers.IDCA(solvers.OnlineStochastic(batch_size=64, max_iter=60, check_every=60)), 1e-2),
    (solvers.OnlineStochastic(batch_size=64, max_iter=1000), 2e-2),
    (solvers.SwitchingSubgradient(), 2e-2),
]


@pytest.mark.cases(len(CONTRADICTED))
@pytest.mark.parametrize(("solver", "error"), CONTRADICTED, ids=str)
def test_a_contradiction_ends_at_its_least_violation(solver: solvers.Solver, error: float) -> None:
    """The rate of all rows is to be at least .6 and at most .2."""
    result = solver.minimize(rate_between(0.6, 0.2), random_state=0)
    assert result.status is solvers.Status.INFEASIBLE
    assert result.violation == pytest.approx(0.2, abs=error)
    assert np.linalg.norm(result.w) < 100.0


X, Y, QUERY, GROUPS = fc.make_biased_ranking(6, 3, n_documents=30, random_state=0)


def ranking_problem() -> Problem:
    ranker = fc.FairRanker(constraints.QueryParity(0.05, loss="logistic"), alpha=1e-2)
    return ranker.bind(X, Y, None, GROUPS, query=QUERY).problem


@cache
def best_ranking() -> float:
    return reference(ranking_problem())


@pytest.mark.parametrize("name", solvers.SOLVERS)
def test_a_ranking_problem_with_two_constraints_per_query(name: str) -> None:
    problem = ranking_problem()
    result = solvers.SOLVERS[name]().minimize(problem, random_state=0)
    assert result.converged
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(best_ranking(), rel=1e-3)
    assert problem.at(result.w).constraints.max() > -1e-3, "no constraint is active"
    assert KKT.of(problem.at(result.w), result.multipliers).holds(1e-4)


@pytest.mark.filterwarnings("ignore:kappa=0.5 is not used")
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
@pytest.mark.parametrize("constraint", constraints.CLASSIFIER_CONSTRAINTS)
def test_ipc_chosen_by_name_refuses_no_constraint(constraint: str, surrogate: str) -> None:
    X, y, groups = fc.make_biased_classification(120, 3, random_state=0)
    options = {"kappa": 0.5, "surrogate": surrogate, "tol": 0.1}
    clf = fc.FairLogisticClassifier(constraint, solver="ipc", **options)
    if constraint == "predictive_parity":  # a ratio of averages that may be near zero
        with pytest.raises(fc.IncompatibleSolverError, match="weakly convex"):
            clf.fit(X, y, sensitive_features=groups)
        return
    assert clf.fit(X, y, sensitive_features=groups).violation_ <= 0.1


ITS_OWN = [name for name, make in PROBLEMS.items() if make().twice_differentiable]


def fitted(constraint: str, kappa: float, **options: object) -> fc.FairLogisticClassifier:
    X, y, groups = fc.make_biased_classification(1000, n_features=20, gap=0.3, random_state=0)
    model = fc.FairLogisticClassifier(constraint, kappa, **options)
    return model.fit(X, y, sensitive_features=groups)


def parity(kappa: float) -> Problem:
    return classification(fc.DemographicParity(kappa))


@pytest.mark.parametrize("kappa", [0.1, 0.02, 0.0])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_it_takes_a_few_data_passes_where_first_order_methods_take_twenty(
    constraint: str, kappa: float
) -> None:
    found = fitted(constraint, kappa, solver="sqp")
    other = fitted(constraint, kappa, solver="augmented-lagrangian")
    assert isinstance(found.result_.solver, solvers.SQP)
    assert found.result_.converged
    assert found.multipliers_.max() > 0.1
    assert found.objective_ == pytest.approx(other.objective_, abs=1e-4)
    assert found.result_.data_passes <= 15
    assert found.result_.data_passes < 0.75 * other.result_.data_passes


def at_thresholds(kind: type[Constraint], **options: object) -> Problem:
    X, y, groups = fc.make_biased_classification(400, 4, gap=0.4, random_state=0)
    return fc.FairLogisticClassifier(kind(**options)).bind(X, y, None, groups).problem


MANY = np.linspace(-2.0, 2.0, 60)
TWICE_DIFFERENTIABLE = {
    **{name: PROBLEMS[name] for name in ITS_OWN},
    "few thresholds": partial(at_thresholds, constraints.ROCParity, thresholds=[-1.0, 0.5]),
    "many thresholds": partial(at_thresholds, constraints.ROCParity, thresholds=MANY),
    "few free ones": partial(at_thresholds, constraints.PartialDemographicParity, n_ranks=4),
    "many free ones": partial(at_thresholds, constraints.PartialDemographicParity, n_ranks=60),
}


@pytest.mark.parametrize("name", TWICE_DIFFERENTIABLE)
def test_hessian_is_the_derivative_of_the_gradient(name: str) -> None:
    problem, rng = TWICE_DIFFERENTIABLE[name](), np.random.default_rng(0)
    assert problem.twice_differentiable
    w = rng.standard_normal(problem.n_variables)
    multipliers = rng.random(problem.n_constraints)
    found = problem.at(w).hessian(multipliers)
    h = 1e-5
    for k, unit in enumerate(np.eye(problem.n_variables)):
        ahead, behind = (problem.at(w + s * h * unit).gradient(multipliers) for s in (1, -1))
        assert_allclose(found[k], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)


def test_an_indefinite_hessian_does_not_stop_a_run() -> None:
    problem = parity(0.05)
    far = np.full(problem.n_variables, 30.0)
    strong = np.array([0.0, 1e3])
    assert np.linalg.eigvalsh(problem.at(far).hessian(strong))[0] < 0.0
    result = solvers.SQP().minimize(parity(0.05), warm=Start(far, strong))
    assert result.converged
    assert result.objective == pytest.approx(solution("demographic parity"), abs=1e-4)


@pytest.mark.parametrize("cap", [1e6, 0.5])
@pytest.mark.parametrize("size", [1.0, 0.0])  # of gradients; those of constant functions are zero
@pytest.mark.parametrize("seed", range(10))
def test_dual_problem_meets_its_optimality_conditions(seed: int, size: float, cap: float) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((6, 3))  # gradients that depend on each other
    quadratic, linear = size * rows @ rows.T, rows @ rng.standard_normal(3)
    found = capped_dual(quadratic, linear, cap, np.maximum(rng.standard_normal(6), 0.0))
    slope = linear - quadratic @ found
    level = 0.0 if found.sum() < cap * (1.0 - 1e-9) else max(slope.max(), 0.0)
    assert found.min() >= 0.0
    assert found.sum() <= cap * (1.0 + 1e-9)
    assert slope.max() <= level + 1e-7
    assert abs((slope - level) @ found) <= 1e-6 * (1.0 + found.max())


@pytest.mark.parametrize("name", ITS_OWN)
def test_the_step_after_a_solution_makes_it_more_accurate_without_a_data_pass(name: str) -> None:
    problem = PROBLEMS[name]()
    result, at = solvers.SQP(tol=1e-3).solve(problem)
    passes = problem.passes
    assert result.state is not None
    step = next_step(at, result)
    assert step is not None
    assert problem.passes == passes
    after = KKT.of(problem.at(at.w + step[0]), step[1])
    assert after.error <= max(0.5 * KKT.of(at, result.multipliers).error, 1e-9)
    other, at = solvers.AugmentedLagrangian(tol=1e-3).solve(problem)
    assert other.state is not None and next_step(at, other) is None


def test_inside_of_a_ball_steps_are_those_of_the_whole_space() -> None:
    problem, solver = classification(fc.DemographicParity(0.05)), solvers.SQP(memory=30)
    free = solver.minimize(problem)
    norm = float(np.linalg.norm(free.w))
    wide = solver.minimize(replace(problem, domain=fc.domains.L2Ball(2.0 * norm)))
    assert wide.converged and wide.data_passes == free.data_passes
    assert_allclose(wide.w, free.w)
    narrow = solver.minimize(replace(problem, domain=fc.domains.L2Ball(0.5 * norm)))
    assert narrow.converged and narrow.objective > free.objective
    assert np.linalg.norm(narrow.w) == pytest.approx(0.5 * norm, rel=1e-6)


def bfgs_matrix(steps: np.ndarray, changes: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return H by the dense BFGS update, Nocedal and Wright equation 6.17."""
    s, y = steps[-1], changes[-1]
    H = (s @ y) / (y @ (diagonal * y)) * np.diag(diagonal)
    for s, y in zip(steps, changes, strict=True):
        V = np.eye(s.size) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("n_pairs", [1, 4, 9])
def test_inverse_hessian_is_that_of_the_dense_update(rng, n_pairs) -> None:
    n, size = 6, 5
    root = rng.normal(size=(n, n))
    hessian = root @ root.T + np.eye(n)
    steps = rng.normal(size=(n_pairs, n))
    diagonal = rng.uniform(0.5, 2.0, n)
    approximation = QuasiNewton(diagonal, size)
    for step in steps:
        approximation.update(step, hessian @ step, step)
    assert approximation.n_stored == min(n_pairs, size)
    expected = bfgs_matrix(steps[-size:], steps[-size:] @ hessian, diagonal)
    assert_allclose(approximation.inverse(np.eye(n)), expected, rtol=1e-9, atol=1e-12)
    vector = rng.normal(size=n)
    assert_allclose(approximation.inverse(vector), expected @ vector, rtol=1e-9)
    latest = hessian @ steps[-1]
    assert_allclose(approximation.inverse(latest), steps[-1], rtol=1e-9, atol=1e-12)


def test_pairs_without_positive_curvature_are_damped() -> None:
    approximation = QuasiNewton(np.ones(2))
    approximation.update(np.ones(2), -np.ones(2), np.ones(2))
    assert_allclose(approximation.inverse(np.full(2, 0.2)), np.ones(2))
    approximation.update(np.ones(2), np.zeros(2), np.zeros(2))
    assert approximation.n_stored == 1
