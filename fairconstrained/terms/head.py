"""Heads that are affine in the statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.terms.base import Term
from fairconstrained.terms.ordered_pairs import OrderedPairs
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

_DENSE = 1 << 12  # entries of R up to which it is used as a dense array


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineHead(Term):
    r"""Outputs that are affine in the statistics: :math:`c = R\, r + d - b`.

    Subclasses are dataclasses. Those whose outputs are affine in a function of the statistics
    extend `head` and `head_vjp`.

    Parameters
    ----------
    combination : CSR, ndarray or OrderedPairs of shape (n_outputs, n_statistics), default=None
        R; None is the identity.
    offset : ndarray of shape (n_outputs,) or float, default=0.0
        b, the tolerance, for instance kappa.
    names : sequence of str, default=()
        A description of each output.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap, for instance the 1 of "1 - rate".
    """

    combination: Matrix = field(default=None, repr=False)
    offset: Array | float = 0.0
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0

    def __post_init__(self) -> None:
        """Make a missing combination the identity."""
        if self.combination is None:
            object.__setattr__(self, "combination", identity(np.size(self.offset)))

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return int(self.combination.shape[0])

    @property
    def n_statistics(self) -> int:
        """The number of statistics: that of the columns of R, unless a subclass differs."""
        return int(self.combination.shape[1])

    @cached_property
    def _small(self) -> Matrix:
        """R, dense if it is small: products with sparse arrays cost microseconds each."""
        combination = self.combination
        if isinstance(combination, np.ndarray) or math.prod(combination.shape) > _DENSE:
            return combination
        return as_csr(combination).toarray()

    @property
    def _pairs(self) -> OrderedPairs | None:
        """R, where it has pairs of many numbers with one tolerance: the largest need no listing."""
        combination = self.combination
        uniform = isinstance(combination, OrderedPairs) and np.ndim(self.offset) == 0
        return cast("OrderedPairs", combination) if uniform else None

    @cached_property
    def _level(self) -> Array | float:
        """The outputs for statistics of zero."""
        return self.constant - self.offset

    @cached_property
    def _signed_parts(self) -> tuple[Any, Any]:
        """R = positive - negative, both >= 0."""
        combination: Any = self.combination
        if isinstance(combination, OrderedPairs):
            combination = combination.tocsr()
        return _positive_part(combination), _positive_part(-combination)

    @property
    def _has_negative_weights(self) -> bool:
        return bool(self._signed_parts[1].sum() > 0.0)

    def head(self, statistics: Array) -> Array:
        """Return R r + d - b."""
        return self._small @ statistics + self._level

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return np.asarray(v @ self._small)

    def values_of(self, statistics: Array, outputs: Array) -> Array:
        """Return some outputs."""
        if self._pairs is None:
            return super().values_of(statistics, outputs)
        level = np.broadcast_to(self._level, self.n_outputs)[outputs]
        return self._pairs.values(statistics, outputs) + level

    def vjp_of(self, statistics: Array, outputs: Array, v: Array) -> Array:
        """Return the gradient of <v, some outputs> with respect to the statistics."""
        if self._pairs is None:
            return super().vjp_of(statistics, outputs, v)
        return self._pairs.weighted(v, outputs)

    def rows_of(self, statistics: Array, outputs: Array) -> Matrix:
        """Return the gradients of some outputs: rows of R."""
        return super().rows_of(statistics, outputs) if self._pairs is None else self._pairs[outputs]

    def rows_times(self, statistics: Array, outputs: Array, table: Array) -> Array:
        """Return some rows of R times a table."""
        if self._pairs is None:
            return super().rows_times(statistics, outputs, table)
        return self._pairs.values(table, outputs)

    def largest(
        self, statistics: Array, least: float, most: int, *, distinct: bool = False
    ) -> Array:
        """Return the positions of the largest outputs."""
        if self._pairs is None:
            return super().largest(statistics, least, most, distinct=distinct)
        own = self._pairs.origin is not None  # the constants are those of the numbers
        level = (0.0 if own else float(self.constant)) - float(self.offset)
        return self._pairs.largest(statistics, least - level, most, distinct=distinct)[:most]

    def gap_of(self, statistics: Array) -> Array:
        """Return R r + d."""
        return self.head(statistics) + self.offset

    @property
    def gap_bounds(self) -> Array:
        """The largest value allowed for each gap: b."""
        return np.broadcast_to(self.offset, self.n_outputs)

    def largest_gaps(self, statistics: Array) -> tuple[Array, Array]:
        """Return the largest gap and its bound where all have one, else all of them."""
        if self._pairs is None:
            return super().largest_gaps(statistics)
        outputs = self.largest(statistics, -np.inf, 1)
        return self.values_of(statistics, outputs) + self.offset, self.gap_bounds[outputs]

    def _with(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields."""
        return replace(self, **changes)


def as_csr(matrix: Matrix | OrderedPairs) -> sp.csr_array:
    """Return a matrix, dense, sparse or of unlisted pairs, as a CSR array."""
    if isinstance(matrix, OrderedPairs):
        return matrix.tocsr()
    return sp.csr_array(matrix)


def _positive_part(matrix: Matrix) -> Matrix:
    """Return max(matrix, 0), dense or sparse as the matrix is."""
    if isinstance(matrix, np.ndarray):
        return np.maximum(matrix, 0.0)
    part = as_csr(matrix).copy()  # before 1.14 the result of its maximum shares indices with it
    part.sum_duplicates()
    part.data = np.maximum(part.data, 0.0)
    part.eliminate_zeros()
    return part


def identity(n: int) -> SparseMatrix:
    """Return the combination whose outputs are the statistics themselves."""
    return sp.csr_array(sp.eye_array(n, format="csr"))
