"""The augmented Lagrangian method: the fast oracle for smooth problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.lbfgs import Memory
from fairconstrained.solvers._tools.minimize import minimize_smooth
from fairconstrained.solvers.base import Iterate, Solver, Start, is_stuck
from fairconstrained.solvers.result import Status
from fairconstrained.utils.typing import Array

_HIGH = 1e3  # a growth of sigma after which a violation that does not fall is looked at closely
_ROUNDING = 1e9  # a growth after which nothing but rounding is left of the objective
_REDUCE = 0.03  # what a round leaves of the gradient at least: the multipliers move it again
_FALL = 0.1  # of the constraints: a smaller change from one round to the next says little
_FAR, _LEFT = (
    1.1,
    0.5,
)  # where multipliers go ahead by more than this, constraints must fall to that

Pair = tuple[Array, Array]


class AugmentedLagrangian(Solver):
    r"""Augmented Lagrangian method with L-BFGS inside, for smooth problems.

    Minimises, to a tolerance that tightens from one round to the next,

    .. math::
        f(w) + \frac{1}{2\sigma} \sum_j \big(\max\{\lambda_j + \sigma g_j(w), 0\}^2
        - \lambda_j^2\big)

    and sets :math:`\lambda_j \leftarrow \max\{\lambda_j + \sigma g_j(w), 0\}`, then goes on along
    the last change to where the active constraints are expected to vanish; sigma
    grows where the violation does not fall fast enough. Every evaluation is one forward and one
    backward pass whatever the number of constraints. What L-BFGS has learned of the curvature is
    kept from one round to the next, and in the state for warm starts.

    Parameters
    ----------
    sigma : float, default=3.0
        The first penalty parameter, > 0.
    growth : float, default=2.0
        The factor by which sigma grows, > 1.
    max_iter : int, default=100
        The largest number of rounds.
    max_inner : int, default=1000
        The largest number of L-BFGS iterations in a round.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

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
    ):
        self.sigma = sigma
        self.growth = growth
        self.max_iter = max_iter
        self.max_inner = max_inner
        self.tol = tol

    def proximity(self, problem: Problem) -> float:
        """Return a small rho^: the method needs smoothness, not convexity."""
        return 1e-5

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        w, multipliers = start.w, np.zeros(problem.n_constraints)
        if start.multipliers is not None:
            multipliers = start.multipliers
        sigma = start.state.get("sigma", self.sigma)
        inner_tol = start.state.get("inner_tol", max(1e-2, 0.9 * start.tol))
        memory = Memory.of(start.state.get("pairs"), w.size)
        secant, before = MultiplierExtrapolation.of(start.state, problem.n_constraints), np.inf
        for k in range(1, self.max_iter + 1):
            inner_tol = max(inner_tol, 0.9 * start.tol)
            at = self._minimize_round(problem, start, w, multipliers, sigma, inner_tol, memory)
            shift = np.maximum(at.constraints, -multipliers / sigma)
            multipliers = np.maximum(multipliers + sigma * at.constraints, 0.0)
            w, error = at.w, float(np.abs(shift).max(initial=0.0))
            inner_tol *= 0.1
            closely = inner_tol <= start.tol  # rounds that are not solved so say little
            ahead = secant.beyond(multipliers, at.constraints) if closely else multipliers
            known = {"pairs": memory.pairs, "secant": secant.pair, "trusted": secant.trusted}
            state = {"sigma": sigma, "inner_tol": inner_tol, **known}
            hopeless = sigma >= _HIGH * self.sigma and is_stuck(at, start.tol)
            status = Status.INFEASIBLE if hopeless else None
            if status is None and sigma >= _ROUNDING * self.sigma:
                status = Status.STALLED
            yield Iterate(at, multipliers, k, state, status)
            multipliers = ahead
            if error > 0.5 * before and error > 0.5 * start.tol:
                sigma *= self.growth
            before = error

    def _minimize_round(
        self,
        problem: Problem,
        start: Start,
        w: Array,
        multipliers: Array,
        sigma: float,
        tol: float,
        memory: Memory,
    ) -> Evaluation:
        """Return the problem at the minimiser of the augmented Lagrangian."""
        latest: list[Evaluation] = []

        def function(x: Array) -> tuple[float, Array]:
            if not (latest and np.array_equal(latest[0].w, x)):
                latest[:] = [problem.at(x.copy())]
            at = latest[0]
            updated = np.maximum(multipliers + sigma * at.constraints, 0.0)
            excess = float(updated @ updated - multipliers @ multipliers) / (2.0 * sigma)
            return at.objective + excess, at.gradient(updated)

        first = problem.domain.normal_cone_residual(w, function(w)[1])
        tol = max(tol, _REDUCE * float(np.linalg.norm(first)))
        found = minimize_smooth(
            function,
            w,
            problem.domain,
            tol=tol,
            max_iter=self.max_inner,
            units=problem.preconditioner,
            memory=memory,
            stop=lambda: start.passes_used_up(problem),
        )
        at = latest[0]
        return at if np.array_equal(at.w, found) else problem.at(found)


class MultiplierExtrapolation:
    r"""Multipliers for the next round, beyond those of the last one.

    Every round ends at a minimiser of the Lagrangian with the multipliers it ends with, so that the
    active constraints there are a function of them. It falls, and vanishes at the solution: along
    the last step s, with the fall y of the constraints, about :math:`(s^T g / s^T y)\, s` ahead.

    Where the feasible set has no interior, multipliers have no bound and this leads ever farther:
    once a long way ahead has not brought the constraints down, no other one is gone.

    Parameters
    ----------
    pair : tuple of two ndarray of shape (n_constraints,) or None, default=None
        s and y, where an earlier run knows them.
    trusted : bool, default=True
        Whether no earlier run went a long way ahead in vain.
    """

    def __init__(self, pair: Pair | None = None, *, trusted: bool = True):
        self.pair, self.trusted = pair, trusted
        self._last: Pair | None = None
        self._went_far = False

    @classmethod
    def of(cls, state: Mapping[str, Any], n_constraints: int) -> MultiplierExtrapolation:
        """Return what a run left in its state; no pair if it is of other constraints."""
        pair = state.get("secant")
        fits = pair is not None and pair[0].size == n_constraints
        return cls(pair if fits else None, trusted=state.get("trusted", True))

    def beyond(self, multipliers: Array, constraints: Array) -> Array:
        """Return the multipliers at which the constraints are expected to vanish.

        Parameters
        ----------
        multipliers, constraints : ndarray of shape (n_constraints,)
            Those that the round ended with.
        """
        active = multipliers > 0.0
        self._learn(multipliers, np.where(active, constraints, 0.0))
        if not self.trusted or self.pair is None or np.any(self.pair[0][~active]):
            return multipliers
        step, fall = self.pair
        length = (step @ constraints) / (step @ fall)
        ahead = np.maximum(multipliers + length * step, 0.0)
        self._went_far = bool(np.linalg.norm(ahead) > _FAR * np.linalg.norm(multipliers))
        return ahead

    def _learn(self, multipliers: Array, level: Array) -> None:
        """Compare a round with the one before: `level` has the constraints that are active."""
        last, self._last = self._last, (multipliers, level)
        went_far, self._went_far = self._went_far, False
        if last is None:
            return
        size = np.linalg.norm(last[1])
        self.trusted &= not (went_far and np.linalg.norm(level) > _LEFT * size)
        step, fall = multipliers - last[0], last[1] - level
        told = np.linalg.norm(fall) >= _FALL * size and step @ fall > 0.0
        self.pair = (step, fall) if told else None
