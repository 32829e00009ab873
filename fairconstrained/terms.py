"""Terms: functions of the scores that are made of averages over cells of rows.

Every objective and every constraint of the papers is one. A term is two steps (METHODS.md 1):
statistics of the scores that add up over rows, then a small function, the head, of them. Only the
first step touches rows, so batches and partitions need nothing but the statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.scalar import Array, Identity, ScalarFunction

Pullback = Callable[[Array], tuple[Array, Array]]
NO_AUXILIARY = np.zeros(0)


class Term(ABC):
    r"""A function c: scores -> (n_outputs,), with c <= 0 where it is a constraint.

    Subclasses say how the statistics come from the scores (`forward`) and how the outputs come
    from the statistics (`head`); values and derivatives follow.

    Attributes
    ----------
    n_rows : int
        The rows of the scores it takes.
    n_outputs : int
        The number of functions it holds.
    n_auxiliary : int
        The number of variables it has of its own, appended to the weights.
    auxiliary_start : ndarray of shape (n_auxiliary,)
        Where these start.
    names : sequence of str
        What each output says, for messages.
    """

    n_auxiliary: int = 0

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The rows of the scores."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The number of functions."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """What each output says."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether the gradients are continuous."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether every output is convex in the scores."""

    @property
    def auxiliary_start(self) -> Array:
        """Where the auxiliary variables start: at 0 unless a subclass knows better."""
        return np.zeros(self.n_auxiliary)

    @abstractmethod
    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the statistics and the function that pulls weights on them back.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            The scores of the term's rows.
        auxiliary : ndarray of shape (n_auxiliary,)
            The term's own variables.

        Returns
        -------
        statistics : ndarray of shape (n_statistics,)
            Sums over rows.
        pullback : callable
            u -> (d <u, statistics> / d scores, d <u, statistics> / d auxiliary).
        """

    @abstractmethod
    def head(self, statistics: Array) -> Array:
        """Return the outputs, (n_outputs,), for the statistics."""

    @abstractmethod
    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the weights on the statistics that weights `v` on the outputs amount to."""

    @abstractmethod
    def batch(self, rows: Array, weights: Array | None = None) -> Term:
        """Return the term on some rows, its statistics unbiased estimates of the full ones.

        Parameters
        ----------
        rows : ndarray of int of shape (b,)
            The rows drawn.
        weights : ndarray of shape (b,) or None, default=None
            One over the expected number of times each of them is drawn; None stands for a uniform
            draw, n_rows / b.
        """

    @abstractmethod
    def strict(self) -> Term:
        """Return the term with the indicator in place of the surrogate."""

    @abstractmethod
    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the outputs before the tolerance is subtracted: the gaps that kappa bounds."""

    @abstractmethod
    def convex_parts(self) -> tuple[Term, Term]:
        """Return terms (plus, minus), convex in the scores, with c = plus - minus."""

    @abstractmethod
    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the affine term that touches this one at the scores."""

    @abstractmethod
    def scaled(self, factor: float) -> Term:
        """Return the term times a factor."""

    @abstractmethod
    def weak_curvature(self) -> Array:
        """Return row weights d >= 0: no output bends down more than d_i along score i."""

    def strata(self) -> Array:
        """Return codes, (n_rows,): rows with the same code belong to the same cells."""
        return np.zeros(self.n_rows, dtype=int)

    def value(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return c(scores), shape (n_outputs,)."""
        return self.head(self.forward(scores, auxiliary)[0])

    def vjp(self, scores: Array, v: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Array]:
        """Return the gradients of <v, c> with respect to the scores and the auxiliary variables."""
        statistics, pullback = self.forward(scores, auxiliary)
        return pullback(self.head_vjp(statistics, v))

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the convex majorant at the scores: the minus part replaced by its tangent."""
        if self.convex:
            return self
        plus, minus = self.convex_parts()
        return SumTerm((plus, minus.linearize(scores, auxiliary).scaled(-1.0)))


@dataclass(frozen=True, eq=False)
class CellMeans(Term):
    r"""The affine function :math:`c(s) = R\, A\, \phi(y \circ s) - b` of averages over cells.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        A: row k holds the weights of cell k, which sum to one (on the full data). Stored by rows of
        the data, so that both products and batches are cheap; other formats are converted.
    function : ScalarFunction
        phi, a surrogate or a loss.
    combination : CSR or ndarray of shape (n_outputs, n_cells)
        R: how outputs are made of averages.
    offset : ndarray of shape (n_outputs,)
        b: what is subtracted, for instance kappa.
    signs : ndarray of shape (n_rows,) or None, default=None
        y, which turns scores into margins; None stands for ones.
    names : sequence of str
        What each output says.
    """

    cells: Any
    function: ScalarFunction
    combination: Any
    offset: Array
    signs: Array | None = None
    names: Sequence[str] = field(default=(), repr=False)

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return int(self.cells.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return int(self.combination.shape[0])

    def __post_init__(self) -> None:
        """Convert the cells to CSC if they come in another format."""
        if getattr(self.cells, "format", None) != "csc":
            object.__setattr__(self, "cells", sp.csc_array(self.cells))

    @cached_property
    def _cells_transposed(self) -> Any:
        return self.cells.T

    def _reweighted(self, cells: Any, by_row: Array) -> Any:
        """Return cells whose columns, the rows of the data, are multiplied by weights."""
        data = cells.data * np.repeat(by_row, np.diff(cells.indptr))
        return sp.csc_array((data, cells.indices, cells.indptr), shape=cells.shape)

    @cached_property
    def _combination_transposed(self) -> Any:
        return self.combination.T

    @cached_property
    def _signed_parts(self) -> tuple[Any, Any]:
        """R = positive - negative, both >= 0."""
        return _positive(self.combination), _positive(-self.combination)

    @property
    def smooth(self) -> bool:
        """Whether phi is."""
        return self.function.smooth or self.n_outputs == 0

    @property
    def convex(self) -> bool:
        """Whether phi is affine, or convex with no negative weight."""
        if self.function.curvature == (0.0, 0.0) or self.n_outputs == 0:
            return True
        return self.function.convex and self._signed_parts[1].sum() == 0.0

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the cell averages of phi and their pullback."""
        margins = scores if self.signs is None else self.signs * scores
        value = self.function.value(margins)

        def pullback(u: Array) -> tuple[Array, Array]:
            back = self._cells_transposed @ u
            back *= self.function.derivative(margins, value)
            if self.signs is not None:
                back *= self.signs
            return back, NO_AUXILIARY

        return self.cells @ value, pullback

    def head(self, statistics: Array) -> Array:
        """Return R r - b."""
        return self.combination @ statistics - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self._combination_transposed @ v

    def batch(self, rows: Array, weights: Array | None = None) -> CellMeans:
        """Return the term on some rows; cell sizes stay those of the full data."""
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        signs = None if self.signs is None else self.signs[rows]
        return replace(self, cells=self._reweighted(self.cells[:, rows], factor), signs=signs)

    def strict(self) -> CellMeans:
        """Return the term with phi's strict version."""
        return replace(self, function=self.function.strict())

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return R A phi, without the offset."""
        return self.value(scores) + self.offset

    def convex_parts(self) -> tuple[Term, Term]:
        """Split phi; positive weights take its parts as they are, negative ones exchange them."""
        if self.convex:
            return self, replace(self, combination=0.0 * self.combination, offset=0.0 * self.offset)
        positive, negative = self._signed_parts
        plus, minus = self.function.convex_parts()
        none = np.zeros_like(self.offset)
        make = replace
        return (
            SumTerm(
                (
                    make(self, function=plus, combination=positive),
                    make(self, function=minus, combination=negative, offset=none),
                )
            ),
            SumTerm(
                (
                    make(self, function=minus, combination=positive, offset=none),
                    make(self, function=plus, combination=negative, offset=none),
                )
            ),
        )

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> CellMeans:
        """Return the tangent: slopes move into the cells, intercepts into the offset."""
        margins = scores if self.signs is None else self.signs * scores
        value = self.function.value(margins)
        slope = self.function.derivative(margins, value)
        intercepts = self.cells @ (value - slope * margins)
        return replace(
            self,
            cells=self._reweighted(self.cells, slope),
            function=Identity(),
            offset=self.offset - self.combination @ intercepts,
        )

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        member = sp.csr_array(self._cells_transposed != 0)
        pattern = member @ np.random.default_rng(0).standard_normal(self.cells.shape[0])
        return np.unique(pattern, return_inverse=True)[1]

    def scaled(self, factor: float) -> CellMeans:
        """Return the term times a factor."""
        return replace(self, combination=factor * self.combination, offset=factor * self.offset)

    def weak_curvature(self) -> Array:
        """Return the largest downward curvature of any output along each score."""
        if self.convex:
            return np.zeros(self.n_rows)
        lower, upper = self.function.curvature
        down, up = max(-lower, 0.0), max(upper, 0.0)
        positive, negative = (sp.coo_array(part).toarray() for part in self._signed_parts)
        bend = np.zeros(positive.shape[1])
        for part, size in ((positive, down), (negative, up)):
            used = part.max(axis=0) > 0
            bend[used] = np.maximum(bend[used], part.max(axis=0)[used] * size)
        return self._cells_transposed @ bend


@dataclass(frozen=True, eq=False)
class SumTerm(Term):
    """The sum of terms on the same rows with the same number of outputs.

    Parameters
    ----------
    terms : tuple of Term
        The summands, without auxiliary variables.
    """

    terms: tuple[Term, ...]

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return self.terms[0].n_rows

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return self.terms[0].n_outputs

    @property
    def names(self) -> Sequence[str]:
        """The names of the first summand."""
        return self.terms[0].names

    @property
    def smooth(self) -> bool:
        """Whether every summand is."""
        return all(term.smooth for term in self.terms)

    @property
    def convex(self) -> bool:
        """Whether every summand is (sufficient, not necessary)."""
        return all(term.convex for term in self.terms)

    @cached_property
    def _sizes(self) -> list[int]:
        scores = np.zeros(self.n_rows)
        return [len(term.forward(scores)[0]) for term in self.terms]

    def _split(self, statistics: Array) -> list[Array]:
        return np.split(statistics, np.cumsum(self._sizes)[:-1])

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the summands' statistics, one after the other."""
        passes = [term.forward(scores) for term in self.terms]

        def pullback(u: Array) -> tuple[Array, Array]:
            parts = zip(passes, self._split(u), strict=True)
            return np.sum([back(part)[0] for (_, back), part in parts], axis=0), NO_AUXILIARY

        return np.concatenate([statistics for statistics, _ in passes]), pullback

    def head(self, statistics: Array) -> Array:
        """Return the sum of the heads."""
        parts = zip(self.terms, self._split(statistics), strict=True)
        return np.sum([term.head(part) for term, part in parts], axis=0)

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the summands' weights, one after the other."""
        parts = zip(self.terms, self._split(statistics), strict=True)
        return np.concatenate([term.head_vjp(part, v) for term, part in parts])

    def batch(self, rows: Array, weights: Array | None = None) -> SumTerm:
        """Return the sum of the batches."""
        return SumTerm(tuple(term.batch(rows, weights) for term in self.terms))

    def strict(self) -> SumTerm:
        """Return the sum of the strict versions."""
        return SumTerm(tuple(term.strict() for term in self.terms))

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sum of the gaps."""
        return np.sum([term.gap(scores) for term in self.terms], axis=0)

    def strata(self) -> Array:
        """Return codes of the cells of all summands together."""
        return joint_codes([term.strata() for term in self.terms])

    def convex_parts(self) -> tuple[Term, Term]:
        """Return the sums of the plus and of the minus parts."""
        plus, minus = zip(*(term.convex_parts() for term in self.terms), strict=True)
        return SumTerm(plus), SumTerm(minus)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> SumTerm:
        """Return the sum of the tangents."""
        return SumTerm(tuple(term.linearize(scores) for term in self.terms))

    def scaled(self, factor: float) -> SumTerm:
        """Return the sum times a factor."""
        return SumTerm(tuple(term.scaled(factor) for term in self.terms))

    def weak_curvature(self) -> Array:
        """Return the sum of the summands' bounds."""
        return np.sum([term.weak_curvature() for term in self.terms], axis=0)


