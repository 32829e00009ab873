"""Rates clipped to a range: the terms of parity in a range of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import PositivePart
from fairconstrained.terms.affine import Majorant, column_maxima
from fairconstrained.terms.base import (
    NO_AUXILIARY,
    Pullback,
    Shardable,
    Term,
)
from fairconstrained.terms.cell_means import CellMeans, OfRates
from fairconstrained.terms.head import AffineHead, as_csr
from fairconstrained.utils.typing import Array, SparseMatrix

_BEYOND = 1e-3  # the largest distance from the range of rates that count as beyond it
_FAR, _STEP = 10.0, 0.02  # of the scores among which those with rates at an end are looked for


class Clip(ScalarFunction):
    """phi(r) = min(max(r, low), high) - low: the part of [low, high] below r.

    Parameters
    ----------
    low, high : float
        The ends, low < high.
    """

    smooth = False
    curvature = -np.inf, np.inf

    def __init__(self, low: float, high: float):
        self.low = low
        self.high = high

    @property
    def kinks(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        """At both ends."""
        return (self.low, 1.0), (self.high, -1.0)

    def value(self, t: Array) -> Array:
        """Return the distance of t from low, after clipping t to [low, high]."""
        return np.clip(t, self.low, self.high) - self.low

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 between the ends, 0 elsewhere."""
        return ((t > self.low) & (t < self.high)).astype(float)


