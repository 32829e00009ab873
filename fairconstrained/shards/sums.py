"""Shards, some of the rows, read in blocks, and the sums over rows that terms need of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, cast

import numpy as np

from fairconstrained.functions.base import Indicator
from fairconstrained.models.linear import LinearModel
from fairconstrained.terms.base import FactoredPullback, Pullback, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.arrays import Array, Matrix, SparseMatrix

Sums = tuple[Array, ...]
BlockSum = Callable[..., Sums]
Place = tuple[Array, float]  # coefficients of X and an intercept
Join = Callable[[Array, Array], Array]  # what is made of an array of two blocks

_BLOCK_ROWS = 8192  # the most rows of a block
_BLOCK_ENTRIES = 1 << 17  # of its features: they fit into the cache
_SPARE = 16  # arrays of a block's length that are in use at a time


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the rows."""

    # the features, float64 or float32; blocks of dense rows are converted to float64, (n_rows,
    # n_features)
    X: Matrix
    # the atom of each row: rows of one atom have the same label and the same groups, (n_rows,)
    atoms: Array
    weight: Array  # the weights of the rows, ones perhaps as a view of one number, (n_rows,)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def total(self, function: BlockSum, join: Join, places: Sequence[Place], *rest: Any) -> Sums:
        """Return the joined arrays of all blocks, see :meth:`Shards.total`."""

        def of(block: "Block") -> Sums:
            return function(block, *(block.scores(*place) for place in places), *rest)

        return joined(join, map(of, self.blocks()))

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, which schedulers ask for."""
        X: Any = self.X
        of_X = [X] if isinstance(X, np.ndarray) else [X.data, X.indices]
        return sum(array.nbytes for array in (*of_X, self.atoms, self.weight))

    def blocks(self) -> "Iterator[Block]":
        """Yield one or more blocks of rows: dense ones of a few thousand, sparse rows at once.

        The features of a block are valid until the next one: blocks are converted in one buffer.
        An array of its own for each block would cost more than all that is computed with it where
        the allocator returns memory at once, as in the worker processes of dask.
        """
        X = self.X
        if not isinstance(X, np.ndarray):
            yield Block(X, self.atoms, self.weight)
            return
        size = int(np.clip(_BLOCK_ENTRIES // max(X.shape[1], 1), 256, _BLOCK_ROWS))
        columns_first = X.flags.f_contiguous and not X.flags.c_contiguous
        buffer = np.empty((X.shape[1], size) if columns_first else (size, X.shape[1]))
        buffer = buffer.T if columns_first else buffer
        # An allocator that returns free memory at once, as in the worker processes of dask, returns
        # what is above the last array in use. While this one is in use, the memory below it stays:
        # that of a block's scores, and of what is computed of them.
        above = max([np.empty(size) for _ in range(_SPARE)], key=lambda array: array.ctypes.data)
        for start in range(0, max(self.n_rows, 1), size):
            rows = slice(start, start + size)
            features = X[rows]
            if X.dtype != buffer.dtype:
                features = buffer[: len(features)]
                np.copyto(features, X[rows])
            yield Block(features, self.atoms[rows], self.weight[rows])
        del above


def joined(join: Join, parts: Iterable[Sums]) -> Sums:
    """Return the joined arrays of several parts."""
    return reduce(lambda left, right: tuple(map(join, left, right)), parts)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a shard, in double precision."""

    X: Matrix
    atoms: Array
    weight: Array

    @cached_property
    def places(self) -> Array:
        """The atoms as integers that need no conversion where they are indices."""
        return np.asarray(self.atoms, dtype=np.intp)

    def scores(self, coefficients: Array, intercept: float) -> Array:
        """Return the scores, shape (n_rows,)."""
        if not coefficients.any():  # a change of the intercept only, or none
            return np.full(len(self.atoms), intercept)
        out = np.asarray(self.X @ coefficients)
        out += intercept
        return out

    def gradient(self, weights: Array) -> Array:
        """Return the derivative of <weights, scores>, shape (..., n_features + 1)."""
        slopes = np.asarray(weights @ self.X)
        return np.concatenate([slopes, weights.sum(axis=-1, keepdims=True)], axis=-1)


@dataclass(frozen=True, eq=False)
class AtomRows:
    """Stands for the features of atoms: which atoms a constraint's rows are."""

    atoms: Array  # the atoms, (n,)
    # the rows of all atoms and the total weight of each; None stands for those of the model
    shards: Any = None
    totals: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of atoms, and no features."""
        return len(self.atoms), 0

    def __getitem__(self, rows: Array) -> "AtomRows":
        """Return some of the atoms."""
        return replace(self, atoms=self.atoms[rows])


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
    dense = [  # derivatives in the scores are dense rows: of averages over few cells
        wanted and isinstance(term, CellMeans) and term.n_statistics <= _MANY_STATISTICS
        for term, _, wanted in requests
    ]
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


@lru_cache(64)  # of the terms of the last problems
def _dense_cells(term: CellMeans) -> Array:
    return np.asarray(term.cells.toarray())


def _with_slopes(term: CellMeans, block: Block, scores: Array, out: Array) -> Array:
    """Return averages over cells, and store their derivatives in the scores as rows of `out`."""
    value, margins, signs = _function_of(term, block, scores)
    slope = term.function.derivative(margins, value)
    np.take(_dense_cells(term), block.places, axis=1, out=out, mode="clip")  # without a buffer
    averages = out @ _times(value, block.weight)
    out *= _times(slope, signs, block.weight)
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
    value = _times(_function_of(term, block, scores)[0], block.weight)
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
            second += _times(bend, by_row, block.weight)
        else:
            pullback = term.take(block.places, block.weight).forward(scores, auxiliary)[1]
            second += cast("Any", pullback).second_derivatives(weights)
    return (model.on(block.X).gram(second),)


def subgradient_error(block: Block, scores: Array, request: Request) -> Sums:
    """Return a block's part of the subgradient error of a rounded term."""
    term, auxiliary = request
    return (term.take(block.places, block.weight).subgradient_error(scores, auxiliary),)


def square_gradient(block: Block, scores: Array, shares: Array) -> Sums:
    """Return the gradient of half the sum of squared scores, weighted by weights times `shares`."""
    return (block.gradient(scores * block.weight * shares[block.atoms]),)
