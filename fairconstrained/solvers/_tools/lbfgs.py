"""L-BFGS whose memory outlives a run: warm starts keep what was learned of the curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from fairconstrained.utils.typing import Array

Function = Callable[[Array], tuple[float, Array]]
Stop = Callable[[], bool]

_DECREASE = 1e-4  # Armijo's constant
_FLATTEN = 0.9  # Wolfe's constant
_ROUNDING = 1e-14  # relative: differences of values below this say nothing
_MOST_TRIALS = 20
_MOST_IDLE = 5  # steps in a row in which the value does not fall by more than rounding


def never() -> bool:
    """Return False: an iteration that nothing stops from outside."""
    return False


class Memory:
    r"""The latest steps s and changes of the gradient y: an inverse Hessian, applied in O(n).

    The two loops of the textbook are written as products and triangular systems, which is several
    times faster: with S and Y of the pairs, the oldest first, R the upper triangle of
    :math:`S Y^T`, and D its diagonal,

    .. math::
        R \alpha = S g, \qquad r = H_0 (g - Y^T \alpha), \qquad R^T \delta = D \alpha - Y r,
        \qquad H g = r + S^T \delta.

    Parameters
    ----------
    pairs : ndarray of shape (2, n_pairs, n_variables) or None, default=None
        Steps and changes to begin with, the oldest first: the `pairs` of an earlier memory.
    size : int, default=50
        How many are kept.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithm 7.4.
    """

    def __init__(self, pairs: Array | None = None, *, size: int = 50):
        self.size = size
        self._rows: list[int] = []  # where the pairs are, the oldest first
        self._steps = self._changes = np.empty((0, 0))
        self._products = np.empty((size, size))  # s_i' y_j
        for step, change in () if pairs is None else zip(*pairs, strict=True):
            self.add(step, change)

    @classmethod
    def of(cls, pairs: Array | None, n_variables: int) -> Memory:
        """Return a memory of the pairs; without them if they are of other variables."""
        return cls(pairs if pairs is not None and pairs.shape[-1] == n_variables else None)

    def __len__(self) -> int:
        """Return how many pairs are kept."""
        return len(self._rows)

    @property
    def pairs(self) -> Array | None:
        """The pairs as one array, for another memory; None if there are none."""
        rows = self._rows
        return np.stack([self._steps[rows], self._changes[rows]]) if rows else None

    def clear(self) -> None:
        """Forget all pairs."""
        self._rows.clear()

    def add(self, step: Array, change: Array) -> None:
        """Keep a pair, unless the function did not bend upwards along the step."""
        if not step @ change > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            return
        if self._steps.shape[1] != step.size:
            self._steps, self._changes = np.empty((2, self.size, step.size))
        n_kept = len(self._rows)
        row = n_kept if n_kept < self.size else self._rows.pop(0)
        self._rows.append(row)
        self._steps[row], self._changes[row] = step, change
        filled = slice(len(self._rows))
        self._products[row, filled] = self._changes[filled] @ step
        self._products[filled, row] = self._steps[filled] @ change

    def direction(self, gradient: Array, squared_units: Array) -> Array:
        """Return minus the inverse Hessian's product with the gradient."""
        if not self._rows:
            return -squared_units * gradient
        rows = np.array(self._rows)
        steps, changes = self._steps[: len(rows)], self._changes[: len(rows)]
        products = self._products[np.ix_(rows, rows)]
        shares = solve_triangular(products, (steps @ gradient)[rows], check_finite=False)
        newest = changes[rows[-1]]
        found = squared_units * (gradient - _combined(changes, rows, shares))
        found *= products[-1, -1] / (newest @ (squared_units * newest))
        lacking = np.diag(products) * shares - (changes @ found)[rows]
        shares = solve_triangular(products, lacking, trans="T", check_finite=False)
        return -found - _combined(steps, rows, shares)


def _combined(vectors: Array, rows: Array, shares: Array) -> Array:
    """Return the sum of the vectors in these rows, each times its share."""
    weights = np.empty(len(rows))
    weights[rows] = shares
    return weights @ vectors


@dataclass(frozen=True, eq=False)
class _Point:
    w: Array
    value: float
    gradient: Array


def minimize_lbfgs(
    function: Function,
    w: Array,
    *,
    tol: float,
    max_iter: int,
    units: Array,
    memory: Memory,
    stop: Stop = never,
) -> Array:
    """Return a point whose gradient has a norm of at most `tol`, or the best that was reached.

    Parameters
    ----------
    function : callable
        w -> (value, gradient).
    w : ndarray of shape (n_variables,)
        The first point.
    tol : float
        The norm of the gradient at which to stop.
    max_iter : int
        The largest number of iterations.
    units : ndarray of shape (n_variables,)
        The first step is steepest descent in the variables w / units.
    memory : Memory
        What is known of the curvature; it is added to.
    stop : callable, default=never
        Asked before every iteration whether to return at once.
    """
    at = _Point(w, *function(w))
    squared, idle = units**2, 0
    for _ in range(max_iter):
        if (
            stop()
            or idle > _MOST_IDLE
            or np.linalg.norm(at.gradient) <= tol
            or not np.isfinite(at.value)
        ):
            return at.w
        found = _step(function, at, tol, squared, memory)
        if found is None and len(memory):  # what was learned elsewhere misleads here
            memory.clear()
            found = _step(function, at, tol, squared, memory)
        if found is None:
            return at.w
        fell = at.value - found.value > _ROUNDING * abs(at.value)
        idle = 0 if fell else idle + 1
        memory.add(found.w - at.w, found.gradient - at.gradient)
        at = found
    return at.w


def _step(
    function: Function, at: _Point, tol: float, squared_units: Array, memory: Memory
) -> _Point | None:
    """Return the next point, None if no lower one is found in this direction."""
    direction = memory.direction(at.gradient, squared_units)
    slope = float(direction @ at.gradient)
    if slope >= 0.0:
        return None
    length = 1.0 if len(memory) else min(1.0, 1.0 / np.sqrt(-slope))
    return _search(function, at, direction, slope, length, tol)


def _search(
    function: Function, at: _Point, direction: Array, slope: float, length: float, tol: float
) -> _Point | None:
    """Return a point that meets Wolfe's conditions, or is lower at least.

    The value may rise by rounding as long as the slope says that the point is nearer the minimum
    (Hager and Zhang's approximate condition).
    """
    low, high, lower = 0.0, np.inf, None
    rounding = _ROUNDING * abs(at.value)
    for _ in range(_MOST_TRIALS):
        w = at.w + length * direction
        here = _Point(w, *function(w))
        rise, bend = here.value - at.value, float(direction @ here.gradient)
        falls = rise <= _DECREASE * length * slope or (rise <= rounding and abs(bend) <= -slope)
        if not (np.isfinite(here.value) and falls):
            high = length
        else:
            lower = here
            if bend >= _FLATTEN * slope or np.linalg.norm(here.gradient) <= tol:
                return here
            low = length
        length = _next(low, high, length, length * slope / (slope - bend) if bend > slope else 0.0)
    return lower if lower is not None and lower.value < at.value - rounding else None


def _next(low: float, high: float, length: float, secant: float) -> float:
    """Return the length to try next: where the slope would vanish if it were linear."""
    if np.isfinite(high):
        margin = 0.1 * (high - low)
        inside = low + margin < secant < high - margin
        return secant if inside else 0.5 * (low + high)
    return float(np.clip(secant, 1.5 * length, 10.0 * length))
