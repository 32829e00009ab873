"""Smoothing: a sequence of problems whose kinks are rounded over decreasing widths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import shows_infeasible, stationary_weights
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.registry import SOLVERS
from fairconstrained.solvers.result import Result, SolverState, Status
from fairconstrained.utils.parameter_constraints import Limit, NonNegative, OpenShare, Positive

_SHARE = 0.5  # of the tolerance: what the solver of a smooth problem may use up, rounding the rest
_LAST_INEXACT = 0.01  # of the first width: the narrowest where the solver does not converge


@dataclass(eq=False, repr=False)
class Smoothing(Solver):
    r"""Smoothing method: solves problems with rounded kinks, over decreasing widths.

    Every kink of a function (hinge, ramp, L1 and SCAD penalties) is replaced by an arc of a given
    width (see :class:`~fairconstrained.functions.base.Rounded`). The smooth problem is solved for
    decreasing widths, each warm-started from the previous one, until the certificate of the
    *original* problem holds: the gradient at the solution is an :math:`\epsilon`-subgradient of the
    Lagrangian, and epsilon counts as complementarity (see
    :meth:`~fairconstrained.problem.kkt.KKT.of`).

    For a solver that does not converge to such tolerances only three widths are used.

    Parameters
    ----------
    solver : Solver or None, default=None
        The solver of the smooth problems; None takes :class:`ExactPenalty` for the least unfairness
        (``goal="fairness"``), else :class:`AugmentedLagrangian`.
    width : float, default=1.0
        The first width, > 0. With a width as large as that of the ramp the first problems have
        fewer local minima, so that solutions are often better.
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
    >>> clf = FairHingeClassifier(kappa=0.1, solver="smoothing").fit(
    ...     X, y, sensitive_features=groups
    ... )
    >>> clf.result_.status.value
    'converged'
    """

    requires: ClassVar[tuple[str, ...]] = ("smoothable",)

    solver: Solver | None = None
    _: KW_ONLY
    width: Positive = 1.0
    shrink: OpenShare = 0.1
    max_iter: Limit = 12
    tol: NonNegative = 1e-4

    @property
    def seeks_feasibility(self) -> bool:
        """What the solver of the smooth problems says."""
        return self.solver is None or self.solver.seeks_feasibility

    @property
    def replaceable(self) -> bool:
        """What the solver of the smooth problems says."""
        return self.solver is None or self.solver.replaceable

    def _solver_for(self, smooth: Problem) -> Solver:
        """Return the solver of the smooth problems.

        Local solutions of the augmented Lagrangian method are better than those of SQP: where it
        begins, it has hardly any constraints.
        """
        if self.solver is not None:
            return self.solver
        return SOLVERS["exact-penalty" if smooth.in_epigraph_form else "augmented-lagrangian"]()

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
        width = self._first_width(problem, start) if last is None else last.width
        for k in range(1, self.max_iter + 1):
            smooth, tol = problem.smoothed(width), _SHARE * start.tol
            warm, end = solver.solve(smooth, like=like, warm=warm, tol=tol, within=start)
            at, state = problem.at(warm.w, like=end), SmoothingState(width, warm.state)
            infeasible = warm.status is Status.INFEASIBLE
            if warm.converged:
                yield Iterate(at, warm.multipliers, k, state, rounded=end)
            else:
                # Narrower arcs are harder, and change the answer by less than it is in error. Wide
                # ones raise convex functions: a problem with little room has none when rounded.
                status = warm.status if infeasible else Status.STALLED
                narrow = width <= _LAST_INEXACT * self.width
                yield Iterate(at, None, k, state, status if narrow else None)
            if infeasible:
                if _is_infeasible(at, warm, end, start.tol):
                    # This one seeks the least violation without regard to the objective.
                    solver = SOLVERS["exact-penalty"]()
                # Multipliers of an infeasible problem cannot be used.
                warm = replace(start, w=warm.w, multipliers=None, state=None, like=None)
            like, width = end, self.shrink * width

    def _first_width(self, problem: Problem, start: Start) -> float:
        """Return the first width over which kinks are rounded.

        Rounding increases a convex loss. If the loss has a bound near its least value, no model may
        meet this bound once the kinks are rounded over a large width. Therefore, a start that meets
        the convex constraints must also meet them when they are rounded.
        """
        width, narrowest = self.width, _LAST_INEXACT * self.width
        bounded = problem.with_constraints([part for part in problem.constraints if part.convex])
        if not bounded.n_constraints or bounded.at(start.w).violation > start.tol:
            return width
        while width > narrowest and bounded.smoothed(width).at(start.w).violation > start.tol:
            width *= self.shrink
        return width


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
class SmoothingState(SolverState):
    """What :class:`Smoothing` leaves for a warm start.

    Attributes
    ----------
    width : float
        The width of the last smooth problem.
    subproblem : SolverState or None
        The state that the solver of the smooth problems left.
    """

    width: float
    subproblem: SolverState | None

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
        last = SmoothingState.of(state)
        return None if last is None else problem.smoothed(last.width).at(at.w, like=at)
