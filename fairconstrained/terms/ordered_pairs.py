"""Pairs of many numbers: a matrix with a row for each, which are not listed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.utils.arrays import Array, Matrix, SparseMatrix, largest_first

Family = tuple[range, range]  # the numbers a and the numbers b of all pairs of a family


@dataclass(frozen=True, eq=False)
class OrderedPairs:
    r"""The matrix with a row :math:`\alpha e_a + \beta e_b` for all pairs a != b of families.

    k numbers have k (k - 1) ordered pairs, of which few matter: the largest of
    :math:`\alpha m_a + \beta m_b` are found among the largest and the smallest numbers.
    """

    first: float  # alpha and beta
    second: float
    # the numbers a and b of each family: the same ones, or others. Rows are ordered by family, then
    # by a, then by b
    families: tuple[Family, ...]
    # M, where the numbers are M x of what the matrix is multiplied by, (n_numbers, n_columns)
    numbers: Matrix
    # what is added to the numbers where the largest values are asked for, (n_numbers,)
    origin: Array | None = None
    # the rows that the matrix has, by their positions; None stands for all of them
    rows: Array | None = None
    dtype: ClassVar[type] = float
    __array_ufunc__ = None  # an array on the left leaves the product to the pairs

    @cached_property
    def _starts(self) -> Array:
        """The position of the first pair of every family, and the number of all pairs."""
        return np.cumsum([0, *(n_pairs(a, b) for a, b in self.families)])

    @property
    def shape(self) -> tuple[int, int]:
        """The number of pairs, and of columns."""
        rows = int(self._starts[-1]) if self.rows is None else len(self.rows)
        return rows, int(self.numbers.shape[1])

    def __matmul__(self, x: Array) -> Array:
        """Return the values of all pairs, of shape (n_pairs, *x.shape[1:])."""
        m, (a, b) = self.numbers @ x, self.ends()
        return np.asarray(self.first * m[a] + self.second * m[b])

    def largest_values(self, x: Array) -> Array:
        """Return the largest value of every family, with the origin, (n_families, n_points).

        The factors have opposite signs: the largest and the least number make it.
        """
        m = self.numbers @ x + (0.0 if self.origin is None else self.origin[:, None])
        ends = [
            (self.first * m[a.start : a.stop]).max(axis=0)
            + (self.second * m[b.start : b.stop]).max(axis=0)
            for a, b in self.families
            if n_pairs(a, b)
        ]
        return np.array(ends).reshape(-1, x.shape[1])

    def __rmatmul__(self, v: Array) -> Array:
        """Return v times the matrix, of shape (n_columns,)."""
        (a, b), n = self.ends(), int(self.numbers.shape[0])
        total = self.first * np.bincount(a, v, n) + self.second * np.bincount(b, v, n)
        return self.numbers.T @ total

    def ends(self) -> tuple[Array, Array]:
        """Return the positions of a and b among all numbers, of every row."""
        pairs = np.arange(self._starts[-1]) if self.rows is None else self.rows
        families = [(a.start, b.start, len(b) - (a == b), a == b) for a, b in self.families]
        place = np.searchsorted(self._starts, pairs, side="right") - 1
        low, below, width, alike = np.array(families, dtype=int).reshape(-1, 4)[place].T
        i, j = np.divmod(pairs - self._starts[place], width)
        return low + i, below + j + alike * (j >= i)

    def __getitem__(self, rows: Array) -> "OrderedPairs":
        """Return some rows, by their positions; they are not listed either."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def tocsr(self) -> sp.csr_array:
        """Return the rows as a matrix."""
        a, b = self.ends()
        values, indices = np.tile([self.first, self.second], len(a)), np.column_stack([a, b])
        entries = values, indices.ravel(), np.arange(0, 2 * len(a) + 1, 2)
        rows = sp.csr_array(entries, shape=(len(a), self.numbers.shape[0]))
        return sp.csr_array(cast("Matrix", rows) @ self.numbers)

    @cached_property
    def array(self) -> Array:
        """The rows, of which there are few: sparse ones would take longer to make."""
        a, b = (ends[:, None] == np.arange(self.numbers.shape[0]) for ends in self.ends())
        return np.asarray((self.first * a + self.second * b) @ self.numbers)

    def __abs__(self) -> sp.csr_array:
        """Return the absolute values."""
        return abs(self.tocsr())

    def largest(self, x: Array, least: float, most: int, *, distinct: bool = False) -> Array:
        """Return the pairs of the largest values that are at least `least`, in falling order."""
        m = self.numbers @ x + (0.0 if self.origin is None else self.origin)
        largest, values = [np.zeros(0, int)], [np.zeros(0)]
        for start, (a, b) in zip(self._starts[:-1], self.families, strict=True):
            up, down = self.first * m[a.start : a.stop], self.second * m[b.start : b.stop]
            # `most` + 1: a number is no partner of its own
            i, j = largest_first(up, most + 1), largest_first(down, most + 1)
            if not distinct or a != b:
                i, j = np.repeat(i, len(j)), np.tile(j, len(i))
            if a == b:
                i, j = i[i != j], j[i != j]
            value = up[i] + down[j]
            order = largest_first(value, most)
            order = order[value[order] >= least]
            i, j = i[order], j[order]
            largest.append(start + i * (len(b) - (a == b)) + j - (j > i) * (a == b))
            values.append(value[order])
        return np.concatenate(largest)[np.argsort(-np.concatenate(values), kind="stable")]


class PairNames(Sequence[str]):
    """The texts of all ordered pairs, made when asked for.

    The text has {first} and {second} for the names of the two numbers. Each of the marks is added
    to the end of both names: every pair has a text for each.
    """

    def __init__(
        self, pairs: OrderedPairs, text: str, names: list[str], marks: Sequence[str] = ("",)
    ):
        self._pairs, self._text = pairs, text
        self._names = [[f"{n[:-1]}{mark})" if mark else n for n in names] for mark in marks]

    def __len__(self) -> int:
        """Return the number of texts."""
        return self._pairs.shape[0] * len(self._names)

    def __getitem__(self, index: Any) -> Any:
        """Return the text of a pair, or those of a slice."""
        if not isinstance(index, slice):
            return self[slice(index, index + 1 or None)][0]
        pairs, marks = np.divmod(np.arange(*index.indices(len(self))), len(self._names))
        each, names = zip(*self._pairs[pairs].ends(), marks, strict=True), self._names
        return tuple(self._text.format(first=names[k][a], second=names[k][b]) for a, b, k in each)

    def __iter__(self) -> Iterator[str]:
        """Yield all texts."""
        return iter(self[:])


def n_pairs(a: range, b: range) -> int:
    """Return the number of pairs of a family."""
    return len(a) * (len(b) - (a == b))


def as_csr(matrix: Matrix | OrderedPairs) -> sp.csr_array:
    """Return a matrix, dense, sparse or of unlisted pairs, as a CSR array."""
    if isinstance(matrix, OrderedPairs):
        return matrix.tocsr()
    return sp.csr_array(matrix)


def as_array(matrix: Matrix | OrderedPairs) -> Array:
    """Return a matrix as a dense array."""
    return matrix if isinstance(matrix, np.ndarray) else as_csr(matrix).toarray()


def identity(n: int) -> SparseMatrix:
    """Return the combination whose outputs are the statistics themselves."""
    return sp.csr_array(sp.eye_array(n, format="csr"))


def column_maxima(matrix: Matrix) -> Array:
    """Return the largest entry of each column."""
    return np.ravel(as_csr(matrix).max(axis=0).toarray())
