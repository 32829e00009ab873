"""Sequences of smooth problems: the augmented Lagrangian method, and the rounding of kinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.problem.composite import Multipliers
from fairconstrained.problem.kkt import FAR, is_stuck, objective_scale
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.curvature import Curvature, QuasiNewton
from fairconstrained.solvers.result import SolverState, Status
from fairconstrained.solvers.sqp import SQP, ExactPenalty, Steps
from fairconstrained.utils.parameter_constraints import AboveOne, Limit, OpenShare, Positive
from fairconstrained.utils.typing import Array

_SHARE = 0.5  # of the tolerance: what the solver of a smooth problem may use up, rounding the rest
_LAST_INEXACT = 0.01  # of the first width: the narrowest where the solver does not converge

# Of the first round; later rounds divide it by ten. The first multipliers are far from those of
# the solution, so that a more accurate minimiser would be of no use.
_FIRST_TOL = 1e-2
_INFEASIBLE_GROWTH = 30.0  # of sigma, from which on a point is tested for infeasible stationarity
_MAX_GROWTH = 1e9  # of sigma; beyond it the objective is lost in rounding errors
_MIN_REDUCTION = 0.03  # of the gradient in one round; the new multipliers raise it again


class AugmentedLagrangian(Solver):
    r"""Augmented Lagrangian method with L-BFGS, for smooth problems.

    Every round minimises, to a tolerance that decreases from round to round,

    .. math::
        f(w) + \frac{1}{2\sigma} \sum_j \big(\max\{\lambda_j + \sigma g_j(w), 0\}^2
        - \lambda_j^2\big)

    and sets :math:`\lambda_j \leftarrow \max\{\lambda_j + \sigma g_j(w), 0\}`. sigma grows if the
    violation decreases too slowly. Every evaluation is one forward and one backward pass for any
    number of constraints. Steps are those of :class:`SQP` with L-BFGS, whose curvature pairs are
    kept from round to round; where they leave the domain they are projected gradient steps.

    Parameters
    ----------
    sigma : float, default=3.0
        The first penalty parameter, > 0.
    growth : float, default=2.0
        The factor by which sigma grows, > 1.
    max_iter : int, default=100
        The maximum number of rounds.
    max_inner : int, default=1000
        The maximum number of L-BFGS iterations in a round.
    tol, polish
        See :class:`Solver`.

    References
    ----------
    IPC, Remark 2; D. Bertsekas, "Constrained Optimization and Lagrange Multiplier Methods", 1982.

    Examples
    --------
    >>> from fairconstrained.solvers import AugmentedLagrangian
    >>> AugmentedLagrangian(sigma=1.0)
    AugmentedLagrangian(sigma=1.0)
    """

    requires: ClassVar[tuple[str, ...]] = ("smooth",)

    sigma: Positive = 3.0
    _: KW_ONLY
    growth: AboveOne = 2.0
    max_iter: Limit = 100
    max_inner: Limit = 1000
    polish: bool = True

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        at, multipliers = start.at(problem), start.first_multipliers(problem.n_constraints)
        last = start.left_by(AugmentedLagrangian, self.sigma, max(_FIRST_TOL, 0.9 * start.tol))
        sigma, tol, before = last.parameter, last.tol, np.inf
        # Pairs of another run are not taken over: with kinks they led to worse local solutions.
        model: Curvature = QuasiNewton(problem.preconditioner**2)
        for k in range(1, self.max_iter + 1):
            # The last rounds are as accurate as the certificate asks for, and no more.
            tol = max(tol, 0.9 * start.tol * objective_scale(at))
            kind = partial(_Augmented, problem, multipliers, sigma)
            begin = replace(problem, constraints=(), kind=kind).at(at.w, like=at)
            steps = Steps(SQP(), begin, model, replace(start, multipliers=None))
            least = 0.0
            for _ in range(self.max_inner):
                residual = problem.domain.normal_cone_residual(steps.at.w, steps.model.gradient)
                stationarity = float(np.linalg.norm(residual))
                least = least or max(tol, _MIN_REDUCTION * stationarity)
                if stationarity <= least or steps.failure or start.passes_used_up(problem):
                    break
                steps.step()
            model, end = steps.curvature, cast("_Augmented", steps.at)
            at, error = end.plain, np.abs(end.multipliers - multipliers).max(initial=0.0) / sigma
            multipliers = end.multipliers
            tol *= 0.1
            state = SolverState(AugmentedLagrangian, sigma, tol)
            # A large penalty and a point where the violation cannot fall show that the
            # constraints have no common solution nearby; convex ones show it at any penalty.
            growth, failure, third = sigma / self.sigma, None, start.feasibility_tol
            tested = growth >= _INFEASIBLE_GROWTH
            if problem.convex and is_stuck(at, start.tol, end.active, reach=FAR):
                failure = Status.INFEASIBLE
            elif growth >= _MAX_GROWTH or (tested and is_stuck(at, third, end.active)):
                failure = Status.STALLED
            yield Iterate(at, end.active, k, state, failure)
            # Multipliers converge linearly, by a factor of the order of 1 / sigma. A larger sigma
            # makes the rounds harder: it grows only where a round did not halve the error.
            if error > 0.5 * before and error > 0.5 * start.tol:
                sigma *= self.growth
            before = error


class _Augmented(Evaluation):
    """An augmented Lagrangian at a point, which is that of a problem without constraints.

    It is made from `like`, the evaluation of the problem at the point, if that is there.
    """

    def __init__(self, plain: Problem, multipliers: Array, sigma: float, *at: Any, like: Any):
        super().__init__(*at)
        self.plain = plain.at(self.w) if like is None else like
        self.multipliers = after = np.maximum(multipliers + sigma * self.plain.constraints, 0.0)
        self.active = Multipliers.of(after)  # the same object: gradients are kept for it
        growth = float(after @ after - multipliers @ multipliers)
        self.objective = self.plain.objective + growth / (2.0 * sigma)

    def gradient(self, *_: Any, **others: Any) -> Array:
        """Return the gradient: there are no constraints with multipliers of their own."""
        return self.plain.gradient(self.active)


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

    @property
    def seeks_feasibility(self) -> bool:  # type: ignore[override]
        """What the solver of the smooth problems says."""
        return self.solver is None or self.solver.seeks_feasibility

    def _solver_for(self, smooth: Problem) -> Solver:
        """Return the solver of the smooth problems.

        Local solutions of the augmented Lagrangian method are better than those of SQP: where it
        begins, it has hardly any constraints.
        """
        if self.solver is not None:
            return self.solver
        return ExactPenalty() if smooth.in_epigraph_form else AugmentedLagrangian()

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or the smooth problems for the solver."""
        if not problem.smoothable:
            return super().missing(problem)
        smooth = problem.smoothed(self.width)
        return self._solver_for(smooth).missing(smooth)

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers to the smooth problems, as points of the problem itself."""
        solver = self._solver_for(problem.smoothed(self.width))
        last = start.left_by(Smoothing)
        width = last.parameter or self._first_width(problem, start)
        begin = replace(start, tol=_SHARE * start.tol, state=last.subproblem)
        for k in range(1, self.max_iter + 1):
            answer, end = solver.run(problem.smoothed(width), begin)
            at = problem.at(answer.w, like=end)
            last = SolverState(Smoothing, width, subproblem=answer.state)
            unmet = answer.status is Status.INFEASIBLE
            status, exact = None, (answer.multipliers, end) if answer.converged else (None, None)
            # Narrower arcs are harder, and change an inexact answer by less than it is in error.
            # Wide ones raise convex functions: a problem with little room has none when rounded.
            if not answer.converged and width <= _LAST_INEXACT * self.width:
                status = Status.INFEASIBLE if unmet else Status.STALLED
            yield Iterate(at, exact[0], k, last, status, exact[1])
            if unmet and problem.convex and is_stuck(at, start.tol, answer.multipliers, end, FAR):
                solver = ExactPenalty()  # the least violation, whatever the objective
            # Multipliers of an infeasible problem cannot be used.
            multipliers, state = (None, None) if unmet else (answer.multipliers, answer.state)
            begin = replace(begin, w=answer.w, multipliers=multipliers, state=state, like=end)
            width *= self.shrink

    def _first_width(self, problem: Problem, start: Start) -> float:
        """Return the first width over which kinks are rounded.

        Rounding increases a convex loss. If the loss has a bound near its least value, no model may
        meet this bound once the kinks are rounded over a large width. Therefore, a start that meets
        the convex constraints must also meet them when they are rounded.
        """
        width, narrowest = self.width, _LAST_INEXACT * self.width
        bounded = problem.with_constraints([part for part in problem.constraints if part.convex])
        if bounded.at(start.w).violation > start.tol:
            return width
        while width > narrowest and bounded.smoothed(width).at(start.w).violation > start.tol:
            width *= self.shrink
        return width
