"""One threshold for each group, with rates in bands: branch and bound over the bands' levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairconstrained.decisions.threshold_choices import Band, Choices, ThresholdChoices
from fairconstrained.utils.numerics import ROUNDING
from fairconstrained.utils.typing import Array

_BATCH = 2048  # boxes that are divided at the same time
_MOST_BOUNDS = 3_000_000  # of boxes, summed over groups, that are computed
_MARGIN = 0.25 * ROUNDING  # on either side of a band


@dataclass(frozen=True, eq=False)
class BandSolution:
    """Choices whose rates are in all bands."""

    positions: list[int]  # a choice for every group
    correct: float  # what they add to the accuracy
    bound: float  # no choices whose rates are in the bands add more


class RangeMaxima:
    """Largest entries of ranges of an array, from maxima of ranges whose lengths are powers of two.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The array.

    References
    ----------
    M. Bender, M. Farach-Colton, "The LCA problem revisited" (2000), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.band_search import RangeMaxima
    >>> maxima = RangeMaxima(np.array([3.0, 1.0, 4.0, 1.0, 5.0]))
    >>> maxima.of(np.array([0, 1, 3]), np.array([2, 4, 3]))
    array([  3.,   4., -inf])
    """

    def __init__(self, values: Array):
        n = len(values)
        self.table = np.full((n.bit_length(), n), -np.inf)
        self.table[0] = values
        for k in range(1, len(self.table)):
            half = 1 << (k - 1)
            last = self.table[k - 1]
            self.table[k, : n - half] = np.maximum(last[:-half], last[half:])

    def of(self, start: Array, stop: Array) -> Array:
        """Return the maxima of values[start:stop]; minus infinity of empty ranges."""
        length = stop - start
        there = length > 0
        k = np.zeros(len(length), dtype=int)
        k[there] = np.frexp(length[there])[1] - 1  # the largest power of two within the length
        first, second = np.where(there, start, 0), np.where(there, stop - (1 << k), 0)
        return np.where(there, np.maximum(self.table[k, first], self.table[k, second]), -np.inf)


@dataclass(frozen=True, eq=False)
class _Ladder:
    """The rates of one group's cells, one for every band that has one, and its accuracies."""

    rates: list[tuple[int, Array]]
    maxima: RangeMaxima
    correct: Array

    def ranges(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return where all rates are within [low, high], both of shape (n_boxes, n_bands)."""
        start = np.zeros(len(low), dtype=int)
        stop = np.full(len(low), len(self.correct))
        for band, rates in self.rates:
            left = np.searchsorted(rates, low[:, band] - _MARGIN, side="left")
            right = np.searchsorted(rates, high[:, band] + _MARGIN, side="right")
            start, stop = np.maximum(start, left), np.minimum(stop, right)
        return start, stop


def can_be_searched(choices: ThresholdChoices) -> bool:
    """Return whether constraints are bands, in which every group has one cell, of its rows only."""
    if choices.bands is None:
        return False
    owners = np.bincount(np.concatenate([one.cells for one in choices.groups]), minlength=1)
    return owners.max() <= 1 and all(
        np.isin(band.cells, one.cells).sum() <= 1
        for one in choices.groups
        for band in choices.bands
    )


class BandSearch:
    r"""The most accurate choices whose rates are in all bands.

    For levels :math:`t = (t_1, \dots, t_E)` of the bands the groups are independent of each other:
    the rates of a group rise as its threshold falls, so that those of its thresholds that have all
    rates in :math:`[t_e, h_e(t_e)]` follow each other, and a table of range maxima returns the most
    accurate one. For a box of levels, :math:`[t_e, h_e(t'_e)]` with the lowest and the highest
    level of the box contains all of these ranges, and the sum of the maxima is an upper bound.
    Boxes are divided, those of the largest bound first, until none of them can have better choices
    than the best ones found. Only levels that are rates of some group count.

    Parameters
    ----------
    choices : ThresholdChoices
        See :func:`can_be_searched`.
    resolution : float
        Choices that add less than this to the accuracy are not looked for, for instance the weight
        of a row.
    """

    def __init__(self, choices: ThresholdChoices, resolution: float):
        self.bands = choices.bands or ()
        self.ladders = [_ladder(one, self.bands) for one in choices.groups]
        self.resolution = resolution
        self.levels = []
        for k in range(len(self.bands)):
            values = [rates for one in self.ladders for band, rates in one.rates if band == k]
            self.levels.append(np.unique(np.concatenate(values)))
        self.best, self.best_at = -np.inf, np.zeros(len(self.bands), dtype=int)
        self.n_bounds = 0

    def run(self) -> BandSolution | None:
        """Return the best choices, None if no rates are in all bands."""
        n_levels = np.array([len(one) for one in self.levels])
        first, last = np.zeros((1, len(n_levels)), dtype=int), n_levels[None] - 1
        bound, left_out = self._bounds(first, last), -np.inf
        while len(bound) and self.n_bounds < _MOST_BOUNDS:
            order = np.argsort(-bound, kind="stable")
            now, later = order[:_BATCH], order[_BATCH:]
            self._try((first[now] + last[now]) // 2)
            low, high = self._divided(first[now], last[now])
            new = self._bounds(low, high)
            bound = np.concatenate([bound[later], new])
            first, last = np.concatenate([first[later], low]), np.concatenate([last[later], high])
            keep = bound > self.best + self.resolution
            left_out = max(left_out, float(bound[~keep].max(initial=-np.inf)))
            first, last, bound = first[keep], last[keep], bound[keep]
        if not np.isfinite(self.best):
            return None
        highest = max(self.best, left_out, float(bound.max(initial=-np.inf)))
        proved = highest <= self.best + self.resolution
        return BandSolution(self._positions(), self.best, self.best if proved else highest)

    def _box(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Return the lowest and the highest rates of boxes of levels, (n_boxes, n_bands) each."""
        low = np.column_stack([one[at] for one, at in zip(self.levels, first.T, strict=True)])
        each = zip(self.bands, self.levels, last.T, strict=True)
        return low, np.column_stack([band.top(one[at]) for band, one, at in each])

    def _bounds(self, first: Array, last: Array) -> Array:
        """Return upper bounds on the accuracy for boxes of levels, (n_boxes,)."""
        box, total = self._box(first, last), np.zeros(len(first))
        for one in self.ladders:
            total += one.maxima.of(*one.ranges(*box))
        self.n_bounds += len(first) * len(self.ladders)
        return total

    def _try(self, levels: Array) -> None:
        """Keep the best of single levels, whose bounds are exact."""
        values = self._bounds(levels, levels)
        k = int(np.argmax(values))
        if values[k] > self.best:
            self.best, self.best_at = float(values[k]), levels[k]

    def _divided(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Return the halves of boxes along their widest sides; single levels were tried."""
        ends = zip(self.levels, first.T, last.T, strict=True)
        widths = np.column_stack([one[high] - one[low] for one, low, high in ends])
        widths[last == first] = -1.0
        side = np.argmax(widths, axis=1)
        wide = np.flatnonzero(widths.max(axis=1) >= 0.0)
        first, last, side = first[wide], last[wide], side[wide]
        rows = np.arange(len(wide))
        middle = (first[rows, side] + last[rows, side]) // 2
        left_last, right_first = last.copy(), first.copy()
        left_last[rows, side], right_first[rows, side] = middle, middle + 1
        return np.concatenate([first, right_first]), np.concatenate([left_last, last])

    def _positions(self) -> list[int]:
        """Return the choices at the best levels."""
        box, positions = self._box(self.best_at[None], self.best_at[None]), []
        for one in self.ladders:
            (start,), (stop,) = one.ranges(*box)
            positions.append(int(start + np.argmax(one.correct[start:stop])))
        return positions


def _ladder(one: Choices, bands: Sequence[Band]) -> _Ladder:
    place = {int(cell): k for k, cell in enumerate(one.cells)}
    rates = [
        (k, one.rates[place[int(cell)]])
        for k, band in enumerate(bands)
        for cell in band.cells
        if int(cell) in place
    ]
    return _Ladder(rates, RangeMaxima(one.correct), one.correct)
