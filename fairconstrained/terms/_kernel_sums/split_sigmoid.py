"""Sums of the convex parts of the sigmoid: those of the rows above each threshold."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.terms._kernel_sums.base import Cells, Memory, positions
from fairconstrained.terms._kernel_sums.sigmoid import (
    DEGREE,
    NODES,
    TO_COEFFICIENTS,
    Chunk,
    SigmoidSums,
    Tables,
)
from fairconstrained.utils.typing import Array


class SigmoidMinusSums(SigmoidSums):
    r"""Sums of :math:`1/2 + t / (4 \tau) - \sigma(t)` over the rows with t = s - theta > 0.

    The sigmoid is a polynomial on each bin, as in :class:`SigmoidSums`. All rows of a bin above
    that of a threshold count, and in its own bin those above it: thresholds divide bins, and the
    moments of the parts add up.
    """

    tables: _TablesAbove

    def __init__(
        self,
        function: Surrogate,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        super().__init__(function, cells, scores, thresholds, memory)
        self.slope = 0.25 / function.scale
        self.order = np.argsort(thresholds)
        n_thresholds = len(thresholds)
        own = self.tables.bins[self.order] - self.first
        self.inside = (own >= 0) & (own < self.n_bins)  # thresholds between the scores
        own = np.clip(own, 0, self.n_bins - 1)
        below = positions(thresholds[self.order], scores)
        # The bin and the thresholds below both grow with the score: their sum determines both.
        self.n_parts = self.n_bins + n_thresholds
        self.parts = cells.codes(self.bins + below, self.n_parts)
        bins = np.arange(self.n_bins + 1)
        self.starts = bins + np.searchsorted(own, bins)  # the first part of each bin
        self.cuts = own + np.arange(n_thresholds) + 1  # the first part above each threshold
        self.ends = self.starts[own + 1]  # of the bin of each threshold

    def _make_tables(self, sigmoid: Surrogate, thresholds: Array) -> Tables:
        """Return the polynomials in the bins above that of each threshold."""
        return _TablesAbove(sigmoid, thresholds, self.width)

    @cached_property
    def _of_parts(self) -> Array:
        """The moments of the scores in every part, (n_cells, n_parts, degree + 1)."""
        return self._sums(self.parts, self.n_parts, self.cells.weight, DEGREE)

    @cached_property
    def plain(self) -> Array:
        """The moments of the scores in every cell and bin."""
        return self._whole(self._of_parts)

    def _whole(self, moments: Array) -> Array:
        """Return the moments of bins."""
        return np.add.reduceat(moments, self.starts[:-1], axis=1)

    def _own(self, moments: Array, coefficients: Array) -> Array:
        """Return the products of the polynomials in each threshold's bin with the rows above it."""
        sums = np.zeros((len(moments), self.n_parts + 1, moments.shape[2]))
        np.cumsum(moments, axis=1, out=sums[:, 1:])
        above = sums[:, self.ends] - sums[:, self.cuts]
        out = np.zeros((len(moments), len(self.order)))
        chosen = coefficients[self.order] * self.inside[:, None]
        out[:, self.order] = np.einsum("kjd,jd->kj", above, chosen)
        return out

    def _above(self, values: Array) -> Array:
        """Return the sums of A values, given for every entry, over the rows above a threshold."""
        cells = self.cells
        table = np.bincount(
            self.parts, cells.weight * values, minlength=cells.n_cells * self.n_parts
        )
        tails = np.cumsum(table.reshape(cells.n_cells, -1)[:, ::-1], axis=1)[:, ::-1]
        out = np.empty((cells.n_cells, len(self.order)))
        out[:, self.order] = tails[:, self.cuts]
        return out

    def values(self) -> Array:
        """Return the sums of the tangent less those of the sigmoid."""
        entries = self.cells.of_rows(self.scores)
        count = self._above(np.ones(len(entries)))
        tangent = 0.5 * count + self.slope * (self._above(entries) - count * self.thresholds)
        return tangent - super().values() - self._own(self._of_parts, self.tables.own)

    def push(self, change: Array) -> Array:
        """Return the same with the slopes times the change."""
        entries = self.cells.of_rows(change)
        moments = self._sums(self.parts, self.n_parts, self.cells.weight * entries, DEGREE - 1)
        bends = self._times_slopes(self._whole(moments)) + self._own(moments, self._own_slopes)
        return self.slope * self._above(entries) - bends

    @cached_property
    def _slopes(self) -> Array:
        return self.push(np.ones(self.cells.n_rows))

    def slopes(self) -> Array:
        """Return minus the derivative of r_kj by theta_j."""
        return self._slopes

    @property
    def _own_slopes(self) -> Array:
        return self.tables.own[:, 1:] * self._of_slopes

    def pull(self, u: Array) -> Array:
        """Return the polynomial of each part that the thresholds' slopes add up to, at each row."""
        ordered, own = u[:, self.order], (self._own_slopes[self.order] * self.inside[:, None]).T
        sums = np.zeros((DEGREE + 1, len(u), self.n_parts + 1))  # of what begins at each threshold
        sums[:-1, :, 1 + self.cuts] = own[:, None, :] * ordered
        sums[-1, :, 1 + self.cuts] = self.slope * ordered.T
        np.cumsum(sums, axis=2, out=sums)
        lengths = np.diff(self.starts)
        bends = sums[:-1, :, 1:] - np.repeat(sums[:-1, :, self.starts[:-1]], lengths, axis=2)
        bends += np.repeat(self._summed_slopes(u), lengths, axis=2)
        coefficients = -bends
        coefficients[0] += sums[-1, :, 1:]
        return self._at_rows(self.parts, coefficients)


class _TablesAbove(Tables):
    """The polynomials in bins above that of each threshold, and `own`, those in its bin.

    Parameters
    ----------
    function : Sigmoid
        phi.
    thresholds : ndarray of shape (n_thresholds,)
        theta.
    width : float
        The width of a bin.
    """

    def __init__(self, function: Surrogate, thresholds: Array, width: float):
        super().__init__(function, thresholds, width)
        self.bins = np.floor(thresholds / width).astype(np.intp)
        points = (self.bins[:, None] + 0.5 + 0.5 * NODES) * width - thresholds[:, None]
        self.own = function.value(points) @ TO_COEFFICIENTS.T

    def _chunk(self, columns: Array, low: int, high: int) -> Chunk:
        chunk = super()._chunk(columns, low, high)
        bins = chunk.first + np.arange(len(chunk.table))
        chunk.table *= (bins[:, None] > self.bins[columns])[:, None, :]
        return chunk
