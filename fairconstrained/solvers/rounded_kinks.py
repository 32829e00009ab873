"""A solver of smooth problems on a sequence of problems whose kinks are rounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import shows_infeasible, stationary_weights
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.result import Result, Status
from fairconstrained.solvers.state import RoundingState, SolverState
from fairconstrained.utils.parameter_constraints import OPEN_SHARE, POSITIVE, ParameterConstraints

_SHARE = 0.5  # of the tolerance: what the solver of a smooth problem may use up, rounding the rest
_LAST_INEXACT = 0.01  # of the first width: the narrowest where the solver does not converge


class RoundedKinks(Solver):
    """Smoothing with a given solver: :class:`~fairconstrained.solvers.Smoothing` can choose it.

    Parameters
    ----------
    solver : Solver
        The solver of the smooth problems.
    width, shrink, max_iter, tol
        See :class:`~fairconstrained.solvers.Smoothing`.
    """

    requires: ClassVar[tuple[str, ...]] = ("smoothable",)

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **Solver._parameter_constraints,
        "solver": [Solver, None],
        "width": [POSITIVE],
        "shrink": [OPEN_SHARE],
    }

    def __init__(
        self,
        solver: Solver,
        *,
        width: float = 1.0,
        shrink: float = 0.1,
        max_iter: int = 12,
        tol: float = 1e-4,
    ):
        self.solver: Solver | None = solver
        self.width = width
        self.shrink = shrink
        self.max_iter = max_iter
        self.tol = tol

    def _solver_for(self, smooth: Problem) -> Solver:
        """Return the solver of the smooth problems."""
        assert self.solver is not None, "subclasses without a solver choose one"
        return self.solver

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or the smooth problems for the solver."""
        lacking = super().missing(problem)
        if lacking:
            return lacking
        smooth = problem.smoothed(self.width)
        return self._solver_for(smooth).missing(smooth)

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers to the smooth problems, as points of the problem itself."""
        solver, like = self._solver_for(problem.smoothed(self.width)), start.like
        last = SmoothingState.of(start.state)
        warm: Start | Result = replace(start, state=None if last is None else last.subproblem)
        known = None if last is None else last.width
        width = self._first_width(problem, start) if known is None else known
        for k in range(1, self.max_iter + 1):
            smooth = problem.smoothed(width)
            tol = _SHARE * start.tol
            answer, end = start.solve(solver, smooth, like=like, warm=warm, tol=tol)
            at = problem.at(answer.w, like=end)
            state = SmoothingState(width, answer.state)
            if answer.status is Status.INFEASIBLE and _is_infeasible(at, answer, end, start.tol):
                solver = ExactPenalty()  # finds the least violation without regard to the objective
            if answer.converged:
                yield Iterate(at, answer.multipliers, k, state, rounded=end)
            else:
                at = restore(at, start.feasible)
                yield Iterate(at, None, k, state, self._verdict(answer, width))
            warm = answer
            if answer.status is Status.INFEASIBLE:  # its multipliers cannot be used
                warm = replace(start, w=answer.w, multipliers=None, state=None, like=None)
            like, width = end, self.shrink * width

    def _first_width(self, problem: Problem, start: Start) -> float:
        """Return the first width over which kinks are rounded.

        Rounding increases a convex loss. If the loss has a bound near its least value, no model may
        meet this bound once the kinks are rounded over a large width. Therefore, a start that meets
        the convex constraints must also meet them when they are rounded.
        """
        width, narrowest = self.width, _LAST_INEXACT * self.width
        bounded = problem.with_constraints([one for one in problem.constraints if one.convex])
        if not bounded.n_constraints or bounded.at(start.w).violation > start.tol:
            return width
        while width > narrowest and bounded.smoothed(width).at(start.w).violation > start.tol:
            width *= self.shrink
        return width

    def _verdict(self, answer: Result, width: float) -> Status | None:
        """Return why to end after a smooth problem that was not solved, None to go on.

        Narrower arcs are harder, and change the answer by less than it is in error. Wide ones raise
        convex functions, so that a problem with little room has none when it is rounded.
        """
        if width > _LAST_INEXACT * self.width:
            return None
        return Status.INFEASIBLE if answer.status is Status.INFEASIBLE else Status.STALLED


def _is_infeasible(at: Evaluation, answer: Result, rounded: Evaluation, tol: float) -> bool:
    """Return whether a smooth problem shows that the problem itself is infeasible.

    The gradients of a convex problem whose kinks are rounded are epsilon-subgradients, so that a
    mean of the constraints is nowhere less by more than epsilon than its tangent.
    """
    if not at.problem.convex or at.violation <= tol:
        return False
    candidates = (answer.multipliers, stationary_weights(rounded))
    return any(shows_infeasible(at, weights, tol, rounded=rounded) for weights in candidates)


@dataclass(frozen=True, eq=False)
class SmoothingState(RoundingState):
    """What :class:`Smoothing` leaves for a warm start.

    Attributes
    ----------
    width : float or None
        The width of the last smooth problem.
    subproblem : SolverState or None
        The state that the solver of the smooth problems left.
    """

    subproblem: SolverState | None = None
