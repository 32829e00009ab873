"""The online stochastic method of Yu, Neely and Wei, on all rows and on batches."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import PROBLEMS, rate_between, reference

from fairconstrained.domains import L2Ball
from fairconstrained.solvers import OnlineStochastic, Status

BATCHES = OnlineStochastic(batch_size=64, max_iter=1000)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["demographic parity", "equalized odds, 3 groups", "box"])
def test_batches_end_feasible_and_near_the_solution(name) -> None:
    problem = PROBLEMS[name]()
    result = BATCHES.minimize(problem, random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(problem, starts=1), rel=1e-2)
    assert problem.at(result.w).constraints.max() > -1e-2
    assert result.multipliers.max() > 0.0


def test_batches_count_fractions_of_passes() -> None:
    problem = PROBLEMS["demographic parity"]()
    result = OnlineStochastic(batch_size=40, max_iter=100, check_every=100).minimize(
        problem, random_state=0
    )
    # two forward passes a step on a tenth of the rows, scales, one look at all rows or a few
    assert 20.0 <= result.data_passes <= 35.0


def test_a_batch_as_large_as_the_data_is_the_deterministic_method() -> None:
    problem = PROBLEMS["demographic parity"]()
    large = OnlineStochastic(batch_size=10_000).minimize(problem, random_state=0)
    full = OnlineStochastic().minimize(problem, random_state=1)
    assert np.array_equal(large.w, full.w)
    assert full.status is Status.CONVERGED


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "problem", [rate_between(0.6, 0.2), rate_between(0.97, 0.99, L2Ball(0.5))], ids=["all", "ball"]
)
def test_infeasible_problems_are_recognised_on_batches(problem) -> None:
    result = BATCHES.minimize(problem, random_state=0)
    assert result.status is Status.INFEASIBLE
    assert np.linalg.norm(result.w) < 10.0


def test_warm_queue_starts_from_the_multipliers() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    solver = OnlineStochastic(check_every=20)
    cold = solver.minimize(problem)
    warm = solver.minimize(problem, warm=cold)
    assert warm.n_iter <= 20 < cold.n_iter
