"""Every solver on the training of a network, whose problem no solver can take for convex."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from _support.networks import NETWORKS

from fairconstrained import IncompatibleSolverError
from fairconstrained.problem.kkt import KKT, estimate_multipliers
from fairconstrained.solvers import SOLVERS, Result, available_solvers, default_solver

USABLE = {name: available_solvers(make()) for name, make in NETWORKS.items()}
RUNS = [(name, solver) for name, usable in USABLE.items() for solver in usable]
NOT_ABLE = [(name, s) for name, usable in USABLE.items() for s in SOLVERS if s not in usable]
# Local minima differ: those found from this start lie within a twelfth of one another.
SPREAD = 1.12
SHORTER = {"plada-stochastic": 1500, "ssg-stochastic": 50}


@cache
def solved(name: str, solver: str) -> Result:
    short = SOLVERS[solver]().with_options(max_iter=SHORTER.get(solver))
    return short.minimize(NETWORKS[name](), random_state=0)


@cache
def unconstrained(name: str) -> float:
    """Return the violation of the network without constraints."""
    problem = NETWORKS[name]()
    free = problem.with_constraints(())
    return problem.at(default_solver(free).minimize(free, random_state=0).w).violation


@pytest.mark.parametrize(("name", "solver"), RUNS)
def test_solvers_that_can_train_a_fair_network(name: str, solver: str) -> None:
    """The residual is recomputed from the point and its multipliers by formula."""
    problem, result = NETWORKS[name](), solved(name, solver)
    start, at = problem.at(problem.start(0)), problem.at(result.w)
    best = min(solved(name, other).objective for other in ("smoothing", "ssg"))
    assert unconstrained(name) > 0.05  # the constraint is active
    assert result.violation <= 1e-4
    assert result.objective <= 0.9 * start.objective
    assert result.objective <= SPREAD * best
    assert (result.objective, result.violation) == pytest.approx((at.objective, at.violation))
    assert result.multipliers.shape == (problem.n_constraints,)
    assert result.multipliers.min() >= 0.0
    assert np.isfinite(result.kkt_residual)
    if problem.smooth:
        found = KKT.of(at, result.multipliers)
        assert result.kkt_residual == pytest.approx(found.residual, rel=1e-6, abs=1e-12)
        assert KKT.of(at, estimate_multipliers(at)).stationarity <= 0.05


@pytest.mark.parametrize(("name", "solver"), NOT_ABLE)
def test_the_others_refuse(name: str, solver: str) -> None:
    with pytest.raises(IncompatibleSolverError, match="use one of the solvers"):
        SOLVERS[solver]().minimize(NETWORKS[name]())
