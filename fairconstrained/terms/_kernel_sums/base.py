"""Sums over rows of a function of score minus threshold: what every way to compute them offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.utils.typing import Array, SparseMatrix

Memory = dict[Any, Any] | None  # what a method keeps for the next call, by keys of its own

_BINS_PER_CUT = 32
_BLOCK = 1 << 17  # pairs that are worked on at a time: they fit into the cache
_DENSE = 1 << 15  # entries of A up to which a dense array is faster than a sparse one


class Cells:
    """A sparse matrix A (cells x rows), and sums over its entries by a code of the rows.

    Parameters
    ----------
    matrix : CSC of shape (n_cells, n_rows)
        The weights.
    """

    def __init__(self, matrix: SparseMatrix):
        self.matrix = matrix
        self.n_cells, self.n_rows = matrix.shape
        self.member, self.weight = matrix.indices, matrix.data

    @cached_property
    def rows(self) -> Array | None:
        """The row of every entry; None where every row has one entry."""
        counts = np.diff(self.matrix.indptr)
        return None if np.all(counts == 1) else np.repeat(np.arange(self.n_rows), counts)

    @cached_property
    def fastest(self) -> Any:
        """The matrix in the form that is multiplied fastest: dense if it is small."""
        return self.matrix.toarray() if self.n_cells * self.n_rows <= _DENSE else self.matrix

    def of_rows(self, values: Array) -> Array:
        """Return values of rows as values of entries."""
        return values if self.rows is None else values[self.rows]

    def to_rows(self, values: Array) -> Array:
        """Return the sums, over the entries of each row, of values of entries."""
        if self.rows is None:
            return values
        return np.bincount(self.rows, values, minlength=self.n_rows)

    def entries_of(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return, for every entry of these rows, its position in `rows`, its cell and weight."""
        if self.rows is None:
            return np.arange(len(rows)), self.member[rows], self.weight[rows]
        some = self.matrix[:, rows]
        return np.repeat(np.arange(len(rows)), np.diff(some.indptr)), some.indices, some.data

    def codes(self, bins: Array, n_bins: int) -> Array:
        """Return the position of every entry in a table of shape (n_cells, n_bins)."""
        return self.member * n_bins + self.of_rows(bins)

    @cached_property
    def sizes(self) -> Array:
        """A 1, shape (n_cells,)."""
        return np.bincount(self.member, self.weight, minlength=self.n_cells)

    def totals(self, values: Array) -> Array:
        """Return A values, shape (n_cells,)."""
        weighted = self.weight * self.of_rows(values)
        return np.bincount(self.member, weighted, minlength=self.n_cells)


def positions(cuts: Array, points: Array) -> Array:
    """Return, for each point, how many cuts are below it: searchsorted, several times faster.

    Points are put into bins of one width first; only those in a bin with a cut are searched for.

    Parameters
    ----------
    cuts : ndarray of shape (n_cuts,)
        In ascending order.
    points : ndarray of shape (n,)
        Finite numbers.
    """
    n_bins = _BINS_PER_CUT * len(cuts)
    width = (cuts[-1] - cuts[0]) / n_bins if len(cuts) else 0.0
    if not (len(points) > n_bins and width > 0.0 and np.isfinite(1.0 / width)):
        return np.searchsorted(cuts, points)

    def bins_of(some: Array) -> Array:
        out = some - cuts[0]
        out *= 1.0 / width
        return np.clip(out, -1.0, n_bins, out=out).astype(np.intp) + 1

    bins = bins_of(points)
    in_bin = np.bincount(bins_of(cuts), minlength=n_bins + 2)
    out = (np.cumsum(in_bin) - in_bin).take(bins)
    unclear = np.flatnonzero((in_bin > 0).take(bins))
    out[unclear] = np.searchsorted(cuts, points[unclear])
    return out


class KernelSums(ABC):
    """The averages at given scores and thresholds, with products with their derivatives.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    cells : Cells
        A.
    scores : ndarray of shape (n_rows,)
        s.
    thresholds : ndarray of shape (n_thresholds,)
        theta, in any order.
    """

    def __init__(
        self,
        function: ScalarFunction,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        self.function = function
        self.cells = cells
        self.scores = scores
        self.thresholds = thresholds

    @abstractmethod
    def values(self) -> Array:
        """Return r, shape (n_cells, n_thresholds)."""

    @abstractmethod
    def push(self, change: Array) -> Array:
        """Return sum_i A_ki phi'(s_i - theta_j) change_i, shape (n_cells, n_thresholds)."""

    @abstractmethod
    def pull(self, u: Array) -> Array:
        """Return sum_kj u_kj A_ki phi'(s_i - theta_j), shape (n_rows,)."""

    def slopes(self) -> Array:
        """Return minus the derivative of r_kj by theta_j."""
        return self.push(np.ones(self.cells.n_rows))

    def subgradient_error(self) -> Array:
        """Return sum_i A_ki e(s_i - theta_j) with e the subgradient error of phi."""
        return np.zeros((self.cells.n_cells, len(self.thresholds)))


class DirectSums(KernelSums):
    """By the formula, in blocks of rows: for few rows, and for functions not known here.

    What all products need is kept if there is one block only.
    """

    @cached_property
    def _whole(self) -> list[_Block]:
        return list(self._parts(max(1, self.cells.n_rows)))

    def _blocks(self) -> Iterable[_Block]:
        step = max(1, _BLOCK // max(1, len(self.thresholds)))
        return self._whole if self.cells.n_rows <= step else self._parts(step)

    def _parts(self, step: int) -> Iterator[_Block]:
        n_rows = self.cells.n_rows
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            cells = self.cells.fastest if step >= n_rows else self.cells.matrix[:, rows]
            yield _Block(self.function, rows, cells, self.scores[rows, None] - self.thresholds)

    def _sum(self, terms: Iterable[Array]) -> Array:
        return sum(terms, start=np.zeros((self.cells.n_cells, len(self.thresholds))))

    @cached_property
    def _slopes(self) -> Array:
        return super().slopes()

    def slopes(self) -> Array:
        """Return minus the derivative of r_kj by theta_j."""
        return self._slopes

    def values(self) -> Array:
        """Return A phi."""
        return self._sum(block.cells @ block.value for block in self._blocks())

    def push(self, change: Array) -> Array:
        """Return A (phi' change)."""
        return self._sum(
            block.cells @ (block.derivative * change[block.rows, None]) for block in self._blocks()
        )

    def pull(self, u: Array) -> Array:
        """Return the sums over thresholds of phi' times A'u."""
        out = np.zeros(self.cells.n_rows)
        for block in self._blocks():
            out[block.rows] = np.sum(block.derivative * (block.cells.T @ u), axis=1)
        return out

    def subgradient_error(self) -> Array:
        """Return A times the subgradient error."""
        return self._sum(
            block.cells @ self.function.subgradient_error(block.t) for block in self._blocks()
        )


class _Block:
    """Some rows with their part of A, and phi at score minus threshold for all thresholds.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    rows : slice
        The rows.
    cells : ndarray or CSC of shape (n_cells, n_rows)
        Their columns of A.
    t : ndarray of shape (n_rows, n_thresholds)
        Score minus threshold.
    """

    def __init__(self, function: ScalarFunction, rows: slice, cells: Any, t: Array):
        self.function, self.rows, self.cells, self.t = function, rows, cells, t

    @cached_property
    def value(self) -> Array:
        """Phi."""
        return self.function.value(self.t)

    @cached_property
    def derivative(self) -> Array:
        """The derivative of phi."""
        return self.function.derivative(self.t, self.value)
