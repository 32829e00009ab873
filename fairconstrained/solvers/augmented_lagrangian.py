"""Penalty methods for smooth problems: the augmented Lagrangian, the exact penalty."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_stuck, shows_infeasible
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.curvature import QuasiNewtonCurvature, ScalarCurvature
from fairconstrained.solvers.result import SolverState, Status
from fairconstrained.solvers.sqp import SQP
from fairconstrained.utils.parameter_constraints import AboveOne, Limit, NonNegative, Positive
from fairconstrained.utils.typing import Array

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


@dataclass(eq=False, repr=False)
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

    sigma: Positive = 3.0
    _: KW_ONLY
    growth: AboveOne = 2.0
    max_iter: Limit = 100
    max_inner: Limit = 1000
    tol: NonNegative = 1e-4
    polish: bool = True

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        at, multipliers = start.at(problem), start.first_multipliers(problem.n_constraints)
        last = AugmentedLagrangianState.of(start.state)
        sigma = self.sigma if last is None else last.sigma
        tol = max(_FIRST_TOL, 0.9 * start.tol) if last is None else last.inner_tol
        # Pairs of another run are not taken over: with kinks they led to worse local solutions.
        whole = problem.domain.whole_space
        model = QuasiNewtonCurvature(problem) if whole else ScalarCurvature()
        before = np.inf
        for k in range(1, self.max_iter + 1):
            # The last rounds are as accurate as the certificate asks for, and no more.
            tol = max(tol, 0.9 * start.tol * objective_scale(at))
            at = self._minimum(at, partial(_augmented, multipliers, sigma), tol, model, start)
            error = float(np.abs(np.maximum(at.constraints, -multipliers / sigma)).max(initial=0.0))
            multipliers = np.maximum(multipliers + sigma * at.constraints, 0.0)
            tol *= 0.1
            state = AugmentedLagrangianState(sigma, tol)
            yield Iterate(at, multipliers, k, state, self._failure(at, multipliers, sigma, start))
            # Multipliers converge linearly, by a factor of the order of 1 / sigma. A larger sigma
            # makes the rounds harder: it grows only where a round did not halve the error.
            if error > 0.5 * before and error > 0.5 * start.tol:
                sigma *= self.growth
            before = error

    def _failure(
        self, at: Evaluation, multipliers: Array, sigma: float, start: Start
    ) -> Status | None:
        """Return why the run cannot go on, None if it can.

        A penalty that has grown this much and a point where the violation cannot fall show that the
        constraints have no common solution nearby; convex ones show it at any penalty.
        """
        if at.problem.convex and shows_infeasible(at, multipliers, start.tol):
            return Status.INFEASIBLE
        growth = sigma / self.sigma
        if growth >= _INFEASIBLE_GROWTH and is_stuck(at, start.tol / 3.0, multipliers):
            return Status.INFEASIBLE if at.violation > start.tol else Status.STALLED
        return Status.STALLED if growth >= _MAX_GROWTH else None

    def _minimum(
        self, at: Evaluation, value_of: Augmented, tol: float, model: ScalarCurvature, start: Start
    ) -> Evaluation:
        """Return the evaluation near the minimiser of an augmented Lagrangian."""
        domain = at.problem.domain
        value, gradient = value_of(at)
        recent = deque([value], maxlen=1 if domain.whole_space else _WINDOW)
        tol = max(tol, _MIN_REDUCTION * _residual(at, gradient))
        # The first step is at most one long, in the metric of the model: another may lead far away.
        shift = max(0.0, float(np.sqrt(gradient @ model.inverse(0.0)[0](gradient))) - 1.0)
        best, least, still = at, value, 0
        most = self.max_inner if domain.whole_space else min(self.max_inner, _MOST_PROJECTED)
        for _ in range(most):
            if _residual(at, gradient) <= tol:
                return at
            if still >= _MOST_STILL or start.passes_used_up(at.problem):
                break
            inverse, shift = model.inverse(shift)
            s = domain.project(at.w - inverse(gradient)) - at.w
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


def _augmented(multipliers: Array, sigma: float, at: Evaluation) -> tuple[float, Array]:
    """Return the augmented Lagrangian and its gradient."""
    updated = np.maximum(multipliers + sigma * at.constraints, 0.0)
    penalty = float(updated @ updated - multipliers @ multipliers) / (2.0 * sigma)
    return at.objective + penalty, at.gradient(updated)


def _residual(at: Evaluation, gradient: Array) -> float:
    return float(np.linalg.norm(at.problem.domain.normal_cone_residual(at.w, gradient)))


@dataclass(frozen=True, eq=False)
class AugmentedLagrangianState(SolverState):
    """What :class:`AugmentedLagrangian` leaves for a warm start.

    Attributes
    ----------
    sigma : float
        The penalty parameter.
    inner_tol : float
        The tolerance of the next round.
    """

    sigma: float
    inner_tol: float


@dataclass(eq=False, repr=False)
class ExactPenalty(SQP):
    """The exact penalty method: :class:`SQP` that learns the curvature from gradients alone.

    Parameters
    ----------
    rho : float, default=10.0
        The first weight of the largest violation, > 0.
    growth : float, default=10.0
        The factor by which rho grows where it holds a step back from the constraints, > 1.
    memory : int, default=30
        The number of pairs of L-BFGS; with 0 the model is linear, as in the cited article.
    max_iter : int, default=1000
        The maximum number of trial steps, each of which is one evaluation.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    C. Cartis, N. Gould, P. Toint, "On the evaluation complexity of composite function minimization
    with applications to nonconvex nonlinear programming", SIAM Journal on Optimization 21 (2011),
    the quadratic regularization method; IPC, section 4 compares with it.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import ExactPenalty
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ExactPenalty())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    preferred_with: ClassVar[tuple[str, ...]] = ("in_epigraph_form",)

    rho: Positive = 10.0
    _: KW_ONLY
    growth: AboveOne = 10.0
    memory: Limit | None = 30

    @classmethod
    def paper(cls, **options: Any) -> ExactPenalty:
        """Return the exact penalty method of the comparison in IPC, section 4.

        The paper cites Cartis, Gould and Toint (2011) and tunes the parameters; neither the
        algorithm nor their values are printed. This is the cited article's method with a
        linear model and a quadratic regularisation.

        Parameters
        ----------
        **options
            Further hyperparameters.
        """
        return cls(**{"memory": 0, "max_iter": 5000, **options})
