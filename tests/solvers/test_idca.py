"""IDCA with its oracles, and the near-stationarity of points."""

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, reference

from fairconstrained import DemographicParity, IncompatibleSolverError, solvers
from fairconstrained.domains import L2Ball, WholeSpace
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.penalties import L1, Proximity
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.kkt import certify
from fairconstrained.problem.problem import Problem

ORACLES = {
    "switching subgradient": solvers.SwitchingSubgradient(max_iter=300, check_every=100),
    "conex": solvers.ConEx(max_iter=100),
    "augmented Lagrangian": solvers.AugmentedLagrangian(),
    "online": solvers.OnlineStochastic(max_iter=100, check_every=50),
    "online, batches": solvers.OnlineStochastic(batch_size=64, max_iter=60, check_every=60),
}


def ramp_problem():
    return NON_SMOOTH["ramp"]()


@pytest.mark.parametrize("loop", [solvers.IPC, solvers.IDCA])
@pytest.mark.parametrize("oracle", ORACLES)
def test_every_outer_loop_runs_with_every_oracle(loop, oracle) -> None:
    solver = loop(ORACLES[oracle], max_iter=6)
    result = solver.minimize(PROBLEMS["demographic parity"](), random_state=0)
    expected = reference(PROBLEMS["demographic parity"](), starts=1)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("oracle", [None, *ORACLES.values()], ids=["default", *ORACLES])
@pytest.mark.parametrize("name", ["smooth", "ramp"])
def test_no_iterate_leaves_the_feasible_set(oracle, name) -> None:
    problem = {"smooth": PROBLEMS["demographic parity"], "ramp": ramp_problem}[name]()
    solver = solvers.IDCA(oracle, max_iter=4, polish=False)
    if solver.missing(problem):
        assert name == "ramp"
        assert isinstance(oracle, solvers.AugmentedLagrangian)
        return
    result = solver.minimize(problem, random_state=0)
    assert len(result.trace) >= 1
    assert max(result.trace.violation) <= solver.tol


def test_multipliers_of_a_ramp_constraint_certify_the_answer() -> None:
    problem = ramp_problem()
    result = solvers.IDCA(max_iter=100, polish=False).minimize(problem)
    direct = solvers.SwitchingSubgradient().minimize(problem)
    assert result.status is solvers.Status.CONVERGED
    at = problem.at(result.w)
    rounded = problem.smoothed(result.state.subproblem.parameter).at(at.w, like=at)
    assert rounded is not None, "the subproblem solver rounds the kinks of the ramp"
    assert certify(at, result.multipliers, 1e-4, rounded=rounded)[1].holds(1e-4)
    assert result.multipliers.max() > 0.0
    assert result.objective <= direct.objective + 1e-4


def test_a_function_without_convex_parts_is_refused() -> None:
    problem = classification(DemographicParity(0.05, surrogate=Ramp()))
    assert problem.difference_of_convex
    part = problem.constraints[0].zero_one()
    assert isinstance(part.term.function, Indicator)
    indicator = problem.with_constraints([part])
    assert not indicator.difference_of_convex
    with pytest.raises(IncompatibleSolverError, match="differences of convex functions"):
        solvers.IDCA().minimize(indicator)


def bowl(*constraints: CompositeFunction, domain=None) -> Problem:
    """Return |w - (3, 4)|^2 / 2."""
    objective = CompositeFunction(penalty=Proximity(np.array([3.0, 4.0]), 1.0))
    return Problem(objective, constraints, domain or L2Ball(100.0), n_variables=2)


HALF_PLANE = CompositeFunction(slope=np.ones(2), level=-1.0)  # w_1 + w_2 <= 1


# The disc w_1 + w_2 + |w|^2 <= 1, and where the free solution (3, 4) / 3 lies from its centre.
CENTER, TOWARDS = np.full(2, -0.5), np.array([1.5, 11.0 / 6.0])


KNOWN = {
    **{f"free, {rho}": (bowl(), rho, {}, 5.0 / (1.0 + 2.0 * rho)) for rho in (0.1, 1.0, 10.0)},
    "in a ball": (bowl(domain=L2Ball(0.1)), 0.1, {}, 0.1),
    "boundary of a disc": (
        bowl(HALF_PLANE), 1.0, {},
        np.linalg.norm(CENTER + np.sqrt(1.5) * TOWARDS / np.linalg.norm(TOWARDS)),
    ),
    "projection on a half-plane": (
        bowl(HALF_PLANE), 1.0, {"constraint_rho": 0.0},
        np.linalg.norm(np.array([1.0, 4.0 / 3.0]) - (7.0 / 3.0 - 1.0) / 2.0),
    ),
    # the least of |w|_1 + <c, w> + rho |w|^2 is -c, soft-thresholded by 1, over 2 rho
    "rounded kinks": (
        Problem(CompositeFunction(penalty=L1(1.0), slope=np.array([3.0, -0.5])), n_variables=2),
        2.0, {}, (3.0 - 1.0) / 4.0,
    ),
}  # fmt: skip


@pytest.mark.cases(len(KNOWN))
@pytest.mark.parametrize("name", KNOWN)
def test_distances_in_closed_form(name: str) -> None:
    """From 0; the proximal term is that of the constraints as well, unless they have their own."""
    problem, rho, options, expected = KNOWN[name]
    found = solvers.near_stationarity(problem, np.zeros(2), rho, **options)
    assert found == pytest.approx(expected, abs=1e-3)


def test_it_is_zero_at_solutions_and_only_there() -> None:
    problem = PROBLEMS["demographic parity"]()
    solution = solvers.AugmentedLagrangian(tol=1e-7).minimize(problem).w
    assert solvers.near_stationarity(problem, solution) < 1e-3
    assert solvers.near_stationarity(problem, problem.start()) > 0.1


def test_a_subproblem_that_is_not_solved_is_reported() -> None:
    problem = PROBLEMS["unconstrained"]()
    few = solvers.AugmentedLagrangian(max_iter=1, max_inner=1, polish=False)
    with pytest.warns(ConvergenceWarning, match="near_stationarity: the subproblem was not solved"):
        distance = solvers.near_stationarity(problem, problem.start(), 1e-2, solver=few)
    assert np.isfinite(distance)


def test_it_is_infinite_far_from_feasible_points() -> None:
    problem = PROBLEMS["infeasible start"]()
    assert solvers.near_stationarity(problem, problem.start(), rho=10.0) == np.inf


def test_it_asks_for_rho_where_none_is_known() -> None:
    problem = NON_SMOOTH["ramp"]()
    with pytest.raises(ValueError, match="rho"):
        solvers.near_stationarity(problem, problem.start())


def test_a_run_ends_where_it_is_nearly_stationary() -> None:
    problem, rule = bowl(), solvers.NearStationarity(0.1, rho=0.5)
    solver = solvers.ThreeSEcon.paper(check_every=10, max_iter=10_000)
    result = solver.minimize(problem, callback=rule)
    assert (result.status, result.converged) == (solvers.Status.NEARLY_STATIONARY, True)
    assert solvers.near_stationarity(problem, result.w, rho=0.5) <= 0.1
    steps = 10 * np.arange(1, len(result.trace) + 1)
    before = 5.0 * 0.99 ** steps[-2]  # one measurement earlier; gradient steps of 0.01
    assert result.trace.iteration == steps.tolist()
    assert 0.5 * before > 0.1


def test_a_rule_checks_its_parameters() -> None:
    with pytest.raises(ValueError, match="'distance' parameter of NearStationarity"):
        solvers.SQP().minimize(bowl(domain=WholeSpace()), callback=solvers.NearStationarity(-1.0))
