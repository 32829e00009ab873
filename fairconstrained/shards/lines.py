"""Sums over rows in shards for many models at once: those of a line w + t d.

The scores of w and of d determine those of every model of the line, so that the rows are read once
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairconstrained.shards.distributions import (
    SCORE_BINS,
    are_collected,
    bins_with_rows,
    collected,
    from_distribution,
    of_distribution,
)
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.places import total
from fairconstrained.shards.rows import Shard
from fairconstrained.shards.sums import ShardedTerm, Sums, bins_of
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.decision_rates import (
    as_cell_means,
    densities,
    normal_density,
    rates_on_line,
    zeros_on_line,
)
from fairconstrained.utils.typing import Array

Place = tuple[Array, float]  # coefficients of X and an intercept

_ZEROS = 4096  # about how many zeros on a line stand for all of them
_ZERO_BINS = 1 << 16


@dataclass(frozen=True, eq=False)
class LineSums:
    """Sums over all rows for the models w + t d.

    Parameters
    ----------
    model : ShardedLinearModel
        The rows.
    w, direction : ndarray of shape (n_parameters,)
        The line.
    count : callable
        Called with the number of rows at every read.
    """

    model: ShardedLinearModel
    w: Array
    direction: Array
    count: Callable[[int], None]

    @property
    def _ends(self) -> tuple[Place, Place]:
        return self.model.place(self.w), self.model.place(self.direction)

    def _total(self, function: Callable[..., Sums], *arguments: object) -> Sums:
        self.count(self.model.n_rows)
        return total(self.model.shards, function, *self._ends, *arguments)

    def zeros(self, reach: tuple[float, float]) -> Array:
        """Return points t that stand for those at which scores are zero, sorted: a read or two.

        They are quantiles, from a histogram with 65536 bins, which does not depend on how rows are
        divided into shards.

        Parameters
        ----------
        reach : tuple of float
            The range of t. An infinite one is that of the zeros: this takes a further read.
        """
        low, high = reach
        if not np.isfinite(high - low):
            self.count(self.model.n_rows)
            found: Array = np.array(self.model.shards.gather(range_of_zeros, *self._ends))[:, 0]
            low, high = max(low, found[:, 0].min()), min(high, found[:, 1].max())
        if not low <= high:
            return np.zeros(0)
        (counts,) = self._total(histogram_of_zeros, low, high)
        middles = low + (np.arange(_ZERO_BINS) + 0.5) * ((high - low) / _ZERO_BINS)
        upto = np.cumsum(counts)
        n = int(upto[-1])
        ranks = np.unique(np.linspace(0, n - 1, min(n, _ZEROS)).astype(int))
        return middles[np.searchsorted(upto, ranks, side="right")]

    def rates(self, terms: Sequence[Term], points: Array) -> list[Array]:
        """Return the rates of decisions in the cells of terms, (n_cells, n_points): one read.

        Parameters
        ----------
        terms : sequence of CellMeans
            With the indicator.
        points : ndarray of shape (n_points,)
            t, in increasing order.
        """
        if not terms:
            return []
        return list(self._total(rates_along, points, [self.model.sharded(one) for one in terms]))

    def statistics(
        self, terms: Sequence[Term], auxiliary: Sequence[Array], points: Array
    ) -> list[Array]:
        """Return the statistics of terms, (n_points, n_statistics): one read.

        Terms of the distribution of the scores take one more read. If there are many rows they take
        two, for histograms, and their statistics are approximate.

        Parameters
        ----------
        terms : sequence of Term
            The terms.
        auxiliary : sequence of ndarray of shape (n_points, n_auxiliary)
            Their own variables at the points.
        points : ndarray of shape (n_points,)
            t.
        """
        asked = list(zip(terms, auxiliary, strict=True))
        summed = [
            (self.model.sharded(term), own) for term, own in asked if not of_distribution(term)
        ]
        sums = iter(self._total(statistics_along, points, summed) if summed else ())
        rest = [one for one in asked if of_distribution(one[0])]
        others = iter(self._of_distributions(rest, points))
        return [next(others if of_distribution(term) else sums) for term in terms]

    def _of_distributions(self, asked: Sequence[tuple[Term, Array]], points: Array) -> list[Array]:
        """Return the statistics of terms of the distribution of the scores."""
        if not asked:
            return []
        found, totals = [list[Array]() for _ in asked], self.model.totals
        for k, (scores, atoms, mass) in enumerate(self._distributions(points)):
            for own, (term, auxiliary) in zip(found, asked, strict=True):
                own.append(from_distribution(term, auxiliary[k], scores, atoms, mass, totals))
        return [np.array(one) for one in found]

    def _distributions(self, points: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the distribution of the scores at every point, see `model.distribution`."""
        model = self.model
        self.count(model.n_rows)
        if are_collected(model.shards):
            start, change, atoms, weight = collected(model.shards, *self._ends)
            for t in points:
                yield model.own(start + t * change, atoms, weight)
            return
        ends: Array = np.array(model.shards.gather(ranges_along, *self._ends, points))[:, 0]
        low, high = ends[..., 0].min(axis=0), ends[..., 1].max(axis=0)
        (counts,) = self._total(histograms_along, points, low, high, model.n_all_atoms)
        for k, weight in enumerate(counts):
            yield model.own(*bins_with_rows(weight, low[k], high[k]))


def densities_at(
    model: ShardedLinearModel, w: Array, terms: Sequence[Term], window: float
) -> list[Array]:
    """Return :func:`~fairconstrained.terms.decision_rates.densities` of terms: one read."""
    if not terms:
        return []
    asked = [model.sharded(one) for one in terms]
    return list(total(model.shards, densities_in_cells, model.place(w), asked, window))


