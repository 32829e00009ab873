"""Averages over pairs of rows of the same query: the terms of rankers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.ranges import ranges
from fairconstrained.utils.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Pairs of rows of the same query, sorted by query, with the cell that each of them is in.

    Attributes
    ----------
    first, second : ndarray of int of shape (n_pairs,)
        The rows i and j of every pair.
    cells : ndarray of int of shape (n_pairs,)
        The cell of every pair.
    weights : ndarray of shape (n_pairs,)
        The weight of every pair in its cell.
    """

    first: Array
    second: Array
    cells: Array
    weights: Array

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)


def pairs_within(positive: Array, queries: Array) -> tuple[Array, Array]:
    """Return the rows of all pairs of a positive and a negative row of one query.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_rows,)
        Which rows are positive.
    queries : ndarray of int of shape (n_rows,)
        The query of every row, from 0.

    Returns
    -------
    first, second : ndarray of int of shape (n_pairs,)
        The positive and the negative row of every pair, sorted by query.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.query_pairs import pairs_within
    >>> first, second = pairs_within(np.array([1, 0, 0, 1, 0]) > 0, np.array([0, 0, 1, 1, 0]))
    >>> first.tolist(), second.tolist()
    ([0, 0, 3], [1, 4, 2])
    """
    order = np.argsort(queries, kind="stable")
    high, low = order[positive[order]], order[~positive[order]]
    counts = np.bincount(queries[low], minlength=int(queries.max(initial=-1)) + 1)
    starts = np.cumsum(counts) - counts  # of every query's negatives in `low`
    partners = counts[queries[high]]
    ends = np.cumsum(partners)
    shift = np.repeat(starts[queries[high]] - (ends - partners), partners)
    return np.repeat(high, partners), low[np.arange(len(shift)) + shift]


