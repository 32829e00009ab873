"""Averages over cells of rows, and affine functions of them: the terms of all parity notions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import Indicator
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback
from fairconstrained.terms.difference_sums import Ranked
from fairconstrained.terms.head import AffineHead, FunctionAverages
from fairconstrained.terms.ordered_pairs import as_csr, identity
from fairconstrained.utils.arrays import Array, SparseMatrix, unique_codes

_CANCELLATION = 1e-12  # a sum smaller than this share of its summands is a rounding error of 0


@dataclass(frozen=True, eq=False)
class OnCells(AffineHead):
    """A term of weighted cells of rows."""

    # row k holds the weights of the rows of cell k, which sum to one on the full data. Stored by
    # rows of the data, so that both products and batches are cheap, (n_cells, n_rows)
    cells: SparseMatrix
    batchable = True

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows of the scores."""
        return int(self.cells.shape[1])

    @cached_property
    def _cells_transposed(self) -> SparseMatrix:
        return self.cells.T

    @cached_property
    def _disjoint(self) -> bool:
        """Whether every row is in exactly one cell, where dense products are twice as fast."""
        return np.array_equal(self.cells.indptr, np.arange(len(self.cells.indptr)))

    def _sums(self, value: Array) -> Array:
        """Return A value."""
        if not self._disjoint:
            return self.cells @ value
        if self.cells.shape[0] == 1:
            return np.array([self.cells.data @ value])
        weighted = self.cells.data * value
        return np.bincount(self.cells.indices, weighted, minlength=self.cells.shape[0])

    def _spread(self, u: Array) -> Array:
        """Return A' u, of every row of u if it has several."""
        if not self._disjoint:
            return (self._cells_transposed @ u.T).T
        if self.cells.shape[0] == 1:
            return self.cells.data * u
        return self.cells.data * u.take(self.cells.indices, axis=-1)

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
class CellMeans(OnCells, FunctionAverages):
    r"""The affine function :math:`c(s) = R\, A\, \phi(y \circ (s + t)) + d - b` of cell averages.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        A, see :class:`OnCells`.
    function : ScalarFunction
        phi, a surrogate or a loss.
    signs : ndarray of shape (n_rows,) or None, default=None
        y, which turns scores into margins; None stands for ones.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`.
    shift : float, default=0.0
        t, what is added to all scores, for instance the threshold that they are measured from. The
        zero-one version is without it.
    decided : bool, default=False
        Whether the zero-one version has error rates in place of means of a loss, with labels y.
    """

    function: ScalarFunction
    signs: Array | None = None
    shift: float = 0.0
    decided: bool = False

    shardable = factored = of_rates = True
    curved = property(attrgetter("function.twice_differentiable"))

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """The number of cells."""
        return int(self.cells.shape[0])

    @cached_property
    def _zero_one(self) -> Any:
        if self.signs is None or not self.decided:
            return replace(self, function=self.function.zero_one(), shift=0.0)
        # with A split by label, A 1{error} = A- 1{s > 0} + A+ (1 - 1{s > 0})
        positive, weights = (self.signs > 0).astype(float), as_csr(self.combination)
        by_label: Any = [reweighted(self.cells, keep) for keep in (1.0 - positive, positive)]
        constant = self.constant + weights @ (self.cells @ positive)
        weights = sp.csr_array(sp.hstack([weights, -weights]))
        cells, plain = sp.vstack(by_label, format="csc"), replace(self, signs=None, shift=0.0)
        decided = replace(plain, cells=cells, function=Indicator())
        return replace(decided, combination=weights, constant=constant)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the cell averages of phi and their pullback."""
        moved = scores + self.shift if self.shift else scores
        margins = moved if self.signs is None else self.signs * moved
        value = self.function.value(margins)
        return self._sums(value), MeansPullback(self, margins, value)

    def largest_at(self, shares: Array) -> Array:
        """Return outputs for averages of shape (n_cells, n_points), the largest among them.

        Of pairs of many numbers there is one of each family.
        """
        pairs = self._pairs
        if pairs is None or pairs.first * pairs.second >= 0.0:
            return self.outputs_at(shares)
        return pairs.largest_values(shares) + self._level_of_pairs

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; cell sizes stay those of the full data."""
        signs = None if self.signs is None else self.signs[rows]
        if not self._disjoint:
            return replace(self, cells=reweighted(self.cells[:, rows], weights), signs=signs)
        data, indices = self.cells.data[rows] * weights, self.cells.indices[rows]
        ends = np.arange(len(rows) + 1)
        cells = sp.csc_array((data, indices, ends), shape=(self.n_statistics, len(rows)))
        return replace(self, cells=cells, signs=signs)

    @property
    def weakly_convex(self) -> bool:
        """Whether a quadratic in the scores can make every output convex."""
        return self.convex or bool(np.all(np.isfinite(self.function.curvature)))

    def _bend(self) -> Array:
        return self._cells_transposed @ self._largest_bend()


