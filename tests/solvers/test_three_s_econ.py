"""3S-Econ: what is special to it; that it solves the problems is in the grid of test_solvers."""

from __future__ import annotations

import pytest
from _support.problems import PROBLEMS, reference

from fairconstrained.solvers import ThreeSEcon

SHORT = ThreeSEcon.stochastic(max_iter=300)


def test_stochastic_passes_are_counted_in_fractions() -> None:
    problem = PROBLEMS["demographic parity"]()
    solver = ThreeSEcon.paper(stochastic=True, max_iter=20, batch_size=20, q=20)
    # One period: 400 rows at either end, then 19 steps of 2 batches of 20 rows, one of them twice.
    assert solver.minimize(problem, random_state=0).data_passes == pytest.approx(
        2 + 19 * 3 * 20 / 400, rel=0.05
    )


def test_checkpoints_may_be_batches() -> None:
    solver = SHORT.with_options(checkpoint_size=200)
    result = solver.minimize(PROBLEMS["demographic parity"](), random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(PROBLEMS["demographic parity"]()), rel=2e-2)
