"""L-BFGS: the limited-memory approximation of an inverse Hessian, and minimisation with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fairconstrained.utils.typing import Array

Function = Callable[[Array], tuple[float, Array]]
Stop = Callable[[], bool]

_ARMIJO = 1e-4  # sufficient decrease: part of the decrease that the slope predicts
_WOLFE = 0.9  # curvature condition: largest slope at the new point, relative to the first one
_ROUNDING = 1e-14  # relative: smaller differences of values are rounding errors
_MIN_COSINE = 1e-10  # between step and change of the gradient, for a pair to be stored
_MAX_TRIALS = 20  # evaluations in one line search
_MAX_IDLE_STEPS = 5  # consecutive steps that do not decrease the value by more than rounding


def never() -> bool:
    """Return False: the default of `stop`."""
    return False


@dataclass(frozen=True, eq=False)
class CurvaturePairs:
    """Steps and the changes of the gradient along them, the oldest first.

    Attributes
    ----------
    steps, changes : ndarray of shape (n_pairs, n_variables)
        s and y.
    """

    steps: Array
    changes: Array


class InverseHessian:
    r"""The L-BFGS approximation H of an inverse Hessian, applied in O(n_pairs n_variables).

    The two loops of the textbook are written as products and triangular systems, which is several
    times faster: with S and Y the stored steps and changes (one per row, the oldest first), R the
    upper triangle of :math:`S Y^\top` and D its diagonal,

    .. math::
        R \alpha = S g, \qquad r = H_0 (g - Y^\top \alpha), \qquad
        R^\top \delta = D \alpha - Y r, \qquad H g = r + S^\top \delta,

    where :math:`H_0 = \frac{s^\top y}{y^\top P y} P` with the latest pair and a diagonal P.

    Parameters
    ----------
    pairs : CurvaturePairs or None, default=None
        The pairs to begin with.
    size : int, default=50
        The largest number of pairs stored.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithm 7.4.
    """

    def __init__(self, pairs: CurvaturePairs | None = None, *, size: int = 50):
        self.size = size
        self._rows: list[int] = []  # the rows that hold the pairs, the oldest first
        self._steps = self._changes = np.empty((0, 0))
        self._products = np.empty((size, size))  # s_i' y_j
        if pairs is not None:
            steps, changes = pairs.steps[-size:], pairs.changes[-size:]
            n_stored, n_variables = steps.shape
            self._steps, self._changes = np.empty((2, size, n_variables))
            self._steps[:n_stored], self._changes[:n_stored] = steps, changes
            self._products[:n_stored, :n_stored] = steps @ changes.T
            self._rows = list(range(n_stored))

    @classmethod
    def for_variables(
        cls, n_variables: int, pairs: CurvaturePairs | None, *, size: int = 50
    ) -> InverseHessian:
        """Return an approximation that begins with the pairs if they have this many variables."""
        fits = pairs is not None and pairs.steps.shape[1] == n_variables
        return cls(pairs if fits else None, size=size)

    def __len__(self) -> int:
        """Return the number of stored pairs."""
        return len(self._rows)

    @property
    def pairs(self) -> CurvaturePairs | None:
        """A copy of the stored pairs, None if there are none."""
        rows = self._rows
        return CurvaturePairs(self._steps[rows], self._changes[rows]) if rows else None

    def clear(self) -> None:
        """Remove all pairs."""
        self._rows.clear()

    def add(self, step: Array, change: Array) -> bool:
        """Store a pair unless its curvature is not positive; return whether it was stored."""
        if not step @ change > _MIN_COSINE * norm(step) * norm(change):
            return False
        if self._steps.shape[1] != step.size:
            self._steps, self._changes = np.empty((2, self.size, step.size))
        n_stored = len(self._rows)
        row = n_stored if n_stored < self.size else self._rows.pop(0)
        self._rows.append(row)
        self._steps[row], self._changes[row] = step, change
        filled = slice(len(self._rows))
        self._products[row, filled] = self._changes[filled] @ step
        self._products[filled, row] = self._steps[filled] @ change
        return True

    def apply(self, vectors: Array, diagonal: Array) -> Array:
        """Return H times one vector or several columns.

        Parameters
        ----------
        vectors : ndarray of shape (n_variables,) or (n_variables, n_columns)
            What H is applied to.
        diagonal : ndarray of shape (n_variables,)
            P, positive. Without pairs H is P itself.
        """
        if not self._rows:
            return (diagonal * vectors.T).T
        n_stored, latest = len(self._rows), self._changes[self._rows[-1]]
        steps, changes = self._steps[:n_stored], self._changes[:n_stored]
        products = self._products[:n_stored, :n_stored]
        rows: Array | slice = slice(n_stored)
        if self._rows[0]:  # the oldest pair is not in the first row
            rows = np.array(self._rows)
            products = products[np.ix_(rows, rows)]
        alpha = dtrtrs(products, (steps @ vectors)[rows])[0]
        image = (diagonal * (vectors - _combination(changes, rows, alpha)).T).T
        image *= products[-1, -1] / (latest @ (diagonal * latest))
        lacking = (products.diagonal() * alpha.T).T - (changes @ image)[rows]
        delta = dtrtrs(products, lacking, trans=1)[0]
        return image + _combination(steps, rows, delta)


def _combination(vectors: Array, rows: Array | slice, weights: Array) -> Array:
    """Return the sum of the vectors in these rows, each times its weight, for every column."""
    if not isinstance(rows, slice):
        in_place = np.empty_like(weights)
        in_place[rows] = weights
        weights = in_place
    return vectors.T @ weights


def norm(v: Array) -> float:
    """Return the Euclidean norm, in a fraction of the time of NumPy's function."""
    return math.sqrt(v @ v)


