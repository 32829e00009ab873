"""Near-stationarity against closed forms and optimality."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS

from fairconstrained.domains import L2Ball
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.penalties import L1, Proximity
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian
from fairconstrained.solvers.stationarity import near_stationarity


def bowl(*constraints: CompositeFunction, domain=None) -> Problem:
    """Return |w - (3, 4)|^2 / 2."""
    objective = CompositeFunction(penalty=Proximity(np.array([3.0, 4.0]), 1.0))
    return Problem(objective, constraints, domain or L2Ball(100.0), n_variables=2)


@pytest.mark.parametrize("rho", [0.1, 1.0, 10.0])
def test_distance_of_a_quadratic_is_known(rho: float) -> None:
    assert near_stationarity(bowl(), np.zeros(2), rho) == pytest.approx(5 / (1 + 2 * rho), rel=1e-3)


def test_domain_limits_the_distance() -> None:
    assert near_stationarity(bowl(domain=L2Ball(0.1)), np.zeros(2), 0.1) == pytest.approx(0.1)


def test_constraint_with_its_proximal_term_limits_the_distance() -> None:
    """From 0 with w_1 + w_2 <= 1 made w_1 + w_2 + rho |w|^2 <= 1: on the boundary of a disc."""
    half_plane = CompositeFunction(slope=np.ones(2), level=-1.0)
    rho = 1.0
    w = near_stationarity(bowl(half_plane), np.zeros(2), rho)
    center, radius = np.full(2, -0.5), np.sqrt(1.5)
    towards = np.array([1.0, 4.0 / 3.0]) - center  # the free solution is (3, 4) / (1 + 2 rho)
    expected = np.linalg.norm(center + radius * towards / np.linalg.norm(towards))
    assert w == pytest.approx(expected, abs=1e-3)


def test_constraint_may_have_no_proximal_term() -> None:
    """From 0 with w_1 + w_2 <= 1: the projection of the free solution (3, 4) / (1 + 2 rho)."""
    half_plane = CompositeFunction(slope=np.ones(2), level=-1.0)
    w = near_stationarity(bowl(half_plane), np.zeros(2), 1.0, constraint_rho=0.0)
    expected = np.array([1.0, 4.0 / 3.0]) - (7.0 / 3.0 - 1.0) / 2.0
    assert w == pytest.approx(np.linalg.norm(expected), abs=1e-3)


def test_the_same_constant_for_the_constraints_changes_nothing() -> None:
    problem = PROBLEMS["demographic parity"]()
    w, known = problem.start(), PROBLEMS["demographic parity"]()
    assert known.modulus < 0  # is known before the terms are added
    expected = near_stationarity(problem, w, 1.0)
    assert near_stationarity(known, w, 1.0, constraint_rho=1.0) == pytest.approx(expected, rel=1e-6)


def test_it_is_zero_at_solutions_and_only_there() -> None:
    problem = PROBLEMS["demographic parity"]()
    solution = AugmentedLagrangian(tol=1e-7).minimize(problem).w
    assert near_stationarity(problem, solution) < 1e-3
    assert near_stationarity(problem, problem.start()) > 0.1


def test_non_smooth_problems_are_solved_by_subgradients() -> None:
    problem = NON_SMOOTH["hinge"]()
    assert 0.05 < near_stationarity(problem, problem.start(), tol=1e-3) < 1.0


def test_known_kinks_are_rounded_and_the_distance_is_accurate() -> None:
    """The least of |w|_1 + <c, w> + rho |w|^2 is -c, soft-thresholded by 1, over 2 rho."""
    slope, rho = np.array([3.0, -0.5]), 2.0
    problem = Problem(CompositeFunction(penalty=L1(1.0), slope=slope), n_variables=2)
    assert problem.smoothable and not problem.smooth
    expected = (3.0 - 1.0) / (2.0 * rho)
    assert near_stationarity(problem, np.zeros(2), rho) == pytest.approx(expected, abs=1e-3)


def test_a_subproblem_that_is_not_solved_is_reported() -> None:
    problem = PROBLEMS["unconstrained"]()
    few = AugmentedLagrangian(max_iter=1, max_inner=1, polish=False)
    with pytest.warns(ConvergenceWarning, match="near_stationarity: the subproblem was not solved"):
        distance = near_stationarity(problem, problem.start(), 1e-2, solver=few)
    assert np.isfinite(distance)


def test_it_is_infinite_far_from_feasible_points() -> None:
    problem = PROBLEMS["infeasible start"]()
    assert near_stationarity(problem, problem.start(), rho=10.0) == np.inf


def test_it_asks_for_rho_where_none_is_known() -> None:
    problem = NON_SMOOTH["ramp"]()
    with pytest.raises(ValueError, match="rho"):
        near_stationarity(problem, problem.start())


def test_its_passes_do_not_count() -> None:
    problem = PROBLEMS["unconstrained"]()
    near_stationarity(problem, problem.start())
    assert problem.passes == 0.0
