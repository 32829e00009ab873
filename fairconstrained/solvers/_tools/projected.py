"""Steps into domains that are known by their projections only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from fairconstrained.domains import Domain
from fairconstrained.solvers._tools.lbfgs import (
    CurvaturePairs,
    Function,
    InverseHessian,
    Point,
    Stop,
    WholeSpaceSteps,
    never,
    norm,
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
        return norm(self.domain.normal_cone_residual(at.w, at.gradient))

    def direction(self, at: Point, inverse_hessian: InverseHessian, diagonal: Array) -> Array:
        """Return the step to the minimiser of the quadratic model over the domain."""
        free = at.w - inverse_hessian.apply(at.gradient, diagonal)
        projected = self.domain.project(free)
        pairs = inverse_hessian.pairs
        if pairs is None or np.array_equal(projected, free):
            return np.asarray(projected - at.w)
        model = QuadraticModel(at.w, at.gradient, hessian_of(inverse_hessian, diagonal))
        found = spectral_projected_gradient(
            model,
            at.w,
            self.domain,
            tol=_REDUCTION * self.residual(at),
            max_iter=_MAX_SUBPROBLEM_STEPS,
        )
        return np.asarray(found - at.w)


class QuadraticModel:
    r"""The function :math:`\langle g, w - c \rangle + \tfrac12 (w - c)^\top B (w - c)`.

    Parameters
    ----------
    center, gradient : ndarray of shape (n_variables,)
        c and g.
    bend : callable
        The product with B.
    """

    def __init__(self, center: Array, gradient: Array, bend: Callable[[Array], Array]):
        self.center, self.gradient, self.bend = center, gradient, bend

    def __call__(self, w: Array) -> tuple[float, Array]:
        """Return the value and the gradient at `w`."""
        step = w - self.center
        bent = self.bend(step)
        return float(self.gradient @ step + 0.5 * (step @ bent)), self.gradient + bent

    def line(self, at: Point, direction: Array) -> Callable[[float], Point]:
        """Return the function along a line: one product with B for all points on it."""
        bent = self.bend(direction)
        slope, bend = float(at.gradient @ direction), float(direction @ bent)

        def point(length: float) -> Point:
            value = at.value + length * (slope + 0.5 * length * bend)
            return Point(at.w + length * direction, value, at.gradient + length * bent)

        return point


def hessian_of(inverse: InverseHessian, diagonal: Array) -> Callable[[Array], Array]:
    """Return the product with the inverse of an L-BFGS approximation, a matrix if that costs less.

    Parameters
    ----------
    inverse : InverseHessian
        H, with at least one pair.
    diagonal : ndarray of shape (n_variables,)
        P, as for :meth:`InverseHessian.apply`.
    """
    if diagonal.size <= 2 * len(inverse):
        dense = inverse.apply(np.eye(diagonal.size), diagonal)
        factor, failed = dpotrf(0.5 * (dense + dense.T), lower=1)
        if not failed:
            lower = np.tril(dpotri(factor, lower=1)[0])
            matrix = lower + np.tril(lower, -1).T
            return lambda vector: matrix @ vector
    pairs = inverse.pairs
    assert pairs is not None
    return Hessian(pairs, diagonal).apply


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


def _line(function: Function, at: Point, direction: Array) -> Callable[[float], Point]:
    """Return a function along a line."""
    if isinstance(function, QuadraticModel):
        return function.line(at, direction)

    def point(length: float) -> Point:
        w = at.w + length * direction
        return Point(w, *function(w))

    return point


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
    at = best = Point(w, *function(w))
    recent = deque([at.value], maxlen=10)
    reached = np.inf  # the least value when the present window began
    step = 1.0 / max(norm(at.gradient), 1e-12)
    for k in range(max_iter):
        direction = domain.project(at.w - step * at.gradient) - at.w
        # The projected step over its length is at most the norm of the residual, and costs less.
        near = norm(direction) <= tol * step
        if near and norm(domain.normal_cone_residual(at.w, at.gradient)) <= tol:
            return at.w
        if k % _WINDOW == 0:
            if best.value >= reached - 1e-15 * abs(reached):
                return best.w
            reached = best.value
        if stop():
            return best.w
        slope, fraction = float(at.gradient @ direction), 1.0
        along = _line(function, at, direction)
        while True:
            trial = along(fraction)
            if trial.value <= max(recent) + 1e-4 * fraction * slope or fraction < 1e-10:
                break
            fraction *= 0.5
        moved, turned = trial.w - at.w, trial.gradient - at.gradient
        bend = float(moved @ turned)
        step = min(max(float(moved @ moved) / bend, 1e-10), 1e10) if bend > 0 else 1e10
        at = trial
        recent.append(at.value)
        if at.value < best.value:
            best = at
    return best.w
