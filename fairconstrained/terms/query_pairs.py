"""Averages over pairs of rows of the same query: the terms of rankers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.terms.cell_means import CellMeans, reweighted
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.numerics import ranges
from fairconstrained.utils.typing import Array, SparseMatrix

_DISTANCE = 0.01  # half that of the points whose slopes give a second derivative


def differences(first: Array, second: Array, n_rows: int) -> SparseMatrix:
    """Return the matrix that makes the differences of pairs of the scores, (n_pairs, n_rows)."""
    ends = np.column_stack([first, second])
    entries = (np.tile([1.0, -1.0], len(ends)), ends.ravel(), 2 * np.arange(len(ends) + 1))
    return sp.csr_array(entries, shape=(len(ends), n_rows))


@dataclass(frozen=True, eq=False)
class QueryPairs(FunctionAverages):
    r"""The affine function :math:`c = R\,p + d - b` of averages over pairs of rows of a query.

    .. math::
        p_k = \sum_{(i, j) \in C_k} w_{ij}\, \phi(s_i - s_j), \qquad \sum_{(i, j) \in C_k} w_{ij}
        = 1 \text{ on the full data.}

    A cell :math:`C_k` is a set of pairs, for instance those of a query whose positive row is of one
    group and whose negative row is of another. Every pair is in one cell. An evaluation takes the
    averages over cells of the differences of all pairs, in time proportional to the number of
    pairs, whatever the number of cells.

    Batches consist of whole queries: rows of one query are drawn together, with one weight.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_pairs)
        The weights of the pairs in their cells.
    differences : CSR of shape (n_pairs, n_rows)
        The matrix that makes :math:`s_i - s_j` of the scores; the pairs are sorted by query.
    queries : ndarray of int of shape (n_rows,)
        The query of every row, from 0.
    function : ScalarFunction
        phi.
    output_queries : ndarray of int of shape (n_outputs,) or None, default=None
        The query whose pairs each output averages over; None if outputs depend on several.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`; R is of shape (n_outputs, n_cells).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.terms.cell_means import cell_matrix
    >>> from fairconstrained.terms.query_pairs import QueryPairs, differences
    >>> pairs = differences(np.array([0, 0]), np.array([1, 2]), 3)
    >>> cells = cell_matrix(np.zeros(2, int), np.ones(2), 1)
    >>> QueryPairs(cells, pairs, np.zeros(3, int), Hinge()).value(np.array([1.0, 0.5, 0.0]))
    array([0.25])
    """

    cells: SparseMatrix
    differences: SparseMatrix
    queries: Array
    function: ScalarFunction
    output_queries: Array | None = None

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows of the scores."""
        return len(self.queries)

    @cached_property
    def _means(self) -> CellMeans:
        """The averages of phi as a term of the differences."""
        return CellMeans(self.cells, self.function)

    @cached_property
    def _by_row(self) -> SparseMatrix:
        return self.differences.T

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the averages and their pullback."""
        averages, pullback = self._means.forward(self.differences @ scores)
        return averages, lambda u: (self._by_row @ pullback(u)[0], NO_AUXILIARY)

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the averages of phi' times the changes of differences."""
        push = self._means.pushforward(self.differences @ scores)
        return lambda change, own: push(self.differences @ change, own)

    def curvature_by_row(self, scores: Array) -> Array:
        r"""Return the sum of the outputs' second derivatives along each score.

        Those of phi are differences of its derivatives at two points, so that kinks count with
        the part of the pairs that are near them.
        """
        ends = self.differences @ scores + np.array([[_DISTANCE], [-_DISTANCE]])
        ahead, behind = self.function.derivative(ends, self.function.value(ends))
        of_pairs = self.cells.T @ as_csr(self.combination).sum(axis=0)
        return abs(self._by_row) @ (of_pairs * (ahead - behind) / (2.0 * _DISTANCE))

    def _bend(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        :math:`(s_i - s_j)^2 \le 2 s_i^2 + 2 s_j^2`, so that the curvature of a pair along each of
        its scores is at most twice that of phi.
        """
        return abs(self._by_row) @ (self.cells.T @ (2.0 * self._largest_bend()))

    def blocks(self) -> Array:
        """Return the query of every row."""
        return self.queries

    def output_blocks(self) -> Array | None:
        """Return the query that determines each output, None if outputs depend on several."""
        return self.output_queries

    @cached_property
    def _query_starts(self) -> Array:
        """Where the pairs of every query start, and where those of the last one end."""
        of_pairs = self.queries[self.differences.indices[::2]]
        return np.searchsorted(of_pairs, np.arange(int(self.queries.max(initial=-1)) + 2))

    @cached_property
    def _query_sizes(self) -> Array:
        return np.bincount(self.queries)

    def _on(self, rows: Array) -> QueryPairs:
        """Return the term on the rows of some queries, without change of the weights.

        Raises
        ------
        ValueError
            If a query is not complete, or a row occurs twice.
        """
        present, queries, counts = np.unique(
            self.queries[rows], return_inverse=True, return_counts=True
        )
        sizes = self._query_sizes[present]
        if not np.array_equal(counts, sizes):
            raise ValueError(
                "A batch of pairs within queries must hold all rows of each of its queries once; "
                f"got {len(rows)} rows of {len(present)} queries that have {sizes.sum()} rows."
            )
        chosen = ranges(self._query_starts[present], self._query_starts[present + 1])
        pairs, queries = self.differences[chosen][:, rows], queries.ravel()
        return replace(self, cells=self.cells[:, chosen], differences=pairs, queries=queries)

    def take(self, rows: Array, weights: Array) -> QueryPairs:
        """Return the term on all rows of some queries."""
        term = self._on(rows)
        scale = 0.5 * (abs(term.differences) @ weights)  # both rows have that of their query
        return replace(term, cells=reweighted(term.cells, scale))

    def take_outputs(self, rows: Array, outputs: Array) -> QueryPairs:
        """Return the outputs that the rows of some queries determine, exactly.

        Parameters
        ----------
        rows : ndarray of int
            All rows of some queries.
        outputs : ndarray of int
            The outputs of these queries.
        """
        term = self._on(rows).some_outputs(outputs)
        used = np.unique(term.cells.indices)
        combination = as_csr(term.combination)[:, used]
        return replace(term, cells=term.cells[used], combination=combination, output_queries=None)

    @cached_property
    def _zero_one(self) -> QueryPairs:
        return replace(self, function=_Misordered())

    def zero_one(self) -> QueryPairs:
        """Return the term with the pairwise error: the share of pairs in the wrong order.

        Ties count half.
        """
        return self._zero_one


class _Misordered(Indicator):
    """phi(t) = 1{t < 0} + 1{t = 0} / 2: the error of a pair whose first score should be higher."""

    def value(self, t: Array) -> Array:
        """Return 1.0 where t < 0, 0.5 where t = 0, else 0.0."""
        return 0.5 - 0.5 * np.sign(t)
