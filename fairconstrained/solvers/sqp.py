"""Sequential quadratic programming with the Hessian of the Lagrangian, for few variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.solvers.state import SolverState
from fairconstrained.utils.typing import Array

_MOST_CONSTRAINTS = 50  # nearly active ones: each may cost a backward pass
_NEAR = 1e-2  # below its bound: a constraint that a step may make active
_GOOD = 0.1  # of the error, left by a step: the Hessian is kept
_LEAST_FALL, _PATIENCE = 0.5, 1  # of the error; steps that may pass without such a fall
_DAMPING = 1e-3  # of the multipliers, relative to the error and to the size of their problem


class SQP(PolishedSolver):
    r"""Sequential quadratic programming with the Hessian of the Lagrangian.

    A step s and its multipliers solve

    .. math::
        \min_s \langle \nabla f(w), s \rangle + \tfrac12 s^\top H s \quad \text{s.t.} \quad
        g_j(w) + \langle \nabla g_j(w), s \rangle \le 0

    over the constraints that are nearly active, through the dual, with a damping of the multipliers
    that vanishes with the error. It is needed where gradients are dependent, for instance with a
    tolerance of 0 on a difference of rates. Near a solution the error falls quadratically if H
    is the Hessian at the point, and by a constant factor if it is that of a point nearby. H is
    computed again where a step leaves more than a tenth of the error. A Hessian counts as a data
    pass.

    ``solver="auto"`` takes this method only if there are constraints. The model without constraints
    is found by L-BFGS, for rows in memory as for rows in shards: some constraints take thresholds
    from it, which must not depend on where the rows are.

    Without multipliers to start from, the run begins with a round of :class:`AugmentedLagrangian`,
    which decides near which local solution it ends. Where H is not positive definite, or the error
    is not halved by two steps, further rounds follow, and steps from their last point: two rounds
    the first time, then four, and so on. Problems whose Hessian is not known or
    costs much (:attr:`Problem.twice_differentiable`) are solved by these rounds alone.

    Parameters
    ----------
    max_iter : int, default=100
        The maximum number of steps, and of rounds of :class:`AugmentedLagrangian`.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by steps from its best point. If False,
        estimators try no other solver either.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithm 18.1; S. Wright,
    "Superlinear convergence of a stabilized SQP method to a degenerate solution", Computational
    Optimization and Applications 11 (1998), for the damping.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import SQP
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=SQP()).fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value
    'converged'
    """

    requires: ClassVar[tuple[str, ...]] = ("smooth",)
    preferred_with: ClassVar[tuple[str, ...]] = ("twice_differentiable", "n_constraints")

    def __init__(self, *, max_iter: int = 100, tol: float = 1e-4, polish: bool = True):
        self.max_iter = max_iter
        self.tol = tol
        self.polish = polish

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the points of rounds, and of steps from them as long as the error falls."""
        rounds = AugmentedLagrangian(max_iter=self.max_iter).iterate(problem, start)
        if not problem.twice_differentiable:
            yield from rounds
            return
        at, multipliers = start.at(problem), start.first_multipliers(problem.n_constraints)
        last, taken = SQPState.of(start.state), 0
        n_rounds = int(problem.n_constraints > 0 and start.multipliers is None)
        while True:
            before = taken
            for iterate in islice(rounds, n_rounds):
                taken += 1
                yield replace(iterate, iteration=taken)
                assert iterate.multipliers is not None
                at, multipliers = iterate.at, iterate.multipliers
            if taken >= self.max_iter or (n_rounds and taken == before):
                return
            for iterate in self._steps(at, multipliers, start, last, taken):
                yield iterate
                taken = iterate.iteration
            last, n_rounds = None, max(1, 2 * n_rounds)

    def _steps(
        self, at: Evaluation, multipliers: Array, start: Start, last: SQPState | None, taken: int
    ) -> Iterator[Iterate]:
        """Yield the points of steps, each from the one before, while the error falls."""
        quadratic = _Quadratic(None if last is None else last.factor, at.w.size)
        kkt = KKT.of(at, multipliers)
        error = best = kkt.error
        if kkt.holds(start.tol):
            yield Iterate(at, multipliers, taken, last)
        waited = 0
        for k in range(taken + 1, self.max_iter + 1):
            if start.passes_used_up(at.problem):
                yield Iterate(at, multipliers, k - 1)
                return
            found = quadratic.step(at, multipliers, error)
            if found is None:
                return
            at, multipliers, before = at.problem.at(at.w + found[0]), found[1], error
            error = KKT.of(at, multipliers).error
            if not np.isfinite(error):
                return
            if error > _GOOD * before:
                quadratic.known = False
            yield Iterate(at, multipliers, k, SQPState(quadratic.factor))
            waited = 0 if error <= _LEAST_FALL * best else waited + 1
            if waited > _PATIENCE:
                return
            best = min(best, error)


