"""Rates at many thresholds: the terms of ROC parity and of partial demographic parity."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.affine import FunctionAverages, Pushforward
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback
from fairconstrained.terms.cell_means import OnCells
from fairconstrained.terms.difference_sums import (
    FEW,
    Derivatives,
    difference_sums,
    interpolation,
    precise_step,
)
from fairconstrained.terms.ranked import Ranked
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True, eq=False)
class ThresholdRates(OnCells, FunctionAverages):
    r"""The affine function :math:`c = R\, r + d - b` of rates at thresholds.

    .. math::
        r_{kj}(s, \theta) = \sum_i A_{ki}\, \phi(s_i - \theta_j).

    They are computed for all thresholds together: of smooth functions the scores are spread on a
    grid, see :mod:`~fairconstrained.terms.difference_sums`.

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

    shardable = True
    curved = property(attrgetter("function.twice_differentiable"))

    @property
    def n_auxiliary(self) -> int:  # type: ignore[override]
        """The number of free thresholds."""
        return len(self.thresholds) if self.free else 0

    @property
    def auxiliary_start(self) -> Array:
        """The initial values of free thresholds."""
        return np.array(self.thresholds if self.free else NO_AUXILIARY, dtype=float)

    def _pullback(self, scores: Array, auxiliary: Array) -> _RatesPullback:
        thresholds = auxiliary if self.free and len(auxiliary) else self.thresholds
        # measured from the middle of the thresholds, squares of the scores keep their digits
        origin = float(thresholds.sum()) / max(len(thresholds), 1)
        scores, thresholds = scores - origin, thresholds - origin
        if self.function.knots is None:
            lengths = np.diff(self.cells.indptr)
            each = scores if np.all(lengths == 1) else np.repeat(scores, lengths)
            few = len(each) * len(thresholds) <= FEW
            step = None if few else precise_step(self.function, each, thresholds)
            if few or step is not None:
                return _OnNodes(self, each, thresholds, step)
        return _ByCell(self, scores, thresholds)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        pullback = self._pullback(scores, auxiliary)
        return pullback.averages().ravel(), pullback

    @property
    def factored(self) -> bool:  # type: ignore[override]
        """Whether phi is smooth, so that sums over rows go through a few nodes."""
        return self.function.knots is None

    def rows_of(self, statistics: Array, outputs: Array) -> Matrix:
        """Return the gradients of some outputs in the rates: rows of R."""
        return self._small[outputs]

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the derivative, with respect to free thresholds as well."""
        return self._pullback(scores, auxiliary).push

    def _bend(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        Twice that if the thresholds are free, since :math:`(\delta s - \delta \theta)^2 \le
        2 \delta s^2 + 2 \delta \theta^2`. With an intercept, which moves all scores by the same
        amount, the bound that the model derives from it holds for the thresholds as well.
        """
        n_cells, n_thresholds = self.cells.shape[0], len(self.thresholds)
        by_cell = sp.csr_array(sp.kron(sp.eye_array(n_cells), np.ones((n_thresholds, 1))))
        bend = self._largest_bend(by_cell)
        return (2.0 if self.free else 1.0) * (self.cells.T @ bend)


