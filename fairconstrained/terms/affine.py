"""Terms that are affine in averages: one head, and what follows from the function averaged."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.base import NO_AUXILIARY, Shiftable, Smoothable
from fairconstrained.terms.convex_parts import DifferenceOfConvex, SumTerm
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

_DENSE = 1 << 12  # entries of R up to which it is used as a dense array


class AffineHead(Shiftable):
    r"""Outputs that are affine in the statistics: :math:`c = R\, r + d - b`.

    Subclasses are dataclasses with the fields below. Those whose outputs are affine in a function
    of the statistics extend `head` and `head_vjp`.

    Attributes
    ----------
    combination : sparse matrix or ndarray of shape (n_outputs, n_statistics)
        R; where a subclass allows None, that is the identity.
    offset : ndarray of shape (n_outputs,)
        b, the tolerance, for instance kappa.
    names : sequence of str
        A description of each output.
    constant : ndarray of shape (n_outputs,) or float
        d, the constant part of the gap, for instance the 1 of "1 - rate".
    """

    combination: Matrix
    offset: Array
    constant: Array | float
    _shared: ClassVar[tuple[str, ...]] = ("_small", "_combination_transposed", "_signed_parts")

    def __post_init__(self) -> None:
        """Make a missing combination the identity."""
        if self.combination is None:
            object.__setattr__(self, "combination", identity(len(self.offset)))

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return int(self.combination.shape[0])

    @cached_property
    def _small(self) -> Matrix:
        """R, dense if it is small: products with sparse arrays cost microseconds each."""
        combination = self.combination
        if isinstance(combination, np.ndarray) or math.prod(combination.shape) > _DENSE:
            return combination
        return as_csr(combination).toarray()

    @cached_property
    def _combination_transposed(self) -> Matrix:
        return self._small.T

    @cached_property
    def _level(self) -> Array:
        """The outputs for statistics of zero."""
        return self.constant - self.offset

    @cached_property
    def _signed_parts(self) -> tuple[Matrix, Matrix]:
        """R = positive - negative, both >= 0."""
        return _positive_part(self.combination), _positive_part(-self.combination)

    @property
    def _has_negative_weights(self) -> bool:
        return bool(self._signed_parts[1].sum() > 0.0)

    def head(self, statistics: Array) -> Array:
        """Return R r + d - b."""
        return self._small @ statistics + self._level

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self._combination_transposed @ v

    def gap_of(self, statistics: Array) -> Array:
        """Return R r + d."""
        return self.head(statistics) + self.offset

    @property
    def gap_bounds(self) -> Array:
        """The largest value allowed for each gap: b."""
        return self.offset

    def shifted(self, shift: Array) -> Self:
        """Return the term with the tolerance b - shift."""
        return self._sharing(self._with(offset=self.offset - shift))

    def _sharing(self, other: Self) -> Self:
        """Return a term with the same cells and the same R, with what is known of these here."""
        known = vars(self)
        vars(other).update({name: known[name] for name in self._shared if name in known})
        return other

    def scaled(self, factor: float) -> Self:
        """Return the term times a factor."""
        return self._with(
            combination=factor * self.combination,
            offset=factor * self.offset,
            constant=factor * self.constant,
        )

    def _homogeneous(self, combination: Matrix) -> Self:
        """Return the term with another R, and with b = d = 0."""
        return self._with(combination=combination, offset=np.zeros(self.n_outputs), constant=0.0)

    def _with(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields: subclasses are dataclasses."""
        return replace(self, **changes)  # type: ignore[type-var]


