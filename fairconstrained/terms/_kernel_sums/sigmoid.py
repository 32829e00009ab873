r"""Sums of sigmoids: interpolated by polynomials on bins of the scores, with a proven error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairconstrained.functions.surrogates import Sigmoid, Surrogate
from fairconstrained.terms._kernel_sums.base import Cells, DirectSums, KernelSums, Memory
from fairconstrained.utils.typing import Array

_REACH = 37.0  # scales from a threshold where the sigmoid is 0 or 1 to double precision
_BINS = 8  # per scale
# Nanoseconds, measured: of a bin, of a bin with a threshold in reach of it, and in total; of a row
# with a threshold by the formula.
_PER_BIN, _PER_NEAR_BIN, _PER_CALL, _PER_PAIR = 250.0, 14.0, 3e5, 30.0
DEGREE = 7
_POWERS = np.arange(DEGREE + 1)
NODES = np.cos(np.pi * _POWERS / DEGREE)  # both ends are nodes: the interpolant is continuous
TO_COEFFICIENTS = np.linalg.inv(NODES[:, None] ** _POWERS)


class SigmoidSums(KernelSums):
    r"""The sigmoid as a polynomial of degree 7 on each of 8 bins per scale.

    On a bin, whose half width is H = tau / 16, the sigmoid is interpolated at Chebyshev's points;
    a threshold then costs products of its coefficients with the moments of the scores in each bin,
    and a row a few multiplications, whatever the number of thresholds.

    The interpolation error is at most :math:`4 M \varrho^{-7} / (\varrho - 1)` if the function is
    bounded by M inside the ellipse with foci at the bin's ends and semi-axes that add up to
    :math:`\varrho H`. With :math:`\varrho = 50` the ellipse stays where
    :math:`|\operatorname{Im} t| \le \pi \tau / 2`, in which the sigmoid is bounded by M = 1: the
    error is below 2e-13, that of the slope below 2e-10 / tau. Beyond 37 scales from all thresholds
    the sigmoid is 0 or 1 to 1e-16.

    References
    ----------
    L. N. Trefethen, "Approximation Theory and Approximation Practice", 2013, theorem 8.2.
    """

    def __init__(
        self,
        function: Surrogate,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        super().__init__(function, cells, scores, thresholds)
        self.width = function.scale / _BINS
        memory = {} if memory is None else memory
        key = (type(self), function.scale)
        if key not in memory:
            sigmoid = Sigmoid(function.scale)
            memory[key] = self._make_tables(sigmoid, thresholds)
        self.tables = memory[key]
        margin = _REACH * function.scale
        place = np.clip(scores, thresholds.min() - margin, thresholds.max() + margin)
        place /= self.width
        bins = np.floor(place)
        self.first = int(bins.min())
        self.n_bins = int(bins.max()) - self.first + 1
        place -= bins
        self.x = cells.of_rows(2.0 * place - 1.0)
        self.bins = (bins - self.first).astype(np.intp)
        self.codes = cells.codes(self.bins, self.n_bins)

    def _make_tables(self, sigmoid: Surrogate, thresholds: Array) -> Tables:
        """Return the polynomials for these thresholds."""
        return Tables(sigmoid, thresholds, self.width)

    @cached_property
    def plain(self) -> Array:
        """The moments of the scores in every cell and bin, (n_cells, n_bins, degree + 1)."""
        return self._moments(self.cells.weight, DEGREE)

    @classmethod
    def or_direct(
        cls,
        function: Surrogate,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ) -> KernelSums:
        """Return sums by the formula if they cost less, as with few rows and a small scale."""
        spread = min(np.ptp(scores), np.ptp(thresholds) + 2.0 * _REACH * function.scale)
        n_bins = cells.n_cells * (1.0 + spread * _BINS / function.scale)
        near = min(n_bins, cells.n_cells * 2.0 * _REACH * _BINS)  # bins in reach of a threshold
        of_bins = _PER_CALL + _PER_BIN * n_bins + _PER_NEAR_BIN * len(thresholds) * near
        direct = _PER_PAIR * len(scores) * len(thresholds) < of_bins
        return (DirectSums if direct else cls)(function, cells, scores, thresholds, memory)

    @property
    def _of_slopes(self) -> Array:
        """What the coefficients of x, x^2, ... are multiplied by in the derivative by s."""
        return 2.0 / self.width * _POWERS[1:]

    def _moments(self, weights: Array, degree: int) -> Array:
        """Return sums of weights x^m in every cell and bin, (n_cells, n_bins, degree + 1)."""
        return self._sums(self.codes, self.n_bins, weights, degree)

    def _sums(self, codes: Array, n_bins: int, weights: Array, degree: int) -> Array:
        """Return the same in bins of any kind, of which `codes` has one for every entry."""
        shape = (self.cells.n_cells, n_bins)
        out = np.empty((*shape, degree + 1))
        power = np.array(weights)
        for m in range(degree + 1):
            if m:
                power *= self.x
            sums = np.bincount(codes, power, minlength=shape[0] * shape[1])
            out[:, :, m] = sums.reshape(shape)
        return out

    def values(self) -> Array:
        """Return the moments times the coefficients, plus the rows above a threshold's reach."""
        out = np.zeros((self.cells.n_cells, len(self.thresholds)))
        for part in self.tables.between(self.first, self.first + self.n_bins):
            inside, above = part.inside(self.first)
            moments = self.plain[:, inside].reshape(len(out), -1)
            sums = moments @ part.table.reshape(-1, len(part.columns))
            out[:, part.columns] = sums + self.plain[:, above, 0].sum(axis=1, keepdims=True)
        return out

    def _times_slopes(self, moments: Array) -> Array:
        """Return the products of moments with the derivatives of the polynomials."""
        out = np.zeros((self.cells.n_cells, len(self.thresholds)))
        scaled = moments * self._of_slopes
        for part in self.tables.between(self.first, self.first + self.n_bins):
            inside, _ = part.inside(self.first)
            table = part.table[:, 1:].reshape(-1, len(part.columns))
            out[:, part.columns] = scaled[:, inside].reshape(len(out), -1) @ table
        return out

    def push(self, change: Array) -> Array:
        """Return the moments of the change times the slopes."""
        weights = self.cells.weight * self.cells.of_rows(change)
        return self._times_slopes(self._moments(weights, DEGREE - 1))

    def slopes(self) -> Array:
        """Return the moments times the slopes."""
        return self._times_slopes(self.plain[:, :, :-1])

    def pull(self, u: Array) -> Array:
        """Return the polynomial of each bin that the thresholds' slopes add up to, at each row."""
        return self._at_rows(self.codes, self._summed_slopes(u))

    def _summed_slopes(self, u: Array) -> Array:
        """Return the coefficients of the sums of slopes times u, (degree, n_cells, n_bins)."""
        slopes = np.zeros((DEGREE, self.cells.n_cells, self.n_bins))
        for part in self.tables.between(self.first, self.first + self.n_bins):
            inside, _ = part.inside(self.first)
            table = part.table[:, 1:].reshape(-1, len(part.columns))
            weights = (u[:, part.columns] @ table.T).reshape(len(u), -1, DEGREE)
            slopes[:, :, inside] += np.moveaxis(weights, 2, 0)
        slopes *= self._of_slopes[:, None, None]
        return slopes

    def _at_rows(self, codes: Array, coefficients: Array) -> Array:
        """Return the polynomials with coefficients by cell and bin at each row, weighted."""
        by_power = coefficients.reshape(DEGREE, -1)
        out = by_power[-1].take(codes)
        for power in by_power[-2::-1]:  # Horner's rule
            out *= self.x
            out += power.take(codes)
        out *= self.cells.weight
        return self.cells.to_rows(out)


