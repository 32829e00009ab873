"""L-BFGS: the approximation of an inverse Hessian."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fairconstrained.utils.typing import Array

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
        self._steps = self._changes = self._products = np.empty((0, 0))
        self._used = slice(0, 0)  # the rows that hold the pairs

    def __len__(self) -> int:
        """Return the number of stored pairs."""
        return self._used.stop - self._used.start

    def add(self, step: Array, change: Array) -> bool:
        """Store a pair unless its curvature is not positive; return whether it was stored."""
        least = _MIN_COSINE * np.linalg.norm(step) * np.linalg.norm(change)
        if not step @ change > least:
            return False
        if not len(self):
            room = self.size + self.size // 2
            self._steps, self._changes = np.empty((2, room, step.size))
            self._products = np.empty((room, room))  # s_i' y_j
        last, kept = self._used.stop, self.size - 1
        if last == len(self._steps):  # the latest pairs move to the front, which is rarely needed
            for pairs in (self._steps, self._changes):
                pairs[:kept] = pairs[last - kept :].copy()
            self._products[:kept, :kept] = self._products[last - kept :, last - kept :].copy()
            last = kept
        self._steps[last], self._changes[last] = step, change
        self._used = used = slice(max(last - kept, 0), last + 1)
        self._products[last, used] = self._changes[used] @ step
        self._products[used, last] = self._steps[used] @ change
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
        if not len(self):
            return (diagonal * vectors.T).T
        used = self._used
        steps, changes, products = (
            self._steps[used],
            self._changes[used],
            self._products[used, used],
        )
        alpha = dtrtrs(products, steps @ vectors)[0]
        image = (diagonal * (vectors - changes.T @ alpha).T).T
        image *= products[-1, -1] / (changes[-1] @ (diagonal * changes[-1]))
        lacking = (products.diagonal() * alpha.T).T - changes @ image
        return image + steps.T @ dtrtrs(products, lacking, trans=1)[0]
