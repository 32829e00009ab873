"""The scores of rows in shards along a line of models: rates, distributions, quantiles.

The scores of w and of d determine those of every model w + t d, so that the rows are read once for
all of them. Histograms stand for their distributions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.sums import Block, BlockSum, Request, Sums, statistics_of
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, rates_on_line, zeros_on_line
from fairconstrained.utils.arrays import Array, middle_of_gap

BINS = 4096
"""The bins between the least and the largest score, in which scores count as equal."""
_FEW = 4096  # rows between the ends of a bracket, whose scores are collected
_ROUNDING = 8.0  # units of rounding: brackets are not divided further
_TINY = 1e-300  # nor are these: one over their width would overflow
_ZEROS = 4096  # about how many zeros on a line stand for all of them
_ZERO_BINS = 1 << 16  # of their histogram: some for each of these

Distribution = tuple[Array, Array, Array]


def of_distribution(term: Term) -> bool:
    """Return whether a term is evaluated from the distribution of the scores, not from sums."""
    return term.batchable and not term.shardable


@dataclass(eq=False)
class ShardedScores:
    """The scores of the models w + t d of rows in shards; each question about them is a round."""

    model: ShardedLinearModel  # the rows
    w: Array  # the parameters, (n_parameters,)
    direction: Array | None = None  # d; None for the scores of w alone, (n_parameters,)
    count: Callable[[int], None] | None = None  # called with the number of rows at every read
    _above: dict[bytes, tuple[Array, Array]] = field(default_factory=dict, init=False, repr=False)

    def _total(self, function: BlockSum, *arguments: Any, **options: Any) -> Sums:
        if self.count is not None:
            self.count(self.model.n_rows)
        ends = self.w, np.zeros_like(self.w) if self.direction is None else self.direction
        return self.model.total(function, ends, *arguments, **options)

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the largest score of w."""
        low, high = self._ranges(np.zeros(1))
        return float(low[0]), float(high[0])

    def _ranges(self, points: Array) -> tuple[Array, Array]:
        (ends,) = self._total(negative_and_largest, points, join=np.maximum)
        return -ends[0], ends[1]

    def zeros(self, reach: tuple[float, float]) -> Array:
        """Return points t that stand for those at which scores are zero, sorted: a read or two.

        They are quantiles, from a histogram with 65536 bins, which does not depend on how rows are
        divided into shards. An infinite reach of t is that of the zeros: a further read.
        """
        low, high = reach
        if not np.isfinite(high - low):
            (ends,) = self._total(range_of_zeros, join=np.maximum)
            low, high = max(low, -ends[0]), min(high, ends[1])
        if not low <= high:
            return np.zeros(0)
        (counts,) = self._total(histogram_of_zeros, low, high)
        upto = np.cumsum(counts)
        n = int(upto[-1])
        ranks = np.unique(np.linspace(0, n - 1, min(n, _ZEROS)).astype(int))
        return middles(low, high, _ZERO_BINS)[np.searchsorted(upto, ranks, side="right")]

    def rates(self, terms: Sequence[Term], points: Array) -> list[Array]:
        """Return the rates of decisions in the cells of terms, (n_cells, n_points): one read."""
        summed = [self.model.summed(term) for term in terms]
        return list(self._total(rates_along, points, summed)) if terms else []

    def statistics(self, requests: Sequence[tuple[Term, Array]], points: Array) -> list[Array]:
        """Return the statistics of terms, (n_points, n_statistics): one read.

        Terms of the distribution of the scores take one more read. If there are many rows they take
        two, for histograms, and their statistics are approximate.
        """
        model = self.model
        summed = [(model.summed(term), at) for term, at in requests if not of_distribution(term)]
        sums = iter(self._total(statistics_along, points, summed) if summed else ())
        scores = self.distributions(points) if len(summed) < len(requests) else []

        def from_scores(term: Term, variables: Array) -> Array:
            each, of_atoms = zip(scores, variables, strict=True), model.of_atoms(term)
            values = [of_atoms.take(a, weight).forward(at, v)[0] for (at, a, weight), v in each]
            return np.array(values)

        return [
            from_scores(term, variables) if of_distribution(term) else next(sums)
            for term, variables in requests
        ]

    def distributions(self, points: Array) -> list[Distribution]:
        """Return the scores of every atom at points t: a round, two if there are many rows."""
        low, high = self._ranges(points)
        (counts,) = self._total(histograms, points, low, high, len(self.model.totals))
        return [_of_bins(*part) for part in zip(counts, low, high, strict=True)]

    def above(self, thresholds: Array) -> tuple[Array, Array]:
        """Return the weight and the number of the rows of every atom with larger scores of w."""
        key = np.asarray(thresholds, dtype=float).tobytes()
        if key not in self._above:
            order = np.argsort(thresholds, kind="stable")
            sums = self._total(rows_above, thresholds[order], len(self.model.totals))
            back = np.argsort(order, kind="stable")
            weight, counts = (part[self.model.atoms][:, back] for part in sums)
            self._above[key] = weight, counts
        return self._above[key]

    def shares_above(self, thresholds: Array, atoms: Array) -> tuple[Array, Array]:
        """Return shares of the weight of some atoms above each threshold, and numbers of rows."""
        weight, counts = self.above(thresholds)
        totals = self.model.totals[self.model.atoms[atoms]]
        return weight[atoms] / totals[:, None], counts[atoms]

    def grid(self) -> Array:
        """Return thresholds between the least and the largest score, in equal steps."""
        return np.linspace(*self.range, BINS + 1)

    def score_below_share(self, share: float) -> float:
        """Return the score above which a share of the weight of all rows lies.

        It is that of :func:`fairconstrained.utils.arrays.score_below_share` for the scores of
        all rows. Counts above 4097 thresholds narrow a bracket until it has few rows, whose scores
        are collected: three reads for a million rows, four for many more.
        """
        all_weight = float(self.model.totals.sum())
        low, high = self.range
        while high - low > max(_ROUNDING * np.spacing(max(abs(low), abs(high))), _TINY):
            thresholds = np.linspace(low, high, BINS + 1)
            heavy, counts = (part[0] for part in self._total(rows_above, thresholds, 1))
            # the last threshold above which there is enough, and the next one
            k = max(int((heavy >= share * all_weight).sum()) - 1, 0)
            low, high = thresholds[k], thresholds[k + 1]
            if counts[k] - counts[k + 1] <= _FEW:
                break
        scores, weights, below, beyond, above = self._total(
            scores_between, low, high, join=np.append
        )
        values, codes = np.unique(scores, return_inverse=True)
        values = np.array([below.max(), *values, beyond.min()])
        # The weight of the nearest score above counts with all that is above: one gap is before it.
        rest = float(above.sum())
        totals = np.array([0.0, *np.bincount(codes, weights, minlength=len(values) - 2), rest])
        inside = np.isfinite(values)
        left = 0.0 if inside[-1] else rest
        return middle_of_gap(values[inside], totals[inside], left, all_weight, share)


