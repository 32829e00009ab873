"""ConEx, and the steps it shares with the online stochastic method."""

from __future__ import annotations

from _support.problems import PROBLEMS

from fairconstrained.solvers import ConEx
from fairconstrained.solvers.base import Start


def test_warm_multipliers_are_taken_over() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    cold = ConEx().minimize(problem)
    solver = ConEx(check_every=10, tol=1e-7, polish=False, max_iter=10)
    warm = solver.minimize(problem, warm=Start(cold.w, cold.multipliers))
    assert warm.trace.kkt_residual[-1] < 0.1 * solver.minimize(problem, cold.w).kkt_residual