@dataclass(frozen=True, eq=False)
class Ratios(CellMeans):
    r"""The constraints :math:`\text{ratio} \cdot m_b - m_a \le 0` on all pairs of numbers.

    `gap` is the shortfall of the ratio, :math:`1 - m_a / m_b`, at most 1 - ratio where the
    constraint holds; 0 where :math:`m_b` is 0 and there is nothing to fall short of.

    The combination of the averages is an :class:`OrderedPairs`, with the ratio as second factor.
    """

    @property
    def ratio(self) -> float:
        """The least ratio allowed."""
        return float(self.combination.second)

    @property
    def gap_bounds(self) -> Array:
        """1 - ratio, the largest shortfall allowed."""
        return np.broadcast_to(1.0 - self.ratio, self.n_outputs)

    def gap_of(self, statistics: Array) -> Array:
        """Return 1 - m_a / m_b."""
        pairs = replace(self.combination, first=0.0, second=1.0)
        origin = 0.0 if pairs.origin is None else pairs.origin[pairs.ends()[1]]
        whole = pairs @ statistics + origin
        there = whole > _CANCELLATION * (abs(pairs) @ np.abs(statistics) + np.abs(origin))
        excess = self.head(statistics) + self.offset  # ratio m_b - m_a
        gap = np.zeros(len(whole))
        gap[there] = 1.0 - self.ratio + excess[there] / whole[there]
        return gap


@dataclass(eq=False)  # not frozen: that would double the time of making one
class MeansPullback(FactoredPullback):
    """Weights on averages over cells -> weights on the scores."""

    term: CellMeans  # the averages
    margins: Array  # y (s + t), and phi at these, (n_rows,)
    value: Array

    @cached_property
    def slopes(self) -> Array:
        """The derivatives of phi in the scores."""
        slopes = self.term.function.derivative(self.margins, self.value)
        return slopes if self.term.signs is None else self.term.signs * slopes

    def __call__(self, u: Array) -> tuple[Array, Array]:
        """Return y phi' A' u, of every row of u if it has several."""
        back = self.term._spread(u)
        back *= self.slopes
        return back, NO_AUXILIARY

    def basis(self) -> list[SparseMatrix]:
        """Return the derivatives of the averages in the scores."""
        return [reweighted(self.term.cells, self.slopes)]

    def push(self, change: Array, variables: Array) -> Array:
        """Return the averages of the changes of phi."""
        return self.term._sums(self.slopes * change)

    def second_derivatives(self, u: Array) -> Array:
        """Return phi'' A' u."""
        signs = 1.0 if self.term.signs is None else self.term.signs
        curvature = self.term.function.second_derivative(self.margins, signs * self.slopes)
        return self.term._spread(u) * curvature


def reweighted(cells: SparseMatrix, weights: Array) -> SparseMatrix:
    """Return CSC cells whose columns, the rows of the data, are multiplied by weights."""
    data = cells.data * np.repeat(weights, np.diff(cells.indptr))
    return sp.csc_array((data, cells.indices, cells.indptr), shape=cells.shape)


def cell_codes(cells: SparseMatrix) -> Array:
    """Return codes, (n_rows,), that are equal for rows of the same cells."""
    lengths = np.diff(cells.indptr)
    if lengths.max(initial=0) > 1:
        marks = np.random.default_rng(0).standard_normal(cells.shape[0])
        return unique_codes(sp.csr_array(cells.T != 0) @ marks)[1]
    codes = np.full(len(lengths), cells.shape[0])  # the last one is that of no cell
    codes[lengths == 1] = np.where(cells.data == 0.0, cells.shape[0], cells.indices)
    return codes


