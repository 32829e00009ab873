"""Rates at many thresholds: the terms of ROC parity and of partial demographic parity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback, Shardable
from fairconstrained.terms.cell_means import OnCells
from fairconstrained.terms.difference_sums import DifferenceSums, sums_at_points
from fairconstrained.terms.ranked import Ranked
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True, eq=False)
class ThresholdRates(OnCells, FunctionAverages, Shardable):
    r"""The affine function :math:`c = R\, r + d - b` of rates at thresholds.

    .. math::
        r_{kj}(s, \theta) = \sum_i A_{ki}\, \phi(s_i - \theta_j).

    They are computed for all thresholds together, see
    :func:`~fairconstrained.terms.difference_sums.sums_at_points`.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        A, see :class:`OnCells`.
    function : ScalarFunction
        phi.
    thresholds : ndarray of shape (n_thresholds,)
        theta; with `free`, the initial values of the variables.
    free : bool, default=False
        Whether the thresholds are auxiliary variables of the term. Where they are not passed, they
        have their initial values.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`; R has a column for the rates of the
        first cell at all thresholds, then for those of the second one.
    """

    function: ScalarFunction
    thresholds: Array
    free: bool = False

    @property
    def n_auxiliary(self) -> int:
        """The number of free thresholds."""
        return len(self.thresholds) if self.free else 0

    @property
    def auxiliary_start(self) -> Array:
        """The initial values of free thresholds."""
        return np.array(self.thresholds if self.free else NO_AUXILIARY, dtype=float)

    def auxiliary_at(self, level: float) -> Array:
        """Return the initial values of free thresholds, moved with the scores."""
        return self.auxiliary_start + level

    def _pullback(self, scores: Array, auxiliary: Array) -> _RatesPullback:
        thresholds = auxiliary if self.free and len(auxiliary) else self.thresholds
        return _RatesPullback(self, scores, thresholds)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        pullback = self._pullback(scores, auxiliary)
        return pullback.averages().ravel(), pullback

    @property
    def factored(self) -> bool:
        """Whether phi is smooth, so that sums over rows go through a few nodes."""
        return self.function.knots is None

    @property
    def curved(self) -> bool:
        """Whether phi has a second derivative."""
        return self.function.twice_differentiable

    def rows_of(self, statistics: Array, outputs: Array) -> Matrix:
        """Return the gradients of some outputs in the rates: rows of R."""
        return self._small[outputs]

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the derivative, with respect to free thresholds as well."""
        return self._pullback(scores, auxiliary).push

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        Twice that if the thresholds are free, since :math:`(\delta s - \delta \theta)^2 \le
        2 \delta s^2 + 2 \delta \theta^2`. With an intercept, which moves all scores by the same
        amount, the bound that the model derives from it holds for the thresholds as well.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        n_cells, n_thresholds = self.cells.shape[0], len(self.thresholds)
        by_cell = sp.csr_array(sp.kron(sp.eye_array(n_cells), np.ones((n_thresholds, 1))))
        bend = self._largest_bend(by_cell)
        return (2.0 if self.free else 1.0) * (self.cells.T @ bend)


class _RatesPullback(FactoredPullback):
    r"""The averages over cells of :math:`\phi(s_i - \theta_j)`, with products with their slopes.

    Called with weights of the averages, it returns those of the scores and of free thresholds.

    Parameters
    ----------
    term : ThresholdRates
        The cells, phi, and whether thresholds are variables.
    scores, thresholds : ndarray
        s and theta.
    """

    def __init__(self, term: ThresholdRates, scores: Array, thresholds: Array):
        self.free, self.n_rows = term.free, len(scores)
        self.shape = term.cells.shape[0], len(thresholds)
        # measured from the middle of the thresholds, squares of the scores keep their digits
        origin = float(thresholds.sum()) / max(len(thresholds), 1)
        cells, points = term._ranked(scores - origin), Ranked(thresholds - origin)
        self.sums = sums_at_points(term.function, cells, points)

    def averages(self, order: int = 0) -> Array:
        """Return the averages of phi or a derivative, shape (n_cells, n_thresholds)."""
        averages = [sums.over_first(sums.first.weights, order=order) for sums in self.sums]
        return np.array(averages).reshape(self.shape)

    def __call__(self, u: Array) -> tuple[Array, Array]:
        weights = u.reshape(self.shape)
        on_thresholds = NO_AUXILIARY
        if self.free:
            on_thresholds = -np.sum(weights * self.averages(1), axis=0)
        return self._pull(weights, 1), on_thresholds

    def second_derivatives(self, u: Array) -> Array:
        return self._pull(u.reshape(self.shape), 2)

    def by_variable(self, u: Array) -> Array:
        return self._pull([np.diag(weights) for weights in u.reshape(self.shape)], 2)

    def _pull(self, u: Sequence[Array] | Array, order: int) -> Array:
        """Return sum_kj u_kj A_ki phi'(s_i - theta_j), or of phi'', for columns of u_k."""
        out = np.zeros((self.n_rows, *u[0].shape[1:]))
        for sums, weights in zip(self.sums, u, strict=True):
            if weights.any():
                by_row = sums.over_second(weights, order=order)
                out[sums.first.rows] += (sums.first.weights * by_row.T).T
        return out

    def push(self, change: Array, own: Array) -> Array:
        """Return sum_i A_ki phi'(s_i - theta_j) (change_i - own_j), the change of the averages."""
        cells = [sums.first for sums in self.sums]
        changes = [cell.weights * change[cell.rows] for cell in cells]
        each = zip(self.sums, changes, strict=True)
        pushed = np.array([sums.over_first(mass, order=1) for sums, mass in each])
        pushed = pushed.reshape(self.shape)
        return (pushed - self.averages(1) * own if self.free else pushed).ravel()

    def basis(self) -> list[SparseMatrix] | None:
        if any(sums.of_nodes is None for sums in self.sums):
            return None
        return [_on_rows(sums.spread(), sums.first.rows, self.n_rows) for sums in self.sums]

    def jacobian(self, products: list[Array]) -> tuple[Array, Array]:
        of_nodes = [cast("DifferenceSums", sums.of_nodes) for sums in self.sums]
        each = zip(of_nodes, products, strict=True)
        rows = np.concatenate([sums.over_first(product, order=1) for sums, product in each])
        if not self.free:
            return rows, np.zeros((len(rows), 0))
        return rows, np.vstack([np.diag(-slopes) for slopes in self.averages(1)])


def _on_rows(matrix: SparseMatrix, rows: Array, n_rows: int) -> SparseMatrix:
    """Return a CSC matrix with a column for each row of the data, of which few are not empty."""
    lengths = np.zeros(n_rows + 1, dtype=matrix.indptr.dtype)
    lengths[rows + 1] = np.diff(matrix.indptr)
    entries = matrix.data, matrix.indices, np.cumsum(lengths, dtype=matrix.indptr.dtype)
    return sp.csc_array(entries, shape=(matrix.shape[0], n_rows))
