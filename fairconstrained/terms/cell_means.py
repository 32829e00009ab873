"""Averages over cells of rows, and affine functions of them: the terms of all parity notions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback, Shardable
from fairconstrained.terms.head import AffineHead
from fairconstrained.terms.ranked import Ranked
from fairconstrained.utils.numerics import unique_codes
from fairconstrained.utils.typing import Array, SparseMatrix


@dataclass(frozen=True, eq=False)
class OnCells(AffineHead):
    """A term of weighted cells of rows.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        Row k holds the weights of the rows of cell k, which sum to one on the full data. Stored by
        rows of the data, so that both products and batches are cheap.
    """

    cells: SparseMatrix
    batchable = True

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return int(self.cells.shape[1])

    @cached_property
    def _rows_by_cell(self) -> list[tuple[Array, Array]]:
        return rows_by_cell(self.cells)

    def _ranked(self, scores: Array) -> list[Ranked]:
        """Return the scores of every cell."""
        return [Ranked(scores[rows], weights, rows) for rows, weights in self._rows_by_cell]

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; cell sizes stay those of the full data."""
        return replace(self, cells=reweighted(self.cells[:, rows], weights))

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        return cell_codes(self.cells)


@dataclass(frozen=True, eq=False)
class CellMeans(OnCells, FunctionAverages, Shardable):
    r"""The affine function :math:`c(s) = R\, A\, \phi(y \circ (s + t)) + d - b` of cell averages.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        A, see :class:`OnCells`; other formats are converted.
    function : ScalarFunction
        phi, a surrogate or a loss.
    signs : ndarray of shape (n_rows,) or None, default=None
        y, which turns scores into margins; None stands for ones.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`.
    shift : float, default=0.0
        t, what is added to all scores, for instance the threshold that they are measured from. The
        zero-one version is without it.
    """

    function: ScalarFunction
    signs: Array | None = None
    shift: float = 0.0

    factored: ClassVar[bool] = True

    @property
    def n_statistics(self) -> int:
        """The number of cells."""
        return int(self.cells.shape[0])

    def __post_init__(self) -> None:
        """Convert the cells to CSC if they come in another format."""
        super().__post_init__()
        if getattr(self.cells, "format", None) != "csc":
            object.__setattr__(self, "cells", self.cells.tocsc())

    @cached_property
    def _cells_transposed(self) -> SparseMatrix:
        return self.cells.T

    @cached_property
    def _disjoint(self) -> bool:
        """Whether every row is in exactly one cell, where dense products are twice as fast."""
        return np.array_equal(self.cells.indptr, np.arange(self.n_rows + 1))

    def _sums(self, value: Array) -> Array:
        """Return A value."""
        if not self._disjoint:
            return self.cells @ value
        if self.n_statistics == 1:
            return np.array([self.cells.data @ value])
        weighted = self.cells.data * value
        return np.bincount(self.cells.indices, weighted, minlength=self.n_statistics)

    def _spread(self, u: Array) -> Array:
        """Return A' u."""
        if not self._disjoint:
            return self._cells_transposed @ u
        if self.n_statistics == 1:
            return self.cells.data * u
        out = u.take(self.cells.indices)
        out *= self.cells.data
        return out

    def _margins(self, scores: Array) -> Array:
        """Return y (s + t)."""
        scores = scores + self.shift if self.shift else scores
        return scores if self.signs is None else self.signs * scores

    @cached_property
    def _zero_one(self) -> CellMeans:
        return replace(self, function=self.function.zero_one(), shift=0.0)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the cell averages of phi and their pullback."""
        margins = self._margins(scores)
        value = self.function.value(margins)
        slopes = self.function.derivative(margins, value)
        return self._sums(value), MeansPullback(self, margins, slopes)

    @property
    def curved(self) -> bool:
        """Whether phi has a second derivative."""
        return self.function.twice_differentiable

    def shares(self, decided: Array) -> Array:
        """Return the averages of a term with the indicator, for decisions.

        Parameters
        ----------
        decided : ndarray of bool of shape (n_rows, n_points)
            Whether the score of a row is positive.

        Returns
        -------
        shares : ndarray of shape (n_cells, n_points)
        """
        if self.signs is not None:
            decided = decided == (self.signs > 0.0)[:, None]
        return np.asarray(self.cells @ decided.astype(float))

    def outputs_at(self, shares: Array) -> Array:
        """Return the outputs for averages of shape (n_cells, n_points), (n_outputs, n_points)."""
        level = np.broadcast_to(self._level, self.n_outputs)
        return np.asarray(self.combination @ shares + level[:, None])

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; cell sizes stay those of the full data."""
        signs = None if self.signs is None else self.signs[rows]
        if not self._disjoint:
            return replace(self, cells=reweighted(self.cells[:, rows], weights), signs=signs)
        data, indices = self.cells.data[rows] * weights, self.cells.indices[rows]
        ends = np.arange(len(rows) + 1)
        cells = sp.csc_array((data, indices, ends), shape=(self.n_statistics, len(rows)))
        return replace(self, cells=cells, signs=signs)

    def some_outputs(self, outputs: Array) -> Self:
        """Return the term with some of its outputs, on all cells.

        Parameters
        ----------
        outputs : ndarray of int of shape (n_chosen,)
            The outputs.
        """
        return replace(
            self,
            combination=self.combination[outputs],
            offset=self._of_outputs(self.offset, outputs),
            constant=self._of_outputs(self.constant, outputs),
            names=tuple(self.names[k] for k in np.arange(self.n_outputs)[outputs]),
        )

    def _of_outputs(self, values: Array | float, outputs: Array) -> Array:
        """Return the values of some outputs, from an array or one number for all outputs."""
        return np.broadcast_to(values, self.n_outputs)[outputs]

    def embed_rows(self, rows: Array, n_rows: int) -> CellMeans:
        """Return the same functions of the scores of `n_rows` rows, of which `rows` are its own.

        Parameters
        ----------
        rows : ndarray of int of shape (n_own_rows,)
            The positions of the term's rows among all, in increasing order; the others are in no
            cell.
        n_rows : int
            The number of all rows.
        """
        lengths = np.zeros(n_rows + 1, dtype=int)
        lengths[rows + 1] = np.diff(self.cells.indptr)
        entries = (self.cells.data, self.cells.indices, np.cumsum(lengths))
        signs = self.signs
        if signs is not None:
            signs = np.ones(n_rows)
            signs[rows] = self.signs
        cells = sp.csc_array(entries, shape=(self.n_statistics, n_rows))
        return replace(self, cells=cells, signs=signs)

    def zero_one(self) -> CellMeans:
        """Return the term with the indicator, always the same object, so that passes are reused."""
        return self._zero_one

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the averages of phi' times y times a change of the scores."""
        margins = self._margins(scores)
        slope = self.function.derivative(margins, self.function.value(margins))
        slope = slope if self.signs is None else self.signs * slope
        return lambda change, _: self._sums(slope * change)

    @property
    def weakly_convex(self) -> bool:
        """Whether phi has bounded curvature, or `weak_curvature` is finite."""
        return bool(np.all(np.isfinite(self.function.curvature))) or super().weakly_convex

    def weak_curvature(self) -> Array:
        """Return the largest downward curvature of any output along each score."""
        if self.convex:
            return np.zeros(self.n_rows)
        return self._cells_transposed @ self._largest_bend()


