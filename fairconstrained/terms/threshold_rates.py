"""Rates at many thresholds, and rates clipped to a range: the terms of parity on ranks."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction, SubgradientError
from fairconstrained.functions.surrogates import PositivePart
from fairconstrained.terms.base import NO_AUXILIARY, FactoredPullback, Pullback
from fairconstrained.terms.cell_means import CellMeans, OnCells, averages
from fairconstrained.terms.difference_sums import (
    FEW,
    Derivatives,
    Ranked,
    difference_sums,
    interpolation,
    precise_step,
)
from fairconstrained.terms.head import FunctionAverages
from fairconstrained.terms.ordered_pairs import column_maxima, identity
from fairconstrained.utils.arrays import Array, SparseMatrix


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

    def _pullback(self, scores: Array, auxiliary: Array) -> "_RatesPullback":
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

    factored = property(lambda term: term.function.knots is None)

    def _bend(self) -> Array:
        r"""Return the largest downward curvature of any output along each score.

        Twice that if the thresholds are free, since :math:`(\delta s - \delta \theta)^2 \le
        2 \delta s^2 + 2 \delta \theta^2`. With an intercept, which moves all scores by the same
        amount, the bound that the model derives from it holds for the thresholds as well.
        """
        n_cells, n_thresholds = self.cells.shape[0], len(self.thresholds)
        by_cell = sp.csr_array(sp.kron(sp.eye_array(n_cells), np.ones((n_thresholds, 1))))
        return (2.0 if self.free else 1.0) * (self.cells.T @ self._largest_bend(by_cell))


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
        weights = u.reshape(len(u) if u.ndim > 1 else 1, *self.shape)
        on_thresholds = np.zeros((len(weights), 0))
        if self.free:
            on_thresholds = -np.sum(weights * self.averages(1), axis=1)
        back = self._pull(np.moveaxis(weights, 0, -1), 1).T
        return (back, on_thresholds) if u.ndim > 1 else (back[0], on_thresholds[0])

    def second_derivatives(self, u: Array) -> Array:
        return self._pull(u.reshape(*self.shape, 1), 2)[:, 0]

    def by_variable(self, u: Array) -> Array:
        return self._pull(u.reshape(self.shape)[:, :, None] * np.eye(self.shape[1]), 2)

    def push(self, change: Array, variables: Array) -> Array:
        pushed = self.averages(1, change)
        return (pushed - self.averages(1) * variables if self.free else pushed).ravel()


class _OnNodes(_RatesPullback):
    """The rows are spread on the nodes of a grid, the same for all cells; few are nodes themselves.

    `scores` are in the order of the entries of the term's cells; `step` is that of the grid.
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
        return self.spread @ (self.table[order] @ u).reshape(self.spread.shape[1], u.shape[2])

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


_BEYOND = 1e-3  # the largest distance from the range of rates that count as beyond it
_FAR, _STEP = 10.0, 0.02  # of the scores among which those with rates at an end are looked for


