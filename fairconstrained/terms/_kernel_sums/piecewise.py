"""Sums for functions that are linear or quadratic between kinks: exact, by sorting."""

from __future__ import annotations

import numpy as np

from fairconstrained.functions.base import (
    Parabola,
    Rounded,
    ScalarFunction,
    corner,
    corner_subgradient_error,
)
from fairconstrained.terms._kernel_sums.base import Cells, KernelSums, Memory, positions
from fairconstrained.utils.typing import Array


class LinearSums(KernelSums):
    r"""For functions that are linear between their kinks: exact, by sorting the thresholds.

    :math:`\phi(t) = a + b t + \sum_l d_l \max\{t - k_l, 0\}`, so that r needs, for every cut
    :math:`c = \theta_j + k_l`, the sums of A and of A s over the rows with s > c: cumulative sums
    of histograms between cuts.
    """

    def __init__(
        self,
        function: ScalarFunction,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        super().__init__(function, cells, scores, thresholds)
        position, jump = (np.array(part) for part in zip(*function.kinks, strict=True))
        left = np.array([position.min() - 1.0])
        at_left = function.value(left)
        self.slope = float(function.derivative(left, at_left)[0])
        self.level = float(at_left[0] - self.slope * left[0])
        self.jump = jump
        self.cuts = position[:, None] + thresholds  # (n_kinks, n_thresholds)
        self.order = np.argsort(self.cuts, axis=None)
        bins = positions(self.cuts.ravel()[self.order], scores)
        self.n_bins = self.cuts.size + 1
        self.codes = cells.codes(bins, self.n_bins)

    def _above(self, values: Array) -> Array:
        """Return sums of A values over the rows above each cut, (n_cells, *cuts.shape)."""
        cells = self.cells
        weighted = cells.weight * cells.of_rows(values)
        table = np.bincount(self.codes, weighted, minlength=cells.n_cells * self.n_bins)
        tails = np.cumsum(table.reshape(cells.n_cells, -1)[:, :0:-1], axis=1)[:, ::-1]
        out = np.empty_like(tails)
        out[:, self.order] = tails
        return out.reshape(cells.n_cells, *self.cuts.shape)

    def values(self) -> Array:
        """Return a sum A + b sum A (s - theta) + sum_l d_l sum A max(s - c_l, 0)."""
        excess = self._above(self.scores) - self.cuts * self._above(np.ones(self.cells.n_rows))
        out = np.einsum("l,klj->kj", self.jump, excess)
        out += self.level * self.cells.sizes[:, None]
        if self.slope:
            sums = self.cells.totals(self.scores)[:, None]
            out += self.slope * (sums - self.cells.sizes[:, None] * self.thresholds)
        return out

    def push(self, change: Array) -> Array:
        """Return the sums of jumps below each score, times the change."""
        out = np.einsum("l,klj->kj", self.jump, self._above(change))
        if self.slope:
            out += self.slope * self.cells.totals(change)[:, None]
        return out

    def pull(self, u: Array) -> Array:
        """Return the jumps of the cuts below each score, weighted by u."""
        cells = self.cells
        weights = (self.jump[:, None] * u[:, None, :]).reshape(cells.n_cells, -1)[:, self.order]
        table = np.zeros((cells.n_cells, self.n_bins))
        np.cumsum(weights, axis=1, out=table[:, 1:])
        table += self.slope * u.sum(axis=1, keepdims=True)
        return cells.to_rows(cells.weight * table.ravel()[self.codes])


class RoundedSums(KernelSums):
    """The same with rounded kinks: what rounding adds concerns pairs near a kink only."""

    function: Rounded

    def __init__(
        self,
        function: Rounded,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        super().__init__(function, cells, scores, thresholds)
        self.sharp = LinearSums(function.function, cells, scores, thresholds)
        rows, cuts = self._near()
        distance = scores[rows] - self.sharp.cuts.ravel()[cuts]
        kinks, columns = np.divmod(cuts, len(thresholds))
        jump = self.sharp.jump[kinks]
        of, member, weight = cells.entries_of(rows)
        self.rows, self.distance = rows[of], distance[of]
        self.weight = weight * jump[of]
        self.codes = member * len(thresholds) + columns[of]

    def _near(self) -> tuple[Array, Array]:
        """Return the pairs (row, cut) less than half a width from each other."""
        order, half = self.sharp.order, 0.5 * self.function.width
        cuts = self.sharp.cuts.ravel()[order]
        first = positions(cuts, self.scores - half)
        counts = positions(cuts, self.scores + half) - first
        rows = np.flatnonzero(counts)
        counts = counts[rows]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(rows, counts), order[np.repeat(first[rows], counts) + within]

    def _scatter(self, weights: Array) -> Array:
        """Return the sums over pairs, (n_cells, n_thresholds)."""
        shape = (self.cells.n_cells, len(self.thresholds))
        return np.bincount(self.codes, weights, minlength=shape[0] * shape[1]).reshape(shape)

    def _bend(self) -> Array:
        """Return the weighted slope of each pair, rounded minus sharp."""
        rising = np.clip(self.distance / self.function.width + 0.5, 0.0, 1.0)
        return self.weight * (rising - (self.distance > 0.0))

    def values(self) -> Array:
        """Return the sharp averages and the corners."""
        rounding = self._scatter(self.weight * corner(self.distance, self.function.width))
        return self.sharp.values() + rounding

    def push(self, change: Array) -> Array:
        """Return the products with the slopes."""
        return self.sharp.push(change) + self._scatter(self._bend() * change[self.rows])

    def pull(self, u: Array) -> Array:
        """Return the weights on the scores."""
        on_pairs = self._bend() * u.ravel()[self.codes]
        rounding = np.bincount(self.rows, on_pairs, minlength=self.cells.n_rows)
        return self.sharp.pull(u) + rounding

    def subgradient_error(self) -> Array:
        """Return the subgradient error of the pairs."""
        error = corner_subgradient_error(self.distance, self.function.width)
        return self._scatter(np.abs(self.weight) * error)


class StepSums(KernelSums):
    """For the indicator: exact, by sorting. It has no slopes."""

    def values(self) -> Array:
        """Return the weights of the rows above each threshold."""
        order = np.argsort(self.thresholds)
        n_bins = len(order) + 1
        codes = self.cells.codes(positions(self.thresholds[order], self.scores), n_bins)
        table = np.bincount(codes, self.cells.weight, minlength=self.cells.n_cells * n_bins)
        tails = np.cumsum(table.reshape(-1, n_bins)[:, :0:-1], axis=1)[:, ::-1]
        out = np.empty_like(tails)
        out[:, order] = tails
        return out

    def push(self, change: Array) -> Array:
        """Return zeros."""
        return np.zeros((self.cells.n_cells, len(self.thresholds)))

    def pull(self, u: Array) -> Array:
        """Return zeros."""
        return np.zeros(self.cells.n_rows)


class ParabolaSums(KernelSums):
    """For c t^2 / 2: exact, by moments about the middle of the thresholds."""

    function: Parabola

    def __init__(
        self,
        function: Parabola,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        super().__init__(function, cells, scores, thresholds)
        self.middle = float(np.mean(thresholds))
        self.shifted = scores - self.middle

    def _products(self, factor: Array, total: Array) -> Array:
        """Return total - (theta - middle) factor for all cells and thresholds."""
        return total[:, None] - factor[:, None] * (self.thresholds - self.middle)

    def values(self) -> Array:
        """Return c (sum A s^2 - 2 theta sum A s + theta^2 sum A) / 2."""
        zero, one = self.cells.sizes, self.cells.totals(self.shifted)
        away = self.thresholds - self.middle
        square = self._products(2.0 * one, self.cells.totals(self.shifted**2))
        return 0.5 * self.function.coefficient * (square + zero[:, None] * away**2)

    def push(self, change: Array) -> Array:
        """Return c sum A (s - theta) change."""
        total = self.cells.totals(self.shifted * change)
        return self.function.coefficient * self._products(self.cells.totals(change), total)

    def pull(self, u: Array) -> Array:
        """Return c sum_kj u_kj A (s - theta_j)."""
        cells, c = self.cells, self.function.coefficient
        slope, level = c * u.sum(axis=1), c * (u @ (self.thresholds - self.middle))
        on_entries = slope[cells.member] * cells.of_rows(self.shifted) - level[cells.member]
        return cells.to_rows(cells.weight * on_entries)
