"""Histograms of scores, for terms that are evaluated from the distribution of the scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairconstrained.terms.base import Reweightable, Shardable, Term
from fairconstrained.utils.typing import Array

SCORE_BINS = 4096
"""The bins between the least and the largest score, in which scores count as equal."""


def of_distribution(term: Term) -> bool:
    """Return whether a term is evaluated from the distribution of the scores, not from sums."""
    summed = isinstance(term, Shardable) and term.shardable
    return isinstance(term, Reweightable) and not summed


def n_reads(terms: Sequence[Term]) -> int:
    """Return how often rows are read for the statistics of terms: twice more for histograms."""
    found = [of_distribution(term) for term in terms]
    return 2 * any(found) + (not all(found))


def from_distribution(
    term: Term, auxiliary: Array, scores: Array, atoms: Array, weight: Array, totals: Array
) -> Array:
    """Return the statistics of a term, with the bins of a histogram in place of the rows.

    Parameters
    ----------
    term : Term
        One for which `of_distribution` is True.
    auxiliary : ndarray of shape (n_auxiliary,)
        Its own variables.
    scores, atoms, weight : ndarray of shape (n,)
        See :meth:`~fairconstrained.shards.model.ShardedLinearModel.histogram`; with the atoms of
        the term.
    totals : ndarray of shape (n_atoms,)
        The total weight of each of these.
    """
    assert isinstance(term, Reweightable)
    return term.take(atoms, weight / totals[atoms]).forward(scores, auxiliary)[0]


def bins_with_rows(counts: Array, low: float, high: float) -> tuple[Array, Array, Array]:
    """Return the middles of the bins that have rows, their atoms and their weight."""
    n_bins = counts.shape[1]
    middles = low + (np.arange(n_bins) + 0.5) * ((high - low) / n_bins)
    middles[[0, -1]] = low, high
    atoms, bins = np.nonzero(counts)
    return middles[bins], atoms, counts[atoms, bins]
