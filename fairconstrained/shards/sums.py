"""What is computed on each shard: statistics of terms with derivatives, in one read of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import cast

import numpy as np

from fairconstrained.functions.elementary import Indicator
from fairconstrained.shards.rows import Block, Shard
from fairconstrained.terms.base import Shardable, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array

Sums = tuple[Array, ...]

_MANY_STATISTICS = 32  # with more, their Jacobian costs more than a second read of the rows


@dataclass(frozen=True, eq=False)
class ShardedTerm:
    r"""A term on one row per atom, and its part on the rows of a shard.

    Row i of atom a has the share :math:`w_i / W_a` of the atom's row, W the totals of the weights.

    Parameters
    ----------
    term : Shardable
        The term on one row per atom, weighted by its total.
    totals : ndarray of shape (n_atoms,)
        The total weight of every atom.
    positions : ndarray of int of shape (n_all_atoms,) or None, default=None
        For a term on some of the atoms: the position of every atom in it, or -1.
    """

    term: Shardable
    totals: Array
    positions: Array | None = field(default=None)

    @property
    def in_one_round(self) -> bool:
        """Whether statistics come with their Jacobian: averages over cells that are not many."""
        few = self.of_all_cells and self.term.n_statistics <= _MANY_STATISTICS
        return few and not isinstance(cast("CellMeans", self.term).function, Indicator)

    @property
    def of_all_cells(self) -> bool:
        """Whether the term is made of averages over cells of all atoms."""
        return isinstance(self.term, CellMeans) and self.positions is None

    @cached_property
    def _shares(self) -> Array:
        """The share of a row of unit weight in every cell, (n_cells, n_atoms)."""
        return np.asarray(cast("CellMeans", self.term).cells.toarray() / self.totals)

    def add_runs(self, block: Block, scores: Array, statistics: Array, jacobian: Array) -> None:
        """Add the part of a block whose rows are ordered to the statistics and their Jacobian.

        Parameters
        ----------
        block : Block
            The rows.
        scores : ndarray of shape (n_rows,)
            Their scores.
        statistics : ndarray of shape (n_statistics,)
            Added to.
        jacobian : ndarray of shape (n_statistics, n_features + 1)
            Added to.
        """
        value, slope = self._weighted(block, scores)
        for atom, rows in block.runs or ():
            share = self._shares[:, atom]
            if share.any():
                statistics += share * value[rows].sum()
                jacobian += share[:, None] * block.gradient(slope[rows], rows)

    def add_rows(self, block: Block, scores: Array, statistics: Array, slopes: Array) -> None:
        """Add the part of a block to the statistics, and store their derivatives in the scores.

        Parameters
        ----------
        block, scores, statistics
            See `add_runs`.
        slopes : ndarray of shape (n_statistics, n_rows)
            Overwritten.
        """
        value, slope = self._weighted(block, scores)
        np.take(self._shares, block.places, axis=1, out=slopes, mode="clip")  # without a buffer
        statistics += slopes @ value
        slopes *= slope

    def statistics(self, block: Block, scores: Array) -> Array:
        """Return a block's part of the statistics of averages over cells."""
        margins, _ = self._margins(block, scores)
        value = cast("CellMeans", self.term).function.value(margins)
        if block.sample_weight is not None:
            value = value * block.weight
        return self._shares @ np.bincount(block.places, value, minlength=self._shares.shape[1])

    def _margins(self, block: Block, scores: Array) -> tuple[Array, Array | None]:
        """Return margins and signs."""
        term = cast("CellMeans", self.term)
        signs = None if term.signs is None else np.take(term.signs, block.places)
        moved = scores + term.shift if term.shift else scores
        return moved if signs is None else signs * moved, signs

    def _weighted(self, block: Block, scores: Array) -> tuple[Array, Array]:
        """Return the function of the scores and its derivative, times the weights of the rows."""
        margins, signs = self._margins(block, scores)
        function = cast("CellMeans", self.term).function
        value = function.value(margins)
        slope = function.derivative(margins, value)
        if signs is not None:
            slope = slope * signs
        if block.sample_weight is not None:
            value, slope = value * block.weight, slope * block.weight
        return value, slope

    def on(self, block: Block) -> tuple[Term, Array | slice]:
        """Return the term on the rows of a block that it has, and which ones these are."""
        rows: Array | slice = slice(None)
        atoms = block.atoms
        if self.positions is not None:
            atoms = self.positions[atoms]
            rows = np.flatnonzero(atoms >= 0)
            atoms = atoms[rows]
        return self.term.take(atoms, block.weight[rows] / self.totals[atoms]), rows


