"""Sums over rows in shards: where the shards are, and what is computed of every block of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np

from fairconstrained.functions.base import Indicator
from fairconstrained.models.feature_scale import Features
from fairconstrained.models.feature_scale import other_shares as shares_of_others
from fairconstrained.models.linear import LinearModel
from fairconstrained.shards.rows import Block, Shard
from fairconstrained.terms.base import CurvedPullback, FactoredPullback, Shardable, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

Sums = tuple[Array, ...]
Place = tuple[Array, float]  # coefficients of X and an intercept
Join = Callable[[Array, Array], Array]  # what is made of an array of two blocks

_MANY_STATISTICS = 32  # with more, a sparse product with their derivatives costs less
_LARGEST_JACOBIAN = 1 << 18  # entries, 2 MB: what a round returns from every shard


class Shards(Protocol):
    """Where the rows are, and who computes sums over them."""

    @property
    def n_rows(self) -> int:
        """The number of rows in all shards."""

    def gather(self, function: Callable[..., Sums], *arguments: Any) -> list[Sums]:
        """Return ``function(shard, *arguments)`` of every shard, in the order of the shards."""


@dataclass(frozen=True, eq=False)
class LocalShards:
    """Shards in the memory of this process.

    Parameters
    ----------
    shards : sequence of Shard
        The rows.
    n_threads : int, default=1
        How many shards are computed at a time.
    """

    shards: Sequence[Shard]
    n_threads: int = 1

    @property
    def n_rows(self) -> int:
        """The number of rows in all shards."""
        return sum(shard.n_rows for shard in self.shards)

    def gather(self, function: Callable[..., Sums], *arguments: Any) -> list[Sums]:
        """Return ``function(shard, *arguments)`` of every shard, in the order of the shards."""
        if self.n_threads == 1:
            return [function(shard, *arguments) for shard in self.shards]
        with ThreadPoolExecutor(self.n_threads) as threads:
            return list(threads.map(lambda shard: function(shard, *arguments), self.shards))


@dataclass(frozen=True)
class OfBlocks:
    """What a function of blocks is of a shard, in one read of it.

    Parameters
    ----------
    function : callable
        Called with a block, its scores for every model, and other arguments; returns arrays.
    join : callable
        Joins the arrays of two blocks.
    """

    function: Callable[..., Sums]
    join: Join

    @property
    def __name__(self) -> str:
        """The name of the tasks."""
        return self.function.__name__

    def __call__(self, shard: Shard, models: Sequence[Place], *arguments: Any) -> Sums:
        """Return the joined arrays of all blocks of a shard."""
        return self.joined(
            self.function(block, *(block.scores(*model) for model in models), *arguments)
            for block in shard.blocks()
        )

    def joined(self, parts: Iterable[Sums]) -> Sums:
        """Return the joined arrays of several parts."""
        return reduce(lambda left, right: tuple(map(self.join, left, right)), parts)


def total(
    shards: Shards,
    function: Callable[..., Sums],
    models: Sequence[Place],
    *arguments: Any,
    join: Join = np.add,
) -> Sums:
    """Return the sum over all blocks of ``function(block, *scores, *arguments)``: a round.

    Parameters
    ----------
    shards : Shards
        The rows.
    function : callable
        See :class:`OfBlocks`.
    models : sequence of (ndarray of shape (n_features,), float)
        The coefficients and the intercept of every model whose scores are wanted.
    *arguments : object
        Others of the function.
    join : callable, default=np.add
        What is done in place of adding: np.maximum, or `concatenated`.
    """
    of_blocks = OfBlocks(function, join)
    return of_blocks.joined(shards.gather(of_blocks, models, *arguments))


def concatenated(left: Array, right: Array) -> Array:
    """Return the rows of two blocks."""
    return np.concatenate([left, right])


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
    n_features : int
        The number of columns of X.
    """

    term: Shardable
    totals: Array
    positions: Array | None = field(default=None)
    n_features: int = 0

    @property
    def in_one_round(self) -> bool:
        """Whether statistics come with their Jacobian: that of few sums over rows."""
        term = self.term
        width = term.n_statistics * self.n_features
        decided = isinstance(getattr(term, "function", None), Indicator)
        return term.factored and width <= _LARGEST_JACOBIAN and not decided

    @property
    def _in_columns(self) -> bool:
        """Whether derivatives in the scores are a dense array: a row for each of few cells."""
        return self._of_all_cells and self.term.n_statistics <= _MANY_STATISTICS

    @property
    def _of_all_cells(self) -> bool:
        """Whether the term is made of averages over cells of all atoms."""
        return isinstance(self.term, CellMeans) and self.positions is None

    @cached_property
    def _shares(self) -> Array:
        """The share of a row of unit weight in every cell, (n_cells, n_atoms)."""
        return np.asarray(cast("CellMeans", self.term).cells.toarray() / self.totals)

    def statistics(self, block: Block, scores: Array, auxiliary: Array) -> Array:
        """Return a block's part of the statistics."""
        if not self._of_all_cells:
            term, rows = self.on(block)
            return term.forward(scores[rows], auxiliary)[0]
        value = _times(self._values(block, scores)[0], block.sample_weight)
        return self._shares @ np.bincount(block.places, value, minlength=self._shares.shape[1])

    def with_slopes(self, block: Block, scores: Array, out: Array) -> Array:
        """Return a block's part of averages over cells, and store their derivatives in the scores.

        Parameters
        ----------
        block : Block
            The rows.
        scores : ndarray of shape (n_rows,)
            Their scores.
        out : ndarray of shape (n_statistics, n_rows)
            Overwritten with the derivatives.
        """
        value, margins, signs = self._values(block, scores)
        slope = cast("CellMeans", self.term).function.derivative(margins, value)
        np.take(self._shares, block.places, axis=1, out=out, mode="clip")  # without a buffer
        statistics = out @ _times(value, block.sample_weight)
        out *= _times(slope, signs, block.sample_weight)
        return np.asarray(statistics)

    def with_jacobian(self, block: Block, scores: Array, auxiliary: Array) -> Sums:
        """Return a block's part of the statistics and their Jacobian.

        The latter is in coefficients and intercept, and in the term's own variables.
        """
        term, rows = self.on(block)
        value, pullback = term.forward(scores[rows], auxiliary)
        basis = cast("FactoredPullback", pullback).basis()
        if basis is not None:
            X = block.X[rows]
            products = [
                np.column_stack([_dense(part @ X), np.ravel(part.sum(axis=1))]) for part in basis
            ]
            return value, *cast("FactoredPullback", pullback).jacobian(products)
        weights, own = np.zeros((len(value), len(scores))), np.zeros((len(value), len(auxiliary)))
        for k, unit in enumerate(np.eye(len(value))):
            weights[k, rows], own[k] = pullback(unit)
        return value, block.gradient(weights), own

    def second_derivatives(
        self, block: Block, scores: Array, auxiliary: Array, weights: Array
    ) -> Array:
        """Return those of <weights, statistics> of a curved term in the scores of a block."""
        if not self._of_all_cells:
            term, rows = self.on(block)
            pullback = cast("CurvedPullback", term.forward(scores[rows], auxiliary)[1])
            found = np.zeros(len(scores))
            found[rows] = pullback.second_derivatives(weights)
            return found
        function = cast("CellMeans", self.term).function
        value, margins, _ = self._values(block, scores)
        second = function.second_derivative(margins, function.derivative(margins, value))
        return _times(second, np.take(weights @ self._shares, block.places), block.sample_weight)

    def _values(self, block: Block, scores: Array) -> tuple[Array, Array, Array | None]:
        """Return the function of the margins, the margins, and their signs."""
        term = cast("CellMeans", self.term)
        signs = None if term.signs is None else np.take(term.signs, block.places)
        margins = _times(scores + term.shift if term.shift else scores, signs)
        return term.function.value(margins), margins, signs

    def on(self, block: Block) -> tuple[Term, Array | slice]:
        """Return the term on the rows of a block that it has, and which ones these are."""
        rows: Array | slice = slice(None)
        atoms = block.atoms
        if self.positions is not None:
            atoms = self.positions[atoms]
            rows = np.flatnonzero(atoms >= 0)
            atoms = atoms[rows]
        return self.term.take(atoms, block.weight[rows] / self.totals[atoms]), rows


