"""Rates at many thresholds: the terms of ROC parity and of partial demographic parity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction, SubgradientError
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback, Shardable, Term
from fairconstrained.terms.cell_means import OfRates, rows_by_cell
from fairconstrained.terms.difference_sums import FEW, difference_sums, precise_step
from fairconstrained.terms.ranked import NODES, GridPoints, Ranked, with_neighbours
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

    def sums(
        self, scores: Array, auxiliary: Array = NO_AUXILIARY, function: ScalarFunction | None = None
    ) -> RateSums:
        """Return the rates at the scores and thresholds, with their derivatives.

        Parameters
        ----------
        scores, auxiliary : ndarray
            The scores, and the thresholds if they are free.
        function : ScalarFunction or None, default=None
            What is averaged in place of phi.
        """
        thresholds = auxiliary if self.free and len(auxiliary) else self.thresholds
        function = function or self.function
        if len(scores) * len(thresholds) > FEW and function.knots is None:
            step = precise_step(function, scores, thresholds)
            if step is not None:
                cells = self.rates.cells
                return _RatesOnGrid(function, cells, scores, thresholds, self.free, step)
        return _RatesByCell(function, self._rows_by_cell, scores, thresholds, self.free)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        sums = self.sums(scores, auxiliary)
        return sums.values.ravel(), sums

    def rows_of(self, statistics: Array, outputs: Array) -> Matrix:
        """Return the gradients of some outputs in the rates: rows of R."""
        return self._small[outputs]

    def zero_one(self) -> Term:
        """Return the term with the indicator, at the same thresholds."""
        return self._with_function(self.function.zero_one())

    def _with_function(self, function: ScalarFunction) -> ThresholdRates:
        return replace(self, rates=replace(self.rates, function=function))

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        return self.sums(scores, auxiliary, SubgradientError(self.function.corners)).values.ravel()

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the derivative, with respect to free thresholds as well."""
        sums = self.sums(scores, auxiliary)
        if not self.free:
            return lambda change, _: sums.push(change).ravel()
        return lambda change, own: (sums.push(change) - sums.slopes * own).ravel()

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


class RateSums(ABC):
    r"""The averages over cells of :math:`\phi(s_i - \theta_j)`, with products with their slopes.

    Called with weights of the averages, it returns those of the scores and of free thresholds.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    scores, thresholds : ndarray
        s and theta.
    free : bool
        Whether the thresholds are variables.
    """

    def __init__(self, function: ScalarFunction, scores: Array, thresholds: Array, free: bool):
        self.function, self.scores, self.thresholds, self.free = function, scores, thresholds, free

    def __call__(self, u: Array) -> tuple[Array, Array]:
        """Return the pullback of weights of the averages, see :meth:`Term.forward`."""
        weights = u.reshape(self.values.shape)
        own = -np.sum(weights * self.slopes, axis=0) if self.free else NO_AUXILIARY
        return self.pull(weights), own

    @property
    @abstractmethod
    def values(self) -> Array:
        """The averages, shape (n_cells, n_thresholds)."""

    @property
    @abstractmethod
    def slopes(self) -> Array:
        """Minus the derivatives of the averages by the thresholds."""

    @abstractmethod
    def push(self, change: Array) -> Array:
        """Return sum_i A_ki phi'(s_i - theta_j) change_i, shape (n_cells, n_thresholds)."""

    @abstractmethod
    def pull(self, u: Array) -> Array:
        """Return sum_kj u_kj A_ki phi'(s_i - theta_j), shape (n_rows,)."""


class _RatesOnGrid(RateSums, FactoredPullback):
    """For smooth functions and many differences: each row is spread on six nodes of a grid.

    The cost is n_rows + n_nodes n_thresholds in place of n_rows n_thresholds.

    Parameters
    ----------
    function, scores, thresholds, free
        See :class:`RateSums`.
    cells : CSC of shape (n_cells, n_rows)
        A.
    step : float
        The distance of the nodes.
    """

    def __init__(
        self,
        function: ScalarFunction,
        cells: SparseMatrix,
        scores: Array,
        thresholds: Array,
        free: bool,
        step: float,
    ):
        super().__init__(function, scores, thresholds, free)
        lengths = np.diff(cells.indptr)
        in_one_each = bool(np.all(lengths == 1))
        grid = GridPoints(scores if in_one_each else scores.repeat(lengths), step, cells.data)
        nodes = with_neighbours(grid.lowest + grid.n_nodes * cells.indices)
        entries = (grid.shares.ravel(), nodes, NODES * cells.indptr)  # of row i in its nodes
        self.n_cells, size = cells.shape[0], cells.shape[0] * grid.n_nodes
        self._spread = sp.csc_array(entries, shape=(size, len(scores)))
        at = step * (grid.first + np.arange(grid.n_nodes))
        self._differences = at[:, None] - thresholds
        self._phi = function.value(self._differences)

    @cached_property
    def _mass(self) -> Array:
        sums = np.bincount(self._spread.indices, self._spread.data, self._spread.shape[0])
        return sums.reshape(self.n_cells, -1)

    @cached_property
    def _slopes(self) -> Array:
        return self.function.derivative(self._differences, self._phi)

    @cached_property
    def values(self) -> Array:
        return self._mass @ self._phi

    @cached_property
    def slopes(self) -> Array:
        return self._mass @ self._slopes

    def push(self, change: Array) -> Array:
        return (self._spread @ change).reshape(self.n_cells, -1) @ self._slopes

    def pull(self, u: Array) -> Array:
        return self._spread.T @ (u @ self._slopes.T).ravel()

    def basis(self) -> SparseMatrix:
        return self._spread

    def jacobian(self, products: Array) -> tuple[Array, Array]:
        by_cell = products.reshape(self.n_cells, -1, products.shape[1])
        rows = (self._slopes.T @ by_cell).reshape(-1, products.shape[1])
        if not self.free:
            return rows, np.zeros((len(rows), 0))
        return rows, np.vstack([np.diag(-slopes) for slopes in self.slopes])


class _RatesByCell(RateSums):
    """Sums over the rows of every cell, see :mod:`~fairconstrained.terms.difference_sums`.

    Parameters
    ----------
    function, scores, thresholds, free
        See :class:`RateSums`.
    cells : list of (rows, weights)
        The cells.
    """

    def __init__(
        self,
        function: ScalarFunction,
        cells: Sequence[tuple[Array, Array]],
        scores: Array,
        thresholds: Array,
        free: bool,
    ):
        super().__init__(function, scores, thresholds, free)
        self.cells = cells
        # squares of the scores keep their digits
        origin = float(thresholds.sum()) / max(len(thresholds), 1)
        points = Ranked(thresholds - origin)
        self.sums = [
            difference_sums(function, Ranked(scores[rows] - origin, weights), points)
            for rows, weights in cells
        ]

    def _table(self, by_cell: Iterable[Array]) -> Array:
        return np.array(list(by_cell)).reshape(len(self.cells), len(self.thresholds))

    @cached_property
    def values(self) -> Array:
        return self._table(sums.over_first() for sums in self.sums)

    @cached_property
    def slopes(self) -> Array:
        return self._table(sums.over_first(slope=True) for sums in self.sums)

    def push(self, change: Array) -> Array:
        each = zip(self.cells, self.sums, strict=True)
        return self._table(s.over_first(w * change[rows], slope=True) for (rows, w), s in each)

    def pull(self, u: Array) -> Array:
        out = np.zeros(len(self.scores))
        for (rows, w), sums, weights in zip(self.cells, self.sums, u, strict=True):
            if weights.any():
                out[rows] += w * sums.over_second(weights, slope=True)
        return out
