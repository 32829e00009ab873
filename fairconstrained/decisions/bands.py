"""Constraints that ask the rates of cells to be close to each other, as a band that has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fairconstrained.terms.head import as_csr
from fairconstrained.utils.typing import Array, SparseMatrix


@dataclass(frozen=True, eq=False)
class Band:
    r"""The constraints :math:`\alpha r_a - \beta r_b + l \le 0` for all cells a and b, a not b.

    With alpha, beta > 0 they hold if and only if there is a level t with :math:`t \le r_a \le h(t)`
    for all a, where :math:`h(t) = (\beta t - l) / \alpha` increases with t. Differences of rates
    (:math:`h(t) = t + \kappa`), ratios (:math:`h(t) = t / \text{ratio}`) and balanced rates have
    this form.

    Attributes
    ----------
    cells : ndarray of int of shape (n_cells,)
        The cells, at least two.
    alpha, beta, level : float
        The factors, and l; where shifts of the constraints differ, the largest l of them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.bands import Band
    >>> band = Band(np.array([0, 1, 2]), alpha=1.0, beta=1.0, level=-0.1)
    >>> round(float(band.top(0.3)), 6), band.violation(np.array([0.3, 0.35, 0.45])).round(6)
    (0.4, np.float64(0.05))
    """

    cells: Array
    alpha: float
    beta: float
    level: float

    def top(self, bottom: Array | float) -> Array:
        """Return h(t), the largest rate that goes with a smallest one."""
        return np.asarray((self.beta * np.asarray(bottom) - self.level) / self.alpha)

    def violation(self, rates: Array) -> Array:
        """Return the largest constraint for rates of shape (n_cells, ...)."""
        largest, least = rates.max(axis=0), rates.min(axis=0)
        return np.asarray(self.alpha * largest - self.beta * least + self.level)


def split_bands(combination: SparseMatrix, level: Array) -> tuple[tuple[Band, ...], Array]:
    """Return the bands among the constraints R r + l <= 0, and the positions of all others.

    Parameters
    ----------
    combination : CSR of shape (n_constraints, n_cells)
        R.
    level : ndarray of shape (n_constraints,)
        l.
    """
    matrix = as_csr(combination).copy()
    matrix.eliminate_zeros()
    pairs = np.flatnonzero(np.diff(matrix.indptr) == 2)
    ends = matrix.indptr[pairs][:, None] + np.arange(2)
    columns, values = matrix.indices[ends], matrix.data[ends]
    signed = (values > 0).sum(axis=1) == 1  # one rate from above, one from below
    pairs, columns, values = pairs[signed], columns[signed], values[signed]
    order = np.argsort(-values, axis=1)
    columns = np.take_along_axis(columns, order, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    n = matrix.shape[1]
    links = sp.csr_array((np.ones(len(pairs)), (columns[:, 0], columns[:, 1])), shape=(n, n))
    _, component = connected_components(links, directed=False)
    bands, inside = [], np.zeros(matrix.shape[0], dtype=bool)
    for k in np.unique(component[columns[:, 0]]):
        rows = np.flatnonzero(component[columns[:, 0]] == k)
        cells = np.flatnonzero(component == k)
        factors = values[rows]
        complete = len(np.unique(columns[rows] @ [n, 1])) == len(cells) * (len(cells) - 1)
        if complete and len(rows) == len(cells) * (len(cells) - 1) and _equal_rows(factors):
            alpha, beta = float(factors[0, 0]), float(-factors[0, 1])
            bands.append(Band(cells, alpha, beta, float(level[pairs[rows]].max())))
            inside[pairs[rows]] = True
    return tuple(bands), np.flatnonzero(~inside)


def _equal_rows(values: Array) -> bool:
    return bool(np.allclose(values, values[0], rtol=1e-12, atol=0.0))
