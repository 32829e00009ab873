"""All ordered pairs of many numbers: a matrix with a row for each, which are not listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from fairconstrained.utils.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class OrderedPairs:
    r"""The matrix with a row :math:`\alpha e_a + \beta e_b` for all a != b of the same family.

    k numbers have k (k - 1) ordered pairs, of which few matter: the largest of
    :math:`\alpha m_a + \beta m_b` are found among the largest and the smallest numbers.

    Parameters
    ----------
    first, second : float
        alpha and beta.
    sizes : tuple of int
        How many numbers each family has; pairs are ordered by family, then by a, then by b.
    numbers : CSR of shape (sum(sizes), n_columns) or None, default=None
        M, where the numbers are M x of what the matrix is multiplied by; None is the identity.
    """

    first: float
    second: float
    sizes: tuple[int, ...]
    numbers: Matrix | None = None
    dtype: ClassVar[type] = float

    @property
    def shape(self) -> tuple[int, int]:
        """The number of pairs, and of columns."""
        columns = sum(self.sizes) if self.numbers is None else self.numbers.shape[1]
        return sum(k * (k - 1) for k in self.sizes), int(columns)

    def _families(self, x: Array) -> list[Array]:
        """Return the numbers of each family."""
        numbers = x if self.numbers is None else self.numbers @ x
        return np.split(numbers, np.cumsum(self.sizes)[:-1])

    def _joined(self, by_family: list[Array]) -> Array:
        """Return the gradient in x of a function with these derivatives in the numbers."""
        numbers = np.concatenate(by_family)
        return numbers if self.numbers is None else self.numbers.T @ numbers

    def __matmul__(self, x: Array) -> Array:
        """Return the values of all pairs, of shape (n_pairs, *x.shape[1:])."""
        tables = [self.first * m[:, None] + self.second * m for m in self._families(x)]
        return np.concatenate([table[~np.eye(len(table), dtype=bool)] for table in tables])

    @property
    def T(self) -> LinearOperator:
        """The transposed matrix."""
        return LinearOperator(self.shape[::-1], matvec=self._transposed_times, dtype=float)

    def _transposed_times(self, v: Array) -> Array:
        tables, end = [], 0
        for k in self.sizes:
            table = np.zeros((k, k))
            table[~np.eye(k, dtype=bool)] = v[end : end + k * (k - 1)]
            tables.append(table)
            end += k * (k - 1)
        return self._joined(
            [self.first * t.sum(axis=1) + self.second * t.sum(axis=0) for t in tables]
        )

    def ends(self, pairs: Array) -> tuple[Array, Array]:
        """Return the positions of a and b among all numbers."""
        first, second = np.zeros(len(pairs), int), np.zeros(len(pairs), int)
        end = below = 0
        for k in self.sizes:
            inside = np.flatnonzero((pairs >= end) & (pairs < end + k * (k - 1)))
            a, b = np.divmod(pairs[inside] - end, k - 1) if len(inside) else (inside, inside)
            first[inside], second[inside] = below + a, below + b + (b >= a)
            end, below = end + k * (k - 1), below + k
        return first, second

    def __getitem__(self, pairs: Any) -> Any:
        """Return some rows, or what else a key selects of the list."""
        if isinstance(pairs, tuple):
            return self.tocsr()[pairs]
        a, b = self.ends(np.asarray(pairs))
        values = np.tile([self.first, self.second], len(a))
        ends = np.arange(0, 2 * len(a) + 1, 2)
        entries = (values, np.column_stack([a, b]).ravel(), ends)
        rows = sp.csr_array(entries, shape=(len(a), sum(self.sizes)))
        return rows if self.numbers is None else sp.csr_array(cast("Matrix", rows) @ self.numbers)

    def tocsr(self) -> sp.csr_array:
        """Return all rows."""
        return cast("sp.csr_array", self[np.arange(self.shape[0])])

    def __mul__(self, factor: float) -> OrderedPairs:
        """Return the matrix times a factor."""
        return replace(self, first=factor * self.first, second=factor * self.second)

    __rmul__ = __mul__

    def __neg__(self) -> OrderedPairs:
        """Return minus the matrix."""
        return -1.0 * self

    def __abs__(self) -> sp.csr_array:
        """Return the absolute values."""
        return abs(self.tocsr())

    def sum(self, axis: Any = None) -> Any:
        """Return the sums of the entries along an axis."""
        return self.tocsr().sum(axis=axis)

    def max(self, axis: Any = None) -> Any:
        """Return the largest entries along an axis."""
        return self.tocsr().max(axis=axis)

    def __add__(self, other: OrderedPairs) -> OrderedPairs:
        """Return the sum with a matrix of the same pairs."""
        return replace(self, first=self.first + other.first, second=self.second + other.second)

    def largest(self, x: Array, least: float, most: int, *, distinct: bool = False) -> Array:
        """Return the pairs of the largest values that are at least `least`, in falling order.

        Parameters
        ----------
        x : ndarray of shape (n_columns,)
            What the matrix is multiplied by.
        least : float
            The least value.
        most : int
            The number of pairs of each family.
        distinct : bool, default=False
            Whether to match the number that makes the largest values with the one that makes the
            largest as the other of a pair, then the next ones: no number is then twice a or b.
        """
        found, values, end = [np.zeros(0, int)], [np.zeros(0)], 0
        for k, m in zip(self.sizes, self._families(x), strict=True):
            up, down = self.first * m, self.second * m
            # `most` + 1: a number is no partner of its own
            a, b = _top(up, most + 1), _top(down, most + 1)
            if not distinct:
                a, b = np.repeat(a, len(b)), np.tile(b, len(a))
            kept = a != b
            a, b = a[kept], b[kept]
            value = up[a] + down[b]
            order = np.argsort(-value, kind="stable")[:most]
            order = order[value[order] >= least]
            found.append(end + a[order] * (k - 1) + b[order] - (b[order] > a[order]))
            values.append(value[order])
            end += k * (k - 1)
        every = np.concatenate(found)
        return every[np.argsort(-np.concatenate(values), kind="stable")]


class PairNames(Sequence[str]):
    """The texts of all ordered pairs, made when asked for.

    Parameters
    ----------
    pairs : OrderedPairs
        The pairs.
    text : str
        With {first} and {second} for the names of the two.
    names : list of str
        The names of the numbers.
    """

    def __init__(self, pairs: OrderedPairs, text: str, names: list[str]):
        self._pairs, self._text, self._names = pairs, text, names

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._pairs.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """Return the text of a pair, or those of a slice."""
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        a, b = (int(end[0]) for end in self._pairs.ends(np.array([index % len(self)])))
        return self._text.format(first=self._names[a], second=self._names[b])


def _top(values: Array, most: int) -> Array:
    """Return where the largest values are, in falling order, of equal ones the first ones first."""
    if len(values) <= most:
        return np.argsort(-values, kind="stable")
    some = np.sort(np.argpartition(-values, most - 1)[:most])
    return some[np.argsort(-values[some], kind="stable")]
