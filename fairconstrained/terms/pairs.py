"""Averages over pairs of rows: of two cells, or of the same query."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions import Hinge, ShiftedSquare
from fairconstrained.functions.base import Indicator, Rounded, ScalarFunction, SubgradientError
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback
from fairconstrained.terms.cell_means import CellMeans, OnCells, reweighted
from fairconstrained.terms.difference_sums import (
    Ranked,
    centered,
    difference_sums,
    pair_sum,
    soft_top,
)
from fairconstrained.terms.head import FunctionAverages, Pushforward
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.utils.arrays import Array, SparseMatrix, ranges

Pair = tuple[Ranked, Ranked]
# Pairs times cells for which a dense table takes less time to make than a sparse one.
_FEW = 1 << 11


@dataclass(frozen=True, eq=False)
class PairMeans(OnCells, FunctionAverages):
    r"""The affine function :math:`c = R\,p + d - b` of averages over pairs of rows.

    .. math::
        p_{AB} = \sum_{i \in A} \sum_{j \in B} a_i\, b_j\, \phi(s_i - s_j),
        \qquad \sum_i a_i = \sum_j b_j = 1 \text{ on the full data.}

    They cost O(n log n) for smooth functions and for quadratic pieces, see
    :mod:`~fairconstrained.terms.difference_sums`. They are no sums over rows of the data.

    A batch is the weighted sum over the pairs among its rows. It is unbiased where the rows of the
    two cells are drawn independently of each other, as `Rows` does. In a uniform draw the number of
    pairs varies with the rows drawn from the cells, so that it is consistent only.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        Row k holds the weights of cell k, which sum to one. The cells of a pair have no row in
        common.
    pairs : ndarray of int of shape (n_pairs, 2)
        The cells A and B of every average.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`; R is of shape (n_outputs, n_pairs).
    function : ScalarFunction
        phi.
    """

    pairs: Array
    function: ScalarFunction = field(kw_only=True)
    of_differences = True

    def _bend(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        :math:`(s_i - s_j)^2 \le 2 s_i^2 + 2 s_j^2`: that of a pair is at most twice that of phi.
        """
        ends = np.column_stack([np.arange(len(self.pairs))] * 2).ravel()
        shape = (len(self.pairs), self.cells.shape[0])
        touches = sp.csr_array((np.ones(len(ends)), (ends, self.pairs.ravel())), shape=shape)
        return self.cells.T @ (2.0 * self._largest_bend(touches))

    def _pairs_of(self, scores: Array) -> list[Pair]:
        """Return both sides of every sum."""
        cells = self._ranked(centered(scores))
        return [(cells[a], cells[b]) for a, b in self.pairs]

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the sums and their pullback."""
        pairs = self._pairs_of(scores)
        sums = [pair_sum(self.function, *pair) for pair in pairs]

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(len(scores))
            for (first, second), weight, (_, slopes) in zip(pairs, u, sums, strict=True):
                if weight:
                    on_first, on_second = slopes()
                    back[first.rows] += weight * on_first
                    back[second.rows] += weight * on_second
            return back, NO_AUXILIARY

        return np.array([value for value, _ in sums]) - self._rounding(pairs), pullback

    def _rounding(self, pairs: list[Pair]) -> Array | float:
        """Return what the sums are less than those of phi."""
        return 0.0


@dataclass(frozen=True, eq=False)
class QuadraticPairs(PairMeans):
    r"""Averages of :math:`(1 + s_i - s_j)^2 / 2` over pairs: O(n), by the moments of the cells.

    With the means :math:`\mu = \sum a_i s_i` and mean squares :math:`q = \sum a_i s_i^2` of each
    cell, and :math:`m = \sum a_i`, which is one on the full data,

    .. math::
        p_{AB} = \tfrac12 \left[m_A m_B + 2 (\mu_A m_B - m_A \mu_B)
        + q_A m_B + m_A q_B - 2 \mu_A \mu_B\right].

    Means and mean squares add up over rows. A batch is unbiased if its rows are drawn by strata:
    every product is one of two different cells. See IDCA, equations (66) to (71).
    """

    function: ScalarFunction = field(default=ShiftedSquare(), kw_only=True)
    shardable = factored = True

    n_statistics = property(lambda term: 2 * int(term.cells.shape[0]))  # means, mean squares

    @cached_property
    def _masses(self) -> Array:
        return np.asarray(self.cells.sum(axis=1)).ravel()

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return mu and q of all cells and their pullback."""
        statistics = np.concatenate([self._sums(scores), self._sums(scores * scores)])
        return statistics, MomentsPullback(self, scores)

    def averages(self, statistics: Array) -> Array:
        """Return p."""
        (mu, q), (a, b), m = statistics.reshape(2, -1), self.pairs.T, self._masses
        p = 0.5 * (m[a] * m[b] + q[a] * m[b] + m[a] * q[b])
        return p + mu[a] * m[b] - m[a] * mu[b] - mu[a] * mu[b]

    def averages_vjp(self, statistics: Array, weights: Any) -> Any:
        """Return the weights times the derivatives of p in the moments."""
        mu, (a, b), m = statistics[: len(self._masses)], self.pairs.T, self._masses
        slopes = np.array([m[b] - mu[b], -m[a] - mu[a], 0.5 * m[b], 0.5 * m[a]])
        moments = np.array([a, b, len(m) + a, len(m) + b])
        if len(a) * len(m) <= _FEW:
            table = np.zeros((len(a), 2 * len(m)))
            table[np.arange(len(a)), moments] = slopes
            return weights @ table
        entries = slopes.T.ravel(), moments.T.ravel(), 4 * np.arange(len(a) + 1)
        return weights @ sp.csr_array(entries, shape=(len(a), 2 * len(m)))

    def _with_function(self, function: ScalarFunction) -> PairMeans:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return PairMeans(**values | {"function": function})


@dataclass(eq=False)
class MomentsPullback(FactoredPullback):
    """Weights on the moments of cells -> weights on the scores."""

    term: QuadraticPairs
    scores: Array

    def __call__(self, u: Array) -> tuple[Array, Array]:
        """Return A' (u_mu + 2 s u_q)."""
        on_mean, on_square = map(self.term._spread, np.split(u, 2, axis=-1))
        return on_mean + 2.0 * self.scores * on_square, NO_AUXILIARY

    def basis(self) -> list[SparseMatrix]:
        """Return the derivatives of mu and of q in the scores."""
        return [self.term.cells, reweighted(self.term.cells, 2.0 * self.scores)]


@dataclass(frozen=True, eq=False)
class TopPairs(PairMeans):
    r"""The function :math:`c = R\,T + d - b` of sums over pairs with the highest negatives.

    With a `width` :math:`\omega > 0` the sums are rounded, so that they are smooth if the loss is:

    .. math::
        T_{\beta, \omega} = \max\Big\{\sum_j u_j L_j - \frac{\omega}{2} \sum_j \frac{u_j^2}{b_j}
        : 0 \le u_j \le b_j,\ \sum_j u_j = \beta\Big\},

    attained at :math:`u_j = b_j\, \mathrm{clip}((L_j - \tau) / \omega, 0, 1)` for one
    :math:`\tau`. The gradient takes u as constant; it is an :math:`\epsilon`-subgradient of
    :math:`T_\beta` with :math:`\epsilon = T_\beta - \sum_j u_j L_j`.

    The cells are the negative and the positive rows, the pairs (1, 0) for every level. The loss is
    convex and does not increase.

    Parameters are those of :class:`PairMeans`, the shares of the negatives (`levels`), and omega
    (`width`).

    See Y. Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103
    (2005).
    """

    levels: Array
    width: float = 0.0

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the loss is smooth, and the sums are rounded or leave no negative out."""
        used = abs(self.combination).sum(axis=0) > 0.0
        whole = bool(np.all(self.levels[used] >= 1.0))
        return self.function.smooth and (whole or self.width > 0.0)

    @property
    def smoothable(self) -> bool:
        """Whether the loss is smoothable and a sum that is subtracted has bounded slopes."""
        return self.function.smoothable and (self.convex or self._bounded)

    @property
    def _bounded(self) -> bool:
        """Whether the slopes of the loss are bounded."""
        return isinstance(self.function, Hinge | Rounded)

    def smoothed(self, width: float) -> "TopPairs":
        """Return the term with the loss and the sums rounded."""
        return replace(self, function=self.function.smoothed(width), width=width)

    def _pairs_of(self, scores: Array) -> list[Pair]:
        (negatives, positives), pairs = self._ranked(centered(scores)), []
        for level in self.levels:
            part = negatives.top(level)
            if self.width > 0.0 and level < 1.0:
                sums = difference_sums(self.function, positives, negatives)
                losses, weights = sums.over_first(positives.weights), negatives.weights
                part = weights * soft_top(losses, weights, level, self.width)
            chosen = np.flatnonzero(part)
            top = Ranked(negatives.scores[chosen], part[chosen], negatives.rows[chosen])
            pairs.append((positives, top))
        return pairs

    @cached_property
    def _masses(self) -> Array:
        """The weight of every row."""
        return np.asarray(self.cells.sum(axis=0)).ravel()

    def _rounding(self, pairs: list[Pair]) -> Array:
        squares = [top.weights @ (top.weights / self._masses[top.rows]) for _, top in pairs]
        return 0.5 * self.width * np.where(self.levels < 1.0, squares, 0.0)

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        def sums(function: ScalarFunction, pairs: list[Pair]) -> Array:
            return np.array([pair_sum(function, *pair)[0] for pair in pairs])

        rounded, exact = (term._pairs_of(scores) for term in (self, replace(self, width=0.0)))
        error = sums(SubgradientError(self.function.corners), rounded)
        gap = sums(self.function, exact) - sums(self.function, rounded)
        return np.maximum(gap, 0.0) + np.maximum(error, 0.0)

    def _bend(self) -> Array:
        r"""Return the upward curvature of the subtracted sums: infinite where they have kinks.

        That of rounded sums of a rounded hinge, whose slopes are at most 1, is at most
        :math:`4 / \omega` times a row's weight: twice for the choice of u, twice for the loss.
        """
        down = float(self._signed_parts[1].sum(axis=1).max())
        bend = 4.0 / self.width if self.width > 0.0 and self._bounded else np.inf
        return down * bend * self._masses


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
    averages over cells of the differences of all pairs. Batches consist of whole queries, whose
    rows have one weight.

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
    output_blocks : ndarray of int of shape (n_outputs,) or None, default=None
        The query whose pairs each output averages over; None if outputs depend on several.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`; R is of shape (n_outputs, n_cells).
    """

    cells: SparseMatrix
    differences: SparseMatrix
    queries: Array
    function: ScalarFunction
    output_blocks: Array | None = None

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
        return lambda change, variables: push(self.differences @ change, variables)

    def curvature_by_row(self, scores: Array) -> Array:
        """Return the sum of the outputs' second derivatives along each score.

        Those of phi are differences of derivatives: kinks count with the pairs that are near them.
        """
        ends = self.differences @ scores + np.array([[_DISTANCE], [-_DISTANCE]])
        ahead, behind = self.function.derivative(ends, self.function.value(ends))
        of_pairs = self.cells.T @ as_csr(self.combination).sum(axis=0)
        return abs(self._by_row) @ (of_pairs * (ahead - behind) / (2.0 * _DISTANCE))

    def _bend(self) -> Array:
        """Return the largest downward curvature along each score: twice that of phi, as above."""
        return abs(self._by_row) @ (self.cells.T @ (2.0 * self._largest_bend()))

    def blocks(self) -> Array:
        """Return the query of every row."""
        return self.queries

    @cached_property
    def _query_starts(self) -> Array:
        """Where the pairs of every query start, and where those of the last one end."""
        of_pairs = self.queries[self.differences.indices[::2]]
        return np.searchsorted(of_pairs, np.arange(int(self.queries.max(initial=-1)) + 2))

    @cached_property
    def _query_sizes(self) -> Array:
        return np.bincount(self.queries)

    def _on(self, rows: Array) -> "QueryPairs":
        """Return the term on all rows of some queries, each once, with the same weights."""
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

    def take(self, rows: Array, weights: Array) -> "QueryPairs":
        """Return the term on all rows of some queries."""
        term = self._on(rows)
        scale = 0.5 * (abs(term.differences) @ weights)  # both rows have that of their query
        return replace(term, cells=reweighted(term.cells, scale))

    def take_outputs(self, rows: Array, outputs: Array) -> "QueryPairs":
        """Return the outputs that the rows of some queries determine, exactly."""
        term = self._on(rows).some_outputs(outputs)
        used = np.unique(term.cells.indices)
        combination = as_csr(term.combination)[:, used]
        return replace(term, cells=term.cells[used], combination=combination, output_blocks=None)

    @cached_property
    def _zero_one(self) -> "QueryPairs":
        """The pairwise error: the share of pairs in the wrong order."""
        return replace(self, function=_Misordered())


class _Misordered(Indicator):
    """phi(t) = 1{t < 0} + 1{t = 0} / 2: the error of a pair whose first score should be higher."""

    def value(self, t: Array) -> Array:
        """Return 1.0 where t < 0, 0.5 where t = 0, else 0.0."""
        return 0.5 - 0.5 * np.sign(t)
