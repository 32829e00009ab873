"""Sequences of smooth problems: the augmented Lagrangian method, and the rounding of kinks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, replace
from typing import ClassVar

import numpy as np

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.problem.kkt import (
    is_stuck,
    objective_scale,
    shows_infeasible,
    stationary_weights,
)
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.curvature import Curvature, QuasiNewtonCurvature
from fairconstrained.solvers.result import Result, SolverState, Status
from fairconstrained.solvers.sqp import ExactPenalty
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
_ARMIJO = 1e-4  # sufficient decrease: part of the decrease that the slope predicts
_ROUNDING = 1e-14  # relative: smaller differences of values are rounding errors
_MOST_STILL = 20  # trial steps that lower nothing; where all were rejected they are 4^-20 as long
# Projected steps of Barzilai and Borwein's length need not decrease the value: it is compared with
# the largest of the last ten (Birgin, Martinez and Raydan 2000).
_WINDOW = 10
_MOST_PROJECTED = 100  # steps in a round: where they are slow, new multipliers help more

Augmented = Callable[[Evaluation], tuple[float, Array]]


class AugmentedLagrangian(Solver):
    r"""Augmented Lagrangian method with L-BFGS, for smooth problems.

    Every round minimises, to a tolerance that decreases from round to round,

    .. math::
        f(w) + \frac{1}{2\sigma} \sum_j \big(\max\{\lambda_j + \sigma g_j(w), 0\}^2
        - \lambda_j^2\big)

    and sets :math:`\lambda_j \leftarrow \max\{\lambda_j + \sigma g_j(w), 0\}`. sigma grows if the
    violation decreases too slowly. Every evaluation is one forward and one backward pass for any
    number of constraints. The curvature pairs of L-BFGS are kept from round to round. On domains
    other than the whole space, projected gradient steps take the place of L-BFGS.

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
        first = SolverState(AugmentedLagrangian, self.sigma, max(_FIRST_TOL, 0.9 * start.tol))
        last = start.left_by(AugmentedLagrangian) or first
        sigma, tol = last.parameter, last.tol
        # Pairs of another run are not taken over: with kinks they led to worse local solutions.
        whole, sizes = problem.domain.whole_space, problem.preconditioner
        model = QuasiNewtonCurvature(sizes**2) if whole else Curvature()
        before = np.inf

        def augmented(at: Evaluation) -> tuple[float, Array]:  # the value and the gradient
            updated = np.maximum(multipliers + sigma * at.constraints, 0.0)
            penalty = float(updated @ updated - multipliers @ multipliers) / (2.0 * sigma)
            return at.objective + penalty, at.gradient(updated)

        for k in range(1, self.max_iter + 1):
            # The last rounds are as accurate as the certificate asks for, and no more.
            tol = max(tol, 0.9 * start.tol * objective_scale(at))
            at = self._minimum(at, augmented, tol, model, start)
            error = float(np.abs(np.maximum(at.constraints, -multipliers / sigma)).max(initial=0.0))
            multipliers = np.maximum(multipliers + sigma * at.constraints, 0.0)
            tol *= 0.1
            state = SolverState(AugmentedLagrangian, sigma, tol)
            # A large penalty and a point where the violation cannot fall show that the
            # constraints have no common solution nearby; convex ones show it at any penalty.
            growth, failure = sigma / self.sigma, None
            if problem.convex and shows_infeasible(at, multipliers, start.tol):
                failure = Status.INFEASIBLE
            elif growth >= _MAX_GROWTH or (
                growth >= _INFEASIBLE_GROWTH and is_stuck(at, start.feasibility_tol, multipliers)
            ):
                failure = Status.STALLED
            yield Iterate(at, multipliers, k, state, failure)
            # Multipliers converge linearly, by a factor of the order of 1 / sigma. A larger sigma
            # makes the rounds harder: it grows only where a round did not halve the error.
            if error > 0.5 * before and error > 0.5 * start.tol:
                sigma *= self.growth
            before = error

    def _minimum(
        self, at: Evaluation, value_of: Augmented, tol: float, model: Curvature, start: Start
    ) -> Evaluation:
        """Return the evaluation near the minimiser of an augmented Lagrangian."""
        domain = at.problem.domain
        value, gradient = value_of(at)
        recent = deque([value], maxlen=1 if domain.whole_space else _WINDOW)
        tol = max(tol, _MIN_REDUCTION * _residual(at, gradient))
        # The first step is at most one long, in the metric of the model: another may lead far away.
        model.shifted(0.0)
        shift = max(0.0, float(np.sqrt(gradient @ model.inverse(gradient))) - 1.0)
        best, least, still = at, value, 0
        most = self.max_inner if domain.whole_space else min(self.max_inner, _MOST_PROJECTED)
        for _ in range(most):
            if _residual(at, gradient) <= tol:
                return at
            if still >= _MOST_STILL or start.passes_used_up(at.problem):
                break
            model.shifted(shift)
            s = domain.project(at.w - model.inverse(gradient)) - at.w
            trial = at.problem.at(at.w + s)
            slope, (new, turned) = float(gradient @ s), value_of(trial)
            # Near the minimum differences of values are rounding errors, and the slope decides
            # (Hager and Zhang's approximate Wolfe condition).
            near = new - value <= _ROUNDING * abs(value) and abs(float(turned @ s)) <= -slope
            if np.isfinite(new):
                model.update(s, turned - gradient, -gradient)
            still += 1
            if near or new - max(recent) <= _ARMIJO * slope:
                at, value, gradient, shift = trial, new, turned, model.lowered(shift)
                recent.append(value)
                if value < least - _ROUNDING * abs(least):
                    best, least, still = at, value, 0
            else:
                # The minimum of the secant of the slope, kept from tiny and hardly shorter steps.
                bent = float(turned @ s) - slope
                share = -slope / bent if np.isfinite(new) and bent > 0.0 else 0.5
                shift = (1.0 + shift) / min(max(share, 0.1), 0.5) - 1.0
        return best


def _residual(at: Evaluation, gradient: Array) -> float:
    return float(np.linalg.norm(at.problem.domain.normal_cone_residual(at.w, gradient)))


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
        first = start.left_by(Smoothing)
        last = first or SolverState(Smoothing, self._first_width(problem, start))
        width, begin = last.parameter, replace(start, tol=_SHARE * start.tol, state=last.subproblem)
        for k in range(1, self.max_iter + 1):
            answer, end = solver.run(problem.smoothed(width), begin)
            at = problem.at(answer.w, like=end)
            last = SolverState(Smoothing, width, subproblem=answer.state)
            infeasible = answer.status is Status.INFEASIBLE
            if answer.converged:
                yield Iterate(at, answer.multipliers, k, last, rounded=end)
            else:
                # Narrower arcs are harder, and change the answer by less than it is in error. Wide
                # ones raise convex functions: a problem with little room has none when rounded.
                status = Status.INFEASIBLE if infeasible else Status.STALLED
                narrow = width <= _LAST_INEXACT * self.width
                yield Iterate(at, None, k, last, status if narrow else None)
            if infeasible and _is_infeasible(at, answer, end, start.tol):
                solver = ExactPenalty()  # the least violation, whatever the objective
            # Multipliers of an infeasible problem cannot be used.
            multipliers, state = (None, None) if infeasible else (answer.multipliers, answer.state)
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