def _times(values: Array, *factors: Array | None) -> Array:
    """Return the product with the factors that there are: a pass over a block counts."""
    return reduce(lambda left, right: left if right is None else left * right, factors, values)


def _dense(values: Matrix) -> Array:
    return values if isinstance(values, np.ndarray) else cast("SparseMatrix", values).toarray()


Request = tuple[ShardedTerm, Array]  # a term, and the values of its own variables


def statistics(
    block: Block,
    scores: Array,
    fused: Sequence[Request],
    others: Sequence[Request],
) -> Sums:
    """Return a block's part of the statistics of terms, and of the Jacobians of some.

    Parameters
    ----------
    block : Block
        The rows.
    scores : ndarray of shape (n_rows,)
        Their scores.
    fused : sequence of (ShardedTerm, ndarray)
        Those whose Jacobians are wanted, with the values of their own variables.
    others : sequence of (ShardedTerm, ndarray)
        Those of which only the statistics are wanted.

    Returns
    -------
    *parts : ndarray
        Of each term whose Jacobian is wanted its statistics, (n_statistics,), and derivatives with
        respect to coefficients and intercept, (n_statistics, n_features + 1), and to its own
        variables. Then the statistics of each of the others.
    """
    dense = [one for one, _ in fused if one._in_columns]
    ends = np.cumsum([0, *(one.term.n_statistics for one in dense)])
    slopes = np.empty((ends[-1], len(scores)))
    bounds = list(pairwise(ends))
    values = [
        one.with_slopes(block, scores, slopes[low:high])
        for one, (low, high) in zip(dense, bounds, strict=True)
    ]
    gradients = block.gradient(slopes)  # one product for all of them
    known = iter([(v, gradients[a:b]) for v, (a, b) in zip(values, bounds, strict=True)])
    parts: list[Array] = []
    for one, own in fused:
        if one._in_columns:
            parts += [*next(known), np.zeros((one.term.n_statistics, 0))]
        else:
            parts += one.with_jacobian(block, scores, own)
    return *parts, *(one.statistics(block, scores, own) for one, own in others)