@dataclass(frozen=True, eq=False)
class SQPState(SolverState):
    """What :class:`SQP` leaves for a warm start.

    Attributes
    ----------
    factor : ndarray of shape (n_variables, n_variables)
        The Cholesky factor of the last Hessian.
    """

    factor: Array

    def next_step(self, at: Evaluation, multipliers: Array) -> tuple[Array, Array] | None:
        """Return a step with the last Hessian; it needs the gradients of active constraints."""
        quadratic = _Quadratic(self.factor, at.w.size)
        return quadratic.step(at, multipliers, KKT.of(at, multipliers).error)


class _Quadratic:
    """The quadratic model of the Lagrangian, and its step.

    Parameters
    ----------
    factor : ndarray of shape (n_variables, n_variables) or None
        The Cholesky factor of the Hessian near the first point.
    n_variables : int
        The number of variables.
    """

    def __init__(self, factor: Array | None, n_variables: int):
        self.known = factor is not None and len(factor) == n_variables
        self.factor = np.empty((0, 0)) if factor is None else factor

    def step(self, at: Evaluation, multipliers: Array, error: float) -> tuple[Array, Array] | None:
        """Return a step and its multipliers, None if the quadratic problem is not solved."""
        if not self.known:
            self.factor, info = dpotrf(at.hessian(multipliers), lower=1)
            self.known = not info
            if info:
                return None
        near = np.flatnonzero((multipliers > 0.0) | (at.constraints >= -_NEAR))
        if near.size > _MOST_CONSTRAINTS:
            return None
        gradient = at.gradient(multipliers)
        if not near.size:
            return -dpotrs(self.factor, gradient, lower=1)[0], multipliers
        rows = at.constraint_gradients(near)
        gradient -= multipliers[near] @ rows
        images = dpotrs(self.factor, np.vstack([gradient, rows]).T, lower=1)[0]
        free, images = images[:, 0], images[:, 1:]
        products = rows @ images
        damping = _DAMPING * min(error, 1.0) * float(np.trace(products))
        products.flat[:: len(products) + 1] += damping
        target = at.constraints[near] - rows @ free + damping * multipliers[near]
        found = _dual(products, target, multipliers[near] > 0.0)
        if found is None:
            return None
        changed = np.zeros_like(multipliers)
        changed[near] = found
        return -free - images @ found, changed


def _dual(quadratic: Array, linear: Array, active: Array) -> Array | None:
    r"""Return the maximiser of :math:`b^\top x - x^\top Q x / 2` over :math:`x \ge 0`.

    Parameters
    ----------
    quadratic : ndarray of shape (m, m)
        Q, positive definite.
    linear : ndarray of shape (m,)
        b.
    active : ndarray of bool of shape (m,)
        The first guess of the positive entries.
    """
    active = active.copy()
    for _ in range(3 * len(linear) + 1):
        found = np.zeros(len(linear))
        chosen = active.nonzero()[0]
        if chosen.size:
            block = quadratic[chosen[:, None], chosen]
            found[chosen], info = dposv(block, linear[chosen])[1:]
            if info:
                return None
        if found.min() < 0.0:
            active[found.argmin()] = False
            continue
        slope = linear - quadratic @ found
        slope[active] = 0.0
        if slope.max() <= 0.0:
            return found
        active[slope.argmax()] = True
    return None
