"""Sums over rows in shards: where the shards are, and what is computed of every block of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, cast

import numpy as np

from fairconstrained.functions.base import Indicator
from fairconstrained.models.linear import LinearModel
from fairconstrained.shards.rows import Block, BlockSum, Join, Place, Shard, Sums, joined
from fairconstrained.terms.base import CurvedPullback, FactoredPullback, Pullback, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

_MANY_STATISTICS = 32  # with more, a sparse product with their derivatives costs less
_LARGEST_JACOBIAN = 1 << 18  # entries, 2 MB: what a round returns from every shard


class Shards(ABC):
    """Where the rows are, and who computes sums over them.

    Attributes
    ----------
    n_rows : int
        The number of rows in all shards.
    """

    n_rows: int

    @abstractmethod
    def gather(
        self, function: BlockSum, join: Join, places: Sequence[Place], *arguments: Any
    ) -> list[Sums]:
        """Return :meth:`Shard.total` of every shard, in the order of the shards."""

    def total(
        self, function: BlockSum, places: Sequence[Place], *arguments: Any, join: Join = np.add
    ) -> Sums:
        """Return the sum over all blocks of ``function(block, *scores, *arguments)``: a round."""
        return joined(join, self.gather(function, join, places, *arguments))


@dataclass(frozen=True, eq=False)
class LocalShards(Shards):
    """Shards in the memory of this process."""

    shards: Sequence[Shard]  # the rows
    n_threads: int = 1  # how many shards are computed at a time

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows in all shards."""
        return sum(shard.n_rows for shard in self.shards)

    def gather(self, *request: Any) -> list[Sums]:
        """Return :meth:`Shard.total` of every shard, in the order of the shards."""
        if self.n_threads == 1:
            return [shard.total(*request) for shard in self.shards]
        with ThreadPoolExecutor(self.n_threads) as threads:
            return list(threads.map(lambda shard: shard.total(*request), self.shards))


Request = tuple[Term, Array]  # a term on atoms of unit weight, and its own variables


def in_one_round(term: Term, n_features: int) -> bool:
    """Return whether statistics come with their Jacobian: that of few sums over rows."""
    few = term.factored and term.n_statistics * n_features <= _LARGEST_JACOBIAN
    return few and not isinstance(getattr(term, "function", None), Indicator)


def statistics(block: Block, scores: Array, requests: Sequence[tuple[Term, Array, bool]]) -> Sums:
    """Return a block's part of the statistics of terms, and of the Jacobians of some."""
    parts: list[Array | slice] = []
    dense = [wanted and _of_few_cells(term) for term, _, wanted in requests]
    sizes = [term.n_statistics * few for (term, *_), few in zip(requests, dense, strict=True)]
    slopes, end = np.empty((sum(sizes), len(scores))), 0
    for (term, auxiliary, wanted), few in zip(requests, dense, strict=True):
        if few:
            rows = slice(end, end := end + term.n_statistics)
            value = _with_slopes(cast("CellMeans", term), block, scores, slopes[rows])
            parts += value, rows, np.zeros((len(value), 0))
        elif wanted:
            parts += _with_jacobian(term, block, scores, auxiliary)
        else:
            parts.append(statistics_of(term, block, scores, auxiliary))
    gradients = block.gradient(slopes)  # one product for all of them
    return tuple(gradients[part] if isinstance(part, slice) else part for part in parts)


def _of_few_cells(term: Term) -> bool:
    """Return whether derivatives in the scores are dense rows: of averages over few cells."""
    return isinstance(term, CellMeans) and term.n_statistics <= _MANY_STATISTICS


@lru_cache(64)  # of the terms of the last problems
def _dense_cells(term: CellMeans) -> Array:
    return np.asarray(term.cells.toarray())


def _with_slopes(term: CellMeans, block: Block, scores: Array, out: Array) -> Array:
    """Return averages over cells, and store their derivatives in the scores as rows of `out`."""
    value, margins, signs = _function_of(term, block, scores)
    slope = term.function.derivative(margins, value)
    np.take(_dense_cells(term), block.places, axis=1, out=out, mode="clip")  # without a buffer
    averages = out @ _times(value, block.sample_weight)
    out *= _times(slope, signs, block.sample_weight)
    return np.asarray(averages)


