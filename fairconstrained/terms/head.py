"""Heads that are affine in the statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
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
    def n_outputs(self) -> int:  # type: ignore[override]
        """The number of outputs."""
        return int(self.combination.shape[0])

    @property
    def n_statistics(self) -> int:
        """The number of statistics: that of the columns of R, unless a subclass differs."""
        return int(self.combination.shape[1])

    @cached_property
    def _small(self) -> Matrix:
        """R, dense if it is small: products with sparse arrays cost microseconds each."""
        combination: Any = self.combination
        if isinstance(combination, np.ndarray) or math.prod(combination.shape) > _DENSE:
            return combination
        return combination.toarray()

    @property
    def _pairs(self) -> OrderedPairs | None:
        """R, where it has pairs of many numbers: the largest need no listing."""
        return self._small if isinstance(self._small, OrderedPairs) else None

    @cached_property
    def _level(self) -> Array | float:
        """The outputs for statistics of zero."""
        return self.constant - self.offset

    @cached_property
    def _signed_parts(self) -> tuple[Any, Any]:
        """R = positive - negative, both >= 0."""
        dense = isinstance(self._small, np.ndarray)
        combination: Any = self._small if dense else as_csr(self._small)
        size = abs(combination)
        return 0.5 * (size + combination), 0.5 * (size - combination)

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

    def _gaps(self, statistics: Array, outputs: Array) -> Array:
        """Return the gaps of some outputs."""
        return self.values_of(statistics, outputs) + self.offset

    def some_outputs(self, outputs: Array) -> Self:
        """Return the term with some of its outputs.

        Parameters
        ----------
        outputs : ndarray of int of shape (n_chosen,)
            The outputs.
        """
        every = self.n_outputs
        return replace(
            self,
            combination=self.combination[outputs],
            offset=np.broadcast_to(self.offset, every)[outputs],
            constant=np.broadcast_to(self.constant, every)[outputs],
            names=tuple(self.names[k] for k in np.arange(every)[outputs]),
        )

    @property
    def gap_bounds(self) -> Array:
        """The largest value allowed for each gap: b."""
        return np.broadcast_to(self.offset, self.n_outputs)

    def largest_gaps(self, statistics: Array) -> tuple[Array, Array]:
        """Return the largest gap and its bound where all have one, else all of them."""
        if self._pairs is None:
            return super().largest_gaps(statistics)
        outputs = self.largest(statistics, -np.inf, 1)
        return self._gaps(statistics, outputs), self.gap_bounds[outputs]


@dataclass(frozen=True, eq=False)
class NoTerm(AffineHead):
    """The zero function of no rows, with one output: what a penalty or an affine part adds to."""

    combination: Matrix = field(default_factory=lambda: np.zeros((1, 0)))
    names: Sequence[str] = ("penalty",)

    n_rows = 0
    smooth = convex = batchable = True

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return no statistics."""
        return np.zeros(0), lambda u: (np.zeros_like(scores), NO_AUXILIARY)

    def largest_gaps(self, statistics: Array) -> tuple[Array, Array]:
        """Return no gaps: there is nothing that decisions or scores could show."""
        return np.zeros(0), np.zeros(0)

    def zero_one(self) -> NoTerm:
        """Return the term."""
        return self

    def take(self, rows: Array, weights: Array) -> NoTerm:
        """Return the term."""
        return self


def as_csr(matrix: Matrix | OrderedPairs) -> sp.csr_array:
    """Return a matrix, dense, sparse or of unlisted pairs, as a CSR array."""
    if isinstance(matrix, OrderedPairs):
        return matrix.tocsr()
    return sp.csr_array(matrix)


def identity(n: int) -> SparseMatrix:
    """Return the combination whose outputs are the statistics themselves."""
    return sp.csr_array(sp.eye_array(n, format="csr"))
