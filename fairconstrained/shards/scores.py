"""The scores of rows in shards: their distribution, quantiles, and how many are above thresholds.

Scores of few rows are collected; histograms stand for those of many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.shards.rows import Block
from fairconstrained.shards.sums import Place, Shards, Sums, concatenated, total
from fairconstrained.terms.base import Shardable, Term
from fairconstrained.utils.quantiles import middle_of_gap
from fairconstrained.utils.typing import Array

if TYPE_CHECKING:
    from fairconstrained.shards.model import ShardedLinearModel

BINS = 4096
"""The bins between the least and the largest score, in which scores count as equal."""
_FEW_ROWS = 20_000  # up to which scores are collected, so that distributions are exact
_FEW = 4096  # rows between the ends of a bracket, whose scores are collected
_ROUNDING = 8.0  # units of rounding: brackets are not divided further
_TINY = 1e-300  # nor are these: one over their width would overflow


def of_distribution(term: Term) -> bool:
    """Return whether a term is evaluated from the distribution of the scores, not from sums."""
    summed = isinstance(term, Shardable) and term.shardable
    return term.batchable and not summed


def are_collected(shards: Shards) -> bool:
    """Return whether the scores of rows are collected, so that distributions are exact."""
    return shards.n_rows <= _FEW_ROWS


def n_reads(terms: Sequence[Term], shards: Shards) -> int:
    """Return how often rows are read for the statistics of terms: twice more for histograms."""
    found = [of_distribution(term) for term in terms]
    more = 1 if are_collected(shards) else 2
    return more * any(found) + (not all(found))


def from_distribution(
    term: Term, auxiliary: Array, scores: Array, atoms: Array, weight: Array, totals: Array
) -> Array:
    """Return the statistics of a term from scores, or bins of a histogram in place of them.

    Parameters
    ----------
    term : Term
        One for which `of_distribution` is True.
    auxiliary : ndarray of shape (n_auxiliary,)
        Its own variables.
    scores, atoms, weight : ndarray of shape (n,)
        See :func:`distributions`; with the atoms of the term.
    totals : ndarray of shape (n_atoms,)
        The total weight of each of these.
    """
    return term.take(atoms, weight / totals[atoms]).forward(scores, auxiliary)[0]


Distribution = tuple[Array, Array, Array]


def distributions(
    shards: Shards, at: Place, by: Place, points: Array, n_atoms: int
) -> list[Distribution]:
    """Return the scores of every atom along a line: a round, two if there are many rows.

    Parameters
    ----------
    shards : Shards
        The rows.
    at, by : tuple of (ndarray of shape (n_features,), float)
        The line: coefficients and intercept of a model, and their change.
    points : ndarray of shape (n_points,)
        Points of it.
    n_atoms : int
        The number of atoms in the shards.

    Returns
    -------
    distributions : list of (scores, atoms, weight)
        For every point the scores of the rows, their atoms and weights. If there are many rows, the
        middles of the bins of a histogram that have rows; the first and the last one are the
        extremes.
    """
    if are_collected(shards):
        start, change, atoms, weight = total(shards, collected, (at, by), join=concatenated)
        return [(start + t * change, atoms, weight) for t in points]
    low, high = score_ranges(shards, at, by, points)
    (counts,) = total(shards, histograms, (at, by), points, low, high, n_atoms)
    return [_of_bins(*one) for one in zip(counts, low, high, strict=True)]


def score_ranges(shards: Shards, at: Place, by: Place, points: Array) -> tuple[Array, Array]:
    """Return the least and the largest score at points of a line: a round."""
    ends = total(shards, negative_and_largest, (at, by), points, join=np.maximum)[0]
    return -ends[0], ends[1]


def _of_bins(counts: Array, low: float, high: float) -> Distribution:
    """Return the middles of the bins that have rows, their atoms and their weight."""
    n_bins = counts.shape[1]
    middles = low + (np.arange(n_bins) + 0.5) * ((high - low) / n_bins)
    middles[[0, -1]] = low, high
    atoms, bins = np.nonzero(counts)
    return middles[bins], atoms, counts[atoms, bins]


def bins_of(values: Array, low: float, high: float, n_bins: int) -> Array:
    """Return the bin of every value, of bins of equal width between two ends."""
    per_unit = n_bins / (high - low) if high > low else 0.0
    return np.clip(((values - low) * per_unit).astype(int), 0, n_bins - 1)


def collected(block: Block, *scores: Array) -> Sums:
    """Return the scores of the rows for several models, their atoms and their weights."""
    return *scores, block.places, block.weight


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


def score_below_share(model: ShardedLinearModel, w: Array, share: float) -> float:
    """Return the score above which a share of the weight of all rows lies.

    It is that of :func:`fairconstrained.utils.quantiles.score_below_share` for the scores of all
    rows. Histograms of 4096 bins narrow a bracket until it has few rows, whose scores are
    collected: three reads for a million rows, four for many more.

    Parameters
    ----------
    model : ShardedLinearModel
        The rows.
    w : ndarray of shape (n_parameters,)
        The parameters.
    share : float
        In (0, 1).
    """
    place, all_weight = model.place(w), float(model.totals.sum())
    low, high = model.score_range(w)
    while high - low > max(_ROUNDING * np.spacing(max(abs(low), abs(high))), _TINY):
        counts, weight, above = total(model.shards, histogram_between, (place,), low, high)
        enough = above + np.cumsum(weight[::-1])[::-1] >= share * all_weight
        k = max(int(enough.sum()) - 1, 0)  # the last bin from which on the share is reached
        first, last = max(k - 1, 0), min(k + 2, BINS)  # a bin more at both ends: these are rounded
        width = (high - low) / BINS
        low, high = low + first * width, high if last == BINS else low + last * width
        if counts[first:last].sum() <= _FEW:
            break
    scores, weight, below, beyond, above = total(
        model.shards, scores_between, (place,), low, high, join=concatenated
    )
    values, codes = np.unique(scores, return_inverse=True)
    values = np.array([below.max(), *values, beyond.min()])
    # The weight of the nearest score above counts with all that is above: one gap is before it.
    rest = float(above.sum())
    totals = np.array([0.0, *np.bincount(codes, weight, minlength=len(values) - 2), rest])
    inside = np.isfinite(values)
    left = 0.0 if inside[-1] else rest
    return middle_of_gap(values[inside], totals[inside], left, all_weight, share)


def histogram_between(block: Block, scores: Array, low: float, high: float) -> Sums:
    """Return the number and the weight of the rows in every bin of a range, and the weight above.

    Returns
    -------
    counts : ndarray of int of shape (n_bins,)
    weight : ndarray of shape (n_bins,)
    above : ndarray of shape (1,)
    """
    inside = (scores >= low) & (scores <= high)
    bins = bins_of(scores[inside], low, high, BINS)
    weight = np.bincount(bins, block.weight[inside], minlength=BINS)
    above = np.sum(block.weight[scores > high], keepdims=True)
    return np.bincount(bins, minlength=BINS), weight, above


def scores_between(block: Block, scores: Array, low: float, high: float) -> Sums:
    """Return the different scores in a range with their weight, and what is outside.

    Returns
    -------
    scores, weight : ndarray of shape (n_different,)
    below, beyond : ndarray of shape (1,)
        The largest score below the range and the least one above, infinite if there is none.
    above : ndarray of shape (1,)
        The weight of the rows above the range.
    """
    under, over = scores < low, scores > high
    inside = ~(under | over)
    values, codes = np.unique(scores[inside], return_inverse=True)
    weight = np.bincount(codes, block.weight[inside], minlength=len(values))
    below = scores[under].max(initial=-np.inf, keepdims=True)
    beyond = scores[over].min(initial=np.inf, keepdims=True)
    return values, weight, below, beyond, np.sum(block.weight[over], keepdims=True)


@dataclass(frozen=True, eq=False)
class Above:
    """The rows of every atom whose scores are above thresholds.

    Attributes
    ----------
    weight : ndarray of shape (n_atoms, n_thresholds)
        Their total weight.
    counts : ndarray of int of shape (n_atoms, n_thresholds)
        Their number.
    """

    weight: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class AtomScores:
    """The scores of a model of rows in shards; each question about them is a round.

    Parameters
    ----------
    model : ShardedLinearModel
        The rows.
    w : ndarray of shape (n_parameters,)
        The parameters.
    """

    model: ShardedLinearModel
    w: Array
    _known: dict[bytes, Above] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self.model.score_range(self.w)

    @property
    def least(self) -> float:
        """The least score."""
        return self._ends[0]

    @cached_property
    def grid(self) -> Array:
        """Thresholds between the least and the largest score, in equal steps."""
        return np.linspace(*self._ends, BINS + 1)

    def above(self, thresholds: Array) -> Above:
        """Return the rows of every atom of the model with larger scores.

        Parameters
        ----------
        thresholds : ndarray of shape (n_thresholds,)
            In any order.
        """
        key = np.asarray(thresholds, dtype=float).tobytes()
        if key not in self._known:
            model = self.model
            order = np.argsort(thresholds, kind="stable")
            asked = thresholds[order], model.n_all_atoms
            sums = total(model.shards, rows_above, (model.place(self.w),), *asked)
            back, positions = np.argsort(order, kind="stable"), model.positions
            own = len(model.totals)
            atoms = slice(None) if positions is None else np.argsort(positions)[-own:]
            self._known[key] = Above(*(one[atoms][:, back] for one in sums))
        return self._known[key]


def rows_above(block: Block, scores: Array, thresholds: Array, n_atoms: int) -> Sums:
    """Return the weight and the number of the rows above sorted thresholds.

    Both have the shape (n_atoms, n_thresholds).
    """
    n = len(thresholds) + 1
    places = block.places * n + np.searchsorted(thresholds, scores, side="left")
    found = []
    for weight in (block.weight, None):
        bins = np.bincount(places, weight, minlength=n_atoms * n).reshape(n_atoms, n)
        found.append(np.cumsum(bins[:, ::-1], axis=1)[:, ::-1][:, 1:])  # to the right of each
    return tuple(found)
