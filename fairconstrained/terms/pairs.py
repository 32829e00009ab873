"""Averages over pairs of rows from two cells: what AUC and its fairness notions are made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.elementary import Identity
from fairconstrained.functions.surrogates import ShiftedSquare
from fairconstrained.terms._ranked_sums import MAX_PAIRS, Ranked, pair_subgradient_error, pair_sum
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, SumTerm, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class PairTerm(Term):
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
        b: the tolerance.
    names : sequence of str
        What each output says.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d: a part of what is bounded, unlike b.
    """

    cells: Any
    pairs: Array
    combination: Any
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0

    @property
    @abstractmethod
    def phi(self) -> ScalarFunction:
        """The function of the differences."""

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return int(self.cells.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return int(self.combination.shape[0])

    @property
    def smooth(self) -> bool:
        """Whether phi is."""
        return self.phi.smooth or self.n_outputs == 0

    @cached_property
    def _signed_parts(self) -> tuple[Any, Any]:
        """R = positive - negative, both >= 0."""
        parts = (sp.csr_array(sign * self.combination).maximum(0.0) for sign in (1.0, -1.0))
        positive, negative = (sp.csr_array(part) for part in parts)
        positive.eliminate_zeros()
        negative.eliminate_zeros()
        return positive, negative

    @property
    def convex(self) -> bool:
        """Whether phi is affine, or convex with no negative weight."""
        if self.phi.curvature == (0.0, 0.0) or self.n_outputs == 0:
            return True
        return self.phi.convex and self._signed_parts[1].nnz == 0

    def _part(self, combination: Any) -> Self:
        """Return the term with other weights, without d and b."""
        none = np.zeros(self.n_outputs)
        return replace(self, combination=combination, offset=none, constant=0.0)

    def batch(self, rows: Array, weights: Array | None = None) -> Self:
        """Return the term on some rows: the weighted sum over the pairs among them.

        It is unbiased where the rows of the two cells are drawn independently of each other, as
        `StratifiedSampler` does (rows of one cell are never in the same stratum as rows of
        another). In a uniform draw the number of pairs varies with the sizes that the cells happen
        to have, so that it is consistent only.
        """
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        return replace(self, cells=sp.csc_array(self.cells[:, rows].multiply(factor)))

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return R p + d, without the offset."""
        return self.value(scores) + self.offset

    def zero_one(self) -> PairMeans:
        """Return the term with the indicator of s_i > s_j, ties counted half."""
        return PairMeans(
            self.cells,
            self.pairs,
            self.combination,
            self.offset,
            self.names,
            self.constant,
            function=self.phi.zero_one(),
        )

    def scaled(self, factor: float) -> Self:
        """Return the term times a factor."""
        return replace(
            self,
            combination=factor * self.combination,
            offset=factor * self.offset,
            constant=factor * self.constant,
        )

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        member = sp.csr_array(self.cells.T != 0)
        pattern = member @ np.random.default_rng(0).standard_normal(self.cells.shape[0])
        return np.unique(pattern, return_inverse=True)[1]

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        :math:`(s_i - s_j)^2 \le 2 s_i^2 + 2 s_j^2`, so that a pair bends its scores by twice what
        phi bends its argument.
        """
        bend = np.zeros(self.cells.shape[0])
        if self.convex:
            return np.zeros(self.n_rows)
        lower, upper = self.phi.curvature
        ends = np.column_stack([np.arange(len(self.pairs))] * 2).ravel()
        shape = (len(self.pairs), len(bend))
        touches = sp.csr_array((np.ones(len(ends)), (ends, self.pairs.ravel())), shape=shape)
        for part, size in zip(self._signed_parts, (max(-lower, 0.0), max(upper, 0.0)), strict=True):
            if size and part.nnz:
                most = sp.coo_array((part @ touches).max(axis=0)).toarray().ravel()
                used = most > 0
                bend[used] += 2.0 * size * most[used]
        return self.cells.T @ bend


@dataclass(frozen=True, eq=False)
class QuadraticPairs(PairTerm):
    r"""Averages of :math:`(1 + s_i - s_j)^2 / 2` over pairs: O(n), by the moments of the cells.

    With :math:`m = \sum a_i` (one on the full data), :math:`\mu = \sum a_i s_i` and
    :math:`q = \sum a_i s_i^2` of each cell,

    .. math::
        p_{AB} = \tfrac12 \left[m_A m_B + 2 (\mu_A m_B - m_A \mu_B)
        + q_A m_B + m_A q_B - 2 \mu_A \mu_B\right].

    The moments add up over rows; no pair is ever formed. A batch is unbiased if its rows are drawn
    by strata, since every product is one of two different cells; the squared mean of one cell,
    which would be biased, does not occur.

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

    phi = ShiftedSquare()

    @property
    def n_statistics(self) -> int:
        """Three moments of every cell."""
        return 3 * int(self.cells.shape[0])

    @cached_property
    def _masses(self) -> Array:
        return np.asarray(self.cells.sum(axis=1)).ravel()

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return m, mu and q of all cells and their pullback."""
        statistics = np.concatenate(
            [self._masses, self.cells @ scores, self.cells @ (scores * scores)]
        )

        def pullback(u: Array) -> tuple[Array, Array]:
            _, on_mean, on_square = np.split(u, 3)
            back = self.cells.T @ on_square
            back *= 2.0 * scores
            back += self.cells.T @ on_mean
            return back, NO_AUXILIARY

        return statistics, pullback

    def _moments(self, statistics: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return m, mu, q of the first and of the second cell of every pair."""
        first, second = self.pairs.T
        moments = np.split(statistics, 3)
        return tuple(one[first] for one in moments), tuple(one[second] for one in moments)

    def head(self, statistics: Array) -> Array:
        """Return R p + d - b."""
        (m, mu, q), (n, nu, r) = self._moments(statistics)
        p = 0.5 * (m * n + q * n + m * r) + mu * n - m * nu - mu * nu
        return self.combination @ p + self.constant - self.offset

    def _slopes(self, statistics: Array) -> Any:
        """Return the derivatives of p, (n_pairs, 3 n_cells)."""
        (m, mu, q), (n, nu, r) = self._moments(statistics)
        first, second = self.pairs.T
        size, pairs = int(self.cells.shape[0]), np.arange(len(self.pairs))
        entries = [
            (0.5 * (n + r) - nu, first),
            (0.5 * (m + q) + mu, second),
            (n - nu, size + first),
            (-m - mu, size + second),
            (0.5 * n, 2 * size + first),
            (0.5 * m, 2 * size + second),
        ]
        values, columns = (np.concatenate(one) for one in zip(*entries, strict=True))
        where = (np.tile(pairs, len(entries)), columns)
        return sp.csr_array((values, where), shape=(len(pairs), 3 * size))

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the weights on the moments."""
        return self._slopes(statistics).T @ (self.combination.T @ v)

    def convex_parts(self) -> tuple[Term, Term]:
        """Return the averages with positive and those with negative weight: both are convex."""
        positive, negative = self._signed_parts
        return replace(self, combination=positive), self._part(negative)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> CellMeans:
        """Return the tangent: an affine function of the means of s and of 2 s0 s."""
        statistics, _ = self.forward(scores)
        size = int(self.cells.shape[0])
        slopes = sp.csr_array(self.combination) @ self._slopes(statistics)[:, size:]
        cells = sp.vstack([self.cells, self.cells.multiply(2.0 * scores)], format="csc")
        at = slopes @ (cells @ scores)
        constant = self.head(statistics) + self.offset - at
        return CellMeans(
            cells, Identity(), slopes, self.offset, names=self.names, constant=constant
        )


@dataclass(frozen=True, eq=False)
class PairMeans(PairTerm):
    r"""Averages of any function over pairs: by sorting where that is exact, else by pairs.

    See :func:`pair_sum` for what is exact. The statistics are the averages
    themselves. They are sums over pairs, not over rows (`additive` is False): a batch has the
    pairs among its rows.

    Parameters
    ----------
    cells, pairs, combination, offset, names, constant
        See :class:`PairTerm`.
    function : ScalarFunction
        phi.
    max_pairs : int
        The most pairs that are formed of two cells where phi has no exact method.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import cell_matrix
    >>> from fairconstrained.terms.pairs import PairMeans
    >>> from fairconstrained.functions.elementary import Indicator
    >>> cells = cell_matrix(np.array([0, 0, 1]), np.ones(3), 2)
    >>> args = (cells, np.array([[0, 1]]), np.ones((1, 1)), np.zeros(1))
    >>> PairMeans(*args, function=Indicator()).value(np.array([1.0, 0.0, 0.0]))
    array([0.75])
    """

    function: ScalarFunction = field(kw_only=True)
    max_pairs: int = MAX_PAIRS
    additive = False

    @property
    def phi(self) -> ScalarFunction:
        """The function of the differences."""
        return self.function

    @property
    def n_statistics(self) -> int:
        """One average for every pair of cells."""
        return len(self.pairs)

    @cached_property
    def _members(self) -> list[tuple[Array, Array]]:
        """The rows of every cell, and their weights."""
        by_cell = sp.csr_array(self.cells)
        edges = by_cell.indptr
        return [(by_cell.indices[a:b], by_cell.data[a:b]) for a, b in pairwise(edges)]

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the averages and their pullback."""
        cells = [Ranked(scores[rows], weights) for rows, weights in self._members]
        sums = [pair_sum(self.function, cells[a], cells[b], self.max_pairs) for a, b in self.pairs]

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(self.n_rows)
            for (a, b), weight, (_, slopes) in zip(self.pairs, u, sums, strict=True):
                if weight:
                    on_first, on_second = slopes()
                    back[self._members[a][0]] += weight * on_first
                    back[self._members[b][0]] += weight * on_second
            return back, NO_AUXILIARY

        return np.array([value for value, _ in sums]), pullback

    def head(self, statistics: Array) -> Array:
        """Return R p + d - b."""
        return self.combination @ statistics + self.constant - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self.combination.T @ v

    @property
    def smoothable(self) -> bool:
        """Whether phi is."""
        return self.function.smoothable or self.n_outputs == 0

    def smoothed(self, width: float) -> PairMeans:
        """Return the term with phi rounded."""
        return replace(self, function=self.function.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the averages of phi's subgradient error."""
        cells = [Ranked(scores[rows], weights) for rows, weights in self._members]
        slacks = [
            pair_subgradient_error(self.function, cells[a], cells[b], self.max_pairs)
            for a, b in self.pairs
        ]
        return abs(self.combination) @ np.array(slacks)

    def convex_parts(self) -> tuple[Term, Term]:
        """Split phi; positive weights take its parts as they are, negative ones exchange them."""
        positive, negative = self._signed_parts
        if self.function.convex:
            return replace(self, combination=positive), self._part(negative)
        plus, minus = self.function.convex_parts()
        up, down = self._part(positive), self._part(negative)
        whole = replace(self, combination=positive, function=plus)
        return (
            SumTerm((whole, replace(down, function=minus))),
            SumTerm((replace(up, function=minus), replace(down, function=plus))),
        )

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> CellMeans:
        """Return the tangent: every average becomes a weighted sum of scores."""
        return tangent(self, scores, self.constant)


def tangent(term: Any, scores: Array, constant: Array | float) -> CellMeans:
    """Return the tangent of a term R r + d - b whose statistics r are no sums over rows."""
    statistics, pullback = term.forward(scores)
    slopes = [sp.csr_array(pullback(unit)[0][None, :]) for unit in np.eye(len(statistics))]
    shape = (len(statistics), term.n_rows)
    cells = sp.csc_array(sp.vstack(slopes)) if slopes else sp.csc_array(shape)
    moved = term.combination @ (statistics - cells @ scores)
    return CellMeans(
        cells,
        Identity(),
        term.combination,
        term.offset,
        names=term.names,
        constant=constant + moved,
    )
