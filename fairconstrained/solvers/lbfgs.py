"""L-BFGS: the approximation of an inverse Hessian, and the minimisation of smooth functions."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fairconstrained.domains import Domain
from fairconstrained.utils.typing import Array

Function = Callable[[Array], tuple[float, Array]]

_ARMIJO = 1e-4  # sufficient decrease: part of the decrease that the slope predicts
_ROUNDING = 1e-14  # relative: smaller differences of values are rounding errors
_MAX_TRIALS = 20  # evaluations in one line search; steps are then at least 4^-20 as long
_MOST_PROJECTED = 100  # steps in a round: where they are slow, new multipliers help more
_WINDOW = 10  # steps within which the value must fall
_MIN_COSINE = 1e-10  # between step and change of the gradient, for a pair to be stored


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
    size : int, default=50
        The largest number of pairs stored.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithm 7.4.
    """

    def __init__(self, size: int = 50):
        self.size = size
        self._rows: list[int] = []  # the rows that hold the pairs, the oldest first
        self._steps = self._changes = np.empty((0, 0))
        self._products = np.empty((size, size))  # s_i' y_j

    def __len__(self) -> int:
        """Return the number of stored pairs."""
        return len(self._rows)

    @property
    def n_variables(self) -> int:
        """The number of variables, 0 if no pair was ever stored."""
        return self._steps.shape[1]

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


def minimize_smooth(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    diagonal: Array,
    hessian: InverseHessian,
    stop: Callable[[], bool],
) -> Array:
    """Return a point of the domain whose projected gradient has a norm of at most `tol`.

    On the whole space directions are those of L-BFGS. In other domains they lead to the projection
    of a gradient step of Barzilai and Borwein's length, and values need only fall below the largest
    of the last ten (Birgin, Martinez and Raydan).

    Parameters
    ----------
    function : callable
        w -> (value, gradient). The value may be infinite outside an open set that contains the
        first point; the gradient there is not used.
    w : ndarray of shape (n_variables,)
        The first point, in the domain.
    domain : Domain
        The feasible set.
    tol : float
        The norm at which to stop. It may not be reached within `max_iter` iterations or in
        floating point; the caller measures the outcome.
    max_iter : int
        The largest number of iterations.
    diagonal : ndarray of shape (n_variables,)
        The inverse Hessian before there are pairs.
    hessian : InverseHessian
        The approximation to begin with; the pairs of this run are added to it.
    stop : callable
        Called before every iteration; the run ends if it returns True.

    References
    ----------
    E. Birgin, J. Martinez, M. Raydan, "Nonmonotone spectral projected gradient methods on convex
    sets", SIAM Journal on Optimization 10 (2000).
    """
    whole = domain.whole_space
    value, gradient = function(w)
    best, least, reached = w, value, np.inf  # the least value when the present window began
    recent = deque([value], maxlen=1 if whole else _WINDOW)
    length = 1.0 / max(norm(gradient), 1e-12)
    for k in range(max_iter if whole else min(max_iter, _MOST_PROJECTED)):
        if norm(domain.normal_cone_residual(w, gradient)) <= tol or not np.isfinite(value):
            return w
        if k % _WINDOW == 0:
            if least >= reached - _ROUNDING * abs(reached):
                break
            reached = least
        if stop():
            break
        if whole:
            direction = -hessian.apply(gradient, diagonal)
        else:
            direction = domain.project(w - length * gradient) - w
        scaled = len(hessian) > 0 or not whole
        moved = _line_search(function, w, gradient, direction, max(recent), scaled)
        if moved is None:
            if not len(hessian):
                break
            hessian.clear()  # restart: pairs of another round or problem can mislead
            continue
        step, change = moved[0] - w, moved[2] - gradient
        if whole:
            hessian.add(step, change)
        else:
            bend = float(step @ change)
            # Along negative curvature any length descends: the projection limits it.
            length = min(max(float(step @ step) / bend, 1e-10), 1e10) if bend > 0.0 else 1e10
        w, value, gradient = moved
        recent.append(value)
        if value < least:
            best, least = w, value
    return best


def _line_search(
    function: Function, w: Array, gradient: Array, direction: Array, level: float, scaled: bool
) -> tuple[Array, float, Array] | None:
    """Return a point that is low enough with its value and gradient, None if there is none.

    The value may rise by rounding errors if the slope shows that the point is nearer the minimum
    (Hager and Zhang's approximate Wolfe condition).
    """
    slope = float(direction @ gradient)
    if slope >= 0.0:
        return None
    # Without pairs the direction has no length of its own: the first step is at most one long.
    length = 1.0 if scaled else min(1.0, 1.0 / np.sqrt(-slope))
    for _ in range(_MAX_TRIALS):
        moved = w + length * direction
        value, turned = function(moved)
        rise, after = value - level, float(direction @ turned)
        near = rise <= _ROUNDING * abs(level) and abs(after) <= -slope
        if np.isfinite(value) and (rise <= _ARMIJO * length * slope or near):
            return moved, value, turned
        secant = slope / (slope - after) if np.isfinite(value) and after > slope else 0.5
        # The minimum of the slope's secant, kept from tiny steps and from ones that hardly change.
        length *= min(max(secant, 0.1), 0.5)
    return None
