"""Rates of decisions in cells along lines of scores, and how fast surrogates change."""

from __future__ import annotations

import numpy as np

from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array


def zeros_on_line(at: Array, by: Array) -> Array:
    """Return the t where at + t by is 0; infinite or nan where it never is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return -at / by


def rates_on_line(term: CellMeans, at: Array, by: Array, points: Array) -> Array:
    """Return A 1{at + t by > 0} for every point t, (n_cells, n_points).

    The decision on a row changes at one t, so that one histogram gives the rates at all points.

    Parameters
    ----------
    term : CellMeans
        The cells A, and the signs that scores are multiplied by.
    at, by : ndarray of shape (n_rows,)
        The line of scores.
    points : ndarray of shape (n_points,)
        t, in increasing order.
    """
    if term.signs is not None:
        at, by = term.signs * at, term.signs * by
    n, flips, rises, falls = len(points), zeros_on_line(at, by), by > 0, by < 0
    first = np.full(len(at), n)  # the first point where the decision has changed
    first[rises] = np.searchsorted(points, flips[rises], side="right")
    first[falls] = np.searchsorted(points, flips[falls], side="left")
    before = np.where(by == 0, at > 0, falls)  # the decision at t = -infinity
    change = np.where(rises, 1.0, -1.0)
    cells = term.cells
    column = np.repeat(np.arange(term.n_rows), np.diff(cells.indptr))
    start = np.bincount(cells.indices, cells.data * before[column], minlength=term.n_statistics)
    place = cells.indices.astype(np.int64) * (n + 1) + first[column]
    size = term.n_statistics * (n + 1)
    changes = np.bincount(place, cells.data * change[column], minlength=size)
    return np.asarray(start[:, None] + np.cumsum(changes.reshape(-1, n + 1)[:, :n], axis=1))