class FunctionAverages(AffineHead, DifferenceOfConvex, Smoothable):
    """An affine head on weighted averages, with weights >= 0, of a function phi.

    Attributes
    ----------
    function : ScalarFunction
        phi, of something that is affine in the scores.
    """

    function: ScalarFunction

    @abstractmethod
    def _with_function(self, function: ScalarFunction) -> FunctionAverages:
        """Return the term with another phi."""

    @abstractmethod
    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        """Return the averages, (n_statistics,), of the subgradient error of phi."""

    def _summand(self) -> FunctionAverages:
        """Return the term as part of a sum: one whose zero-one version can be added to others."""
        return self

    @property
    def smooth(self) -> bool:
        """Whether phi is smooth."""
        return self.function.smooth or self.n_outputs == 0

    @property
    def convex(self) -> bool:
        """Whether phi is affine, or convex and no weight in R negative."""
        if self.function.curvature == (0.0, 0.0) or self.n_outputs == 0:
            return True
        return self.function.convex and not self._has_negative_weights

    @property
    def difference_of_convex(self) -> bool:
        """Whether phi is a difference of convex functions."""
        return self.function.difference_of_convex or self.n_outputs == 0

    @property
    def smoothable(self) -> bool:
        """Whether phi can be rounded."""
        return self.function.smoothable or self.n_outputs == 0

    def smoothed(self, width: float) -> FunctionAverages:
        """Return the term with phi rounded; itself if phi has no kinks."""
        return self if self.function.smooth else self._with_function(self.function.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return abs(R) times the averages of the subgradient error of phi."""
        return abs(self.combination) @ self._average_errors(scores, auxiliary)

    def convex_parts(self) -> tuple[DifferenceOfConvex, DifferenceOfConvex]:
        r"""Split phi and R: :math:`R\,\bar\phi = (R^+ - R^-)(\bar\phi^+ - \bar\phi^-)`."""
        whole = self._summand()
        if self.convex:
            return whole, whole.scaled(0.0)
        positive, negative = self._signed_parts
        if self.function.convex:
            return whole._with(combination=positive), whole._homogeneous(negative)
        plus, minus = (whole._with_function(part) for part in self.function.convex_parts())
        return (
            SumTerm((plus._with(combination=positive), minus._homogeneous(negative))),
            SumTerm((minus._homogeneous(positive), plus._homogeneous(negative))),
        )

    def _largest_bend(self, columns: SparseMatrix | None = None) -> Array:
        """Return the most that any output bends down per unit of each statistic's curvature.

        Parameters
        ----------
        columns : sparse matrix of shape (n_statistics, n_columns) or None, default=None
            Which statistics are added up; None keeps each on its own.
        """
        lower, upper = self.function.curvature
        sizes = max(-lower, 0.0), max(upper, 0.0)
        positive, negative = (
            as_csr(part) * size for part, size in zip(self._signed_parts, sizes, strict=True)
        )
        bend = positive + negative
        return column_maxima(bend if columns is None else bend @ columns)


class AffineTerm(DifferenceOfConvex):
    """A term that is affine in the scores: it is its own tangent and its own zero-one version."""

    @property
    def smooth(self) -> bool:
        """Affine functions are smooth."""
        return True

    @property
    def convex(self) -> bool:
        """Affine functions are convex."""
        return True

    def zero_one(self) -> Self:
        """Return the term: it has no surrogate."""
        return self

    def convex_parts(self) -> tuple[DifferenceOfConvex, DifferenceOfConvex]:
        """Return the term and zero."""
        return self, self.scaled(0.0)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Self:
        """Return the term."""
        return self


def as_csr(matrix: Matrix) -> sp.csr_array:
    """Return a matrix, dense or sparse, as a CSR array."""
    return sp.csr_array(matrix)  # type: ignore[call-overload]


def _positive_part(matrix: Matrix) -> Matrix:
    """Return max(matrix, 0), dense or sparse as the matrix is."""
    if isinstance(matrix, np.ndarray):
        return np.maximum(matrix, 0.0)
    part = as_csr(matrix).copy()  # before 1.14 the result of its maximum shares indices with it
    part.sum_duplicates()
    part.data = np.maximum(part.data, 0.0)
    part.eliminate_zeros()
    return part


def column_maxima(matrix: SparseMatrix) -> Array:
    """Return the largest entry of each column."""
    return np.ravel(matrix.max(axis=0).toarray())


def identity(n: int) -> SparseMatrix:
    """Return the combination whose outputs are the statistics themselves."""
    return sp.csr_array(sp.eye_array(n, format="csr"))
