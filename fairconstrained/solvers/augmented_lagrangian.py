"""The augmented Lagrangian method, the fast subproblem solver for smooth problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_early_stuck, is_stuck
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.lbfgs import CurvaturePairs, InverseHessian
from fairconstrained.solvers._tools.minimize import LatestEvaluation, minimize_smooth
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.solvers.result import Status
from fairconstrained.solvers.state import SolverState
from fairconstrained.utils.typing import Array

_INFEASIBLE_GROWTH = 1e3  # of sigma, from which on the point is tested for infeasible stationarity
_LEAST_FALL, _MAX_IDLE = 0.9, 8  # rounds without such a fall of the constraints, and sigma large
_LONG, _MAX_EXHAUSTED = 1000, 2  # data passes of a round that did not end; such rounds
_RESTART = 100.0  # of sigma, where the run starts again
_MAX_GROWTH = 1e9  # of sigma; beyond it the objective is lost in rounding errors
_MIN_REDUCTION = 0.03  # of the gradient in one round; the new multipliers raise it again
_MIN_RELATIVE_FALL = 0.1  # of the constraints between two rounds, for a usable secant pair
_LONG_STEP = 1.1  # growth of the multipliers' norm from which an extrapolation counts as long
_REQUIRED_FALL = 0.5  # what a long extrapolation must leave of the constraints, at most


class AugmentedLagrangian(PolishedSolver):
    r"""Augmented Lagrangian method with L-BFGS, for smooth problems.

    Every round minimises, to a tolerance that decreases from round to round,

    .. math::
        f(w) + \frac{1}{2\sigma} \sum_j \big(\max\{\lambda_j + \sigma g_j(w), 0\}^2
        - \lambda_j^2\big)

    and sets :math:`\lambda_j \leftarrow \max\{\lambda_j + \sigma g_j(w), 0\}`. The multipliers are
    then extrapolated by a secant step to where the active constraints are expected to vanish. sigma
    grows if the violation decreases too slowly. Every evaluation is one forward and one backward
    pass for any number of constraints. The curvature pairs of L-BFGS are kept from round to round,
    and in the state for warm starts.

    If the first minimiser lies where the constraints are flat (ramps, for example), the run ends at
    an infeasible stationary point. If the first point violates less than that point, the run starts
    again from the first point with a larger sigma, which keeps it near the constraints.

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
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by sequential quadratic programming
        steps from its best point. If False, estimators try no other solver either.

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

    def __init__(
        self,
        sigma: float = 3.0,
        *,
        growth: float = 2.0,
        max_iter: int = 100,
        max_inner: int = 1000,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.sigma = sigma
        self.growth = growth
        self.max_iter = max_iter
        self.max_inner = max_inner
        self.tol = tol
        self.polish = polish

    def proximity(self, problem: Problem) -> float:
        """Return a small rho^: the method needs smoothness, not convexity."""
        return 1e-5

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        at, multipliers = start.at(problem), start.first_multipliers(problem.n_constraints)
        origin = at
        last = AugmentedLagrangianState.of(start.state) or AugmentedLagrangianState(
            self.sigma, max(1e-2, 0.9 * start.tol)
        )
        sigma, inner_tol = last.sigma, last.inner_tol
        hessian = InverseHessian.for_variables(at.w.size, last.curvature)
        secant = MultiplierExtrapolation.for_constraints(
            problem.n_constraints, last.secant, reliable=last.extrapolates
        )
        progress, first = _Progress(), self.sigma
        for k in range(1, self.max_iter + 1):
            inner_tol = max(inner_tol, 0.9 * start.tol * objective_scale(at))
            passes = problem.passes
            at = self._minimize_round(at, start, multipliers, sigma, inner_tol, hessian)
            shift = np.maximum(at.constraints, -multipliers / sigma)
            multipliers = np.maximum(multipliers + sigma * at.constraints, 0.0)
            error = float(np.abs(shift).max(initial=0.0))
            inner_tol *= 0.1
            accurate = inner_tol <= start.tol  # secants of rounds solved less closely are noisy
            ahead = secant.extrapolate(multipliers, at.constraints) if accurate else multipliers
            state = AugmentedLagrangianState(
                sigma, inner_tol, hessian.pairs, secant.pair, secant.reliable
            )
            grows = error > 0.5 * progress.before and error > 0.5 * start.tol
            progress.add(error, exhausted=problem.passes - passes >= max(self.max_inner, _LONG))
            failure = self._failure(at, multipliers, sigma / first, start.tol, progress)
            again = first == self.sigma and not problem.convex
            if again and _is_worse(at, origin, start.feasible, failure):
                at, multipliers = origin, start.first_multipliers(len(multipliers))
                sigma = first = _RESTART * self.sigma
                progress = _Progress()
                hessian.clear()
                continue
            if failure is None and progress.exhausted >= _MAX_EXHAUSTED:
                failure = Status.STALLED
            yield Iterate(at, multipliers, k, state, failure)
            multipliers = ahead
            if grows:
                sigma *= self.growth

    def _failure(
        self, at: Evaluation, multipliers: Array, growth: float, tol: float, progress: _Progress
    ) -> Status | None:
        """Return why the run cannot go on, None if it can."""
        large, share = growth >= _INFEASIBLE_GROWTH, growth / _INFEASIBLE_GROWTH
        if large and is_stuck(at, tol / 3.0, multipliers):
            return Status.INFEASIBLE if at.violation > tol else Status.STALLED
        if is_early_stuck(at, tol, multipliers, share, check_largest=progress.idle > 0):
            return Status.INFEASIBLE
        without_progress = large and progress.idle >= _MAX_IDLE
        return Status.STALLED if without_progress or growth >= _MAX_GROWTH else None

    def _minimize_round(
        self,
        first: Evaluation,
        start: Start,
        multipliers: Array,
        sigma: float,
        tol: float,
        hessian: InverseHessian,
    ) -> Evaluation:
        """Return the evaluation at the minimiser of the augmented Lagrangian."""
        problem, latest = first.problem, LatestEvaluation(first)

        def function(x: Array) -> tuple[float, Array]:
            at = latest.at(x)
            updated = np.maximum(multipliers + sigma * at.constraints, 0.0)
            penalty = float(updated @ updated - multipliers @ multipliers) / (2.0 * sigma)
            return at.objective + penalty, at.gradient(updated)

        residual = problem.domain.normal_cone_residual(first.w, function(first.w)[1])
        found = minimize_smooth(
            function,
            first.w,
            problem.domain,
            tol=max(tol, _MIN_REDUCTION * float(np.linalg.norm(residual))),
            max_iter=self.max_inner,
            preconditioner=problem.preconditioner,
            inverse_hessian=hessian,
            stop=lambda: start.passes_used_up(problem),
        )
        return latest.at(found)


class _Progress:
    """How the rounds of a run have gone so far.

    Attributes
    ----------
    before : float
        The error of the constraints after the latest round.
    idle : int
        The latest rounds in which the error did not fall by a tenth.
    exhausted : int
        The rounds that used up their iterations.
    """

    def __init__(self) -> None:
        self.before, self.idle, self.exhausted = np.inf, 0, 0
        self._least = np.inf

    def add(self, error: float, *, exhausted: bool) -> None:
        """Take in a round."""
        if error < _LEAST_FALL * self._least:
            self._least, self.idle = error, 0
        else:
            self.idle += 1
        self.before, self.exhausted = error, self.exhausted + exhausted


def _is_worse(at: Evaluation, origin: Evaluation, tol: float, failure: Status | None) -> bool:
    """Return whether a run should start again: its first point is better than where it leads."""
    if failure is not None:
        return origin.violation < at.violation
    worse = at.objective - origin.objective > tol * objective_scale(origin)
    return worse and max(at.violation, origin.violation) <= tol


@dataclass(frozen=True, eq=False)
class SecantPair:
    """A step of the multipliers and the decrease of the active constraints along it.

    Attributes
    ----------
    step, fall : ndarray of shape (n_constraints,)
        s and y.
    """

    step: Array
    fall: Array


@dataclass(frozen=True, eq=False)
class AugmentedLagrangianState(SolverState):
    """What :class:`AugmentedLagrangian` leaves for a warm start.

    Attributes
    ----------
    sigma : float
        The penalty parameter.
    inner_tol : float
        The tolerance of the next round.
    curvature : CurvaturePairs or None
        The pairs of L-BFGS.
    secant : SecantPair or None
        The pair that multipliers are extrapolated with.
    extrapolates : bool
        Whether multipliers are still extrapolated, see :class:`MultiplierExtrapolation`.
    """

    sigma: float
    inner_tol: float
    curvature: CurvaturePairs | None = None
    secant: SecantPair | None = None
    extrapolates: bool = True


class MultiplierExtrapolation:
    r"""Secant extrapolation of the multipliers from one round to the next.

    Every round ends at a minimiser of the Lagrangian for the multipliers that it ends with. The
    active constraints at that point are thus a function of the multipliers, and this function
    vanishes at the solution. With s the last step of the multipliers and y the decrease of the
    active constraints along it, the secant step to the zero is :math:`(s^\top g / s^\top y)\, s`.

    If the feasible set has no interior, the multipliers may be unbounded, and extrapolated
    multipliers diverge. Once a long extrapolation has failed to reduce the constraints, no further
    one is made.

    Parameters
    ----------
    pair : SecantPair or None, default=None
        s and y of an earlier run.
    reliable : bool, default=True
        Whether no long extrapolation of an earlier run has failed.
    """

    def __init__(self, pair: SecantPair | None = None, *, reliable: bool = True):
        self.pair, self.reliable = pair, reliable
        self._last: tuple[Array, Array] | None = None  # multipliers and active constraints
        self._was_long = False

    @classmethod
    def for_constraints(
        cls, n_constraints: int, pair: SecantPair | None, *, reliable: bool
    ) -> MultiplierExtrapolation:
        """Return an extrapolation that begins with the pair if it has this many constraints."""
        fits = pair is not None and pair.step.size == n_constraints
        return cls(pair if fits else None, reliable=reliable)

    def extrapolate(self, multipliers: Array, constraints: Array) -> Array:
        """Return the multipliers at which the active constraints are expected to vanish.

        Parameters
        ----------
        multipliers, constraints : ndarray of shape (n_constraints,)
            The values at the end of a round.
        """
        active = multipliers > 0.0
        self._update(multipliers, np.where(active, constraints, 0.0))
        if not self.reliable or self.pair is None or np.any(self.pair.step[~active]):
            return multipliers
        step, fall = self.pair.step, self.pair.fall
        length = (step @ constraints) / (step @ fall)
        ahead = np.maximum(multipliers + length * step, 0.0)
        self._was_long = bool(np.linalg.norm(ahead) > _LONG_STEP * np.linalg.norm(multipliers))
        return ahead

    def _update(self, multipliers: Array, active_constraints: Array) -> None:
        """Form the secant pair from this round and the one before."""
        last, self._last = self._last, (multipliers, active_constraints)
        was_long, self._was_long = self._was_long, False
        if last is None:
            return
        size = np.linalg.norm(last[1])
        failed = was_long and np.linalg.norm(active_constraints) > _REQUIRED_FALL * size
        self.reliable = self.reliable and not failed
        step, fall = multipliers - last[0], last[1] - active_constraints
        usable = np.linalg.norm(fall) >= _MIN_RELATIVE_FALL * size and step @ fall > 0.0
        self.pair = SecantPair(step, fall) if usable else None
