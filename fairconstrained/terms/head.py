"""Heads that are affine in statistics, and what follows from the function averaged."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction, SubgradientError
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.ordered_pairs import OrderedPairs, as_csr, column_maxima, identity
from fairconstrained.utils.arguments import joined
from fairconstrained.utils.arrays import Array, SparseMatrix

_DENSE = 1 << 12  # entries of R up to which it is used as a dense array


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineHead(Term):
    r"""Outputs that are affine in the statistics: :math:`c = R\, r + d - b`.

    Those that are affine in a function of the statistics extend `averages` and `averages_vjp`.
    """

    # r; None is the identity, (n_outputs, n_statistics)
    combination: Any = field(default=None, repr=False)
    offset: Array | float = 0.0  # b, the tolerance, for instance kappa, (n_outputs,)
    names: Sequence[str] = field(default=(), repr=False)  # a description of each output
    # d, the constant part of the gap, for instance the 1 of "1 - rate", (n_outputs,)
    constant: Array | float = 0.0
    chosen: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Make a missing combination the identity."""
        if self.combination is None:
            object.__setattr__(self, "combination", identity(np.size(self.offset)))

    @cached_property
    def n_outputs(self) -> int:  # type: ignore[override]
        """The number of outputs."""
        return int(self.combination.shape[0])

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """The number of statistics, by default that of the columns of R."""
        return int(self.combination.shape[1])

    @cached_property
    def _small(self) -> Any:
        """R, dense if it is small: products with sparse arrays cost microseconds each."""
        combination = self.combination
        if isinstance(combination, np.ndarray) or math.prod(combination.shape) > _DENSE:
            return combination
        pairs = isinstance(combination, OrderedPairs)  # terms of other functions share them
        return combination.array if pairs else combination.toarray()

    @property
    def _pairs(self) -> OrderedPairs | None:
        """R, where it has pairs of many numbers: the largest need no listing."""
        pairs = self._small
        return pairs if isinstance(pairs, OrderedPairs) and pairs.rows is None else None

    @cached_property
    def _level(self) -> Array | float:
        """The outputs for statistics of zero."""
        return self.constant - self.offset

    @cached_property
    def _signed_parts(self) -> tuple[Any, Any]:
        """R = positive - negative, both >= 0."""
        combination = self._small if isinstance(self._small, np.ndarray) else as_csr(self._small)
        size: Any = abs(combination)
        return 0.5 * (size + combination), 0.5 * (size - combination)

    @property
    def _level_of_pairs(self) -> float:
        """The level of all pairs: constants may be those of the numbers."""
        by_pair = self._pairs is not None and self._pairs.origin is not None
        return (0.0 if by_pair else float(self.constant)) - float(self.offset)

    def averages(self, statistics: Array) -> Array:
        """Return what R multiplies: the statistics themselves."""
        return statistics

    def averages_vjp(self, statistics: Array, weights: Any) -> Any:
        """Return the gradients in the statistics of sums with these weights of what R multiplies.

        Weights are one array or the rows of a matrix.
        """
        return weights

    def head(self, statistics: Array) -> Array:
        """Return R r + d - b."""
        return self._small @ self.averages(statistics) + self._level

    def outputs_at(self, statistics: Array) -> Array:
        """Return the outputs for statistics of shape (n, n_points), (n_outputs, n_points)."""
        level = np.broadcast_to(self._level, self.n_outputs)
        return np.asarray(self._small @ self.averages(statistics) + level[:, None])

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return np.asarray(self.averages_vjp(statistics, v @ self._small))

    def values_of(self, statistics: Array, outputs: Array) -> Array:
        """Return some outputs."""
        level = np.broadcast_to(self._level, self.n_outputs)[outputs]
        return self._small[outputs] @ self.averages(statistics) + level

    def vjp_of(self, statistics: Array, outputs: Array, v: Array) -> Array:
        """Return the gradient of <v, some outputs> with respect to the statistics."""
        if sp.issparse(self._small):  # rows of sparse matrices are found slowly
            return super().vjp_of(statistics, outputs, v)
        return np.asarray(self.averages_vjp(statistics, v @ self._small[outputs]))

    def rows_of(self, statistics: Array, outputs: Array) -> Any:
        """Return the gradients of some outputs: rows of R."""
        return self.averages_vjp(statistics, self._small[outputs])

    def largest(
        self, statistics: Array, least: float, most: int, *, added: Any = 0, distinct: bool = False
    ) -> Array:
        """Return the positions of the largest outputs."""
        if self._pairs is None or np.ndim(added):
            return super().largest(statistics, least, most, added=added)
        least = least - self._level_of_pairs - float(added)
        averages = self.averages(statistics)
        return self._pairs.largest(averages, least, most, distinct=distinct)[:most]

    def gap_of(self, statistics: Array) -> Array:
        """Return R r + d."""
        return self.head(statistics) + self.offset

    def some_outputs(self, outputs: Array) -> Self:
        """Return the term with some of its outputs."""
        every = self.n_outputs
        return replace(
            self,
            combination=self.combination[outputs],
            offset=np.broadcast_to(self.offset, every)[outputs],
            constant=np.broadcast_to(self.constant, every)[outputs],
            names=tuple(self.names[k] for k in outputs),
        )

    @property
    def gap_bounds(self) -> Array:
        """The largest value allowed for each gap: b."""
        return np.full(self.n_outputs, self.offset)

    def largest_gaps(self, statistics: Array) -> tuple[Array, Array]:
        """Return the largest gap and its bound where all have one, else all of them."""
        if self._pairs is None:
            return super().largest_gaps(statistics)
        largest = self.some_outputs(self.largest(statistics, -np.inf, 1))
        return largest.gap_of(statistics), largest.gap_bounds


