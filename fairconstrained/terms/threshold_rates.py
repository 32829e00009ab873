"""Rates at many thresholds: the terms of ROC parity and of partial demographic parity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms._kernel_sums import Cells, KernelSums, kernel_sums
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, SumTerm, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class ThresholdRates(Term):
    r"""The affine function :math:`c = R\, r - b` of rates at thresholds.

    .. math::
        r_{kj}(s, \theta) = \sum_i A_{ki}\, \phi(s_i - \theta_j).

    They are computed for all thresholds together (see :mod:`fairconstrained.sums`).

    Parameters
    ----------
    rates : CellMeans
        The averages over cells of phi(s), one output each: A and phi.
    thresholds : ndarray of shape (n_thresholds,)
        theta; with `free`, where the variables start.
    combination : CSR of shape (n_outputs, n_cells * n_thresholds)
        R, for the rates of the first cell at all thresholds, then those of the second one.
    offset : ndarray of shape (n_outputs,)
        b.
    free : bool, default=False
        Whether the thresholds are variables of the term's own. Where these are not passed, they
        have the values they start from.
    names : sequence of str
        What each output says.
    """

    rates: CellMeans
    thresholds: Array
    combination: Any
    offset: Array
    free: bool = False
    names: Sequence[str] = field(default=(), repr=False)
    _memory: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return self.rates.n_rows

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return int(self.combination.shape[0])

    @property
    def n_statistics(self) -> int:
        """The number of cells times that of thresholds."""
        return self.rates.n_statistics * len(self.thresholds)

    @property
    def n_auxiliary(self) -> int:  # type: ignore[override]
        """The thresholds if they are free."""
        return len(self.thresholds) if self.free else 0

    @property
    def auxiliary_start(self) -> Array:
        """Where free thresholds start."""
        return np.array(self.thresholds if self.free else NO_AUXILIARY, dtype=float)

    @property
    def function(self) -> ScalarFunction:
        """Phi."""
        return self.rates.function

    @property
    def smooth(self) -> bool:
        """Whether phi is."""
        return self.function.smooth or self.n_outputs == 0

    @property
    def smoothable(self) -> bool:
        """Whether phi is."""
        return self.function.smoothable or self.n_outputs == 0

    @property
    def convex(self) -> bool:
        """Whether phi is affine, or convex with no negative weight; then so in theta as well."""
        if self.function.curvature == (0.0, 0.0) or self.n_outputs == 0:
            return True
        return self.function.convex and self._signed_parts[1].nnz == 0

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self.rates.cells)

    @cached_property
    def _signed_parts(self) -> tuple[Any, Any]:
        """R = positive - negative, both >= 0."""
        both = self.combination.maximum(0.0), (-self.combination).maximum(0.0)
        for part in both:
            part.eliminate_zeros()
        return both

    def sums(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> KernelSums:
        """Return the rates at the scores and thresholds, with their derivatives."""
        if self.free and len(auxiliary):
            return kernel_sums(self.function, self._cells, scores, np.array(auxiliary))
        return kernel_sums(self.function, self._cells, scores, self.thresholds, self._memory)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        sums = self.sums(scores, auxiliary)

        def pullback(u: Array) -> tuple[Array, Array]:
            weights = u.reshape(self.rates.n_statistics, -1)
            if not self.free:
                return sums.pull(weights), NO_AUXILIARY
            return sums.pull(weights), -np.sum(weights * sums.slopes(), axis=0)

        return sums.values().ravel(), pullback

    def head(self, statistics: Array) -> Array:
        """Return R r - b."""
        return self.combination @ statistics - self.offset

    @cached_property
    def _combination_transposed(self) -> Any:
        return self.combination.T

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self._combination_transposed @ v

    def batch(self, rows: Array, weights: Array | None = None) -> ThresholdRates:
        """Return the term on some rows; cell sizes stay those of the full data."""
        return replace(self, rates=self.rates.batch(rows, weights))

    def zero_one(self) -> Term:
        """Return the term with the indicator, at the same thresholds."""
        return replace(self, rates=self.rates.zero_one())

    def smoothed(self, width: float) -> ThresholdRates:
        """Return the term with phi rounded."""
        return replace(self, rates=self.rates.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the averages of phi's subgradient error."""
        return abs(self.combination) @ self.sums(scores, auxiliary).subgradient_error().ravel()

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return R r, without the offset."""
        return self.value(scores, auxiliary) + self.offset

    def convex_parts(self) -> tuple[Term, Term]:
        """Split phi; positive weights take its parts as they are, negative ones exchange them."""
        none = np.zeros_like(self.offset)
        if self.convex:
            return self, replace(self, combination=0.0 * self.combination, offset=none)
        positive, negative = self._signed_parts
        plus, minus = (replace(self.rates, function=f) for f in self.function.convex_parts())
        first = (
            self._part(rates=plus, combination=positive),
            self._part(rates=minus, combination=negative, offset=none),
        )
        second = (
            self._part(rates=minus, combination=positive, offset=none),
            self._part(rates=plus, combination=negative, offset=none),
        )
        return SumTerm(first), SumTerm(second)

    def _part(self, **changes: Any) -> ThresholdRates:
        """Return a term with these changes that stands for itself alone, not for decisions."""
        own = {one.name: getattr(self, one.name) for one in fields(ThresholdRates) if one.init}
        return ThresholdRates(**{**own, **changes})

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the tangent, in the thresholds too if they are free."""
        return ThresholdTangent(self, np.array(scores), np.array(auxiliary))

    def scaled(self, factor: float) -> ThresholdRates:
        """Return the term times a factor."""
        return replace(self, combination=factor * self.combination, offset=factor * self.offset)

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        return self.rates.strata()

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        Twice that if the thresholds are free, since :math:`(\delta s - \delta \theta)^2 \le
        2 \delta s^2 + 2 \delta \theta^2`; with an intercept, which moves all scores alike, the
        bound that the model makes of it holds for the thresholds as well.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        lower, upper = self.function.curvature
        sizes = (max(-lower, 0.0), max(upper, 0.0))
        by_cell = sp.kron(sp.eye_array(self.rates.n_statistics), np.ones((len(self.thresholds), 1)))
        bend = np.zeros(self.rates.n_statistics)
        for part, size in zip(self._signed_parts, sizes, strict=True):
            largest = (part @ sp.csr_array(by_cell)).max(axis=0).toarray().ravel()
            bend[largest > 0] = np.maximum(bend, largest * size)[largest > 0]
        return (2.0 if self.free else 1.0) * (self.rates.cells.T @ bend)


