"""Distributions of scores, for terms that are evaluated from them.

Scores of few rows are collected; histograms stand for those of many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairconstrained.shards.places import Shards
from fairconstrained.shards.rows import Shard
from fairconstrained.terms.base import Shardable, Term
from fairconstrained.utils.typing import Array

SCORE_BINS = 4096
"""The bins between the least and the largest score, in which scores count as equal."""
_FEW_ROWS = 20_000  # up to which scores are collected, so that distributions are exact


def of_distribution(term: Term) -> bool:
    """Return whether a term is evaluated from the distribution of the scores, not from sums."""
    summed = isinstance(term, Shardable) and term.shardable
    return term.batchable and not summed


def are_collected(shards: Shards) -> bool:
    """Return whether the scores of rows are collected, so that distributions are exact."""
    return shards.n_rows <= _FEW_ROWS


def collected(shards: Shards, *places: tuple[Array, float]) -> list[Array]:
    """Return the scores of all rows for several models, their atoms and their weights: one round.

    Parameters
    ----------
    shards : Shards
        The rows.
    *places : tuple of (ndarray of shape (n_features,), float)
        The coefficients and the intercept of each model.
    """
    parts = shards.gather(rows_with_scores, *places)
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def rows_with_scores(shard: Shard, *places: tuple[Array, float]) -> tuple[Array, ...]:
    """Return the scores of the rows of a shard, their atoms and their weights."""
    none = (*(np.zeros(0) for _ in places), np.zeros(0, dtype=int), np.zeros(0))
    parts = [none] + [
        (*(block.scores(*place) for place in places), block.atoms.astype(int), block.weight)
        for block in shard.blocks()
    ]
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


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
        See :meth:`~fairconstrained.shards.model.ShardedLinearModel.distribution`; with the atoms
        of the term.
    totals : ndarray of shape (n_atoms,)
        The total weight of each of these.
    """
    return term.take(atoms, weight / totals[atoms]).forward(scores, auxiliary)[0]


def bins_with_rows(counts: Array, low: float, high: float) -> tuple[Array, Array, Array]:
    """Return the middles of the bins that have rows, their atoms and their weight."""
    n_bins = counts.shape[1]
    middles = low + (np.arange(n_bins) + 0.5) * ((high - low) / n_bins)
    middles[[0, -1]] = low, high
    atoms, bins = np.nonzero(counts)
    return middles[bins], atoms, counts[atoms, bins]
