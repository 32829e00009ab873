"""Shards: some of the rows, read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, cast

import numpy as np

from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

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
    sample_weight: Array | None = None  # the weights of the rows; None stands for ones, (n_rows,)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def total(
        self, function: BlockSum, join: Join, places: Sequence[Place], *arguments: Any
    ) -> Sums:
        """Return the joined arrays of all blocks, see :meth:`Shards.total`."""

        def of(block: Block) -> Sums:
            return function(block, *(block.scores(*place) for place in places), *arguments)

        return joined(join, map(of, self.blocks()))

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, which schedulers ask for."""
        arrays = [self.atoms, self.sample_weight]
        if isinstance(self.X, np.ndarray):
            arrays.append(self.X)
        else:
            sparse = cast("SparseMatrix", self.X)
            arrays += [sparse.data, sparse.indices]
        return sum(array.nbytes for array in arrays if array is not None)

    def blocks(self) -> Iterator[Block]:
        """Yield one or more blocks of rows: dense ones of a few thousand, sparse rows at once.

        The features of a block are valid until the next one: blocks are converted in one buffer.
        An array of its own for each block would cost more than all that is computed with it where
        the allocator returns memory at once, as in the worker processes of dask.
        """
        X = self.X
        if not isinstance(X, np.ndarray):
            yield Block(X, self.atoms, self.sample_weight)
            return
        size = int(np.clip(_BLOCK_ENTRIES // max(X.shape[1], 1), 256, _BLOCK_ROWS))
        columns_first = X.flags.f_contiguous and not X.flags.c_contiguous
        buffer = np.empty((X.shape[1], size) if columns_first else (size, X.shape[1]))
        buffer = buffer.T if columns_first else buffer
        above = _with_free_memory_below(size)
        for start in range(0, max(self.n_rows, 1), size):
            rows = slice(start, start + size)
            features = X[rows]
            if X.dtype != buffer.dtype:
                features = buffer[: len(features)]
                np.copyto(features, X[rows])
            weight = None if self.sample_weight is None else self.sample_weight[rows]
            yield Block(features, self.atoms[rows], weight)
        del above


def joined(join: Join, parts: Iterable[Sums]) -> Sums:
    """Return the joined arrays of several parts."""
    return reduce(lambda left, right: tuple(map(join, left, right)), parts)


def _with_free_memory_below(size: int) -> Array:
    """Return an array that keeps the memory of a block's scores, and what is computed of them.

    An allocator that returns free memory at once, as in the worker processes of dask, returns what
    is above the last array in use. While this one is in use, the memory below it stays.
    """
    return max([np.empty(size) for _ in range(_SPARE)], key=lambda array: array.ctypes.data)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a shard, in double precision."""

    X: Matrix
    atoms: Array
    sample_weight: Array | None

    @cached_property
    def weight(self) -> Array:
        """The weights of the rows."""
        if self.sample_weight is None:
            return np.ones(len(self.atoms))
        return np.asarray(self.sample_weight, dtype=float)

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
        if isinstance(self.X, np.ndarray):
            slopes = weights @ self.X
        else:
            slopes = np.asarray((self.X.T @ weights.T).T)
        return np.concatenate([slopes, weights.sum(axis=-1, keepdims=True)], axis=-1)


@dataclass(frozen=True, eq=False)
class AtomRows:
    """Stands for the features of atoms: which atoms a constraint's rows are."""

    atoms: Array  # the atoms, (n,)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of atoms, and no features."""
        return len(self.atoms), 0

    def __getitem__(self, rows: Array) -> AtomRows:
        """Return some of the atoms."""
        return AtomRows(self.atoms[rows])
