"""What a run of a solver leaves for a warm start: one frozen dataclass per kind of solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from fairconstrained.problem.evaluation import Evaluation
    from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class SolverState:
    """Base of the states that solvers leave in :attr:`Result.state`.

    A state holds what a solver has learned beyond the point and its multipliers, for instance the
    penalty parameter and curvature pairs. It never holds arrays with the length of the rows.
    """

    @classmethod
    def of(cls, state: SolverState | None) -> Self | None:
        """Return `state` if it is of this class, else None.

        Every solver reads the state of a warm start through this method, so that a state which
        another kind of solver has left is ignored.
        """
        return state if isinstance(state, cls) else None

    def next_step(self, at: Evaluation, multipliers: Array) -> tuple[Array, Array] | None:
        """Return one more step from the solution and the multipliers after it, or None.

        The step uses only what is known at the solution, so that it makes no data pass. The point
        after it is more accurate, but has no certificate. None means that the method has no such
        step.

        Parameters
        ----------
        at : Evaluation
            The problem at the solution.
        multipliers : ndarray of shape (n_constraints,)
            Those of the solution.
        """
        return None