Request = tuple[ShardedTerm, Array]  # a term, and the values of its own variables


def statistics_with_jacobian(
    shard: Shard,
    coefficients: Array,
    intercept: float,
    terms: Sequence[ShardedTerm],
    others: Sequence[Request] = (),
) -> Sums:
    """Return a shard's part of the statistics of terms, and its Jacobian: one read of the rows.

    Parameters
    ----------
    shard : Shard
        The rows.
    coefficients, intercept : ndarray of shape (n_features,), float
        Where they are taken.
    terms : sequence of ShardedTerm
        Those whose derivatives are wanted.
    others : sequence of (ShardedTerm, ndarray), default=()
        Those of which only the statistics are wanted, with the values of their own variables.

    Returns
    -------
    statistics : ndarray of shape (n_statistics,)
        Of all terms, one after the other.
    jacobian : ndarray of shape (n_statistics, n_features + 1)
        The derivatives with respect to coefficients and intercept.
    *more : ndarray
        The statistics of each of the others.
    """
    ends = np.cumsum([0, *(one.term.n_statistics for one in terms)])
    statistics, jacobian = np.zeros(ends[-1]), np.zeros((ends[-1], len(coefficients) + 1))
    places = [slice(*pair) for pair in pairwise(ends)]
    more: list[Array] = []
    slopes = np.empty((0, 0))
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        if slopes.shape[1] != len(scores) and block.runs is None:
            slopes = np.empty((len(statistics), len(scores)))
        for one, own in zip(terms, places, strict=True):
            if block.runs is None:
                one.add_rows(block, scores, statistics[own], slopes[own])
            else:
                one.add_runs(block, scores, statistics[own], jacobian[own])
        if block.runs is None:
            jacobian += block.gradient(slopes)
        values = _statistics(block, scores, others)
        more = [a + b for a, b in zip(more, values, strict=True)] if more else values
    return statistics, jacobian, *more


def _statistics(block: Block, scores: Array, requests: Sequence[Request]) -> list[Array]:
    """Return a block's part of the statistics of each term."""
    found = []
    for one, auxiliary in requests:
        if one.of_all_cells:
            found.append(one.statistics(block, scores))
        else:
            term, rows = one.on(block)
            found.append(term.forward(scores[rows], auxiliary)[0])
    return found


def statistics_only(
    shard: Shard, coefficients: Array, intercept: float, requests: Sequence[Request]
) -> Sums:
    """Return a shard's part of the statistics of each term."""
    found: list[Array] | None = None
    for block in shard.blocks():
        values = _statistics(block, block.scores(coefficients, intercept), requests)
        found = values if found is None else [a + b for a, b in zip(found, values, strict=True)]
    return tuple(found or ())


def weighted_gradient(
    shard: Shard,
    coefficients: Array,
    intercept: float,
    requests: Sequence[Request],
    weights: Sequence[Array],
) -> Sums:
    """Return a shard's part of the gradient of <weights, statistics>: the second read of the rows.

    Returns
    -------
    gradient : ndarray of shape (n_features + 1,)
        With respect to coefficients and intercept.
    *own : ndarray of shape (n_auxiliary,)
        With respect to the variables of each term.
    """
    gradient = np.zeros(len(coefficients) + 1)
    owns = [np.zeros(len(auxiliary)) for _, auxiliary in requests]
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        on_scores = np.zeros(len(scores))
        for own, (one, auxiliary), weight in zip(owns, requests, weights, strict=True):
            term, rows = one.on(block)
            back, change = term.forward(scores[rows], auxiliary)[1](weight)
            on_scores[rows] += back
            own += change
        gradient += block.gradient(on_scores)
    return gradient, *owns


