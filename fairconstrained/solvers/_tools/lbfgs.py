"""The limited-memory approximation of an inverse Hessian."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fairconstrained.utils.typing import Array

_MIN_COSINE = 1e-10  # between step and change of the gradient, for a pair to be stored


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
