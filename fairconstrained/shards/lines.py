"""Sums over rows in shards for many models at once: those of a line w + t d.

The scores of w and of d determine those of every model of the line, so that the rows are read once
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.rows import Block
from fairconstrained.shards.scores import (
    are_collected,
    bins_of,
    distributions,
    from_distribution,
    of_distribution,
)
from fairconstrained.shards.sums import Place, Request, ShardedTerm, Sums, total
from fairconstrained.terms.base import Term
from fairconstrained.terms.decision_rates import (
    as_cell_means,
    densities,
    normal_density,
    rates_on_line,
    zeros_on_line,
)
from fairconstrained.utils.typing import Array

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

    def _total(self, function: Callable[..., Sums], *arguments: object, join: Any = np.add) -> Sums:
        self.count(self.model.n_rows)
        return total(self.model.shards, function, self._ends, *arguments, join=join)

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
            (ends,) = self._total(range_of_zeros, join=np.maximum)
            low, high = max(low, -ends[0]), min(high, ends[1])
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
        model, asked = self.model, list(zip(terms, auxiliary, strict=True))
        summed = [(model.sharded(term), own) for term, own in asked if not of_distribution(term)]
        sums = iter(self._total(statistics_along, points, summed) if summed else ())
        scores = []
        if len(summed) < len(asked):
            self.count(model.n_rows * (1 if are_collected(model.shards) else 2))
            of_all = distributions(model.shards, *self._ends, points, model.n_all_atoms)
            scores = [model.own(one) for one in of_all]
        return [
            np.array(
                [
                    from_distribution(term, here, *one, model.totals)
                    for here, one in zip(own, scores, strict=True)
                ]
            )
            if of_distribution(term)
            else next(sums)
            for term, own in asked
        ]


def densities_at(
    model: ShardedLinearModel, w: Array, terms: Sequence[Term], window: float
) -> list[Array]:
    """Return :func:`~fairconstrained.terms.decision_rates.densities` of terms: one read."""
    if not terms:
        return []
    asked = [model.sharded(one) for one in terms]
    return list(total(model.shards, densities_in_cells, (model.place(w),), asked, window))


def rate_slopes_at(
    model: ShardedLinearModel, w: Array, terms: Sequence[Term], window: float
) -> list[Array]:
    """Return the gradients of the rates of decisions in the cells of terms: one read.

    Each has the shape (n_cells, n_parameters).
    """
    asked = [model.sharded(one) for one in terms]
    sums = total(model.shards, threshold_slopes, (model.place(w),), asked, window)
    return [model.gradient(one) for one in sums]


def range_of_zeros(block: Block, start: Array, change: Array) -> Sums:
    """Return minus the least and the largest t at which a score is zero, -inf if there is none."""
    t = zeros_on_line(start, change)
    t = t[np.isfinite(t)]
    return (np.array([-t.min(initial=np.inf), t.max(initial=-np.inf)]),)


def histogram_of_zeros(block: Block, start: Array, change: Array, low: float, high: float) -> Sums:
    """Return the number of rows whose score is zero at a t in every bin of a range."""
    t = zeros_on_line(start, change)
    t = t[(t >= low) & (t <= high)]
    return (np.bincount(bins_of(t, low, high, _ZERO_BINS), minlength=_ZERO_BINS),)


def rates_along(
    block: Block, start: Array, change: Array, points: Array, terms: Sequence[ShardedTerm]
) -> Sums:
    """Return a block's part of the rates of decisions, (n_cells, n_points) for every term."""
    found = []
    for one in terms:
        term, rows = one.on(block)
        found.append(rates_on_line(as_cell_means(term), start[rows], change[rows], points))
    return tuple(found)


def statistics_along(
    block: Block, start: Array, change: Array, points: Array, requests: Sequence[Request]
) -> Sums:
    """Return a block's part of the statistics of terms, (n_points, n_statistics) for every term.

    Requests are terms with the values of their own variables at the points.
    """
    found = []
    for one, auxiliary in requests:
        term, rows = one.on(block)
        scores = (start[rows] + t * change[rows] for t in points)
        values = [term.forward(s, own)[0] for s, own in zip(scores, auxiliary, strict=True)]
        found.append(np.reshape(values, (len(points), one.term.n_statistics)))
    return tuple(found)


def densities_in_cells(
    block: Block, scores: Array, terms: Sequence[ShardedTerm], window: float
) -> Sums:
    """Return a block's part of the densities in the cells of terms, (n_cells, 2) for each."""
    on_rows = (one.on(block) for one in terms)
    return tuple(densities(as_cell_means(term), scores[rows], window) for term, rows in on_rows)


def threshold_slopes(
    block: Block, scores: Array, terms: Sequence[ShardedTerm], window: float
) -> Sums:
    """Return a block's part of the gradients of the rates of decisions in the cells of terms.

    Returns
    -------
    *slopes : ndarray of shape (n_cells, n_features + 1)
        With respect to coefficients and intercept.
    """
    density, found = normal_density(scores, window), []
    for one in terms:
        term, rows = one.on(block)
        weights = np.zeros((one.term.n_statistics, len(density)))
        weights[:, rows] = as_cell_means(term).cells.toarray() * density[rows]
        found.append(block.gradient(weights))
    return tuple(found)