def jacobian_rows(
    shard: Shard,
    coefficients: Array,
    intercept: float,
    requests: Sequence[Request],
    tables: Sequence[Array],
) -> Sums:
    """Return a shard's part of the gradients of several <weights, statistics> of each term.

    The scores and the first step of each term are computed once for all of them.

    Parameters
    ----------
    shard : Shard
        The rows.
    coefficients, intercept : ndarray of shape (n_features,), float
        Where the gradients are taken.
    requests : sequence of (ShardedTerm, ndarray)
        The terms, with the values of their own variables.
    tables : sequence of ndarray of shape (m, n_statistics)
        The weights; m may differ between the terms.

    Returns
    -------
    *gradients : ndarray of shape (m, n_features + 1)
        Of each term, with respect to coefficients and intercept.
    *owns : ndarray of shape (m, n_auxiliary)
        Of each term, with respect to its own variables.
    """
    found = [np.zeros((len(table), len(coefficients) + 1)) for table in tables]
    owns = [
        np.zeros((len(table), len(auxiliary)))
        for (_, auxiliary), table in zip(requests, tables, strict=True)
    ]
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        for (one, auxiliary), table, sums, own in zip(requests, tables, found, owns, strict=True):
            term, rows = one.on(block)
            pullback, on_scores = term.forward(scores[rows], auxiliary)[1], np.zeros(len(scores))
            for gradient, change, weights in zip(sums, own, table, strict=True):
                on_scores[rows], by_own = pullback(weights)
                gradient += block.gradient(on_scores)
                change += by_own
    return *found, *owns


def subgradient_errors(
    shard: Shard, coefficients: Array, intercept: float, requests: Sequence[Request]
) -> Sums:
    """Return a shard's part of the subgradient error of each rounded term."""
    found = [np.zeros(one.term.n_outputs) for one, _ in requests]
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        for error, (one, auxiliary) in zip(found, requests, strict=True):
            term, rows = one.on(block)
            error += term.subgradient_error(scores[rows], auxiliary)
    return tuple(found)


def mean_square(shard: Shard, coefficients: Array, intercept: float) -> Sums:
    """Return the weighted sum of squared scores."""
    total = 0.0
    for block in shard.blocks():
        total += float(block.weight @ block.scores(coefficients, intercept) ** 2)
    return (np.array([total]),)


def score_range(shard: Shard, coefficients: Array, intercept: float) -> Sums:
    """Return the least and the largest score of a shard."""
    ends = [np.inf, -np.inf]
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        ends = [min(ends[0], scores.min()), max(ends[1], scores.max())]
    return (np.array(ends),)


def bins_of(values: Array, low: float, high: float, n_bins: int) -> Array:
    """Return the bin of every value, of bins of equal width between two ends."""
    per_unit = n_bins / (high - low) if high > low else 0.0
    return np.clip(((values - low) * per_unit).astype(int), 0, n_bins - 1)


def score_histogram(
    shard: Shard,
    coefficients: Array,
    intercept: float,
    low: float,
    high: float,
    n_bins: int,
    n_atoms: int,
) -> Sums:
    """Return the weight of the rows in every bin of scores, shape (n_atoms, n_bins)."""
    counts = np.zeros(n_atoms * n_bins)
    for block in shard.blocks():
        bins = bins_of(block.scores(coefficients, intercept), low, high, n_bins)
        places = block.atoms.astype(int) * n_bins + bins
        counts += np.bincount(places, block.weight, minlength=len(counts))
    return (counts.reshape(n_atoms, n_bins),)


def square_gradient(shard: Shard, coefficients: Array, intercept: float, shares: Array) -> Sums:
    """Return the gradient of half the weighted sum of squared scores.

    Parameters
    ----------
    shard : Shard
        The rows.
    coefficients, intercept : ndarray of shape (n_features,), float
        Where the gradient is taken.
    shares : ndarray of shape (n_atoms,)
        Multiply the weights of the rows of every atom.
    """
    gradient = np.zeros(len(coefficients) + 1)
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        gradient += block.gradient(scores * block.weight * shares[block.atoms])
    return (gradient,)