class _RatesPullback(FactoredPullback):
    r"""The averages over cells of :math:`\phi(s_i - \theta_j)`, with products with their slopes.

    Called with weights of the averages, it returns those of the scores and of free thresholds.
    """

    def __init__(self, term: ThresholdRates, n_thresholds: int):
        self.free, self.shape = term.free, (int(term.cells.shape[0]), n_thresholds)

    @abstractmethod
    def averages(self, order: int = 0, change: Array | None = None) -> Array:
        """Return the averages of phi or a derivative, (n_cells, n_thresholds), or their products.

        That is with `change`, which every row has a factor in.
        """

    @abstractmethod
    def _pull(self, u: Array, order: int) -> Array:
        """Return sum_kj u_kjc A_ki phi'(s_i - theta_j), or of phi'', by rows i and columns c."""

    def __call__(self, u: Array) -> tuple[Array, Array]:
        weights = u.reshape(self.shape)
        on_thresholds = NO_AUXILIARY
        if self.free:
            on_thresholds = -np.sum(weights * self.averages(1), axis=0)
        return self._pull(weights[:, :, None], 1)[:, 0], on_thresholds

    def second_derivatives(self, u: Array) -> Array:
        return self._pull(u.reshape(*self.shape, 1), 2)[:, 0]

    def by_variable(self, u: Array) -> Array:
        return self._pull(u.reshape(self.shape)[:, :, None] * np.eye(self.shape[1]), 2)

    def push(self, change: Array, own: Array) -> Array:
        """Return the change of the averages with the scores and free thresholds."""
        pushed = self.averages(1, change)
        return (pushed - self.averages(1) * own if self.free else pushed).ravel()


class _OnNodes(_RatesPullback):
    """The rows are spread on the nodes of a grid, the same for all cells; few are nodes themselves.

    Parameters
    ----------
    term : ThresholdRates
        The cells and phi.
    scores : ndarray
        The scores of the rows of the cells, in the order of their entries.
    thresholds : ndarray
        theta.
    step : float or None
        That of the grid.
    """

    def __init__(self, term: ThresholdRates, scores: Array, thresholds: Array, step: float | None):
        super().__init__(term, len(thresholds))
        nodes, columns, shares = scores, np.arange(len(scores))[:, None], np.ones((len(scores), 1))
        if step is not None:
            nodes, columns, shares = interpolation(scores, step)
        cells = term.cells
        columns = columns + len(nodes) * cells.indices[:, None]
        shares = shares * cells.data[:, None]
        entries = shares.ravel(), columns.ravel(), shares.shape[1] * cells.indptr
        size = len(nodes) * self.shape[0]
        self.spread: SparseMatrix = sp.csr_array(entries, shape=(term.n_rows, size))
        self.mass = np.bincount(columns.ravel(), shares.ravel(), size)
        self.table = Derivatives(term.function, nodes[:, None] - thresholds)

    def averages(self, order: int = 0, change: Array | None = None) -> Array:
        mass = self.mass if change is None else self.spread.T @ change
        return mass.reshape(self.shape[0], -1) @ self.table[order]

    def _pull(self, u: Array, order: int) -> Array:
        return self.spread @ (self.table[order] @ u).reshape(-1, u.shape[2])

    def basis(self) -> list[SparseMatrix]:
        return [self.spread.T]

    def jacobian(self, products: list[Array]) -> tuple[Array, Array]:
        slopes = self.table[1]
        by_cell = products[0].reshape(self.shape[0], len(slopes), -1)
        rows = (slopes.T @ by_cell).reshape(-1, by_cell.shape[2])
        if not self.free:
            return rows, np.zeros((len(rows), 0))
        return rows, np.vstack([np.diag(-each) for each in self.averages(1)])


class _ByCell(_RatesPullback):
    """The sums of every cell on its own, by sorting or by the formula."""

    def __init__(self, term: ThresholdRates, scores: Array, thresholds: Array):
        super().__init__(term, len(thresholds))
        cells, points, self.n_rows = term._ranked(scores), Ranked(thresholds), len(scores)
        self.sums = [difference_sums(term.function, cell, points) for cell in cells]

    def averages(self, order: int = 0, change: Array | None = None) -> Array:
        averages = []
        for sums in self.sums:
            cell = sums.first
            mass = cell.weights if change is None else cell.weights * change[cell.rows]
            averages.append(sums.over_first(mass, order=order))
        return np.reshape(averages, self.shape)

    def _pull(self, u: Array, order: int) -> Array:
        out = np.zeros((self.n_rows, u.shape[2]))
        for sums, weights in zip(self.sums, u, strict=True):
            for column in np.flatnonzero(weights.any(axis=0)):
                by_row = sums.over_second(weights[:, column], order=order)
                out[sums.first.rows, column] += sums.first.weights * by_row
        return out
