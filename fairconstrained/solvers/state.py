"""What a run of a solver leaves for a warm start: one frozen dataclass per kind of solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from fairconstrained.problem.evaluation import Evaluation
    from fairconstrained.problem.problem import Problem


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


@dataclass(frozen=True, eq=False)
class RoundingState(SolverState):
    """The state of solvers that round kinks.

    Attributes
    ----------
    width : float or None
        The width over which kinks were rounded last; None for smooth problems.
    """

    width: float | None = None

    @staticmethod
    def rounded(state: SolverState | None, problem: Problem, at: Evaluation) -> Evaluation | None:
        """Return the problem at the same point, rounded as in a subproblem that left `state`.

        Parameters
        ----------
        state : SolverState or None
            The state that the subproblem solver left.
        problem : Problem
            The problem itself.
        at : Evaluation
            The problem at the subproblem solver's answer.
        """
        last = RoundingState.of(state)
        return (
            None
            if last is None or last.width is None
            else problem.smoothed(last.width).at(at.w, like=at)
        )
