"""Terms about a range of ranks: rates that are clipped to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.elementary import PositivePart
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, SumTerm, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array


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
        """Return how far above low the number in [low, high] is that is nearest to t."""
        return np.clip(t, self.low, self.high) - self.low

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 between the ends, 0 elsewhere."""
        return ((t > self.low) & (t < self.high)).astype(float)

    def convex_parts(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Return the two positive parts whose difference this is."""
        return PositivePart(-self.low), PositivePart(-self.high)


class OfRates(Term):
    """What terms on the rates of one set of cells share.

    Attributes
    ----------
    rates : CellMeans
        The averages over cells of phi(s), one output each.
    """

    rates: CellMeans
    combination: Any
    offset: Array
    names: Sequence[str]

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return self.rates.n_rows

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return len(self.offset)

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the value without the offset."""
        return self.value(scores, auxiliary) + self.offset

    def strata(self) -> Array:
        """Return codes of the cells that each row belongs to."""
        return self.rates.strata()


@dataclass(frozen=True, eq=False)
class ClippedRates(OfRates):
    r"""The function :math:`c = R\, \mathrm{clip}(r, \alpha, \beta) - b` of rates r of cells.

    Parameters
    ----------
    rates : CellMeans
        The averages over cells of phi(s), one output each.
    ends : tuple of float
        alpha < beta.
    combination : CSR of shape (n_outputs, n_cells)
        R.
    offset : ndarray of shape (n_outputs,)
        b.
    names : sequence of str
        What each output says.
    width : float, default=0.0
        What the kinks of the clipping are rounded over.

    Notes
    -----
    Where :math:`r = r^+ - r^-` with convex :math:`r^\pm`, :math:`\mathrm{clip}(r, \alpha, \beta) =
    \beta + \max\{r^- + \alpha, r^+\} - \max\{r^- + \beta, r^+\}` (IDCA, appendix B.3).
    """

    rates: CellMeans
    ends: tuple[float, float]
    combination: Any
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    width: float = 0.0

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
        """Whether phi and the clipping are."""
        return (self.rates.smooth and self.clip.smooth) or self.n_outputs == 0

    @property
    def smoothable(self) -> bool:
        """Whether phi is: the clipping is."""
        return self.rates.smoothable

    @property
    def convex(self) -> bool:
        """Only if nothing is asked."""
        return self.n_outputs == 0

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        return self.rates.forward(scores)

    def head(self, statistics: Array) -> Array:
        """Return R clip(r) - b."""
        return self.combination @ self.clip.value(statistics) - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return clip'(r) R' v."""
        slope = self.clip.derivative(statistics, self.clip.value(statistics))
        return slope * (self.combination.T @ v)

    def batch(self, rows: Array, weights: Array | None = None) -> ClippedRates:
        """Return the term on some rows; its rates are unbiased, what is clipped is not."""
        return replace(self, rates=self.rates.batch(rows, weights))

    def zero_one(self) -> ClippedRates:
        """Return the term with the indicator."""
        return replace(self, rates=self.rates.zero_one())

    def smoothed(self, width: float) -> ClippedRates:
        """Return the term with phi rounded, and the clipping over `width` times its range."""
        low, high = self.ends
        return replace(self, rates=self.rates.smoothed(width), width=width * (high - low))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the subgradient error of the clipping and of the rates."""
        slack = self.clip.subgradient_error(
            self.rates.value(scores)
        ) + self.rates.subgradient_error(scores)
        return abs(self.combination) @ slack

    def convex_parts(self) -> tuple[Term, Term]:
        """Return the positive combinations of maxima, see the notes."""
        if self.convex:
            return self, self
        positive, negative = self.combination.maximum(0.0), (-self.combination).maximum(0.0)
        plus, minus = (replace(self.rates, function=f) for f in self.rates.function.convex_parts())
        level = (self.ends[1] - self.ends[0]) * np.asarray(self.combination.sum(axis=1)).ravel()
        bounds, hinge = np.array(self.ends), PositivePart()
        rounded = hinge.smoothed(self.width) if self.width else hinge

        def maxima(first: Any, second: Any, offset: Array) -> LargerRates:
            both = sp.hstack([first, second], format="csr")
            return LargerRates(plus, minus, bounds, both, offset, rounded, self.names)

        return (
            maxima(positive, negative, self.offset - level),
            maxima(negative, positive, np.zeros_like(self.offset)),
        )

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the tangent: that of the rates inside the range, constants outside."""
        rates = self.rates.value(scores)
        clipped = self.clip.value(rates)
        slope = self.clip.derivative(rates, clipped)
        tangent = self.combination @ sp.diags_array(slope, format="csr")
        offset = self.offset - self.combination @ (clipped - slope * rates)
        term = replace(self.rates, combination=tangent, offset=offset, names=self.names)
        return term.linearize(scores)

    def scaled(self, factor: float) -> ClippedRates:
        """Return the term times a factor."""
        return replace(self, combination=factor * self.combination, offset=factor * self.offset)

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature; infinities unless the clipping is rounded.

        With :math:`|\phi''| \le K` a surrogate, which has values in [0, 1], has
        :math:`\phi'^2 \le K` (Landau's inequality), and along s the clipped rate bends by
        :math:`|\mathrm{clip}' \phi''| A + |\mathrm{clip}''| A \phi'^2` at the most.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        steepest = float(np.max(np.abs(self.rates.function.curvature)))
        bend = (1.0 + float(np.max(np.abs(self.clip.curvature)))) * steepest
        if not np.isfinite(bend):
            return np.full(self.n_rows, np.inf)
        largest = abs(self.combination).max(axis=0).toarray().ravel()
        return np.asarray(self.rates.cells.T @ (bend * largest))


@dataclass(frozen=True, eq=False)
class LargerRates(OfRates):
    r"""The function :math:`P\, (\max\{r^-_k + a_l, r^+_k\})_{lk} - b`: convex if P is >= 0.

    Parameters
    ----------
    rates, others : CellMeans
        r+ and r-, averages over the same cells of convex functions.
    bounds : ndarray of shape (n_bounds,)
        a.
    combination : CSR of shape (n_outputs, n_bounds * n_cells)
        P, for all cells with the first bound, then with the second one.
    offset : ndarray of shape (n_outputs,)
        b.
    hinge : ScalarFunction
        max{t, 0}, perhaps rounded.
    names : sequence of str
        What each output says.
    """

    rates: CellMeans
    others: CellMeans
    bounds: Array
    combination: Any
    offset: Array
    hinge: ScalarFunction = field(default_factory=PositivePart)
    names: Sequence[str] = field(default=(), repr=False)

    @property
    def n_statistics(self) -> int:
        """Two for each cell."""
        return 2 * self.rates.n_statistics

    @property
    def smooth(self) -> bool:
        """Whether the rates and the maximum are."""
        return self.rates.smooth and self.others.smooth and self.hinge.smooth

    @property
    def smoothable(self) -> bool:
        """Whether the rates are."""
        return self.rates.smoothable and self.others.smoothable

    @property
    def convex(self) -> bool:
        """Whether no weight is negative."""
        return bool(self.combination.min() >= 0.0)

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
        """Return P max - b."""
        return self.combination @ self._larger(statistics)[0].ravel() - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the weights on both rates."""
        share = self._larger(statistics)[1]
        weights = (self.combination.T @ v).reshape(share.shape)
        return np.concatenate(
            [((1.0 - share) * weights).sum(axis=0), (share * weights).sum(axis=0)]
        )

    def batch(self, rows: Array, weights: Array | None = None) -> LargerRates:
        """Return the term on some rows; its rates are unbiased, the maxima are not."""
        rates, others = self.rates.batch(rows, weights), self.others.batch(rows, weights)
        return replace(self, rates=rates, others=others)

    def zero_one(self) -> LargerRates:
        """Return itself: it stands for nothing else."""
        return self

    def smoothed(self, width: float) -> LargerRates:
        """Return the term with all kinks rounded."""
        return replace(
            self,
            rates=self.rates.smoothed(width),
            others=self.others.smoothed(width),
            hinge=self.hinge.smoothed(width * float(np.ptp(self.bounds))),
        )

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return P times the subgradient error of the maxima and of the rates."""
        plus, minus = np.split(self.forward(scores)[0], 2)
        slack = self.hinge.subgradient_error(minus + self.bounds[:, None] - plus)
        slack = slack + self.rates.subgradient_error(scores) + self.others.subgradient_error(scores)
        return abs(self.combination) @ slack.ravel()

    def convex_parts(self) -> tuple[Term, Term]:
        """Return itself and nothing."""
        return self, self.scaled(0.0)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the tangent: of r+ where it is the larger one, else of r- + a."""
        statistics = self.forward(scores)[0]
        larger, share = self._larger(statistics)
        n = self.rates.n_statistics
        stack = sp.vstack([sp.eye_array(n, format="csr")] * len(self.bounds), format="csr")
        slopes = [(1.0 - share).ravel(), share.ravel()]
        first, second = (self.combination @ sp.diags_array(slope) @ stack for slope in slopes)
        plus, minus = np.split(statistics, 2)
        level = larger - (1.0 - share) * plus - share * minus
        offset = self.offset - self.combination @ level.ravel()
        none = np.zeros_like(offset)
        tangents = (
            replace(self.rates, combination=sp.csr_array(first), offset=offset, names=self.names),
            replace(self.others, combination=sp.csr_array(second), offset=none, names=self.names),
        )
        return SumTerm(tuple(one.linearize(scores) for one in tangents))

    def scaled(self, factor: float) -> LargerRates:
        """Return the term times a factor."""
        return replace(self, combination=factor * self.combination, offset=factor * self.offset)

    def weak_curvature(self) -> Array:
        """Return zeros if the term is convex; nothing is known of it otherwise."""
        return np.full(self.n_rows, 0.0 if self.convex else np.inf)