def rate_slopes_at(
    model: ShardedLinearModel, w: Array, terms: Sequence[Term], window: float
) -> list[Array]:
    """Return the gradients of the rates of decisions in the cells of terms: one read.

    Each has the shape (n_cells, n_parameters).
    """
    asked = [model.sharded(one) for one in terms]
    sums = total(model.shards, threshold_slopes, model.place(w), asked, window)
    return [np.array([model.gradient(row) for row in one]) for one in sums]


def _on_line(block_scores: Callable[..., Array], at: Place, by: Place) -> tuple[Array, Array]:
    return block_scores(*at), block_scores(*by)


def range_of_zeros(shard: Shard, at: Place, by: Place) -> Sums:
    """Return the least and the largest t at which a score is zero, infinite if there is none."""
    ends = [np.inf, -np.inf]
    for block in shard.blocks():
        t = zeros_on_line(*_on_line(block.scores, at, by))
        t = t[np.isfinite(t)]
        ends = [min(ends[0], t.min(initial=np.inf)), max(ends[1], t.max(initial=-np.inf))]
    return (np.array(ends),)


def histogram_of_zeros(shard: Shard, at: Place, by: Place, low: float, high: float) -> Sums:
    """Return the number of rows whose score is zero at a t in every bin of a range."""
    counts = np.zeros(_ZERO_BINS, dtype=np.int64)
    for block in shard.blocks():
        t = zeros_on_line(*_on_line(block.scores, at, by))
        t = t[(t >= low) & (t <= high)]
        counts += np.bincount(bins_of(t, low, high, _ZERO_BINS), minlength=_ZERO_BINS)
    return (counts,)


def rates_along(
    shard: Shard, at: Place, by: Place, points: Array, terms: Sequence[ShardedTerm]
) -> Sums:
    """Return a shard's part of the rates of decisions, (n_cells, n_points) for every term."""
    found = [np.zeros((one.term.n_statistics, len(points))) for one in terms]
    for block in shard.blocks():
        start, change = _on_line(block.scores, at, by)
        for rates, one in zip(found, terms, strict=True):
            term, rows = one.on(block)
            rates += rates_on_line(as_cell_means(term), start[rows], change[rows], points)
    return tuple(found)


def statistics_along(
    shard: Shard,
    at: Place,
    by: Place,
    points: Array,
    requests: Sequence[tuple[ShardedTerm, Array]],
) -> Sums:
    """Return a shard's part of the statistics of terms, (n_points, n_statistics) for every term."""
    found = [np.zeros((len(points), one.term.n_statistics)) for one, _ in requests]
    for block in shard.blocks():
        start, change = _on_line(block.scores, at, by)
        for values, (one, auxiliary) in zip(found, requests, strict=True):
            term, rows = one.on(block)
            for k, t in enumerate(points):
                values[k] += term.forward(start[rows] + t * change[rows], auxiliary[k])[0]
    return tuple(found)


def ranges_along(shard: Shard, at: Place, by: Place, points: Array) -> Sums:
    """Return the least and the largest score at every point, (n_points, 2)."""
    ends = np.tile([np.inf, -np.inf], (len(points), 1))
    for block in shard.blocks():
        start, change = _on_line(block.scores, at, by)
        for k, t in enumerate(points):
            scores = start + t * change
            ends[k] = min(ends[k, 0], scores.min()), max(ends[k, 1], scores.max())
    return (ends,)


def histograms_along(
    shard: Shard, at: Place, by: Place, points: Array, low: Array, high: Array, n_atoms: int
) -> Sums:
    """Return the weight of every atom in bins of scores, (n_points, n_atoms, n_bins)."""
    counts = np.zeros((len(points), n_atoms * SCORE_BINS))
    for block in shard.blocks():
        start, change = _on_line(block.scores, at, by)
        first = block.atoms.astype(int) * SCORE_BINS
        for k, t in enumerate(points):
            places = first + bins_of(start + t * change, low[k], high[k], SCORE_BINS)
            counts[k] += np.bincount(places, block.weight, minlength=counts.shape[1])
    return (counts.reshape(len(points), n_atoms, SCORE_BINS),)


def densities_in_cells(
    shard: Shard, at: Place, terms: Sequence[ShardedTerm], window: float
) -> Sums:
    """Return a shard's part of the densities in the cells of terms, (n_cells, 2) for each."""
    found = [np.zeros((one.term.n_statistics, 2)) for one in terms]
    for block in shard.blocks():
        scores = block.scores(*at)
        for values, one in zip(found, terms, strict=True):
            term, rows = one.on(block)
            values += densities(as_cell_means(term), scores[rows], window)
    return tuple(found)


def threshold_slopes(shard: Shard, at: Place, terms: Sequence[ShardedTerm], window: float) -> Sums:
    """Return a shard's part of the gradients of the rates of decisions in the cells of terms.

    Returns
    -------
    *slopes : ndarray of shape (n_cells, n_features + 1)
        With respect to coefficients and intercept.
    """
    found = [np.zeros((one.term.n_statistics, len(at[0]) + 1)) for one in terms]
    for block in shard.blocks():
        density = normal_density(block.scores(*at), window)
        for slopes, one in zip(found, terms, strict=True):
            term, rows = one.on(block)
            weights = np.zeros((one.term.n_statistics, len(density)))
            cells: CellMeans = as_cell_means(term)
            weights[:, rows] = cells.cells.toarray() * density[rows]
            slopes += block.gradient(weights)
    return tuple(found)
