"""The states that solvers leave for warm starts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from _support.problems import PROBLEMS

from fairconstrained.solvers import IDCA, IPC, SQP, AugmentedLagrangian, Smoothing
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.result import SolverState

SOLVERS = [AugmentedLagrangian(), SQP(), IPC(), Smoothing(), IDCA()]


def arrays_in(state: SolverState) -> list[np.ndarray]:
    """Return all arrays of a state and of the objects in it."""
    found = []
    for one in fields(state):
        value = getattr(state, one.name)
        if isinstance(value, np.ndarray):
            found.append(value)
        elif hasattr(value, "__dataclass_fields__"):
            found += arrays_in(value)
    return found


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_state_is_typed_frozen_and_has_no_row_length_data(solver) -> None:
    problem = PROBLEMS["demographic parity"]()
    state = solver.minimize(problem).state
    assert isinstance(state, SolverState)
    assert isinstance(state, SolverState)
    name = fields(state)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(state, name, None)
    assert all(problem.n_rows not in array.shape for array in arrays_in(state))


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_state_of_another_kind_of_solver_is_ignored(solver) -> None:
    name = "demographic parity"
    other = AugmentedLagrangian() if isinstance(solver, SQP) else SQP()
    left = other.minimize(PROBLEMS[name]())
    assert left.state is not None
    with_state, without = (
        solver.minimize(
            PROBLEMS[name](), warm=Start(left.w, left.multipliers, state), random_state=0
        )
        for state in (left.state, None)
    )
    np.testing.assert_array_equal(with_state.w, without.w)
    assert with_state.data_passes == without.data_passes