def joint_codes(codes: Sequence[Array]) -> Array:
    """Return codes that agree where all of the given codes do."""
    return np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel()


def _positive(matrix: Any) -> Any:
    """Return max(matrix, 0), of the same format."""
    return matrix.maximum(0.0) if hasattr(matrix, "maximum") else np.maximum(matrix, 0.0)


def average(function: ScalarFunction, signs: Array, sample_weight: Array) -> CellMeans:
    """Return the weighted mean of phi(y * score) over all rows: a loss as a one-row term.

    Parameters
    ----------
    function : ScalarFunction
        The loss.
    signs : ndarray of shape (n_rows,)
        The labels y in {-1, +1}.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows.
    """
    weights = np.asarray(sample_weight, dtype=float)
    cells = sp.csc_array((weights / weights.sum())[None, :])
    return CellMeans(
        cells, function, np.ones((1, 1)), np.zeros(1), np.asarray(signs, dtype=float), ("loss",)
    )


def cell_matrix(codes: Array, sample_weight: Array, n_cells: int) -> Any:
    """Return A for disjoint cells: row k averages, with weights, over the rows coded k.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The cell of each row, or -1 for none.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows.
    n_cells : int
        The number of cells, none of them empty.
    """
    rows = np.flatnonzero(codes >= 0)
    members, weights = codes[rows], np.asarray(sample_weight, dtype=float)[rows]
    totals = np.bincount(members, weights, minlength=n_cells)
    shape = (n_cells, len(codes))
    return sp.csc_array((weights / totals[members], (members, rows)), shape=shape)
