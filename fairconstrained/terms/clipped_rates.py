"""Rates clipped to a range: the terms of parity in a range of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.elementary import PositivePart
from fairconstrained.terms.affine import AffineHead, as_csr, column_maxima
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, SeveralKinds, Shardable, Smoothable
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.convex_parts import DifferenceOfConvex, SumTerm
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

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

    def __init__(self, low: float, high: float):
        self.low = low
        self.high = high

    @property
    def kinks(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        """At both ends."""
        return (self.low, 1.0), (self.high, -1.0)

    @property
    def curvature(self) -> tuple[float, float]:
        """Unbounded: a kink of either sign."""
        return -np.inf, np.inf

    def value(self, t: Array) -> Array:
        """Return the distance of t from low, after clipping t to [low, high]."""
        return np.clip(t, self.low, self.high) - self.low

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 between the ends, 0 elsewhere."""
        return ((t > self.low) & (t < self.high)).astype(float)

    def convex_parts(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Return the two positive parts whose difference this is."""
        return PositivePart(-self.low), PositivePart(-self.high)


class _OfRates(AffineHead, Shardable, DifferenceOfConvex, Smoothable):
    """Terms that are computed from the rates of cells.

    Attributes
    ----------
    rates : CellMeans
        The averages over cells of phi(s), one output each.
    """

    rates: CellMeans

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return self.rates.n_rows

    @property
    def difference_of_convex(self) -> bool:
        """Whether the rates are differences of convex functions."""
        return self.rates.difference_of_convex

    @property
    def smoothable(self) -> bool:
        """Whether the rates are smoothable: everything else is."""
        return self.rates.smoothable

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        return self.rates.strata()


@dataclass(frozen=True, eq=False)
class ClippedRates(_OfRates, SeveralKinds):
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

    rates: CellMeans
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

    def take(self, rows: Array, weights: Array) -> ClippedRates:
        """Return the term on some rows; its rates are unbiased, the clipped rates are not."""
        return replace(self, rates=self.rates.take(rows, weights))

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

    def convex_parts(self) -> tuple[DifferenceOfConvex, DifferenceOfConvex]:
        """Return the positive combinations of maxima, see the notes."""
        if self.convex:
            return self, self
        positive, negative = self._signed_parts
        plus, minus = (replace(self.rates, function=f) for f in self.rates.function.convex_parts())
        level = (self.ends[1] - self.ends[0]) * np.asarray(self.combination.sum(axis=1)).ravel()
        bounds, hinge = np.array(self.ends), PositivePart()
        rounded = hinge.smoothed(self.width) if self.width else hinge

        def maxima(first: Matrix, second: Matrix) -> LargerRates:
            both = sp.hstack([as_csr(first), as_csr(second)], format="csr")
            none = np.zeros_like(self.offset)
            return LargerRates(plus, minus, bounds, both, none, rounded, self.names)

        whole = maxima(positive, negative)
        return (
            replace(whole, offset=self.offset, constant=self.constant + level),
            maxima(negative, positive),
        )

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> CellMeans:
        """Return the tangent: that of the rates inside the range, constants outside."""
        rates = self.rates.value(scores)
        clipped = self.clip.value(rates)
        slope = self.clip.derivative(rates, clipped)
        tangent = self.combination @ sp.diags_array(slope, format="csr")
        constant = self.constant + self.combination @ (clipped - slope * rates)
        term = replace(
            self.rates,
            combination=tangent,
            offset=self.offset,
            names=self.names,
            constant=constant,
        )
        return term.linearize(scores)

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
class LargerRates(_OfRates):
    r"""The function :math:`P\, (\max\{r^-_k + a_l, r^+_k\})_{lk} + d - b`: convex if P >= 0.

    Parameters
    ----------
    rates, others : CellMeans
        r+ and r-, averages over the same cells of convex functions.
    bounds : ndarray of shape (n_bounds,)
        a.
    combination : CSR of shape (n_outputs, n_bounds * n_cells)
        P, for all cells with the first bound, then with the second one.
    offset : ndarray of shape (n_outputs,)
        b, the tolerance.
    hinge : ScalarFunction
        max{t, 0}, perhaps rounded.
    names : sequence of str
        A description of each output.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.
    """

    rates: CellMeans
    others: CellMeans
    bounds: Array
    combination: SparseMatrix
    offset: Array
    hinge: ScalarFunction = field(default_factory=PositivePart)
    names: Sequence[str] = field(default=(), repr=False)
    constant: Array | float = 0.0

    @property
    def n_statistics(self) -> int:
        """Two for each cell."""
        return 2 * self.rates.n_statistics

    @property
    def smooth(self) -> bool:
        """Whether the rates and the maximum are smooth."""
        return self.rates.smooth and self.others.smooth and self.hinge.smooth

    @property
    def smoothable(self) -> bool:
        """Whether both rates are smoothable."""
        return self.rates.smoothable and self.others.smoothable

    @property
    def difference_of_convex(self) -> bool:
        """Whether no weight is negative."""
        return self.convex

    @property
    def convex(self) -> bool:
        """Whether no weight is negative."""
        return not self._has_negative_weights

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return both rates and their pullback."""
        first, pull_first = self.rates.forward(scores)
        second, pull_second = self.others.forward(scores)

        def pullback(u: Array) -> tuple[Array, Array]:
            n = len(first)
            return pull_first(u[:n])[0] + pull_second(u[n:])[0], NO_AUXILIARY

        return np.concatenate([first, second]), pullback

    def _larger(self, statistics: Array) -> tuple[Array, Array]:
        """Return max{r- + a, r+} and the share of r- in its slope, (n_bounds, n_cells) both."""
        plus, minus = np.split(statistics, 2)
        excess = minus + self.bounds[:, None] - plus
        value = self.hinge.value(excess)
        return plus + value, self.hinge.derivative(excess, value)

    def head(self, statistics: Array) -> Array:
        """Return P max + d - b."""
        return super().head(self._larger(statistics)[0].ravel())

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradient with respect to both rates."""
        share = self._larger(statistics)[1]
        weights = super().head_vjp(statistics, v).reshape(share.shape)
        return np.concatenate(
            [((1.0 - share) * weights).sum(axis=0), (share * weights).sum(axis=0)]
        )

    def take(self, rows: Array, weights: Array) -> LargerRates:
        """Return the term on some rows; its rates are unbiased, the maxima are not."""
        rates, others = self.rates.take(rows, weights), self.others.take(rows, weights)
        return replace(self, rates=rates, others=others)

    def zero_one(self) -> LargerRates:
        """Return the term: it has no surrogate."""
        return self

    def smoothed(self, width: float) -> LargerRates:
        """Return the term with all kinks rounded."""
        return replace(
            self,
            rates=_rounded(self.rates, width),
            others=_rounded(self.others, width),
            hinge=self.hinge.smoothed(width * float(np.ptp(self.bounds))),
        )

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return P times the subgradient error of the maxima and of the rates."""
        plus, minus = np.split(self.forward(scores)[0], 2)
        error = self.hinge.subgradient_error(minus + self.bounds[:, None] - plus)
        error = error + self.rates.subgradient_error(scores) + self.others.subgradient_error(scores)
        return abs(self.combination) @ error.ravel()

    def convex_parts(self) -> tuple[LargerRates, LargerRates]:
        """Return the term, which is convex, and zero."""
        return self, self.scaled(0.0)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> SumTerm:
        """Return the tangent: of r+ where it is the larger one, else of r- + a."""
        statistics = self.forward(scores)[0]
        larger, share = self._larger(statistics)
        n = self.rates.n_statistics
        stack = sp.vstack([sp.eye_array(n, format="csr")] * len(self.bounds), format="csr")
        slopes = [(1.0 - share).ravel(), share.ravel()]
        first, second = (self.combination @ sp.diags_array(slope) @ stack for slope in slopes)
        plus, minus = np.split(statistics, 2)
        level = larger - (1.0 - share) * plus - share * minus
        constant = self.constant + self.combination @ level.ravel()
        none = np.zeros_like(self.offset)
        tangents = (
            replace(
                self.rates,
                combination=sp.csr_array(first),
                offset=self.offset,
                names=self.names,
                constant=constant,
            ),
            replace(self.others, combination=sp.csr_array(second), offset=none, names=self.names),
        )
        return SumTerm(tuple(one.linearize(scores) for one in tangents))


def _rounded(rates: CellMeans, width: float) -> CellMeans:
    """Return rates with phi rounded."""
    return replace(rates, function=rates.function.smoothed(width))
