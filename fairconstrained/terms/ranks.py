"""The terms of parity in a range of ranks: clipped rates, and gaps within the range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import PositivePart
from fairconstrained.terms.affine import FunctionAverages, Majorant, column_maxima
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Shardable, Term
from fairconstrained.terms.cell_means import CellMeans, OnCells
from fairconstrained.terms.head import as_csr, identity
from fairconstrained.terms.ranked import Ranked
from fairconstrained.utils.typing import Array

_ROUNDING = 1e-12  # the error of sums of weights
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
class ClippedRates(OnCells, FunctionAverages, Shardable):
    r"""The function :math:`c = R\, \mathrm{clip}(r, \alpha, \beta) + d - b` of rates r of cells.

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
    \beta + \max\{r^- + \alpha, r^+\} - \max\{r^- + \beta, r^+\}` (IDCA, appendix B.3).
    """

    function: ScalarFunction
    ends: tuple[float, float]
    width: float = 0.0

    factored: ClassVar[bool] = True

    @cached_property
    def _rates(self) -> CellMeans:
        """The averages over cells of phi(s), one output each."""
        return CellMeans(self.cells, self.function, combination=identity(self.n_statistics))

    @cached_property
    def clip(self) -> ScalarFunction:
        """The clipping, perhaps rounded."""
        sharp = Clip(*self.ends)
        return sharp.smoothed(self.width) if self.width else sharp

    @property
    def smooth(self) -> bool:
        """Whether phi and the clipping are smooth."""
        return super().smooth and (self.clip.smooth or self.n_outputs == 0)

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
        tolerance = _BEYOND + (high - low) * np.max(self.offset)
        span = np.linspace(-_FAR, _FAR, 1 + int(2 * _FAR / _STEP))
        rates = self.function.value(span)
        below = span[(rates <= low) & (low > 0.0) & (statistics.max() > low + tolerance)][-1:]
        above = span[(rates >= high) & (high < 1.0) & (statistics.min() < high - tolerance)][:1]
        return tuple(np.concatenate([below, above]).tolist())

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates and their pullback."""
        return self._rates.forward(scores)

    def head(self, statistics: Array) -> Array:
        """Return R clip(r) + d - b."""
        return super().head(self.clip.value(statistics))

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return clip'(r) R' v."""
        slope = self.clip.derivative(statistics, self.clip.value(statistics))
        return slope * super().head_vjp(statistics, v)

    def smoothed(self, width: float) -> ClippedRates:
        """Return the term with phi rounded, and the clipping over `width` times its range."""
        low, high = self.ends
        return replace(self, function=self.function.smoothed(width), width=width * (high - low))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the subgradient error of the clipping and of the rates."""
        error = self.clip.subgradient_error(self.forward(scores)[0])
        return abs(self.combination) @ (error + self._average_errors(scores, auxiliary))

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the majorant with tangents in place of what is subtracted."""
        if self.convex:
            return self
        unit = Majorant.of(self._rates, scores, auxiliary)
        combination = sp.hstack([as_csr(part) for part in self._signed_parts], format="csr")
        return ClippedMajorant(
            self, unit.plus, unit.minus, unit.tangents,
            combination=combination, offset=self.offset, names=self.names, constant=self.constant,
        )  # fmt: skip

    def weak_curvature(self) -> Array:
        r"""Return the largest downward curvature; infinities unless the clipping is rounded.

        With :math:`|\phi''| \le K` a surrogate, which has values in [0, 1], has
        :math:`\phi'^2 \le K` (Landau's inequality), and along s the curvature of the clipped rate
        is at most :math:`|\mathrm{clip}' \phi''| A + |\mathrm{clip}''| A \phi'^2`.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        steepest = float(np.max(np.abs(self.function.curvature)))
        bend = (1.0 + float(np.max(np.abs(self.clip.curvature)))) * steepest
        if not np.isfinite(bend):
            return np.full(self.n_rows, np.inf)
        return self.cells.T @ (bend * column_maxima(abs(self.combination)))