@dataclass(frozen=True, eq=False)
class ThresholdTangent(Term):
    """The affine function of scores and thresholds that touches rates at thresholds.

    Parameters
    ----------
    term : ThresholdRates
        What is touched.
    scores : ndarray of shape (n_rows,)
        The scores at which.
    auxiliary : ndarray of shape (n_auxiliary,)
        The free thresholds at which.
    """

    term: ThresholdRates
    scores: Array
    auxiliary: Array

    smooth = True
    convex = True

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return self.term.n_rows

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return self.term.n_outputs

    @property
    def n_statistics(self) -> int:
        """The number of rates."""
        return self.term.n_statistics

    @property
    def n_auxiliary(self) -> int:  # type: ignore[override]
        """The free thresholds."""
        return self.term.n_auxiliary

    @property
    def auxiliary_start(self) -> Array:
        """Where free thresholds start."""
        return self.term.auxiliary_start

    @property
    def names(self) -> Sequence[str]:
        """What each output says."""
        return self.term.names

    @cached_property
    def _sums(self) -> KernelSums:
        return self.term.sums(self.scores, self.auxiliary)

    @cached_property
    def _touching(self) -> tuple[Array, Array]:
        """The rates where the tangent touches, and their slopes in minus the thresholds."""
        return self._sums.values(), self._sums.slopes()

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates of the tangent and their pullback."""
        values, slopes = self._touching
        moved = values + self._sums.push(scores - self.scores)
        free = self.term.free
        if free and len(auxiliary):
            moved -= slopes * (auxiliary - self._sums.thresholds)

        def pullback(u: Array) -> tuple[Array, Array]:
            weights = u.reshape(values.shape)
            own = -np.sum(weights * slopes, axis=0) if free else NO_AUXILIARY
            return self._sums.pull(weights), own

        return moved.ravel(), pullback

    def head(self, statistics: Array) -> Array:
        """Return R r - b."""
        return self.term.head(statistics)

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self.term.head_vjp(statistics, v)

    def batch(self, rows: Array, weights: Array | None = None) -> ThresholdTangent:
        """Return the tangent on some rows."""
        return replace(self, term=self.term.batch(rows, weights), scores=self.scores[rows])

    def shifted(self, shift: Array) -> Self:
        """Return the tangent of the raised term."""
        return replace(self, term=self.term.shifted(shift))

    def zero_one(self) -> ThresholdTangent:
        """Return itself: a tangent stands for nothing else."""
        return self

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return R r, without the offset."""
        return self.value(scores, auxiliary) + self.term.offset

    def convex_parts(self) -> tuple[Term, Term]:
        """Return itself and nothing."""
        return self, self.scaled(0.0)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> ThresholdTangent:
        """Return itself."""
        return self

    def scaled(self, factor: float) -> ThresholdTangent:
        """Return the tangent times a factor."""
        return replace(self, term=self.term.scaled(factor))

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        return self.term.strata()

    def weak_curvature(self) -> Array:
        """Return zeros."""
        return np.zeros(self.n_rows)
