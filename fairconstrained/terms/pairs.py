"""Averages over pairs of rows from two cells: the terms of AUC and its fairness notions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import ShiftedSquare
from fairconstrained.terms.affine import FunctionAverages
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback, Shardable
from fairconstrained.terms.cell_means import cell_codes, reweighted, rows_by_cell
from fairconstrained.terms.difference_sums import pair_subgradient_error, pair_sum
from fairconstrained.terms.ranked import Ranked, centered
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True, eq=False)
class PairTerm(FunctionAverages):
    r"""The affine function :math:`c = R\,p + d - b` of averages over pairs of rows.

    .. math::
        p_{AB} = \sum_{i \in A} \sum_{j \in B} a_i\, b_j\, \phi(s_i - s_j),
        \qquad \sum_i a_i = \sum_j b_j = 1 \text{ on the full data.}

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        Row k holds the weights of cell k, which sum to one. The cells of a pair have no row in
        common.
    pairs : ndarray of int of shape (n_pairs, 2)
        The cells A and B of every average.
    combination : CSR of shape (n_outputs, n_pairs)
        R.
    offset : ndarray of shape (n_outputs,)
        b, the tolerance.
    names : sequence of str
        A description of each output.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.
    """

    cells: SparseMatrix
    pairs: Array
    combination: Matrix
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return int(self.cells.shape[1])

    def take(self, rows: Array, weights: Array) -> PairTerm:
        """Return the term on some rows: the weighted sum over the pairs among them.

        It is unbiased where the rows of the two cells are drawn independently of each other, as
        `StratifiedSampler` does (rows of one cell are never in the same stratum as rows of
        another). In a uniform draw the number of pairs varies with the numbers of rows drawn from
        the cells, so that it is consistent only.
        """
        return replace(self, cells=reweighted(sp.csc_array(self.cells[:, rows]), weights))

    def zero_one(self) -> PairMeans:
        """Return the term with the indicator of s_i > s_j; ties count half."""
        return self._with_function(self.function.zero_one())

    def _with_function(self, function: ScalarFunction) -> PairMeans:
        return PairMeans(
            self.cells,
            self.pairs,
            self.combination,
            self.offset,
            self.names,
            self.constant,
            function=function,
        )

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        return cell_codes(self.cells)

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        :math:`(s_i - s_j)^2 \le 2 s_i^2 + 2 s_j^2`, so that the curvature of a pair along each of
        its scores is at most twice that of phi.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        ends = np.column_stack([np.arange(len(self.pairs))] * 2).ravel()
        shape = (len(self.pairs), self.cells.shape[0])
        touches = sp.csr_array((np.ones(len(ends)), (ends, self.pairs.ravel())), shape=shape)
        return self.cells.T @ (2.0 * self._largest_bend(touches))


@dataclass(frozen=True, eq=False)
class QuadraticPairs(PairTerm, Shardable):
    r"""Averages of :math:`(1 + s_i - s_j)^2 / 2` over pairs: O(n), by the moments of the cells.

    With the means :math:`\mu = \sum a_i s_i` and mean squares :math:`q = \sum a_i s_i^2` of each
    cell, and :math:`m = \sum a_i`, which is one on the full data,

    .. math::
        p_{AB} = \tfrac12 \left[m_A m_B + 2 (\mu_A m_B - m_A \mu_B)
        + q_A m_B + m_A q_B - 2 \mu_A \mu_B\right].

    Means and mean squares add up over rows; no pair is ever formed. A batch is unbiased if its rows
    are drawn by strata, since every product is one of two different cells; the squared mean of one
    cell, which would be biased, does not occur.

    Parameters
    ----------
    cells, pairs, combination, offset, names, constant
        See :class:`PairTerm`.

    References
    ----------
    IDCA, equations (66) to (71).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import cell_matrix
    >>> from fairconstrained.terms.pairs import QuadraticPairs
    >>> cells = cell_matrix(np.array([0, 0, 1]), np.ones(3), 2)
    >>> term = QuadraticPairs(cells, np.array([[0, 1]]), np.ones((1, 1)), np.zeros(1))
    >>> term.value(np.array([1.0, 2.0, 0.0]))  # the mean of 2 and 4.5
    array([3.25])
    """

    function = ShiftedSquare()
    factored: ClassVar[bool] = True

    @property
    def n_statistics(self) -> int:
        """The mean and the mean square of every cell."""
        return 2 * int(self.cells.shape[0])

    @cached_property
    def _masses(self) -> Array:
        return np.asarray(self.cells.sum(axis=1)).ravel()

    @cached_property
    def _by_row(self) -> SparseMatrix:
        return self.cells.T

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return mu and q of all cells and their pullback."""
        statistics = np.concatenate([self.cells @ scores, self.cells @ (scores * scores)])

        return statistics, MomentsPullback(self, scores)

    def head(self, statistics: Array) -> Array:
        """Return R p + d - b."""
        (mu, q), (a, b), m = statistics.reshape(2, -1), self.pairs.T, self._masses
        p = 0.5 * (m[a] * m[b] + q[a] * m[b] + m[a] * q[b])
        return super().head(p + mu[a] * m[b] - m[a] * mu[b] - mu[a] * mu[b])

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradient with respect to the moments."""
        mu, (a, b), m = statistics[: len(self._masses)], self.pairs.T, self._masses
        weights = super().head_vjp(statistics, v)

        def summed(on_first: Array, on_second: Array) -> Array:
            of_first = np.bincount(a, weights * on_first, len(m))
            return of_first + np.bincount(b, weights * on_second, len(m))

        on_mean = summed(m[b] - mu[b], -m[a] - mu[a])
        return np.concatenate([on_mean, summed(0.5 * m[b], 0.5 * m[a])])

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        return np.zeros(len(self.pairs))  # phi is smooth: it is never rounded


@dataclass(eq=False)
class MomentsPullback(FactoredPullback):
    """Weights on the moments of cells -> weights on the scores."""

    term: QuadraticPairs
    scores: Array

    def __call__(self, u: Array) -> tuple[Array, Array]:
        """Return A' (u_mu + 2 s u_q)."""
        on_mean, on_square = u.reshape(2, -1)
        back = self.term._by_row @ on_square
        back *= 2.0 * self.scores
        back += self.term._by_row @ on_mean
        return back, NO_AUXILIARY

    def basis(self) -> list[SparseMatrix]:
        """Return the derivatives of mu and of q in the scores."""
        cells = self.term.cells
        return [cells, reweighted(cells, 2.0 * self.scores)]

    def jacobian(self, products: list[Array]) -> tuple[Array, Array]:
        """Return the products."""
        rows = np.concatenate(products)
        return rows, np.zeros((len(rows), 0))