def rows_by_cell(cells: SparseMatrix) -> list[tuple[Array, Array]]:
    """Return, for every cell, its rows and their weights."""
    by_cell = cells.tocsr()
    by_cell.eliminate_zeros()
    return [(by_cell.indices[a:b], by_cell.data[a:b]) for a, b in pairwise(by_cell.indptr)]


def averages(term: OnCells, function: ScalarFunction) -> CellMeans:
    """Return the averages over the cells of a term of a function of the scores."""
    return CellMeans(term.cells, function, combination=identity(int(term.cells.shape[0])))


def average(function: ScalarFunction, signs: Array, sample_weight: Array) -> CellMeans:
    """Return the weighted mean of phi(y * score) over all rows: a loss as a one-row term."""
    cells = cell_matrix(np.zeros(len(sample_weight), dtype=np.int32), sample_weight, 1)
    signs = np.asarray(signs, dtype=float)
    return CellMeans(cells, function, signs, combination=np.ones((1, 1)), names=("loss",))


def cell_matrix(codes: Array, sample_weight: Array, n_cells: int) -> sp.csc_array:
    """Return A for disjoint cells: row k averages, with weights, over rows coded k; -1 is none."""
    weights = np.asarray(sample_weight, dtype=float)
    inside, ends = codes >= 0, np.arange(len(codes) + 1)
    if not inside.all():
        codes, weights, ends = codes[inside], weights[inside], np.append(0, np.cumsum(inside))
    totals = np.bincount(codes, weights, minlength=n_cells)
    index: Any = np.int32 if len(inside) < np.iinfo(np.int32).max else np.int64
    entries = weights / totals[codes], codes.astype(index), ends.astype(index)
    return sp.csc_array(entries, shape=(n_cells, len(inside)))


def zeros_on_line(at: Array, by: Array) -> Array:
    """Return the t where at + t by is 0; infinite or nan where it never is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return -at / by


def rates_on_line(terms: Sequence[CellMeans], at: Array, by: Array, points: Array) -> list[Array]:
    """Return A 1{at + t by > 0} of terms with cells A for every point t, (n_cells, n_points) each.

    The decision on a row changes at one t, so that one histogram gives the rates at all points,
    which are in increasing order. `at` and `by`, (n_rows,), are multiplied by the terms' signs.
    """
    changes, rates = _changes(at, by, points), []
    for term in terms:
        signs = term.signs
        of_term = changes if signs is None else _changes(signs * at, signs * by, points)
        rates.append(_rates(term, *of_term, len(points)))
    return rates


def _changes(at: Array, by: Array, points: Array) -> tuple[Array, Array, Array, Array]:
    """Return the decisions at the first point and the rows that are decided otherwise at the last.

    They come with the changes of their decisions, and the first point after each.
    """
    flips, rises, falls = zeros_on_line(at, by), by > 0.0, by < 0.0
    always = ~(rises | falls) & (at > 0.0)
    start, end = ((rises & (flips < t)) | (falls & (flips > t)) | always for t in points[[0, -1]])
    rows = np.flatnonzero(start != end)
    first, falling = np.searchsorted(points, flips[rows], side="right"), falls[rows]
    first[falling] = np.searchsorted(points, flips[rows[falling]], side="left")
    return start.astype(float), rows, np.where(falling, -1.0, 1.0), first


def _rates(
    term: CellMeans, start: Array, rows: Array, change: Array, first: Array, n: int
) -> Array:
    """Return the rates at n points."""
    cells, stops = term.cells, term.cells.indptr[rows + 1]
    lengths = stops - cells.indptr[rows]
    entries = np.repeat(stops - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    place = cells.indices[entries].astype(np.int64) * n + np.repeat(first, lengths)
    weights = cells.data[entries] * np.repeat(change, lengths)
    changes = np.bincount(place, weights, minlength=term.n_statistics * n)
    return np.asarray(term._sums(start)[:, None] + np.cumsum(changes.reshape(-1, n), axis=1))