@dataclass(frozen=True, eq=False)
class Point:
    """A point with the function's value and gradient."""

    w: Array
    value: float
    gradient: Array


class WholeSpaceSteps:
    """Where L-BFGS goes on the whole space.

    Attributes
    ----------
    longest : float
        The largest multiple of a direction that may be tried.
    """

    longest: float = np.inf

    def residual(self, at: Point) -> float:
        """Return the norm of the gradient."""
        return norm(at.gradient)

    def direction(self, at: Point, inverse_hessian: InverseHessian, diagonal: Array) -> Array:
        """Return the quasi-Newton step."""
        return -inverse_hessian.apply(at.gradient, diagonal)


def minimize_lbfgs(
    function: Function,
    w: Array,
    *,
    tol: float,
    max_iter: int,
    preconditioner: Array,
    inverse_hessian: InverseHessian,
    stop: Stop = never,
    steps: WholeSpaceSteps | None = None,
) -> Array:
    """Return a point whose residual is at most `tol`, or the best point reached.

    Parameters
    ----------
    function : callable
        w -> (value, gradient). The value may be infinite outside an open set that contains the
        first point; the gradient there is not used.
    w : ndarray of shape (n_variables,)
        The first point.
    tol : float
        The norm of the gradient at which to stop.
    max_iter : int
        The largest number of iterations.
    preconditioner : ndarray of shape (n_variables,)
        The first step is steepest descent in the variables w / preconditioner.
    inverse_hessian : InverseHessian
        The approximation to begin with; the pairs of this run are added to it.
    stop : callable, default=never
        Called before every iteration; the run ends if it returns True.
    steps : WholeSpaceSteps or None, default=None
        The directions and the residual; None is the whole space, where the residual is the norm of
        the gradient.
    """
    steps = WholeSpaceSteps() if steps is None else steps
    at = Point(w, *function(w))
    diagonal, idle_steps = preconditioner**2, 0
    for _ in range(max_iter):
        if steps.residual(at) <= tol or not np.isfinite(at.value):
            return at.w
        if stop() or idle_steps > _MAX_IDLE_STEPS:
            return at.w
        found = _step(function, at, tol, diagonal, inverse_hessian, steps)
        if found is None and len(inverse_hessian):  # pairs of another function can mislead
            inverse_hessian.clear()
            found = _step(function, at, tol, diagonal, inverse_hessian, steps)
        if found is None:
            return at.w
        decreased = at.value - found.value > _ROUNDING * abs(at.value)
        idle_steps = 0 if decreased else idle_steps + 1
        inverse_hessian.add(found.w - at.w, found.gradient - at.gradient)
        at = found
    return at.w


def _step(
    function: Function,
    at: Point,
    tol: float,
    diagonal: Array,
    inverse_hessian: InverseHessian,
    steps: WholeSpaceSteps,
) -> Point | None:
    """Return the next point, None if the line search finds no lower one."""
    direction = steps.direction(at, inverse_hessian, diagonal)
    slope = float(direction @ at.gradient)
    if slope >= 0.0:
        return None
    length = 1.0 if len(inverse_hessian) else min(1.0, 1.0 / np.sqrt(-slope))
    return _line_search(function, at, direction, slope, length, tol, steps)


def _line_search(
    function: Function,
    at: Point,
    direction: Array,
    slope: float,
    length: float,
    tol: float,
    steps: WholeSpaceSteps,
) -> Point | None:
    """Return a point that meets Wolfe's conditions, else one of smaller value, else None.

    The value may rise by rounding errors if the slope shows that the point is nearer the minimum
    (Hager and Zhang's approximate Wolfe condition).
    """
    low, high, lower = 0.0, np.inf, None
    rounding = _ROUNDING * abs(at.value)
    for _ in range(_MAX_TRIALS):
        w = at.w + length * direction
        here = Point(w, *function(w))
        rise, new_slope = here.value - at.value, float(direction @ here.gradient)
        approximate = rise <= rounding and abs(new_slope) <= -slope
        decreases = rise <= _ARMIJO * length * slope or approximate
        if not (np.isfinite(here.value) and decreases):
            high = length
        else:
            lower = here
            if new_slope >= _WOLFE * slope or length >= steps.longest:
                return here
            if steps.residual(here) <= tol:
                return here
            low = length
        secant = length * slope / (slope - new_slope) if new_slope > slope else 0.0
        length = min(_next_length(low, high, length, secant), steps.longest)
    return lower if lower is not None and lower.value < at.value - rounding else None


def _next_length(low: float, high: float, length: float, secant: float) -> float:
    """Return the next trial: where a linear slope would vanish, kept inside the bracket."""
    if np.isfinite(high):
        margin = 0.1 * (high - low)
        inside = low + margin < secant < high - margin
        return secant if inside else 0.5 * (low + high)
    return float(np.clip(secant, 1.5 * length, 10.0 * length))