@dataclass(frozen=True, eq=False)
class ClippedMajorant(Majorant):
    r"""The convex majorant of clipped rates.

    With :math:`M_l = \max\{r^- + l, r^+\}`, convex, and its tangent :math:`T_l`, clipped rates are
    at most :math:`\beta + M_\alpha - T_\beta` and at least :math:`\beta + T_\alpha - M_\beta`.

    Parameters
    ----------
    term, plus, minus, tangents, offset, names, constant
        See :class:`~fairconstrained.terms.affine.Majorant`.
    combination : CSR of shape (n_outputs, 2 n_cells)
        The weights of upper bounds of the rates, and minus those of lower bounds.
    """

    term: ClippedRates

    @cached_property
    def _hinge(self) -> ScalarFunction:
        width = self.term.width
        return PositivePart().smoothed(width) if width else PositivePart()

    @property
    def _ends(self) -> Array:
        """Alpha and beta, a column."""
        return np.array(self.term.ends)[:, None]

    @property
    def smooth(self) -> bool:
        """Whether the rates and the maximum are smooth."""
        return super().smooth and self.term.width > 0.0

    def _larger(self, plus: Array, minus: Array) -> tuple[Array, Array]:
        """Return max{r- + l, r+} and the share of r- in its slope, (2, n_cells) both."""
        excess = minus + self._ends - plus
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
        width = np.ptp(self._ends)
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
        return super().smoothed(width)._with(term=self.term.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the weighted subgradient errors of the maxima and of the rates."""
        plus, minus = (p.forward(scores)[0] for p in (self.plus, self.minus))
        error = self._hinge.subgradient_error(minus + self._ends - plus)
        error = error + sum(p._average_errors(scores, auxiliary) for p in (self.plus, self.minus))
        return self.combination @ error.ravel()


@dataclass(frozen=True, eq=False)
class RankGaps(OnCells):
    r"""The gaps of predictions in a range of ranks, for every pair of cells, minus kappa.

    .. math::
        \max_\theta \big| \Pr(s > \theta \mid k, \bar F_k(s) \in I) -
        \Pr(s > \theta \mid k', \bar F_{k'}(s) \in I) \big|,

    where :math:`\bar F_k(s)` is the share of cell k with scores above s. The gaps are piecewise
    constant, so that their derivatives are zero, and their statistics are not sums over rows.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        See :class:`OnCells`.
    ranks : tuple of float
        I = [alpha, beta).
    n_auxiliary : int, default=0
        The number of auxiliary variables of the term whose zero-one version this is; the gaps do
        not depend on them.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`.

    References
    ----------
    IDCA, equation (6).
    """

    ranks: tuple[float, float]
    n_auxiliary: int = 0

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the gaps; their pullback gives zeros."""
        inside = [within_ranks(scores[rows], w, self.ranks) for rows, w in self._rows_by_cell]
        zeros = np.zeros(self.n_rows), np.zeros(self.n_auxiliary)
        return distances(inside), lambda u: zeros

    def zero_one(self) -> RankGaps:
        """Return the term: it has no surrogate."""
        return self


def within_ranks(scores: Array, weights: Array, ranks: tuple[float, float]) -> tuple[Array, Array]:
    r"""Return the distribution of the scores whose rank is in a range.

    The rank of a score is the share of weight strictly above it. Where no score has a rank in the
    range, the range lies within equal scores, and the distribution is concentrated at their value.

    Parameters
    ----------
    scores, weights : ndarray of shape (n,)
        The scores of a group and their weights.
    ranks : tuple of float
        [alpha, beta).

    Returns
    -------
    values, shares : ndarray
        The distinct scores, descending, and their shares of the range.
    """
    return part_within(*distribution(scores, weights), ranks)


def distribution(scores: Array, weights: Array) -> tuple[Array, Array]:
    """Return the distinct scores, descending, and their shares of the weight."""
    values, place = np.unique(-scores, return_inverse=True)
    return -values, np.bincount(place, weights, minlength=len(values)) / weights.sum()


def part_within(values: Array, mass: Array, ranks: tuple[float, float]) -> tuple[Array, Array]:
    """Return the part of a distribution whose rank is in a range, see :func:`within_ranks`."""
    above = np.cumsum(mass) - mass
    low, high = ranks
    inside = (above >= low - _ROUNDING) & (above < high - _ROUNDING)
    if not inside.any():
        inside[np.searchsorted(above, low, side="right") - 1] = True
    share = mass[inside]
    return values[inside], share / share.sum()


def distances(cells: Sequence[tuple[Array, Array]]) -> Array:
    """Return the distances of all pairs of distributions."""
    return np.array([distance(*pair) for pair in combinations(cells, 2)], dtype=float)


def distance(first: tuple[Array, Array], second: tuple[Array, Array]) -> float:
    """Return the largest difference of Pr(s > theta) of two distributions over all theta.

    Parameters
    ----------
    first, second : tuple of ndarray
        Values, descending, and their shares.
    """
    points = np.concatenate([first[0], second[0]])
    gaps = np.abs(Ranked(*first).share_above(points) - Ranked(*second).share_above(points))
    return min(float(gaps.max(initial=0.0)), 1.0)
