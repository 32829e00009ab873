"""PLADA: its updates, its constants, its mini-batches."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import PROBLEMS, reference

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import PLADA, Status

BY_HAND = {"eta": 0.3, "tau": 0.1, "alpha": 10.0, "beta": 0.1, "gamma_0": 0.1, "delta": 2.0}


def by_hand(problem: Problem, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return w and lambda of algorithm 1 as the paper writes it."""
    rho = 10.0 / (1.0 + 10.0 * 0.1)
    w = problem.start()
    u = np.maximum(-problem.at(w).constraints, 0.0)
    lam = mu = np.zeros(problem.n_constraints)
    for k in range(steps):
        w = problem.domain.project(w - 0.3 * problem.at(w).gradient(lam))
        u = np.maximum(u - 0.1 * lam, 0.0)
        gamma = min(0.1, rho * 2.0 / (k + 1) / ((lam - mu) @ (lam - mu) + 1.0))
        mu = mu + gamma * (lam - mu) / rho
        lam = mu + rho * (problem.at(w).constraints + u)
    return w, lam


@pytest.mark.parametrize("name", ["demographic parity", "two constraints", "L2 ball"])
def test_steps_are_those_of_algorithm_one(name: str) -> None:
    result = PLADA(**BY_HAND, max_iter=30, check_every=30, polish=False).minimize(PROBLEMS[name]())
    w, multipliers = by_hand(PROBLEMS[name](), 30)
    assert result.w == pytest.approx(w, abs=1e-12)
    assert result.multipliers == pytest.approx(np.maximum(multipliers, 0.0), abs=1e-12)


def test_a_step_is_one_evaluation() -> None:
    problem = PROBLEMS["two constraints"]()
    few, many = (
        PLADA(max_iter=n, check_every=n, tol=1e-12, polish=False).minimize(problem, random_state=0)
        for n in (10, 110)
    )
    # a measurement may evaluate once more (in float64, for the certificate)
    assert 100 <= many.data_passes - few.data_passes <= 101


def test_paper_preset_has_the_papers_constants_and_is_slower() -> None:
    paper = PLADA.paper(max_iter=500)
    assert (paper.eta, paper.tau, paper.alpha, paper.beta, paper.gamma_0) == (
        1e-3,
        0.1,
        10,
        0.1,
        0.1,
    )
    problem = PROBLEMS["demographic parity"]()
    slow, fast = paper.minimize(problem), PLADA(max_iter=500).minimize(problem)
    assert fast.converged
    assert slow.status is Status.ITERATION_LIMIT
    assert slow.kkt_residual > 10.0 * fast.kkt_residual


def test_multipliers_of_three_groups_are_the_ones_of_the_certificate() -> None:
    result = PLADA().minimize(PROBLEMS["equalized odds, 3 groups"]())
    assert result.converged
    assert np.all(result.multipliers >= 0.0)
    assert np.count_nonzero(result.multipliers > 1e-3) >= 1


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["demographic parity", "equalized odds, 3 groups"])
def test_mini_batches_end_feasible_near_the_solution(name: str) -> None:
    result = PLADA.stochastic(max_iter=1000).minimize(PROBLEMS[name](), random_state=1)
    expected = reference(PROBLEMS[name](), starts=1)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(expected, rel=1e-2)


def test_mini_batches_are_counted_in_fractions() -> None:
    solver = PLADA.stochastic(batch_size=40, max_iter=100)
    problem = PROBLEMS["demographic parity"]()
    one = solver.minimize(problem, random_state=0)
    assert 20.0 < one.data_passes < 60.0
    assert one.data_passes % 1.0 > 0.0


def test_without_batches_the_random_state_does_not_matter() -> None:
    one, two = (
        PLADA(max_iter=40).minimize(PROBLEMS["demographic parity"](), random_state=seed)
        for seed in (0, 1)
    )
    assert np.array_equal(one.w, two.w)


def test_warm_start_takes_the_multipliers_over() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    cold = PLADA().minimize(problem)
    warm = PLADA().minimize(problem, warm=cold)
    assert warm.converged
    assert warm.n_iter < 0.5 * cold.n_iter
