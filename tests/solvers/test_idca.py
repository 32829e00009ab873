"""IDCA with its oracles: feasible throughout, exact on ramps, every pair of loop and oracle."""

from __future__ import annotations

import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, reference

from fairconstrained import DemographicParity, IncompatibleSolverError
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.problem.kkt import certify
from fairconstrained.solvers import (
    IDCA,
    IPC,
    AugmentedLagrangian,
    ConEx,
    OnlineStochastic,
    Status,
    SwitchingSubgradient,
)

ORACLES = {
    "switching subgradient": SwitchingSubgradient(max_iter=300, check_every=100),
    "conex": ConEx(max_iter=100),
    "augmented Lagrangian": AugmentedLagrangian(),
    "online": OnlineStochastic(max_iter=100, check_every=50),
    "online, batches": OnlineStochastic(batch_size=64, max_iter=60, check_every=60),
}


def ramp_problem():
    return NON_SMOOTH["ramp"]()


@pytest.mark.parametrize("loop", [IPC, IDCA])
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
    solver = IDCA(oracle, max_iter=4, polish=False)
    if solver.missing(problem):
        assert name == "ramp"
        assert isinstance(oracle, AugmentedLagrangian)
        return
    result = solver.minimize(problem, random_state=0)
    assert len(result.trace) >= 1
    assert max(result.trace.violation) <= solver.tol


def test_multipliers_of_a_ramp_constraint_certify_the_answer() -> None:
    problem = ramp_problem()
    result = IDCA(max_iter=100, polish=False).minimize(problem)
    direct = SwitchingSubgradient().minimize(problem)
    assert result.status is Status.CONVERGED
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
        IDCA().minimize(indicator)
