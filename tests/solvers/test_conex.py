"""ConEx, and the steps it shares with the online stochastic method."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS

from fairconstrained.penalties.base import L2
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import ConEx, Status, SwitchingSubgradient
from fairconstrained.solvers._tools.descent import Descent, SuffixAverage


def test_constants_are_those_that_were_given() -> None:
    at = PROBLEMS["demographic parity"]().at(np.zeros(5))
    assert ConEx(2.0, 3.0, offset=4.0)._constants(at) == (2.0, 3.0, 4.0)
    c1, c2, offset = ConEx(max_iter=70)._constants(at)
    assert offset == 70.0
    first = np.linalg.eigvalsh(_hessian(at)).max()
    assert 0.8 * first <= c1 * offset <= 1.2 * first  # L, over distances of one score
    jacobian = np.array([at.gradient(row, objective=0.0) for row in np.eye(2)])
    assert c1 * c2 == pytest.approx(np.linalg.norm(jacobian, 2) ** 2, rel=0.3)  # M^2


def _hessian(at):
    h = 1e-5
    problem = at.problem
    return np.array(
        [(problem.at(at.w + h * e).gradient() - at.gradient()) / h for e in np.eye(at.w.size)]
    )


def test_without_linearisation_the_values_of_the_constraints_are_extrapolated() -> None:
    problem = PROBLEMS["infeasible start"]()
    solver = ConEx.paper(linearized=False, average="suffix", max_iter=5, check_every=1)
    result = solver.minimize(problem)
    w, before, multipliers = problem.start(), None, np.zeros(2)
    for t in range(5):
        at = problem.at(w)
        before = at.constraints if before is None else before
        ahead = at.constraints + t / (t + 1) * (at.constraints - before)
        multipliers = np.maximum(multipliers + (t + 1) / 0.01 * ahead, 0.0)
        before = at.constraints
        w = w - at.gradient(multipliers) / (20.0 * (t + 1))
        assert result.trace.objective[t] == pytest.approx(problem.at(w).objective, rel=1e-12)
    assert multipliers.max() > 10.0


def test_average_must_be_one_of_two() -> None:
    with pytest.raises(ValueError, match='average must be "suffix" or "all"'):
        ConEx(average="last").minimize(PROBLEMS["demographic parity"]())


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


def test_step_that_overshoots_is_shortened_and_lengthened_again() -> None:
    problem = Problem(CompositeFunction(None, None, L2(8.0)), n_variables=2)
    descent = Descent(1.0, 0.0)
    at = problem.at(np.ones(2))
    after = descent.step(at, np.zeros(0))
    assert after.objective < at.objective
    assert 0.9 * 8.0 < descent.curvature <= 8.0
    for _ in range(20):
        after = descent.step(after, np.zeros(0))
    assert descent.curvature >= 0.9 * 4.0
    assert np.linalg.norm(after.w) < 1e-6


def test_suffix_average_covers_between_half_and_all_of_the_points() -> None:
    average = SuffixAverage()
    for k in range(1, 12):
        average.add(np.array([float(k)]), weight=k)
        first = 2 ** int(np.log2(k))
        later = np.arange(first, k + 1)
        assert average.mean == pytest.approx([np.average(later, weights=later)])
