"""Clipped rates, the terms of weak parity in a range of ranks, and their convex parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairconstrained.functions.base import ScalarFunction, SubgradientError
from fairconstrained.functions.surrogates import PositivePart
from fairconstrained.terms.affine import FunctionAverages, column_maxima
from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.terms.cell_means import CellMeans, OnCells, averages
from fairconstrained.terms.head import identity
from fairconstrained.utils.typing import Array

_BEYOND = 1e-3  # the largest distance from the range of rates that count as beyond it
_FAR, _STEP = 10.0, 0.02  # of the scores among which those with rates at an end are looked for


@dataclass(frozen=True, eq=False)
class ClippedRates(OnCells, FunctionAverages):
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

    function: ScalarFunction
    ends: tuple[float, float]
    width: float = 0.0

    shardable = factored = True

    @cached_property
    def _rates(self) -> CellMeans:
        return averages(self, self.function)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether phi and the clipping are smooth."""
        return super().smooth and (self.width > 0.0 or self.n_outputs == 0)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Only without outputs."""
        return self.n_outputs == 0

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

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        return self._rates.forward(scores)

    def _above(self, rates: Array) -> Array:
        """Return how far the rates are above both ends, (2, n_cells)."""
        return rates - np.array(self.ends)[:, None]

    def head(self, statistics: Array) -> Array:
        """Return R clip(r) + d - b, where clip is alpha less."""
        low, high = _hinge(self.width).value(self._above(statistics))
        return super().head(low - high)

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return clip'(r) R' v."""
        above, hinge = self._above(statistics), _hinge(self.width)
        low, high = hinge.derivative(above, hinge.value(above))
        return (low - high) * super().head_vjp(statistics, v)

    def smoothed(self, width: float) -> ClippedRates:
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

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        See :class:`OnCells`.
    function, minus : ScalarFunction
        The convex functions, whose averages are :math:`r^+` and :math:`r^-`.
    level : float
        l.
    span : float
        The unit of the width that `smoothed` is given.
    width : float, default=0.0
        The width over which the kink of the maximum is rounded.
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

    def smoothed(self, width: float) -> LargerRates:
        """Return the term with all kinks rounded."""
        function, minus = self.function.smoothed(width), self.minus.smoothed(width)
        return replace(self, function=function, minus=minus, width=width * self.span)

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        plus, minus = (each.forward(scores)[0] for each in self._averages)
        error = SubgradientError(_hinge(self.width).corners).value(plus - self.level - minus)
        return error + sum(each._average_errors(scores, auxiliary) for each in self._averages)
