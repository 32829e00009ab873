"""Smoothing: a sequence of problems whose kinks are rounded over decreasing widths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.ipc import IPC
from fairconstrained.solvers.result import Result, Status
from fairconstrained.solvers.state import RoundingState, SolverState

_SHARE = 0.5  # of the tolerance: what the solver of a smooth problem may use up, rounding the rest
_LAST_INEXACT = 0.01  # of the first width: the narrowest where the solver does not converge


class Smoothing(Solver):
    r"""Smoothing method: solves problems with rounded kinks, over decreasing widths.

    Every kink of a function (hinge, ramp, L1 and SCAD penalties) is replaced by an arc of a given
    width (see :class:`~fairconstrained.functions.base.Rounded`). The smooth problem is solved for
    decreasing widths, each warm-started from the previous one, until the certificate of the
    *original* problem holds: the gradient at the solution is an :math:`\epsilon`-subgradient of the
    Lagrangian, and epsilon counts as complementarity (see
    :meth:`~fairconstrained.problem.kkt.KKT.of`).

    For a solver that does not converge to such tolerances only three widths are used, and its
    solutions are moved to the nearest points that meet the constraints of the original problem.

    Parameters
    ----------
    solver : Solver or None, default=None
        The solver of the smooth problems; None takes :class:`IPC` if these are known to be weakly
        convex, else (with a nonlinear model) :class:`AugmentedLagrangian`.
    width : float, default=1.0
        The first width, > 0. With a width as large as that of the ramp the first problems have
        fewer local minima, and the solutions are better: by a fifth for weak partial parity of
        three groups.
    shrink : float, default=0.1
        The factor by which the width is multiplied from one problem to the next, in (0, 1).
    max_iter : int, default=12
        The maximum number of smooth problems.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    Y. Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005).

    Examples
    --------
    >>> from fairconstrained import FairHingeClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairHingeClassifier(kappa=0.05, solver="smoothing").fit(
    ...     X, y, sensitive_features=groups
    ... )
    >>> clf.result_.status.value
    'converged'
    """

    requires: ClassVar[tuple[str, ...]] = ("smoothable",)

    def __init__(
        self,
        solver: Solver | None = None,
        *,
        width: float = 1.0,
        shrink: float = 0.1,
        max_iter: int = 12,
        tol: float = 1e-4,
    ):
        self.solver = solver
        self.width = width
        self.shrink = shrink
        self.max_iter = max_iter
        self.tol = tol

    def _solver_for(self, smooth: Problem) -> Solver:
        """Return the solver of the smooth problems."""
        if self.solver is not None:
            return self.solver
        return IPC() if smooth.weakly_convex else AugmentedLagrangian()

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
        width = self.width if last is None or last.width is None else last.width
        for k in range(1, self.max_iter + 1):
            smooth = problem.smoothed(width)
            answer, end = solver.solve(
                smooth,
                like=like,
                warm=warm,
                tol=_SHARE * start.tol,
                random_state=start.random_state,
                max_data_passes=start.passes_left(problem),
            )
            at = problem.at(answer.w, like=end)
            state = SmoothingState(width, answer.state)
            if answer.converged:
                yield Iterate(at, answer.multipliers, k, state, rounded=end)
            else:
                at = restore(at, start.feasible)
                yield Iterate(at, None, k, state, self._verdict(answer, width))
            warm = answer
            if answer.status is Status.INFEASIBLE:  # its multipliers cannot be used
                warm = replace(start, w=answer.w, multipliers=None, state=None, like=None)
            like, width = end, self.shrink * width

    def _verdict(self, answer: Result, width: float) -> Status | None:
        """Return why to end after a smooth problem that was not solved, None to go on.

        Narrower arcs are harder, and change the answer by less than it is in error. Wide ones raise
        convex functions, so that a problem with little room has none when it is rounded.
        """
        if width > _LAST_INEXACT * self.width:
            return None
        return Status.INFEASIBLE if answer.status is Status.INFEASIBLE else Status.STALLED


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
