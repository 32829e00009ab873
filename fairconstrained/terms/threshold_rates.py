"""Rates at many thresholds: the terms of ROC parity and of partial demographic parity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction, SubgradientError
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback, Shardable, Term
from fairconstrained.terms.cell_means import OfRates, rows_by_cell
from fairconstrained.terms.difference_sums import FEW, difference_sums, precise_step
from fairconstrained.terms.ranked import Ranked
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True, eq=False)
class ThresholdRates(OfRates, FunctionAverages, Shardable):
    r"""The affine function :math:`c = R\, r + d - b` of rates at thresholds.

    .. math::
        r_{kj}(s, \theta) = \sum_i A_{ki}\, \phi(s_i - \theta_j).

    They are computed for all thresholds together, see
    :func:`~fairconstrained.terms.difference_sums.difference_sums`.

    Parameters
    ----------
    rates : CellMeans
        The averages over cells of phi(s), one output each: A and phi.
    thresholds : ndarray of shape (n_thresholds,)
        theta; with `free`, the initial values of the variables.
    combination : CSR of shape (n_outputs, n_cells * n_thresholds)
        R, for the rates of the first cell at all thresholds, then those of the second one.
    offset : ndarray of shape (n_outputs,)
        b.
    free : bool, default=False
        Whether the thresholds are auxiliary variables of the term. Where they are not passed, they
        have their initial values.
    names : sequence of str
        A description of each output.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.
    """

    thresholds: Array
    combination: Matrix
    offset: Array
    free: bool = False
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0

    @property
    def n_statistics(self) -> int:
        """The number of cells times that of thresholds."""
        return self.rates.n_statistics * len(self.thresholds)

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

    @property
    def function(self) -> ScalarFunction:  # type: ignore[override]
        """Phi."""
        return self.rates.function

    @cached_property
    def _rows_by_cell(self) -> list[tuple[Array, Array]]:
        return rows_by_cell(self.rates.cells)

    def _pullback(
        self, scores: Array, auxiliary: Array, function: ScalarFunction | None = None
    ) -> _RatesPullback:
        thresholds = auxiliary if self.free and len(auxiliary) else self.thresholds
        return _RatesPullback(self, function or self.function, scores, thresholds)

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

    def zero_one(self) -> Term:
        """Return the term with the indicator, at the same thresholds."""
        return self._with_function(self.function.zero_one())

    def _with_function(self, function: ScalarFunction) -> ThresholdRates:
        return replace(self, rates=replace(self.rates, function=function))

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        error = SubgradientError(self.function.corners)
        return self._pullback(scores, auxiliary, error).averages().ravel()

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the derivative, with respect to free thresholds as well."""
        at = self._pullback(scores, auxiliary)
        if not self.free:
            return lambda change, _: at.push(change).ravel()
        slopes = at.averages(1)
        return lambda change, own: (at.push(change) - slopes * own).ravel()

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        Twice that if the thresholds are free, since :math:`(\delta s - \delta \theta)^2 \le
        2 \delta s^2 + 2 \delta \theta^2`. With an intercept, which moves all scores by the same
        amount, the bound that the model derives from it holds for the thresholds as well.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        n_cells, n_thresholds = self.rates.n_statistics, len(self.thresholds)
        by_cell = sp.csr_array(sp.kron(sp.eye_array(n_cells), np.ones((n_thresholds, 1))))
        bend = self._largest_bend(by_cell)
        return (2.0 if self.free else 1.0) * (self.rates.cells.T @ bend)


class _RatesPullback(FactoredPullback):
    r"""The averages over cells of :math:`\phi(s_i - \theta_j)`, with products with their slopes.

    Called with weights of the averages, it returns those of the scores and of free thresholds.

    Parameters
    ----------
    term : ThresholdRates
        The cells, and whether thresholds are variables.
    function : ScalarFunction
        phi.
    scores, thresholds : ndarray
        s and theta.
    """

    def __init__(
        self, term: ThresholdRates, function: ScalarFunction, scores: Array, thresholds: Array
    ):
        self.cells, self.free = term._rows_by_cell, term.free
        self.shape = len(self.cells), len(thresholds)
        self._n_rows = len(scores)
        many = any(len(rows) * len(thresholds) > FEW for rows, _ in self.cells)
        smooth = many and function.knots is None
        step = precise_step(function, scores, thresholds) if smooth else None
        # squares of the scores keep their digits
        origin = float(thresholds.sum()) / max(len(thresholds), 1)
        points = Ranked(thresholds - origin)
        self.sums = [
            difference_sums(function, Ranked(scores[rows] - origin, weights), points, step)
            for rows, weights in self.cells
        ]

    def averages(self, order: int = 0) -> Array:
        """Return the averages of phi or a derivative, shape (n_cells, n_thresholds)."""
        return np.array([sums.over_first(order=order) for sums in self.sums]).reshape(self.shape)

    def __call__(self, u: Array) -> tuple[Array, Array]:
        weights = u.reshape(self.shape)
        own = -np.sum(weights * self.averages(1), axis=0) if self.free else NO_AUXILIARY
        return self._pull(weights, 1), own

    def second_derivatives(self, u: Array) -> Array:
        return self._pull(u.reshape(self.shape), 2)

    def by_variable(self, u: Array) -> Array:
        return self._pull([np.diag(weights) for weights in u.reshape(self.shape)], 2)

    def _pull(self, u: Sequence[Array] | Array, order: int) -> Array:
        """Return sum_kj u_kj A_ki phi'(s_i - theta_j), or of phi'', for columns of u_k."""
        out = np.zeros((self._n_rows, *u[0].shape[1:]))
        for (rows, w), sums, weights in zip(self.cells, self.sums, u, strict=True):
            if weights.any():
                out[rows] += (w * sums.over_second(weights, order=order).T).T
        return out

    def push(self, change: Array) -> Array:
        """Return sum_i A_ki phi'(s_i - theta_j) change_i, shape (n_cells, n_thresholds)."""
        each = zip(self.cells, self.sums, strict=True)
        pushed = [sums.over_first(w * change[rows], order=1) for (rows, w), sums in each]
        return np.array(pushed).reshape(self.shape)

    def basis(self) -> list[SparseMatrix] | None:
        parts = []
        for sums, (rows, _) in zip(self.sums, self.cells, strict=True):
            spread = sums.spread()
            if spread is None:
                return None
            parts.append(_on_rows(spread, rows, self._n_rows))
        return parts

    def jacobian(self, products: list[Array]) -> tuple[Array, Array]:
        each = zip(self.sums, products, strict=True)
        rows = np.concatenate([sums.over_nodes(product, 1) for sums, product in each])
        if not self.free:
            return rows, np.zeros((len(rows), 0))
        return rows, np.vstack([np.diag(-slopes) for slopes in self.averages(1)])


def _on_rows(matrix: SparseMatrix, rows: Array, n_rows: int) -> SparseMatrix:
    """Return a CSC matrix with a column for each row of the data, of which few are not empty."""
    lengths = np.zeros(n_rows + 1, dtype=matrix.indptr.dtype)
    lengths[rows + 1] = np.diff(matrix.indptr)
    entries = matrix.data, matrix.indices, np.cumsum(lengths, dtype=matrix.indptr.dtype)
    return sp.csc_array(entries, shape=(matrix.shape[0], n_rows))