def _function_of(term: CellMeans, block: Block, scores: Array) -> tuple[Array, Array, Array | None]:
    """Return the function of the margins, the margins, and their signs."""
    signs = None if term.signs is None else np.take(term.signs, block.places)
    margins = _times(scores + term.shift if term.shift else scores, signs)
    return term.function.value(margins), margins, signs


def _times(values: Array, *factors: Array | None) -> Array:
    """Return the product with the factors that there are: a pass over a block counts."""
    return reduce(lambda left, right: left if right is None else left * right, factors, values)


def statistics_of(term: Term, block: Block, scores: Array, auxiliary: Array) -> Array:
    """Return a block's part of the statistics of a term."""
    if not isinstance(term, CellMeans):
        return term.take(block.places, block.weight).forward(scores, auxiliary)[0]
    value = _times(_function_of(term, block, scores)[0], block.sample_weight)
    return term.cells @ np.bincount(block.places, value, minlength=term.n_rows)


def _with_jacobian(term: Term, block: Block, scores: Array, auxiliary: Array) -> Sums:
    """Return the statistics and their Jacobian, in coefficients and intercept and in variables."""
    value, pullback = term.take(block.places, block.weight).forward(scores, auxiliary)
    basis = cast("FactoredPullback", pullback).basis()
    if basis is None:
        return value, *_pulled_back(pullback, np.eye(len(value)), block, auxiliary)
    products = [
        np.column_stack([_dense(part @ block.X), np.ravel(part.sum(axis=1))]) for part in basis
    ]
    return value, *cast("FactoredPullback", pullback).jacobian(products)


def _pulled_back(pullback: Pullback, table: Array, block: Block, auxiliary: Array) -> Sums:
    """Return the gradients of sums of statistics with the weights in each row of a table."""
    # one by one: a sparse shard is a single block
    rows = [(block.gradient(back), on_variables) for back, on_variables in map(pullback, table)]
    return (
        np.reshape([on_model for on_model, _ in rows], (len(table), block.X.shape[1] + 1)),
        np.reshape([on_variables for _, on_variables in rows], (len(table), len(auxiliary))),
    )


def _dense(values: Matrix) -> Array:
    return values if isinstance(values, np.ndarray) else cast("SparseMatrix", values).toarray()


def jacobian_rows(
    block: Block, scores: Array, requests: Sequence[tuple[Term, Array, Array]]
) -> Sums:
    """Return a block's part of the gradients of several <weights, statistics> of each term."""
    parts: list[Array] = []
    for term, auxiliary, table in requests:
        pullback = term.take(block.places, block.weight).forward(scores, auxiliary)[1]
        parts += _pulled_back(pullback, table, block, auxiliary)
    return tuple(parts)


def hessian(
    block: Block, scores: Array, requests: Sequence[tuple[Term, Array, Array]], model: LinearModel
) -> Sums:
    """Return a block's part of the Hessian of <weights, statistics> of curved terms.

    It is in the parameters of a model. Requests are terms, their own variables and weights.
    """
    second = np.zeros(len(scores))
    for term, auxiliary, weights in requests:
        if isinstance(term, CellMeans):
            value, margins, _ = _function_of(term, block, scores)
            slopes = term.function.derivative(margins, value)
            by_row = np.take(term.cells.T @ weights, block.places)
            bend = term.function.second_derivative(margins, slopes)
            second += _times(bend, by_row, block.sample_weight)
        else:
            pullback = term.take(block.places, block.weight).forward(scores, auxiliary)[1]
            second += cast("CurvedPullback", pullback).second_derivatives(weights)
    return (model.on(block.X).gram(second),)


def subgradient_error(block: Block, scores: Array, request: Request) -> Sums:
    """Return a block's part of the subgradient error of a rounded term."""
    term, auxiliary = request
    return (term.take(block.places, block.weight).subgradient_error(scores, auxiliary),)


def square_gradient(block: Block, scores: Array, shares: Array) -> Sums:
    """Return the gradient of half the sum of squared scores, weighted by weights times `shares`."""
    return (block.gradient(scores * block.weight * shares[block.atoms]),)
