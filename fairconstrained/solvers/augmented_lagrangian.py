"""The augmented Lagrangian method, the fast subproblem solver for smooth problems."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_stuck, shows_infeasible
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.lbfgs import InverseHessian, minimize_smooth
from fairconstrained.solvers.result import SolverState, Status
from fairconstrained.utils.parameter_constraints import AboveOne, Limit, NonNegative, Positive
from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

# Of the first round; later rounds divide it by ten. The first multipliers are far from those of
# the solution, so that a more accurate minimiser would be of no use.
_FIRST_TOL = 1e-2
_INFEASIBLE_GROWTH = 30.0  # of sigma, from which on a point is tested for infeasible stationarity
_MAX_GROWTH = 1e9  # of sigma; beyond it the objective is lost in rounding errors
_MIN_REDUCTION = 0.03  # of the gradient in one round; the new multipliers raise it again


@dataclass(eq=False, repr=False)
class AugmentedLagrangian(Solver):
    r"""Augmented Lagrangian method with L-BFGS, for smooth problems.

    Every round minimises, to a tolerance that decreases from round to round,

    .. math::
        f(w) + \frac{1}{2\sigma} \sum_j \big(\max\{\lambda_j + \sigma g_j(w), 0\}^2
        - \lambda_j^2\big)

    and sets :math:`\lambda_j \leftarrow \max\{\lambda_j + \sigma g_j(w), 0\}`. sigma grows if the
    violation decreases too slowly. Every evaluation is one forward and one backward pass for any
    number of constraints. The curvature pairs of L-BFGS are kept from round to round, and in the
    state for warm starts. On domains other than the whole space, projected gradient steps take the
    place of L-BFGS.

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
        if last is None:
            first_tol = max(_FIRST_TOL, 0.9 * start.tol)
            last = AugmentedLagrangianState(self.sigma, first_tol, InverseHessian())
        fits = last.hessian.n_variables == at.w.size
        hessian = deepcopy(last.hessian) if fits else InverseHessian()
        sigma, inner_tol, before = last.sigma, last.inner_tol, np.inf
        for k in range(1, self.max_iter + 1):
            # The last rounds are as accurate as the certificate asks for, and no more.
            inner_tol = max(inner_tol, 0.9 * start.tol * objective_scale(at))
            at = self._minimize_round(at, start, multipliers, sigma, inner_tol, hessian)
            error = float(np.abs(np.maximum(at.constraints, -multipliers / sigma)).max(initial=0.0))
            multipliers = np.maximum(multipliers + sigma * at.constraints, 0.0)
            inner_tol *= 0.1
            state = AugmentedLagrangianState(sigma, inner_tol, hessian)
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
        problem, at = first.problem, first

        def function(w: Array) -> tuple[float, Array]:
            nonlocal at
            if not same_values(at.w, w):
                at = problem.at(w.copy())
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
            diagonal=problem.preconditioner**2,
            hessian=hessian,
            stop=lambda: start.passes_used_up(problem),
        )
        return problem.at(found, like=at)


@dataclass(frozen=True, eq=False)
class AugmentedLagrangianState(SolverState):
    """What :class:`AugmentedLagrangian` leaves for a warm start.

    Attributes
    ----------
    sigma : float
        The penalty parameter.
    inner_tol : float
        The tolerance of the next round.
    hessian : InverseHessian
        The pairs of L-BFGS.
    """

    sigma: float
    inner_tol: float
    hessian: InverseHessian