Pushforward = Callable[[Array, Array], Array]


def _of_function(ability: str) -> Any:
    """Return an ability that a term without outputs has as well."""
    return property(lambda term: getattr(term.function, ability) or term.n_outputs == 0)


class FunctionAverages(AffineHead):
    """An affine head on averages, weighted >= 0, of a function of what is affine in the scores."""

    function: ScalarFunction
    batchable = True
    smooth = _of_function("smooth")
    smoothable = _of_function("smoothable")
    difference_of_convex = _of_function("difference_of_convex")

    def _with_function(self, function: ScalarFunction) -> "FunctionAverages":
        """Return the term with another phi."""
        return replace(self, function=function)  # type: ignore[call-arg]

    @cached_property
    def _zero_one(self) -> Any:
        return self._with_function(self.function.zero_one())

    def zero_one(self) -> Any:
        """Return the term with the indicator, always the same object, so that passes are reused."""
        return self._zero_one

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        """Return the averages, (n_averages,), of the subgradient error of phi."""
        if not self.function.corners:
            return np.zeros(self.combination.shape[1])
        errors = self._with_function(SubgradientError(self.function.corners))
        return np.maximum(errors.forward(scores, auxiliary)[0], 0.0)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether phi is affine, or convex and no weight in R negative."""
        if self.function.curvature == (0.0, 0.0) or self.n_outputs == 0:
            return True
        return self.function.convex and not self._signed_parts[1].sum() > 0.0

    def smoothed(self, width: float) -> "FunctionAverages":
        """Return the term with phi rounded; itself if phi has no kinks."""
        return self if self.function.smooth else self._with_function(self.function.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return abs(R) times the averages of the subgradient error of phi."""
        return abs(self.combination) @ self._average_errors(scores, auxiliary)

    def convex_parts(self) -> "tuple[FunctionAverages, FunctionAverages]":
        """Return terms with convex averages, whose differences are what R multiplies."""
        plus, minus = self.function.convex_parts()
        return self._with_function(plus), self._with_function(minus)

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the majorant with tangents in place of what is subtracted."""
        return self if self.convex else Majorant.of(self, scores, auxiliary)

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the derivative at the scores: changes of scores and variables -> of averages."""
        pullback = self.forward(scores, auxiliary)[1]
        if hasattr(pullback, "push"):  # without a row for every average
            return cast("Pushforward", pullback.push)
        rows = [pullback(unit) for unit in np.eye(self.n_statistics)]

        def push(change: Array, variables: Array) -> Array:
            return np.array([np.vdot(row, change) + on_own @ variables for row, on_own in rows])

        return push

    def _largest_bend(self, columns: SparseMatrix | None = None) -> Array:
        """Return the most that any output bends down per unit of each statistic's curvature.

        The columns, (n_statistics, n_columns), say which statistics are added up; None, each alone.
        """
        lower, upper = self.function.curvature
        positive, negative = map(as_csr, self._signed_parts)
        bend = positive * max(-lower, 0.0) + negative * max(upper, 0.0)
        return column_maxima(bend if columns is None else bend @ columns)