@dataclass(frozen=True, eq=False)
class PairMeans(PairTerm):
    r"""Averages of any function over pairs, in O(n log n) for smooth and for quadratic pieces.

    See :mod:`~fairconstrained.terms.difference_sums`. The statistics are the averages
    themselves. They are sums over pairs, not over rows, so that the term is not shardable: a batch
    has the pairs among its rows.

    Parameters
    ----------
    cells, pairs, combination, offset, names, constant
        See :class:`PairTerm`.
    function : ScalarFunction
        phi.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import cell_matrix
    >>> from fairconstrained.terms.pairs import PairMeans
    >>> from fairconstrained.functions.base import Indicator
    >>> cells = cell_matrix(np.array([0, 0, 1]), np.ones(3), 2)
    >>> args = (cells, np.array([[0, 1]]), np.ones((1, 1)), np.zeros(1))
    >>> PairMeans(*args, function=Indicator()).value(np.array([1.0, 0.0, 0.0]))
    array([0.75])
    """

    function: ScalarFunction = field(kw_only=True)

    @property
    def n_statistics(self) -> int:
        """One average for every pair of cells."""
        return len(self.pairs)

    @cached_property
    def _rows_by_cell(self) -> list[tuple[Array, Array]]:
        return rows_by_cell(self.cells)

    def _ranked(self, scores: Array) -> list[Ranked]:
        """Return the scores of every cell, measured from the mean of all."""
        scores = centered(scores)
        return [Ranked(scores[rows], weights) for rows, weights in self._rows_by_cell]

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the averages and their pullback."""
        cells = self._ranked(scores)
        sums = [pair_sum(self.function, cells[a], cells[b]) for a, b in self.pairs]

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(self.n_rows)
            for (a, b), weight, (_, slopes) in zip(self.pairs, u, sums, strict=True):
                if weight:
                    on_first, on_second = slopes()
                    back[self._rows_by_cell[a][0]] += weight * on_first
                    back[self._rows_by_cell[b][0]] += weight * on_second
            return back, NO_AUXILIARY

        return np.array([value for value, _ in sums]), pullback

    def _with_function(self, function: ScalarFunction) -> PairMeans:
        return replace(self, function=function)

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        cells = self._ranked(scores)
        errors = [pair_subgradient_error(self.function, cells[a], cells[b]) for a, b in self.pairs]
        return np.array(errors)