@dataclass(eq=False)  # not frozen: that would double the time of making one
class MeansPullback(FactoredPullback):
    """Weights on averages over cells -> weights on the scores.

    Attributes
    ----------
    term : CellMeans
        The averages.
    margins, slopes : ndarray of shape (n_rows,)
        y (s + t), and phi' at these.
    """

    term: CellMeans
    margins: Array
    slopes: Array

    def __call__(self, u: Array) -> tuple[Array, Array]:
        """Return y phi' A' u."""
        back = self.term._spread(u)
        back *= self.slopes
        if self.term.signs is not None:
            back *= self.term.signs
        return back, NO_AUXILIARY

    def basis(self) -> list[SparseMatrix]:
        """Return the derivatives of the averages in the scores."""
        signs = self.term.signs
        return [reweighted(self.term.cells, self.slopes if signs is None else signs * self.slopes)]

    def jacobian(self, products: list[Array]) -> tuple[Array, Array]:
        """Return the products."""
        return products[0], np.zeros((len(products[0]), 0))

    def second_derivatives(self, u: Array) -> Array:
        """Return phi'' A' u."""
        curvature = self.term.function.second_derivative(self.margins, self.slopes)
        return self.term._spread(u) * curvature


def reweighted(cells: SparseMatrix, weights: Array) -> SparseMatrix:
    """Return CSC cells whose columns, the rows of the data, are multiplied by weights."""
    data = cells.data * np.repeat(weights, np.diff(cells.indptr))
    return sp.csc_array((data, cells.indices, cells.indptr), shape=cells.shape)