def tangents(parts: Sequence[FunctionAverages], *at: Array) -> Any:
    """Return the tangents of parts at scores and own variables, see :class:`Majorant`."""
    return [(*part.forward(*at), part.pushforward(*at)) for part in parts]


@dataclass(frozen=True, eq=False)
class Majorant(AffineHead):
    r"""The convex majorant of a term :math:`R\,(p^+ - p^-) + d - b` with convex :math:`p^\pm`.

    With the tangents :math:`t^\pm` of :math:`p^\pm` and :math:`R = R^+ - R^-` it is

    .. math:: R^+ (p^+ - t^-) - R^- (t^+ - p^-) + d - b.

    Parameters
    ----------
    term : FunctionAverages
        The term.
    parts : tuple of FunctionAverages
        Those with the averages :math:`p^+, p^-`.
    tangents : list of (ndarray, function, function)
        For each of these the averages where its tangent touches it, their pullback there, and the
        derivative, from changes of scores and variables to changes of averages.
    scores, auxiliary : ndarray
        Where the tangents touch: the scores, and the values of the term's own variables.
    combination, offset, names, constant
        See :class:`AffineHead`; R has the weights of :math:`p^+, p^-, t^+, t^-`.

    See IDCA, equation (21).
    """

    term: FunctionAverages
    parts: tuple[FunctionAverages, ...]
    tangents: list[tuple[Array, Pullback, Pushforward]]
    scores: Array
    auxiliary: Array
    batchable = True

    @classmethod
    def of(cls, term: FunctionAverages, scores: Array, auxiliary: Array) -> "Majorant":
        """Return the majorant that touches a term at the scores."""
        variables = auxiliary if len(auxiliary) else term.auxiliary_start
        at, parts = (scores.copy(), variables.copy()), term.convex_parts()
        up, down = (as_csr(part) for part in term._signed_parts)
        return cls(
            term, parts, tangents(parts, *at), *at, offset=term.offset, names=term.names,
            combination=sp.csr_array(sp.hstack([up, down, -down, -up])), constant=term.constant,
        )  # fmt: skip

    n_rows = property(attrgetter("term.n_rows"))
    n_auxiliary = property(attrgetter("term.n_auxiliary"))
    auxiliary_start = property(attrgetter("term.auxiliary_start"))
    smooth, smoothable = joined("parts", "smooth"), joined("parts", "smoothable")
    convex = True

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the four averages, one after the other, and their pullback."""
        variables = auxiliary if len(auxiliary) else self.auxiliary_start
        change = scores - self.scores, variables - self.auxiliary
        passes = [part.forward(scores, auxiliary) for part in self.parts]
        passes += [(there + push(*change), pull) for there, pull, push in self.tangents]
        averages, pullbacks = zip(*passes, strict=True)

        def pullback(u: Array) -> tuple[Array, Array]:
            each = zip(pullbacks, np.split(u, len(pullbacks)), strict=True)
            on_scores, on_variables = zip(*(pull(part) for pull, part in each), strict=True)
            return sum(on_scores), sum(on_variables)

        return np.concatenate(averages), pullback

    def zero_one(self) -> Term:
        """Return the zero-one version of the term."""
        return self.term.zero_one()

    def take(self, rows: Array, weights: Array) -> "Majorant":
        """Return the majorant on some rows."""
        term: Any = self.term.take(rows, weights)
        scores = self.scores[rows]
        parts: Any = tuple(part.take(rows, weights) for part in self.parts)
        touching = tangents(term.convex_parts(), scores, self.auxiliary)
        return replace(self, term=term, parts=parts, tangents=touching, scores=scores)

    strata = property(attrgetter("term.strata"))
    blocks = property(attrgetter("term.blocks"))

    def smoothed(self, width: float) -> Self:
        """Return the majorant with kinks rounded."""
        return replace(self, parts=tuple(part.smoothed(width) for part in self.parts))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the weighted subgradient errors of the convex functions."""
        errors = [part._average_errors(scores, auxiliary) for part in self.parts]
        return self.combination @ np.concatenate([*errors, *map(np.zeros_like, errors)])
