"""Averages of functions that are computed from exponentials, block by block.

Temporary arrays of a block stay in the cache.
"""

from __future__ import annotations

import numpy as np

from fairconstrained.functions.base import ExponentialFunction
from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.utils.typing import Array, SparseMatrix

BLOCK = 1 << 14  # rows whose temporary arrays fit into the cache


def mean_of(
    function: ExponentialFunction,
    scores: Array,
    known: Array,
    signs: Array | None,
    weight: float,
) -> tuple[Array, Pullback]:
    """Return the sum of phi(y s) over rows of equal weight, times this weight, and its pullback.

    Derivatives are computed with the sum, which some functions have without their values.

    Parameters
    ----------
    function : ExponentialFunction
        phi.
    scores, known : ndarray of shape (n_rows,)
        s, and their exponentials.
    signs : ndarray of shape (n_rows,) or None
        y; None stands for ones.
    weight : float
        The weight of a row.
    """
    total, slopes = 0.0, np.empty(len(scores))
    for rows in _blocks(len(scores)):
        part, slope = function.total_and_derivative_from(_margins(scores, signs, rows), known[rows])
        total += part
        np.multiply(slope, 1.0 if signs is None else signs[rows], out=slopes[rows])

    def pullback(u: Array) -> tuple[Array, Array]:
        return slopes * (weight * u[0]), NO_AUXILIARY

    return np.array([weight * total]), pullback


def averages_of(
    function: ExponentialFunction,
    scores: Array,
    known: Array,
    signs: Array | None,
    cells: SparseMatrix,
) -> tuple[Array, Pullback]:
    """Return the averages of phi(y s) over cells, of which each row is in one, and their pullback.

    Parameters
    ----------
    function, scores, known, signs
        See :func:`mean_of`.
    cells : CSC of shape (n_cells, n_rows)
        The weights of the rows in the cells.
    """
    places, weights, n_rows = cells.indices, cells.data, len(scores)
    sums = np.zeros(cells.shape[0])

    def pullback(u: Array) -> tuple[Array, Array]:
        back = np.empty(n_rows)
        for rows in _blocks(n_rows):
            part = function.derivative_from(_margins(scores, signs, rows), known[rows])
            part *= weights[rows]
            part *= u if len(u) == 1 else u.take(places[rows])
            if signs is not None:
                part *= signs[rows]
            back[rows] = part
        return back, NO_AUXILIARY

    for rows in _blocks(n_rows):
        value = function.value_from(_margins(scores, signs, rows), known[rows])
        value *= weights[rows]
        one = len(sums) == 1
        sums += value.sum() if one else np.bincount(places[rows], value, minlength=len(sums))
    return sums, pullback


def _margins(scores: Array, signs: Array | None, rows: slice) -> Array:
    return scores[rows] if signs is None else signs[rows] * scores[rows]


def _blocks(n_rows: int) -> list[slice]:
    """Return slices that make up all rows."""
    return [slice(start, start + BLOCK) for start in range(0, n_rows, BLOCK)]
