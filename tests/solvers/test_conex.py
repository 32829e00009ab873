"""ConEx, and the steps it shares with the online stochastic method."""

from __future__ import annotations

from _support.problems import NON_SMOOTH, PROBLEMS

from fairconstrained.solvers import ConEx, SwitchingSubgradient
from fairconstrained.solvers.base import Start


def test_non_smooth_problem_is_solved_better_than_by_switching_subgradients() -> None:
    problem = NON_SMOOTH["hinge"]()
    found = ConEx().minimize(problem)
    other = SwitchingSubgradient(max_iter=2000).minimize(problem)
    assert found.violation <= 1e-4
    assert found.objective <= other.objective + 1e-3


def test_warm_multipliers_are_taken_over() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    cold = ConEx().minimize(problem)
    solver = ConEx(check_every=10, tol=1e-7, polish=False, max_iter=10)
    warm = solver.minimize(problem, warm=Start(cold.w, cold.multipliers))
    assert warm.trace.kkt_residual[-1] < 0.1 * solver.minimize(problem, cold.w).kkt_residual