def jacobian_rows(
    block: Block, scores: Array, requests: Sequence[Request], tables: Sequence[Array]
) -> Sums:
    """Return a block's part of the gradients of several <weights, statistics> of each term.

    Parameters
    ----------
    block, scores
        See `statistics`.
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
    gradients = [np.empty((len(table), block.X.shape[1] + 1)) for table in tables]
    owns = [
        np.empty((len(table), len(auxiliary)))
        for (_, auxiliary), table in zip(requests, tables, strict=True)
    ]
    for (one, auxiliary), table, into, own in zip(requests, tables, gradients, owns, strict=True):
        term, rows = one.on(block)
        pullback, on_scores = term.forward(scores[rows], auxiliary)[1], np.zeros(len(scores))
        for k, weights in enumerate(table):  # one by one: a sparse shard is a single block
            on_scores[rows], own[k] = pullback(weights)
            into[k] = block.gradient(on_scores)
    return *gradients, *owns


def hessian(
    block: Block,
    scores: Array,
    requests: Sequence[Request],
    weights: Sequence[Array],
    model: LinearModel,
) -> Sums:
    """Return a block's part of the Hessian of <weights, statistics> of curved terms.

    It is in the parameters of the linear model, whose own rows do not matter.
    """
    each = zip(requests, weights, strict=True)
    on_scores = sum(one.second_derivatives(block, scores, own, u) for (one, own), u in each)
    return (model.on(block.X).gram(np.asarray(on_scores)),)


def subgradient_error(block: Block, scores: Array, request: Request) -> Sums:
    """Return a block's part of the subgradient error of a rounded term."""
    term, rows = request[0].on(block)
    return (term.subgradient_error(scores[rows], request[1]),)


def mean_square(block: Block, scores: Array) -> Sums:
    """Return the weighted sum of squared scores."""
    return (np.array([block.weight @ scores**2]),)


def square_gradient(block: Block, scores: Array, shares: Array) -> Sums:
    """Return the gradient of half the sum of squared scores, weighted by weights times `shares`."""
    return (block.gradient(scores * block.weight * shares[block.atoms]),)


def other_shares(block: Block, factors: Array, values: Array) -> Sums:
    """Return what :func:`~fairconstrained.models.feature_scale.other_shares` does.

    Parameters
    ----------
    block : Block
        The rows.
    factors : ndarray of shape (n_atoms,)
        What a unit of their weights is of the weight of all rows.
    values : ndarray of shape (n_values, n_features)
        The values.
    """
    weight = factors[block.atoms] * block.weight
    return (shares_of_others(cast("Features", block.X), weight, values),)