@dataclass(frozen=True, eq=False)
class ClippedRates(OfRates, AffineHead, Shardable):
    r"""The function :math:`c = R\, \mathrm{clip}(r, \alpha, \beta) + d - b` of rates r of cells.

    Parameters
    ----------
    rates : CellMeans
        The averages over cells of phi(s), one output each.
    ends : tuple of float
        alpha < beta.
    combination : CSR of shape (n_outputs, n_cells)
        R.
    offset : ndarray of shape (n_outputs,)
        b, the tolerance.
    names : sequence of str
        A description of each output.
    width : float, default=0.0
        The width over which the kinks of the clipping are rounded.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.

    Notes
    -----
    Where :math:`r = r^+ - r^-` with convex :math:`r^\pm`, :math:`\mathrm{clip}(r, \alpha, \beta) =
    \beta + \max\{r^- + \alpha, r^+\} - \max\{r^- + \beta, r^+\}` (IDCA, appendix B.3).
    """

    ends: tuple[float, float]
    combination: SparseMatrix
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    width: float = 0.0
    constant: Array | float = 0.0

    @cached_property
    def clip(self) -> ScalarFunction:
        """The clipping, perhaps rounded."""
        sharp = Clip(*self.ends)
        return sharp.smoothed(self.width) if self.width else sharp

    @property
    def n_statistics(self) -> int:
        """The number of cells."""
        return self.rates.n_statistics

    factored: ClassVar[bool] = True

    @property
    def difference_of_convex(self) -> bool:
        """Whether the rates are differences of convex functions."""
        return self.rates.difference_of_convex

    @property
    def smoothable(self) -> bool:
        """Whether the rates are smoothable: everything else is."""
        return self.rates.smoothable

    @property
    def smooth(self) -> bool:
        """Whether phi and the clipping are smooth."""
        return (self.rates.smooth and self.clip.smooth) or self.n_outputs == 0

    @property
    def convex(self) -> bool:
        """Only without outputs."""
        return self.n_outputs == 0

    def other_starts(self, statistics: Array) -> tuple[float, ...]:
        """Return scores with rates at an end of the range, unless these have rates beyond it.

        Beyond the range differences do not matter.
        """
        if not self.n_outputs:
            return ()
        low, high = self.ends
        rates, tolerance = self.rates.head(statistics), _BEYOND + (high - low) * self.offset.max()
        span = np.linspace(-_FAR, _FAR, 1 + int(2 * _FAR / _STEP))
        found = self.rates.function.value(span)
        below = span[(found <= low) & (low > 0.0) & (rates.max() > low + tolerance)][-1:]
        above = span[(found >= high) & (high < 1.0) & (rates.min() < high - tolerance)][:1]
        return tuple(np.concatenate([below, above]).tolist())

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        return self.rates.forward(scores)

    def head(self, statistics: Array) -> Array:
        """Return R clip(r) + d - b."""
        return super().head(self.clip.value(statistics))

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return clip'(r) R' v."""
        slope = self.clip.derivative(statistics, self.clip.value(statistics))
        return slope * super().head_vjp(statistics, v)

    def zero_one(self) -> ClippedRates:
        """Return the term with the indicator."""
        return replace(self, rates=self.rates.zero_one())

    def smoothed(self, width: float) -> ClippedRates:
        """Return the term with phi rounded, and the clipping over `width` times its range."""
        low, high = self.ends
        return replace(self, rates=_rounded(self.rates, width), width=width * (high - low))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the subgradient error of the clipping and of the rates."""
        error = self.clip.subgradient_error(self.rates.value(scores))
        return abs(self.combination) @ (error + self.rates.subgradient_error(scores))

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the majorant with tangents in place of what is subtracted."""
        if self.convex:
            return self
        unit = Majorant.of(self.rates, scores, auxiliary)
        combination = sp.hstack([as_csr(part) for part in self._signed_parts], format="csr")
        return ClippedMajorant(
            self, unit.plus, unit.minus, unit.tangents, combination, self.offset, self.names,
            self.constant, ends=np.array(self.ends), width=self.width,
        )  # fmt: skip

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature; infinities unless the clipping is rounded.

        With :math:`|\phi''| \le K` a surrogate, which has values in [0, 1], has
        :math:`\phi'^2 \le K` (Landau's inequality), and along s the curvature of the clipped rate
        is at most :math:`|\mathrm{clip}' \phi''| A + |\mathrm{clip}''| A \phi'^2`.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        steepest = float(np.max(np.abs(self.rates.function.curvature)))
        bend = (1.0 + float(np.max(np.abs(self.clip.curvature)))) * steepest
        if not np.isfinite(bend):
            return np.full(self.n_rows, np.inf)
        return self.rates.cells.T @ (bend * column_maxima(abs(self.combination)))


@dataclass(frozen=True, eq=False)
class ClippedMajorant(Majorant):
    r"""The convex majorant of clipped rates.

    With :math:`M_l = \max\{r^- + l, r^+\}`, convex, and its tangent :math:`T_l`, clipped rates are
    at most :math:`\beta + M_\alpha - T_\beta` and at least :math:`\beta + T_\alpha - M_\beta`.

    Parameters
    ----------
    combination : CSR of shape (n_outputs, 2 n_cells)
        The weights of upper bounds of the rates, and minus those of lower bounds.
    ends : ndarray of shape (2,)
        alpha and beta.
    width : float
        The width over which the maxima are rounded.
    term, plus, minus, tangents, offset, names, constant
        See :class:`~fairconstrained.terms.affine.Majorant`.
    """

    ends: Array = field(kw_only=True)
    width: float = field(kw_only=True)

    @cached_property
    def _hinge(self) -> ScalarFunction:
        return PositivePart().smoothed(self.width) if self.width else PositivePart()

    @property
    def smooth(self) -> bool:
        """Whether the rates and the maximum are smooth."""
        return super().smooth and self.width > 0.0

    def _larger(self, plus: Array, minus: Array) -> tuple[Array, Array]:
        """Return max{r- + l, r+} and the share of r- in its slope, (2, n_cells) both."""
        excess = minus + self.ends[:, None] - plus
        value = self._hinge.value(excess)
        return plus + value, self._hinge.derivative(excess, value)

    @cached_property
    def _touching(self) -> tuple[Array, Array]:
        """The shares where the tangents touch, and the tangents at rates of zero."""
        plus, minus = (t.forward(t.scores, t.auxiliary)[0] for t in self.tangents)
        larger, share = self._larger(plus, minus)
        return share, larger - (1.0 - share) * plus - share * minus

    def head(self, statistics: Array) -> Array:
        """Return the bounds of the gaps."""
        plus, minus, on_plus, on_minus = np.split(statistics, 4)
        (low, high), _ = self._larger(plus, minus)
        share, level = self._touching
        under, over = level + (1.0 - share) * on_plus + share * on_minus
        width = self.ends[1] - self.ends[0]
        return super().head(np.concatenate([width + low - over, high - width - under]))

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradient with respect to the rates and their tangents."""
        weights = super().head_vjp(statistics, v).reshape(2, -1)
        _, moving = self._larger(*np.split(statistics, 4)[:2])
        fixed, on_tangents = self._touching[0], -weights[::-1]
        parts = ((1.0 - moving) * weights, moving * weights)
        touching = ((1.0 - fixed) * on_tangents, fixed * on_tangents)
        return np.concatenate([part.sum(axis=0) for part in (*parts, *touching)])

    def smoothed(self, width: float) -> Self:
        """Return the majorant with all kinks rounded."""
        kinks = width * float(np.ptp(self.ends))
        return super().smoothed(width)._with(width=kinks)

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the weighted subgradient errors of the maxima and of the rates."""
        plus, minus = (p.forward(scores)[0] for p in (self.plus, self.minus))
        error = self._hinge.subgradient_error(minus + self.ends[:, None] - plus)
        error = error + sum(p._average_errors(scores, auxiliary) for p in (self.plus, self.minus))
        return self.combination @ error.ravel()


def _rounded(rates: CellMeans, width: float) -> CellMeans:
    """Return rates with phi rounded."""
    return replace(rates, function=rates.function.smoothed(width))