@dataclass(frozen=True, eq=False)
class FunctionOfRates(OnCells, FunctionAverages):
    """Affine functions of numbers that depend on the rates of the cells, but not linearly."""

    function: ScalarFunction

    shardable = factored = of_rates = True

    @cached_property
    def _rates(self) -> CellMeans:
        return averages(self, self.function)

    convex = property(lambda term: term.n_outputs == 0)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates of the cells and their pullback."""
        return self._rates.forward(scores)


@dataclass(frozen=True, eq=False)
class ClippedRates(FunctionOfRates):
    r"""The function :math:`c = R\, (\mathrm{clip}(r, \alpha, \beta) - \alpha) + d - b` of rates r.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        See :class:`OnCells`.
    function : ScalarFunction
        phi, whose averages are the rates.
    ends : tuple of float
        alpha < beta.
    width : float, default=0.0
        The width over which the kinks of the clipping are rounded.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`; R is of shape (n_outputs, n_cells).

    Notes
    -----
    Where :math:`r = r^+ - r^-` with convex :math:`r^\pm`, :math:`\mathrm{clip}(r, \alpha, \beta) =
    \alpha + \max\{r^+ - \alpha, r^-\} - \max\{r^+ - \beta, r^-\}` (IDCA, appendix B.3).
    """

    ends: tuple[float, float]
    width: float = 0.0

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether phi and the clipping are smooth."""
        return super().smooth and (self.width > 0.0 or self.n_outputs == 0)

    def other_starts(self, statistics: Array) -> tuple[float, ...]:
        """Return scores with rates at an end of the range, unless these have rates beyond it.

        Beyond the range differences do not matter.
        """
        if not self.n_outputs:
            return ()
        low, high = self.ends
        tolerance = _BEYOND + (high - low) * np.max(self.offset)
        span = np.linspace(-_FAR, _FAR, 1 + int(2 * _FAR / _STEP))
        rates = self.function.value(span)
        below = span[(rates <= low) & (low > 0.0) & (statistics.max() > low + tolerance)][-1:]
        above = span[(rates >= high) & (high < 1.0) & (statistics.min() < high - tolerance)][:1]
        return tuple(np.concatenate([below, above]).tolist())

    def _above(self, rates: Array) -> Array:
        """Return how far the rates are above both ends, (2, n_cells)."""
        return rates - np.array(self.ends)[:, None]

    def averages(self, statistics: Array) -> Array:
        """Return clip(r) - alpha."""
        low, high = _hinge(self.width).value(self._above(statistics))
        return low - high

    def averages_vjp(self, statistics: Array, weights: Any) -> Any:
        """Return clip'(r) times the weights."""
        above, hinge = self._above(statistics), _hinge(self.width)
        low, high = hinge.derivative(above, hinge.value(above))
        return weights * (low - high)

    def smoothed(self, width: float) -> "ClippedRates":
        """Return the term with phi rounded, and the clipping over `width` times its range."""
        low, high = self.ends
        return replace(self, function=self.function.smoothed(width), width=width * (high - low))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the subgradient error of the clipping and of the rates."""
        errors = SubgradientError(_hinge(self.width).corners)
        error = errors.value(self._above(self.forward(scores)[0])).sum(axis=0)
        return abs(self.combination) @ (error + self._average_errors(scores, auxiliary))

    def convex_parts(self) -> tuple[FunctionAverages, FunctionAverages]:
        r"""Return :math:`\max\{r^+ - l, r^-\}` for both ends l."""
        parts, (low, high) = self.function.convex_parts(), self.ends
        combination = identity(self.n_statistics)
        larger = LargerRates(
            self.cells, *parts, low, high - low, self.width, combination=combination
        )
        return larger, replace(larger, level=high)

    def _bend(self) -> Array:
        r"""Return the largest downward curvature; infinities unless the clipping is rounded.

        With :math:`|\phi''| \le K` a surrogate, which has values in [0, 1], has
        :math:`\phi'^2 \le K` (Landau's inequality), and along s the curvature of the clipped rate
        is at most :math:`|\mathrm{clip}' \phi''| A + |\mathrm{clip}''| A \phi'^2`.
        """
        steepest = float(np.max(np.abs(self.function.curvature)))
        bend = (1.0 + _hinge(self.width).curvature[1]) * steepest
        return self.cells.T @ (bend * column_maxima(abs(self.combination)))


def _hinge(width: float) -> ScalarFunction:
    """Return max(t, 0), perhaps rounded."""
    return PositivePart().smoothed(width) if width else PositivePart()


@dataclass(frozen=True, eq=False)
class LargerRates(OnCells, FunctionAverages):
    r"""The convex functions :math:`\max\{r^+ - l, r^-\}` of averages of two convex functions.

    `function` and `minus` are the convex functions, whose averages over `cells` (see
    :class:`OnCells`) are :math:`r^+` and :math:`r^-`, and l is the `level`. The kink of the maximum
    is rounded over the `width`; `smoothed` is given it in the unit of the `span`.
    """

    function: ScalarFunction
    minus: ScalarFunction
    level: float
    span: float
    width: float = 0.0

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether both functions and the maximum are smooth."""
        return super().smooth and self.minus.smooth and self.width > 0.0

    @cached_property
    def _averages(self) -> list[CellMeans]:
        return [averages(self, self.function), averages(self, self.minus)]

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the larger ones and their pullback."""
        (plus, on_plus), (minus, on_minus) = (each.forward(scores) for each in self._averages)
        excess = plus - self.level - minus
        hinge = _hinge(self.width)
        value = hinge.value(excess)
        share = hinge.derivative(excess, value)

        def pullback(u: Array) -> tuple[Array, Array]:
            return on_plus(share * u)[0] + on_minus((1.0 - share) * u)[0], NO_AUXILIARY

        return minus + value, pullback

    def smoothed(self, width: float) -> "LargerRates":
        """Return the term with all kinks rounded."""
        function, minus = self.function.smoothed(width), self.minus.smoothed(width)
        return replace(self, function=function, minus=minus, width=width * self.span)

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        plus, minus = (each.forward(scores)[0] for each in self._averages)
        error = SubgradientError(_hinge(self.width).corners).value(plus - self.level - minus)
        return error + sum(each._average_errors(scores, auxiliary) for each in self._averages)
