"""Averages over cells of rows, and affine functions of them: the terms of all parity notions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.elementary import Identity
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, SumTerm, Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class CellMeans(Term):
    r"""The affine function :math:`c(s) = R\, A\, \phi(y \circ s) + d - b` of cell averages.

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
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d: a part of what is bounded, unlike b, for instance the 1 of "1 - rate".
    """

    cells: Any
    function: ScalarFunction
    combination: Any
    offset: Array
    signs: Array | None = None
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return int(self.cells.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return int(self.combination.shape[0])

    @property
    def n_statistics(self) -> int:
        """The number of cells."""
        return int(self.cells.shape[0])

    def __post_init__(self) -> None:
        """Convert the cells to CSC if they come in another format."""
        if getattr(self.cells, "format", None) != "csc":
            object.__setattr__(self, "cells", sp.csc_array(self.cells))

    @cached_property
    def _cells_transposed(self) -> Any:
        return self.cells.T

    @cached_property
    def _one_each(self) -> bool:
        """Whether every row is in one cell, where dense products are twice as fast."""
        return np.array_equal(self.cells.indptr, np.arange(self.n_rows + 1))

    def _sums(self, value: Array) -> Array:
        """Return A value."""
        if not self._one_each:
            return self.cells @ value
        weighted = self.cells.data * value
        return np.bincount(self.cells.indices, weighted, minlength=self.n_statistics)

    def _spread(self, u: Array) -> Array:
        """Return A' u."""
        if not self._one_each:
            return self._cells_transposed @ u
        out = np.take(u, self.cells.indices)
        out *= self.cells.data
        return out

    def _reweighted(self, cells: Any, by_row: Array) -> Any:
        """Return cells whose columns, the rows of the data, are multiplied by weights."""
        data = cells.data * np.repeat(by_row, np.diff(cells.indptr))
        return sp.csc_array((data, cells.indices, cells.indptr), shape=cells.shape)

    @cached_property
    def _combination_transposed(self) -> Any:
        return self.combination.T

    @cached_property
    def _strict(self) -> CellMeans:
        return replace(self, function=self.function.zero_one())

    @cached_property
    def _level(self) -> Array:
        return self.constant - self.offset

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
            back = self._spread(u)
            back *= self.function.derivative(margins, value)
            if self.signs is not None:
                back *= self.signs
            return back, NO_AUXILIARY

        return self._sums(value), pullback

    def head(self, statistics: Array) -> Array:
        """Return R r + d - b."""
        return self.combination @ statistics + self._level

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self._combination_transposed @ v

    def batch(self, rows: Array, weights: Array | None = None) -> CellMeans:
        """Return the term on some rows; cell sizes stay those of the full data."""
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        signs = None if self.signs is None else self.signs[rows]
        if not self._one_each:
            return replace(self, cells=self._reweighted(self.cells[:, rows], factor), signs=signs)
        data, indices = self.cells.data[rows] * factor, self.cells.indices[rows]
        ends = np.arange(len(rows) + 1)
        cells = sp.csc_array((data, indices, ends), shape=(self.n_statistics, len(rows)))
        return replace(self, cells=cells, signs=signs)

    def embed_rows(self, rows: Array, n_rows: int) -> CellMeans:
        """Return the same functions of the scores of `n_rows` rows, of which `rows` are its own.

        Parameters
        ----------
        rows : ndarray of int of shape (n_own_rows,)
            Where its rows are among all, in increasing order; the others are in no cell.
        n_rows : int
            The number of all rows.
        """
        lengths = np.zeros(n_rows + 1, dtype=int)
        lengths[rows + 1] = np.diff(self.cells.indptr)
        made_of = (self.cells.data, self.cells.indices, np.cumsum(lengths))
        signs = self.signs
        if signs is not None:
            signs = np.ones(n_rows)
            signs[rows] = self.signs
        cells = sp.csc_array(made_of, shape=(self.n_statistics, n_rows))
        return replace(self, cells=cells, signs=signs)

    def zero_one(self) -> CellMeans:
        """Return the term with phi's strict version, always the same: its passes are remembered."""
        return self._strict

    @property
    def smoothable(self) -> bool:
        """Whether phi is."""
        return self.function.smoothable or self.n_outputs == 0

    def smoothed(self, width: float) -> CellMeans:
        """Return the term with phi rounded."""
        return replace(self, function=self.function.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| A of phi's subgradient error."""
        margins = scores if self.signs is None else self.signs * scores
        return abs(self.combination) @ self._sums(self.function.subgradient_error(margins))

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return R A phi + d, without the offset."""
        return self.value(scores) + self.offset

    def convex_parts(self) -> tuple[Term, Term]:
        """Split phi; positive weights take its parts as they are, negative ones exchange them."""
        if self.convex:
            return self, self.scaled(0.0)
        positive, negative = self._signed_parts
        plus, minus = self.function.convex_parts()
        bare = replace(self, offset=np.zeros_like(self.offset), constant=0.0)
        make = replace
        return (
            SumTerm(
                (
                    make(self, function=plus, combination=positive),
                    make(bare, function=minus, combination=negative),
                )
            ),
            SumTerm(
                (
                    make(bare, function=minus, combination=positive),
                    make(bare, function=plus, combination=negative),
                )
            ),
        )

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> CellMeans:
        """Return the tangent: slopes move into the cells, intercepts into d."""
        margins = scores if self.signs is None else self.signs * scores
        value = self.function.value(margins)
        slope = self.function.derivative(margins, value)
        intercepts = self.cells @ (value - slope * margins)
        return replace(
            self,
            cells=self._reweighted(self.cells, slope),
            function=Identity(),
            constant=self.constant + self.combination @ intercepts,
        )

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        member = sp.csr_array(self._cells_transposed != 0)
        pattern = member @ np.random.default_rng(0).standard_normal(self.cells.shape[0])
        return np.unique(pattern, return_inverse=True)[1]

    def scaled(self, factor: float) -> CellMeans:
        """Return the term times a factor."""
        return replace(
            self,
            combination=factor * self.combination,
            offset=factor * self.offset,
            constant=factor * self.constant,
        )

    @property
    def weakly_convex(self) -> bool:
        """Whether `weak_curvature` is finite."""
        return bool(np.all(np.isfinite(self.function.curvature))) or super().weakly_convex

    def weak_curvature(self) -> Array:
        """Return the largest downward curvature of any output along each score."""
        if self.convex:
            return np.zeros(self.n_rows)
        lower, upper = self.function.curvature
        down, up = max(-lower, 0.0), max(upper, 0.0)
        positive, negative = (_largest(part) for part in self._signed_parts)
        bend = np.zeros(self.n_statistics)
        for largest, size in ((positive, down), (negative, up)):
            used = largest > 0
            bend[used] = np.maximum(bend[used], largest[used] * size)
        return self._cells_transposed @ bend


def _positive(matrix: Any) -> Any:
    """Return max(matrix, 0), of the same format."""
    return matrix.maximum(0.0) if hasattr(matrix, "maximum") else np.maximum(matrix, 0.0)


def _largest(matrix: Any) -> Array:
    """Return the largest entry of each column."""
    largest = matrix.max(axis=0)
    return largest.toarray().ravel() if hasattr(largest, "toarray") else largest


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
    inside = codes >= 0
    rows = np.flatnonzero(inside)
    members, weights = codes[rows], np.asarray(sample_weight, dtype=float)[rows]
    totals = np.bincount(members, weights, minlength=n_cells)
    ends = np.append(0, np.cumsum(inside))
    return sp.csc_array((weights / totals[members], members, ends), shape=(n_cells, len(codes)))
