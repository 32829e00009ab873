"""Rates of decisions in cells along lines of scores, and how fast surrogates change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array


def zeros_on_line(at: Array, by: Array) -> Array:
    """Return the t where at + t by is 0; infinite or nan where it never is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return -at / by


def rates_on_line(terms: Sequence[CellMeans], at: Array, by: Array, points: Array) -> list[Array]:
    """Return A 1{at + t by > 0} of terms for every point t, each of shape (n_cells, n_points).

    The decision on a row changes at one t, so that one histogram gives the rates at all points.

    Parameters
    ----------
    terms : sequence of CellMeans
        The cells A, and the signs that scores are multiplied by.
    at, by : ndarray of shape (n_rows,)
        The line of scores.
    points : ndarray of shape (n_points,)
        t, in increasing order.
    """
    changes, found = _changes(at, by, points), []
    for term in terms:
        signs = term.signs
        own = changes if signs is None else _changes(signs * at, signs * by, points)
        found.append(_rates(term, *own, len(points)))
    return found


def _changes(at: Array, by: Array, points: Array) -> tuple[Array, Array, Array]:
    """Return the first decision of every row, its change, and the first point after the change."""
    flips, falls = zeros_on_line(at, by), by < 0.0
    first = np.searchsorted(points, flips, side="right")  # behind the last one for nan
    first[falls] = np.searchsorted(points, flips[falls], side="left")
    still = by == 0.0
    first[still] = len(points)
    return np.where(still, at > 0.0, falls), np.where(falls, -1.0, 1.0), first


def _rates(term: CellMeans, before: Array, change: Array, first: Array, n: int) -> Array:
    """Return the rates at n points."""
    cells, size = term.cells, term.n_statistics * (n + 1)
    lengths = np.diff(cells.indptr)
    if np.any(lengths != 1):
        before, change, first = (np.repeat(one, lengths) for one in (before, change, first))
    start = np.bincount(cells.indices, cells.data * before, minlength=term.n_statistics)
    place = cells.indices.astype(np.int64) * (n + 1) + first
    changes = np.bincount(place, cells.data * change, minlength=size)
    return np.asarray(start[:, None] + np.cumsum(changes.reshape(-1, n + 1)[:, :n], axis=1))
