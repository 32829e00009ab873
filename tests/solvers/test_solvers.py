"""Every solver on every problem: against scipy, with active constraints and certificates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, rate_between, reference

import fairconstrained as fc
from fairconstrained import solvers
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, QueryParity
from fairconstrained.domains import Box, L2Ball
from fairconstrained.problem import Problem
from fairconstrained.problem.kkt import KKT

# Relative error of the objective that is allowed, of solvers that are to end converged.
EXACT = {
    "ipc": 1e-4,
    "augmented-lagrangian": 1e-4,
    "sqp": 1e-4,
    "smoothing": 1e-4,
    "idca": 1e-3,
    "exact-penalty": 1e-3,
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
    assert isinstance(solvers.default_solver(PROBLEMS["L2 ball"]()), solvers.AugmentedLagrangian)
    assert isinstance(solvers.default_solver(NON_SMOOTH["hinge"]()), solvers.Smoothing)
    assert isinstance(solvers.default_solver(NON_SMOOTH["ramp"]()), solvers.Smoothing)


@pytest.mark.parametrize(
    "solver", [solvers.IPC(), solvers.AugmentedLagrangian(), solvers.SQP()], ids=repr
)
def test_mismatch_names_what_is_missing_and_who_can(solver: solvers.Solver) -> None:
    with pytest.raises(fc.IncompatibleSolverError, match=r"functions:.*smoothing") as raised:
        solver.minimize(NON_SMOOTH["ramp"]())
    can = str(raised.value).split("use one of the solvers ")[1].rstrip(".").split(", ")
    assert can == solvers.available_solvers(NON_SMOOTH["ramp"]())
    assert can[0] == "smoothing"
    assert not {"ipc", "augmented-lagrangian", "ipp-ssg", "exact-penalty"} & set(can)


@pytest.mark.parametrize("solver_name", NAMES)
@pytest.mark.parametrize(
    "problem",
    [
        rate_between(0.6, 0.2),
        rate_between(0.97, 0.99, L2Ball(0.5)),
        rate_between(0.97, 0.99, Box(-0.2, 0.2)),
    ],
    ids=["contradiction", "ball", "box"],
)
def test_infeasible_problem_is_distinguished_from_a_slow_one(solver_name: str, problem) -> None:
    result = solvers.SOLVERS[solver_name]().minimize(problem, random_state=0)
    assert result.status is solvers.Status.INFEASIBLE
    assert result.violation > 0.05
    assert "raise kappa" in result.message


CONTRADICTED = [
    *((solvers.SQP(memory=memory), 1e-5) for memory in (None, 30, 0)),
    *(
        (solver, 1e-2)
        for solver in (solvers.IPC(), solvers.IDCA(), solvers.IDCA(solvers.ConEx(max_iter=100)))
    ),
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
    ranker = fc.FairRanker(QueryParity(0.05, loss="logistic"), alpha=1e-2)
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
@pytest.mark.parametrize("constraint", CLASSIFIER_CONSTRAINTS)
def test_ipc_chosen_by_name_refuses_no_constraint(constraint: str, surrogate: str) -> None:
    X, y, groups = fc.make_biased_classification(120, 3, random_state=0)
    options = {"kappa": 0.5, "surrogate": surrogate, "tol": 0.1}
    clf = fc.FairLogisticClassifier(constraint, solver="ipc", **options)
    if constraint == "predictive_parity":  # a ratio of averages that may be near zero
        with pytest.raises(fc.IncompatibleSolverError, match="weakly convex"):
            clf.fit(X, y, sensitive_features=groups)
        return
    assert clf.fit(X, y, sensitive_features=groups).violation_ <= 0.1
