"""Steps into domains that are known by their projections only."""

from __future__ import annotations

from collections import deque

import numpy as np

from fairconstrained.domains import Domain
from fairconstrained.solvers._tools.lbfgs import (
    CurvaturePairs,
    Function,
    InverseHessian,
    Point,
    Stop,
    WholeSpaceSteps,
    never,
)
from fairconstrained.utils.typing import Array

_REDUCTION = 0.1  # of the residual, in a quadratic subproblem
_MAX_SUBPROBLEM_STEPS = 20
_WINDOW = 10  # steps of the projected gradient method, in which the value must decrease


class ProjectedSteps(WholeSpaceSteps):
    """Where the projected quasi-Newton method goes.

    The direction leads to the point of the domain that minimises L-BFGS's quadratic model, found by
    projected gradient steps, which do not read the data.

    Parameters
    ----------
    domain : Domain
        The feasible set.

    References
    ----------
    M. Schmidt, E. van den Berg, M. Friedlander, K. Murphy, "Optimizing costly functions with simple
    constraints: a limited-memory projected quasi-Newton algorithm", AISTATS 2009.
    """

    longest = 1.0

    def __init__(self, domain: Domain):
        self.domain = domain

    def residual(self, at: Point) -> float:
        """Return the norm of the projected gradient."""
        return float(np.linalg.norm(self.domain.normal_cone_residual(at.w, at.gradient)))

    def direction(self, at: Point, inverse_hessian: InverseHessian, diagonal: Array) -> Array:
        """Return the step to the minimiser of the quadratic model over the domain."""
        free = at.w - inverse_hessian.apply(at.gradient, diagonal)
        projected = self.domain.project(free)
        pairs = inverse_hessian.pairs
        if pairs is None or np.array_equal(projected, free):
            return np.asarray(projected - at.w)
        hessian = Hessian(pairs, diagonal)

        def model(w: Array) -> tuple[float, Array]:
            step = w - at.w
            bent = hessian.apply(step)
            return float(at.gradient @ step + 0.5 * (step @ bent)), at.gradient + bent

        found = spectral_projected_gradient(
            model,
            at.w,
            self.domain,
            tol=_REDUCTION * self.residual(at),
            max_iter=_MAX_SUBPROBLEM_STEPS,
        )
        return np.asarray(found - at.w)


class Hessian:
    r"""The L-BFGS approximation of a Hessian, the inverse of :class:`InverseHessian`.

    With S and Y the stored steps and changes (one per row, the oldest first), L and D the part of
    :math:`S Y^\top` below its diagonal and the diagonal itself, and :math:`B_0 = H_0^{-1}`,

    .. math::
        B = B_0 - \begin{pmatrix} B_0 S^\top & Y^\top \end{pmatrix}
        \begin{pmatrix} S B_0 S^\top & L \\ L^\top & -D \end{pmatrix}^{-1}
        \begin{pmatrix} S B_0 \\ Y \end{pmatrix}.

    Parameters
    ----------
    pairs : CurvaturePairs
        S and Y.
    diagonal : ndarray of shape (n_variables,)
        P, as for :meth:`InverseHessian.apply`.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, theorem 7.4.
    """

    def __init__(self, pairs: CurvaturePairs, diagonal: Array):
        steps, changes = pairs.steps, pairs.changes
        latest = changes[-1]
        self._first = float(latest @ (diagonal * latest)) / float(steps[-1] @ latest) / diagonal
        bent = steps * self._first
        products = steps @ changes.T
        below = np.tril(products, -1)
        middle = np.block([[bent @ steps.T, below], [below.T, -np.diag(products.diagonal())]])
        self._rows = np.vstack([bent, changes])
        sizes = np.sqrt(np.abs(middle.diagonal()))
        inverse = np.linalg.pinv(middle / np.outer(sizes, sizes), hermitian=True)
        self._weights = (inverse / np.outer(sizes, sizes)) @ self._rows

    def apply(self, vector: Array) -> Array:
        """Return B times a vector."""
        return self._first * vector - self._rows.T @ (self._weights @ vector)


def spectral_projected_gradient(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    stop: Stop = never,
) -> Array:
    """Minimise over a domain by projected gradient steps of Barzilai and Borwein's length.

    The method also ends if the least value of the last ten steps is that of the ten before, up to
    rounding.

    References
    ----------
    E. Birgin, J. Martinez, M. Raydan, "Nonmonotone spectral projected gradient methods on convex
    sets", SIAM Journal on Optimization 10 (2000).
    """
    value, gradient = function(w)
    recent = deque([value], maxlen=10)
    best, best_value = w, value
    reached = np.inf  # the least value when the present window began
    step = 1.0 / max(float(np.linalg.norm(gradient)), 1e-12)
    for k in range(max_iter):
        direction = domain.project(w - step * gradient) - w
        # The projected step over its length is at most the norm of the residual, and costs less.
        near = np.linalg.norm(direction) <= tol * step
        if near and np.linalg.norm(domain.normal_cone_residual(w, gradient)) <= tol:
            return w
        if k % _WINDOW == 0:
            if best_value >= reached - 1e-15 * abs(reached):
                return best
            reached = best_value
        if stop():
            return best
        slope, fraction = float(gradient @ direction), 1.0
        while True:
            trial = w + fraction * direction
            trial_value, trial_gradient = function(trial)
            if trial_value <= max(recent) + 1e-4 * fraction * slope or fraction < 1e-10:
                break
            fraction *= 0.5
        moved, turned = trial - w, trial_gradient - gradient
        bend = float(moved @ turned)
        step = float(np.clip(moved @ moved / bend, 1e-10, 1e10)) if bend > 0 else 1e10
        w, value, gradient = trial, trial_value, trial_gradient
        recent.append(value)
        if value < best_value:
            best, best_value = w, value
    return best