@dataclass(frozen=True, eq=False)
class QueryPairs(FunctionAverages):
    r"""The affine function :math:`c = R\,p + d - b` of averages over pairs of rows of a query.

    .. math::
        p_k = \sum_{(i, j) \in C_k} w_{ij}\, \phi(s_i - s_j), \qquad \sum_{(i, j) \in C_k} w_{ij}
        = 1 \text{ on the full data.}

    A cell :math:`C_k` is a set of pairs, for instance those of a query whose positive row is of one
    group and whose negative row is of another. Every pair is in one cell. An evaluation takes the
    differences of all pairs and adds them up by cell and by row, in time proportional to the number
    of pairs, whatever the number of cells.

    Batches consist of whole queries: rows of one query are drawn together, with one weight.

    Parameters
    ----------
    pairs : RowPairs
        The pairs, sorted by query.
    queries : ndarray of int of shape (n_rows,)
        The query of every row, from 0.
    function : ScalarFunction
        phi.
    combination : CSR of shape (n_outputs, n_cells)
        R.
    offset : ndarray of shape (n_outputs,)
        b, the tolerance.
    names : sequence of str
        A description of each output.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.
    output_queries : ndarray of int of shape (n_outputs,) or None, default=None
        The query whose pairs each output averages over; None if outputs depend on several.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.terms.query_pairs import QueryPairs, RowPairs
    >>> pairs = RowPairs(np.array([0, 0]), np.array([1, 2]), np.zeros(2, int), np.full(2, 0.5))
    >>> queries, one = np.zeros(3, int), np.ones((1, 1))
    >>> QueryPairs(pairs, queries, Hinge(), one, np.zeros(1)).value(np.array([1.0, 0.5, 0.0]))
    array([0.25])
    """

    pairs: RowPairs
    queries: Array
    function: ScalarFunction
    combination: Matrix
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0
    output_queries: Array | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return len(self.queries)

    @property
    def n_statistics(self) -> int:
        """The number of cells."""
        return int(self.combination.shape[1])

    def _by_cell(self, values: Array) -> Array:
        """Return the weighted sums over the pairs of every cell."""
        return np.bincount(
            self.pairs.cells, self.pairs.weights * values, minlength=self.n_statistics
        )

    def _by_row(self, values: Array) -> Array:
        """Return, for every row, the sum over its pairs, in which second rows count negatively."""
        back = np.bincount(self.pairs.first, values, minlength=self.n_rows)
        back -= np.bincount(self.pairs.second, values, minlength=self.n_rows)
        return back

    def _differences(self, scores: Array) -> Array:
        return np.take(scores, self.pairs.first) - np.take(scores, self.pairs.second)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the averages and their pullback."""
        differences = self._differences(scores)
        value = self.function.value(differences)

        def pullback(u: Array) -> tuple[Array, Array]:
            weights = np.take(u, self.pairs.cells)
            weights *= self.pairs.weights
            weights *= self.function.derivative(differences, value)
            return self._by_row(weights), NO_AUXILIARY

        return self._by_cell(value), pullback

    def curvature_by_row(self, scores: Array, distance: float = 0.01) -> Array:
        r"""Return the sum of the outputs' second derivatives along each score.

        Those of phi are differences of its derivatives at two points, so that kinks count with
        the part of the pairs that are near them.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            The scores.
        distance : float, default=0.01
            Half the distance of the points.
        """
        differences, function = self._differences(scores), self.function
        ahead, behind = differences + distance, differences - distance
        bend = function.derivative(ahead, function.value(ahead))
        bend -= function.derivative(behind, function.value(behind))
        of_cells = self._rows_of_combination.sum(axis=0)
        bend *= of_cells[self.pairs.cells] * self.pairs.weights / (2.0 * distance)
        out = np.bincount(self.pairs.first, bend, minlength=self.n_rows)
        return out + np.bincount(self.pairs.second, bend, minlength=self.n_rows)

    def blocks(self) -> Array:
        """Return the query of every row."""
        return self.queries

    def output_blocks(self) -> Array | None:
        """Return the query that determines each output, None if outputs depend on several."""
        return self.output_queries

    @cached_property
    def _query_starts(self) -> Array:
        """Where the pairs of every query start, and where those of the last one end."""
        return np.searchsorted(
            self.queries[self.pairs.first], np.arange(int(self.queries.max(initial=-1)) + 2)
        )

    @cached_property
    def _query_sizes(self) -> Array:
        return np.bincount(self.queries)

    def _whole_queries(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return the queries of rows, the position of their pairs, and each row's query."""
        found, codes, counts = np.unique(
            self.queries[rows], return_inverse=True, return_counts=True
        )
        if not np.array_equal(counts, self._query_sizes[found]):
            raise ValueError(
                "A batch of pairs within queries must hold all rows of each of its queries once; "
                f"got {len(rows)} rows of {len(found)} queries that have "
                f"{self._query_sizes[found].sum()} rows."
            )
        starts, ends = self._query_starts[found], self._query_starts[found + 1]
        return found, ranges(starts, ends), codes.ravel()

    def take(self, rows: Array, weights: Array) -> QueryPairs:
        """Return the term on the rows of some queries.

        Raises
        ------
        ValueError
            If a query is not complete, or a row occurs twice.
        """
        _, chosen, queries = self._whole_queries(rows)
        pairs = self._on(rows, chosen)
        scale = np.asarray(weights, dtype=float)[pairs.first]
        return replace(self, pairs=replace(pairs, weights=pairs.weights * scale), queries=queries)

    def take_outputs(self, rows: Array, outputs: Array) -> QueryPairs:
        """Return the outputs that the rows of some queries determine, exactly.

        Parameters
        ----------
        rows : ndarray of int
            All rows of some queries.
        outputs : ndarray of int
            The outputs of these queries.
        """
        _, chosen, queries = self._whole_queries(rows)
        pairs = self._on(rows, chosen)
        cells, codes = np.unique(pairs.cells, return_inverse=True)
        combination = self._rows_of_combination[outputs][:, cells]
        constant = np.broadcast_to(self.constant, (self.n_outputs,))[outputs]
        return replace(
            self,
            pairs=replace(pairs, cells=codes.ravel()),
            queries=queries,
            combination=combination,
            offset=self.offset[outputs],
            constant=constant,
            names=(),
            output_queries=None,
        )

    @cached_property
    def _rows_of_combination(self) -> sp.csr_array:
        return as_csr(self.combination)

    def _on(self, rows: Array, chosen: Array) -> RowPairs:
        """Return some pairs, with positions in `rows` in place of rows."""
        order = np.argsort(rows, kind="stable")
        sorted_rows = rows[order]
        ends = (self.pairs.first[chosen], self.pairs.second[chosen])
        first, second = (order[np.searchsorted(sorted_rows, one)] for one in ends)
        return RowPairs(first, second, self.pairs.cells[chosen], self.pairs.weights[chosen])

    @cached_property
    def _zero_one(self) -> QueryPairs:
        return replace(self, function=_Misordered())

    def zero_one(self) -> QueryPairs:
        """Return the term with the pairwise error: the share of pairs in the wrong order.

        Ties count half.
        """
        return self._zero_one

    def _with_function(self, function: ScalarFunction) -> QueryPairs:
        return replace(self, function=function)

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        return self._by_cell(self.function.subgradient_error(self._differences(scores)))

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the averages of phi' times the changes of differences."""
        differences = self._differences(scores)
        slope = self.function.derivative(differences, self.function.value(differences))
        return lambda change, _: self._by_cell(slope * self._differences(change))

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        :math:`(s_i - s_j)^2 \le 2 s_i^2 + 2 s_j^2`, so that the curvature of a pair along each of
        its scores is at most twice that of phi.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        bend = 2.0 * self._largest_bend()[self.pairs.cells] * self.pairs.weights
        with np.errstate(invalid="ignore"):  # a row without pairs: 0 times infinity
            out = np.bincount(self.pairs.first, bend, minlength=self.n_rows)
            return out + np.bincount(self.pairs.second, bend, minlength=self.n_rows)


class _Misordered(Indicator):
    """phi(t) = 1{t < 0} + 1{t = 0} / 2: the error of a pair whose first score should be higher."""

    def value(self, t: Array) -> Array:
        """Return 1.0 where t < 0, 0.5 where t = 0, else 0.0."""
        return 0.5 - 0.5 * np.sign(t)