def cell_codes(cells: SparseMatrix) -> Array:
    """Return codes, (n_rows,), that are equal for rows of the same cells."""
    marks = np.random.default_rng(0).standard_normal(cells.shape[0])
    lengths = np.diff(cells.indptr)
    if lengths.max(initial=0) > 1 or not np.all(cells.data):
        return unique_codes(sp.csr_array(cells.T != 0) @ marks)[1]
    # at most one cell per row; the last one stands for none
    if lengths.min(initial=1) == 1:
        cell = cells.indices
    else:
        cell = np.full(len(lengths), len(marks))
        cell[lengths == 1] = cells.indices
    present = np.flatnonzero(np.bincount(cell, minlength=len(marks) + 1))
    codes = np.zeros(len(marks) + 1, dtype=np.int64)
    codes[present] = unique_codes(np.append(marks, 0.0)[present])[1]
    return codes[cell]


def rows_by_cell(cells: SparseMatrix) -> list[tuple[Array, Array]]:
    """Return, for every cell, its rows and their weights."""
    by_cell = cells.tocsr()
    return [(by_cell.indices[a:b], by_cell.data[a:b]) for a, b in pairwise(by_cell.indptr)]


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
    entries = (weights / weights.sum(), np.zeros(len(weights), np.int32))
    cells = sp.csc_array((*entries, _ends(len(weights))), shape=(1, len(weights)))
    return CellMeans(
        cells, function, np.asarray(signs, dtype=float), combination=np.ones((1, 1)),
        offset=np.zeros(1), names=("loss",),
    )  # fmt: skip


def _ends(n_rows: int) -> Array:
    """Return the column pointers of cells with one entry per row."""
    return np.arange(n_rows + 1, dtype=np.int32 if n_rows < np.iinfo(np.int32).max else np.int64)


def cell_matrix(codes: Array, sample_weight: Array, n_cells: int) -> sp.csc_array:
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
    if codes.size and codes.min() >= 0:
        weights = np.asarray(sample_weight, dtype=float)
        totals = np.bincount(codes, weights, minlength=n_cells)
        entries = (weights / totals[codes], codes.astype(np.int32))
        return sp.csc_array((*entries, _ends(len(codes))), shape=(n_cells, len(codes)))
    inside = codes >= 0
    rows = np.flatnonzero(inside)
    cells, weights = codes[rows], np.asarray(sample_weight, dtype=float)[rows]
    totals = np.bincount(cells, weights, minlength=n_cells)
    ends = np.append(0, np.cumsum(inside))
    return sp.csc_array((weights / totals[cells], cells, ends), shape=(n_cells, len(codes)))
