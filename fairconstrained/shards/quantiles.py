"""The score above which a share of the rows in shards lies, exactly, by a few reads."""

from __future__ import annotations

import numpy as np

from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.places import total
from fairconstrained.shards.rows import Shard
from fairconstrained.shards.sums import Sums, bins_of
from fairconstrained.utils.quantiles import middle_of_gap
from fairconstrained.utils.typing import Array

_BINS = 4096
_FEW = 4096  # rows between the ends of a bracket, whose scores are collected
_ROUNDING = 8.0  # units of rounding: brackets are not divided further
_TINY = 1e-300  # nor are these: one over their width would overflow


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
    place = model.place(w)
    low, high = model.score_range(w)
    wanted = share * float(model.totals.sum())
    while high - low > max(_ROUNDING * np.spacing(max(abs(low), abs(high))), _TINY):
        counts, weight, above = total(model.shards, histogram_between, *place, low, high)
        enough = above + np.cumsum(weight[::-1])[::-1] >= wanted
        k = max(int(enough.sum()) - 1, 0)  # the last bin from which on the share is reached
        first, last = max(k - 1, 0), min(k + 2, _BINS)  # a bin more at both ends: these are rounded
        width = (high - low) / _BINS
        low, high = low + first * width, high if last == _BINS else low + last * width
        if counts[first:last].sum() <= _FEW:
            break
    return _collected(model, place, low, high, share)


def _collected(
    model: ShardedLinearModel, place: tuple[Array, float], low: float, high: float, share: float
) -> float:
    """Return the score from those within a bracket and the nearest ones outside."""
    parts = model.shards.gather(scores_between, *place, low, high)
    scores, weight, nearest, above = zip(*parts, strict=True)
    values, codes = np.unique(np.concatenate(scores), return_inverse=True)
    totals = np.bincount(codes, np.concatenate(weight), minlength=len(values))
    below, beyond = np.array(nearest)[:, 0].max(), np.array(nearest)[:, 1].min()
    inside = np.flatnonzero(np.isfinite([below, *values, beyond]))
    values = np.array([below, *values, beyond])[inside]
    # The weight of the nearest score above counts with all that is above: one gap is before it.
    rest = float(np.sum(above))
    totals = np.array([0.0, *totals, rest])[inside]
    left = rest if not np.isfinite(beyond) else 0.0
    return middle_of_gap(values, totals, left, float(model.totals.sum()), share)


def histogram_between(
    shard: Shard, coefficients: Array, intercept: float, low: float, high: float
) -> Sums:
    """Return the number and the weight of the rows in every bin of a range, and the weight above.

    Returns
    -------
    counts : ndarray of int of shape (n_bins,)
    weight : ndarray of shape (n_bins,)
    above : ndarray of shape (1,)
    """
    counts, weight = np.zeros(_BINS, dtype=np.int64), np.zeros(_BINS)
    above = np.zeros(1)
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        above += block.weight[scores > high].sum()
        inside = (scores >= low) & (scores <= high)
        bins = bins_of(scores[inside], low, high, _BINS)
        counts += np.bincount(bins, minlength=_BINS)
        weight += np.bincount(bins, block.weight[inside], minlength=_BINS)
    return counts, weight, above


def scores_between(
    shard: Shard, coefficients: Array, intercept: float, low: float, high: float
) -> Sums:
    """Return the different scores in a range with their weight, and what is outside.

    Returns
    -------
    scores, weight : ndarray of shape (n_different,)
    nearest : ndarray of shape (2,)
        The largest score below the range and the least one above, infinite if there is none.
    above : ndarray of shape (1,)
        The weight of the rows above the range.
    """
    found, weights = [np.zeros(0)], [np.zeros(0)]
    below, beyond, above = -np.inf, np.inf, np.zeros(1)
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        under, over = scores < low, scores > high
        below = max(below, scores[under].max(initial=-np.inf))
        beyond = min(beyond, scores[over].min(initial=np.inf))
        above += block.weight[over].sum()
        inside = ~(under | over)
        found.append(scores[inside])
        weights.append(block.weight[inside])
    values, codes = np.unique(np.concatenate(found), return_inverse=True)
    weight = np.bincount(codes, np.concatenate(weights), minlength=len(values))
    return values, weight, np.array([below, beyond]), above
