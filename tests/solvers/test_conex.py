"""ConEx, and the steps it shares with the online stochastic method."""

from __future__ import annotations

from _support.problems import NON_SMOOTH, PROBLEMS

from fairconstrained.solvers import ConEx, Status, SwitchingSubgradient


def test_non_smooth_problem_is_solved_better_than_by_switching_subgradients() -> None:
    problem = NON_SMOOTH["hinge"]()
    found = ConEx().minimize(problem)
    other = SwitchingSubgradient(max_iter=2000).minimize(problem)
    assert found.violation <= 1e-4
    assert found.objective <= other.objective + 1e-3


def test_warm_multipliers_are_taken_over() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    solver = ConEx(check_every=10)
    cold = solver.minimize(problem)
    warm = solver.minimize(problem, warm=cold)
    assert warm.status is Status.CONVERGED
    assert warm.n_iter == 10 < cold.n_iter