def middles(low: float, high: float, n_bins: int) -> Array:
    """Return the middles of bins of equal width between two ends."""
    return low + (np.arange(n_bins) + 0.5) * ((high - low) / n_bins)


def bins_of(values: Array, low: float, high: float, n_bins: int) -> Array:
    """Return the bin of every value, of bins of equal width between two ends."""
    per_unit = n_bins / (high - low) if high > low else 0.0
    return np.clip(((values - low) * per_unit).astype(int), 0, n_bins - 1)


def _of_bins(counts: Array, low: float, high: float) -> Distribution:
    """Return the middles of the bins that have rows, their atoms and their weight."""
    centers = middles(low, high, counts.shape[1])
    centers[[0, -1]] = low, high
    atoms, bins = np.nonzero(counts)
    return centers[bins], atoms, counts[atoms, bins]


def negative_and_largest(block: Block, start: Array, change: Array, points: Array) -> Sums:
    """Return minus the least score and the largest one at every point, (2, n_points)."""
    scores = (start + t * change for t in points)
    ends = [(-s.min(initial=np.inf), s.max(initial=-np.inf)) for s in scores]
    return (np.array(ends).T,)


def histograms(
    block: Block, start: Array, change: Array, points: Array, low: Array, high: Array, n_atoms: int
) -> Sums:
    """Return the weight of every atom in bins of scores, (n_points, n_atoms, n_bins)."""
    counts = np.empty((len(points), n_atoms * BINS))
    for k, t in enumerate(points):
        places = block.places * BINS + bins_of(start + t * change, low[k], high[k], BINS)
        counts[k] = np.bincount(places, block.weight, minlength=counts.shape[1])
    return (counts.reshape(len(points), n_atoms, BINS),)


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
    block: Block, start: Array, change: Array, points: Array, terms: Sequence[CellMeans]
) -> Sums:
    """Return a block's part of the rates of decisions, (n_cells, n_points) for every term."""
    on_block = [term.take(block.places, block.weight) for term in terms]
    return tuple(rates_on_line(on_block, start, change, points))


def statistics_along(
    block: Block, start: Array, change: Array, points: Array, requests: Sequence[Request]
) -> Sums:
    """Return a block's part of the statistics of terms, (n_points, n_statistics) for every term.

    Requests are terms with the values of their own variables at the points.
    """
    parts = []
    for term, auxiliary in requests:
        each = zip(points, auxiliary, strict=True)
        values = [statistics_of(term, block, start + t * change, at) for t, at in each]
        parts.append(np.reshape(values, (len(points), term.n_statistics)))
    return tuple(parts)


def shares_selected(scores: Any, rows: Array, repeats: Array) -> tuple[Array, Array]:
    """Return the share of the weight of rows, or atoms, with positive scores, and their numbers."""
    if isinstance(scores, ShardedScores):
        shares, counts = scores.shares_above(np.zeros(1), rows)
        return shares[:, 0], counts[:, 0]
    shares = scores[rows] > 0.0
    return shares, repeats * shares


def rows_above(block: Block, start: Array, change: Array, thresholds: Array, n_atoms: int) -> Sums:
    """Return the weight and the number of the rows above sorted thresholds.

    Both have the shape (n_atoms, n_thresholds); with one atom, that of all rows.
    """
    n = len(thresholds) + 1
    places = np.minimum(block.places, n_atoms - 1) * n
    places += np.searchsorted(thresholds, start, side="left")
    parts = []
    for weight in (block.weight, None):
        bins = np.bincount(places, weight, minlength=n_atoms * n).reshape(n_atoms, n)
        parts.append(np.cumsum(bins[:, ::-1], axis=1)[:, ::-1][:, 1:])  # to the right of each
    return tuple(parts)


def scores_between(block: Block, start: Array, change: Array, low: float, high: float) -> Sums:
    """Return the different scores in a range with their weight, and what is outside."""
    under, over = start < low, start > high
    inside = ~(under | over)
    values, codes = np.unique(start[inside], return_inverse=True)
    weight = np.bincount(codes, block.weight[inside], minlength=len(values))
    below = start[under].max(initial=-np.inf, keepdims=True)
    beyond = start[over].min(initial=np.inf, keepdims=True)
    return values, weight, below, beyond, np.sum(block.weight[over], keepdims=True)
