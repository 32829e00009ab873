"""What a run starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.state import SolverState
from fairconstrained.utils.typing import Array

if TYPE_CHECKING:
    from fairconstrained.solvers.base import Solver
    from fairconstrained.solvers.result import Result


@dataclass(frozen=True, eq=False)
class Start:
    """What a run starts from.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The first point.
    multipliers : ndarray of shape (n_constraints,) or None
        The first multipliers; None where there are none.
    state : SolverState or None
        The state of an earlier run; a solver of another kind ignores it.
    tol : float
        The tolerance of this run.
    random_state : numpy.random.RandomState
        The source of randomness, by default NumPy's own.
    like : Evaluation or None
        An evaluation whose forward passes are used again if it is at `w`.
    last_pass : float
        The value of :attr:`Problem.passes` at which the run ends.
    measures_decisions : bool
        Whether the result has a zero-one violation; those of subproblems need none.
    """

    w: Array
    multipliers: Array | None = None
    state: SolverState | None = None
    tol: float = 1e-4
    random_state: np.random.RandomState = field(default_factory=partial(check_random_state, None))
    like: Evaluation | None = None
    last_pass: float = np.inf
    measures_decisions: bool = True

    def first_multipliers(self, n_constraints: int) -> Array:
        """Return the first multipliers, zeros where there are none."""
        return np.zeros(n_constraints) if self.multipliers is None else self.multipliers

    @property
    def feasible(self) -> float:
        """The largest violation of an optimal point, see :meth:`KKT.holds`."""
        return self.tol / 3.0

    def at(self, problem: Problem) -> Evaluation:
        """Return the evaluation of a problem at the first point."""
        return problem.at(self.w, like=self.like)

    def passes_left(self, problem: Problem) -> float:
        """Return the data passes that the run may still make, for a solver that it calls."""
        return max(self.last_pass - problem.passes, 0.0)

    def solve(
        self,
        solver: Solver,
        subproblem: Problem,
        w: Array | None = None,
        *,
        like: Evaluation | None,
        warm: Result | Start | None = None,
        tol: float | None = None,
        most_passes: float = np.inf,
    ) -> tuple[Result, Evaluation]:
        """Return the result of a subproblem of the run and the evaluation at it.

        It has the randomness of the run, its tolerance and the data passes that are left to it, and
        its result has no zero-one violation.

        Parameters
        ----------
        solver : Solver
            The method for the subproblem.
        subproblem : Problem
            The subproblem. It counts its data passes with those of the run's problem.
        w : ndarray of shape (n_variables,) or None, default=None
            The first point, see :meth:`Solver.solve`.
        like, warm
            See :meth:`Solver.solve`.
        tol : float or None, default=None
            The tolerance; None takes that of the run.
        most_passes : float, default=inf
            The most data passes of the subproblem.
        """
        return solver.solve(
            subproblem,
            w,
            like=like,
            warm=warm,
            tol=self.tol if tol is None else tol,
            random_state=self.random_state,
            max_data_passes=min(self.passes_left(subproblem), most_passes),
            measures_decisions=False,
        )

    def passes_used_up(self, problem: Problem) -> bool:
        """Return whether the run has made all data passes that it may make."""
        return problem.passes >= self.last_pass