@dataclass
class Chunk:
    """Neighbouring thresholds, with the bins in their reach and the polynomials on these."""

    columns: Array
    first: int
    table: Array  # (n_bins, degree + 1, n_columns)

    def inside(self, start: int) -> tuple[slice, slice]:
        """Return the bins that the table has, and those above, counted from `start`."""
        low = self.first - start
        return slice(low, low + len(self.table)), slice(low + len(self.table), None)


class Tables:
    """The coefficients of the polynomials, kept for the bins that were needed so far.

    Thresholds are taken in chunks, none of them wider than the reach, so that coefficients are kept
    for bins in reach only: their number does not grow as the scale shrinks.

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
        self.function = function
        self.thresholds = thresholds
        self.width = width
        order = np.argsort(thresholds)
        chunk = (thresholds[order] - thresholds[order[0]]) // (_REACH * function.scale)
        self.columns = np.split(order, np.flatnonzero(np.diff(chunk)) + 1)
        self.kept: tuple[int, int, list[Chunk]] = (0, 0, [])  # of one range of bins

    def between(self, start: int, stop: int) -> list[Chunk]:
        """Return the chunks with tables cut to the bins start, ..., stop - 1."""
        low, high, chunks = self.kept
        if not (low <= start and stop <= high):
            if high > low:  # leave some room: scores spread while a problem is solved
                room = (stop - start) // 4
                low, high = min(low, start - room), max(high, stop + room)
            else:
                low, high = start, stop
            chunks = [self._chunk(columns, low, high) for columns in self.columns]
            self.kept = low, high, chunks  # in one assignment: threads may share the tables
        return [self._cut(chunk, start, stop) for chunk in chunks]

    def _chunk(self, columns: Array, low: int, high: int) -> Chunk:
        margin = _REACH * self.function.scale
        some = self.thresholds[columns]
        first = int(np.floor((some[0] - margin) / self.width))
        last = int(np.ceil((some[-1] + margin) / self.width))
        first = min(max(first, low), high)
        bins = np.arange(first, max(min(last, high), first))
        points = (bins[:, None] + 0.5 + 0.5 * NODES) * self.width
        values = self.function.value(points[:, :, None] - some)
        return Chunk(columns, first, np.matmul(TO_COEFFICIENTS, values))

    @staticmethod
    def _cut(chunk: Chunk, start: int, stop: int) -> Chunk:
        """Return the part of a chunk for some bins; an empty one sits at the nearer end."""
        first = min(max(chunk.first, start), stop)
        last = max(min(chunk.first + len(chunk.table), stop), first)
        rows = slice(first - chunk.first, last - chunk.first)
        if first == last:
            rows = slice(0, 0)
        return Chunk(chunk.columns, first, chunk.table[rows])
