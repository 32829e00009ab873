"""What is computed on each shard: statistics of terms with derivatives, in one read of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from fairconstrained.functions.exponentials import Exponentials, value_and_derivative
from fairconstrained.terms.base import Shardable, Term, subgradient_error
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

Sums = tuple[Array, ...]

_BLOCK_ROWS = 4096  # rows of a block, whose scores and derivatives fit into the cache
_MANY_STATISTICS = 32  # with more, their Jacobian costs more than a second read of the rows


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the rows.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        The features, float64 or float32; blocks of dense rows are converted to float64.
    atoms : ndarray of int of shape (n_rows,)
        The atom of each row: rows of one atom have the same label and the same groups.
    sample_weight : ndarray of shape (n_rows,) or None
        The weights of the rows; None stands for ones.
    """

    X: Matrix
    atoms: Array
    sample_weight: Array | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, which schedulers ask for."""
        if isinstance(self.X, np.ndarray):
            own = self.X.nbytes
        else:
            sparse = cast("SparseMatrix", self.X)
            own = 2 * (sparse.data.nbytes + sparse.indices.nbytes)  # with the transpose
        rows = self.atoms.nbytes
        return int(own + rows + (0 if self.sample_weight is None else self.sample_weight.nbytes))

    @cached_property
    def _transpose(self) -> SparseMatrix:
        """The transpose of sparse rows, as CSR: products with it cost what those with X do."""
        return cast("SparseMatrix", self.X).T.tocsr()

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of rows: dense rows a few thousand at a time, sparse rows at once."""
        if not isinstance(self.X, np.ndarray):
            weight = self._weight(slice(None))
            yield Block(self.X, self._transpose, self.atoms, weight)
            return
        for start in range(0, self.n_rows, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            features = np.asarray(self.X[rows], dtype=float)
            yield Block(features, features.T, self.atoms[rows], self._weight(rows))

    def _weight(self, rows: slice) -> Array:
        weight = self.sample_weight
        if weight is None:
            return np.ones(len(self.atoms[rows]))
        return np.asarray(weight[rows], dtype=float)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a shard, in double precision."""

    X: Matrix
    transpose: Matrix
    atoms: Array
    weight: Array

    def scores(self, coefficients: Array, intercept: float) -> Array:
        """Return the scores, shape (n_rows,)."""
        out = np.asarray(self.X @ coefficients)
        out += intercept
        return out

    def gradient(self, weights: Array) -> Array:
        """Return the derivative of <weights, scores>, shape (..., n_features + 1).

        Parameters
        ----------
        weights : ndarray of shape (n_rows,) or (m, n_rows)
            The weights of the scores.
        """
        slopes = np.asarray((self.transpose @ weights.T).T)
        return np.concatenate([slopes, weights.sum(axis=-1, keepdims=True)], axis=-1)


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
        term = self.term
        return (
            isinstance(term, CellMeans)
            and self.positions is None
            and term.n_statistics <= _MANY_STATISTICS
        )

    @cached_property
    def _shares(self) -> Array:
        """The share of a row of unit weight in every cell, (n_cells, n_atoms)."""
        return np.asarray(cast("CellMeans", self.term).cells.toarray() / self.totals)

    def sums(self, block: Block, scores: Array, known: Exponentials) -> tuple[Array, Array]:
        """Return the block's part of the statistics, and weights on its scores: their derivatives.

        Parameters
        ----------
        block : Block
            The rows.
        scores : ndarray of shape (n_rows,)
            Their scores.
        known : Exponentials
            Of the scores.

        Returns
        -------
        statistics : ndarray of shape (n_statistics,)
        slopes : ndarray of shape (n_statistics, n_rows)
        """
        term = cast("CellMeans", self.term)
        signs = None if term.signs is None else term.signs[block.atoms]
        moved = scores + term.shift if term.shift else scores
        margins = moved if signs is None else signs * moved
        value, slope = value_and_derivative(term.function, margins, None if term.shift else known)
        if signs is not None:
            slope = slope * signs
        shares = np.take(self._shares, block.atoms, axis=1)
        shares *= block.weight
        return shares @ value, np.multiply(shares, slope, out=shares)

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
    shard: Shard, coefficients: Array, intercept: float, terms: Sequence[ShardedTerm]
) -> Sums:
    """Return a shard's part of the statistics of terms, and its Jacobian: one read of the rows.

    Returns
    -------
    statistics : ndarray of shape (n_statistics,)
        Of all terms, one after the other.
    jacobian : ndarray of shape (n_statistics, n_features + 1)
        The derivatives with respect to coefficients and intercept.
    """
    n = sum(one.term.n_statistics for one in terms)
    statistics, jacobian = np.zeros(n), np.zeros((n, len(coefficients) + 1))
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        known = Exponentials(scores)
        values, slopes = zip(*(one.sums(block, scores, known) for one in terms), strict=True)
        statistics += np.concatenate(values)
        jacobian += block.gradient(np.concatenate(slopes))
    return statistics, jacobian


def statistics_only(
    shard: Shard, coefficients: Array, intercept: float, requests: Sequence[Request]
) -> Sums:
    """Return a shard's part of the statistics of each term."""
    found: list[Array] | None = None
    for block in shard.blocks():
        scores, values = block.scores(coefficients, intercept), []
        for one, auxiliary in requests:
            term, rows = one.on(block)
            values.append(term.forward(scores[rows], auxiliary)[0])
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


def subgradient_errors(
    shard: Shard, coefficients: Array, intercept: float, requests: Sequence[Request]
) -> Sums:
    """Return a shard's part of the subgradient error of each rounded term."""
    found = [np.zeros(one.term.n_outputs) for one, _ in requests]
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        for error, (one, auxiliary) in zip(found, requests, strict=True):
            term, rows = one.on(block)
            error += subgradient_error(term, scores[rows], auxiliary)
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
    per_unit = n_bins / (high - low) if high > low else 0.0
    for block in shard.blocks():
        bins = (block.scores(coefficients, intercept) - low) * per_unit
        bins = np.clip(bins.astype(int), 0, n_bins - 1)
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
