"""Sums over pairs with the highest-scored negatives: what partial AUC is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import Rounded, ScalarFunction
from fairconstrained.functions.losses import Hinge
from fairconstrained.terms._ranked_sums import (
    Ranked,
    losses_at,
    pair_subgradient_error,
    pair_sum,
    soft_top,
)
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.pairs import tangent
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class TopPairs(Term):
    r"""The function :math:`c = R\,T - b` of sums over pairs with the highest negatives.

    With a `width` :math:`\omega > 0` the sums are rounded, so that they are smooth if the loss is:

    .. math::
        T_{\beta, \omega} = \max\Big\{\sum_j u_j L_j - \frac{\omega}{2} \sum_j \frac{u_j^2}{b_j}
        : 0 \le u_j \le b_j,\ \sum_j u_j = \beta\Big\},

    reached at :math:`u_j = b_j\, \mathrm{clip}((L_j - \tau) / \omega, 0, 1)` for one
    :math:`\tau`. The gradient takes u as constant; it is an :math:`\epsilon`-subgradient of
    :math:`T_\beta` with :math:`\epsilon = T_\beta - \sum_j u_j L_j`.

    Parameters
    ----------
    cells : CSC of shape (2, n_rows)
        The weights of the negative and of the positive rows.
    function : Loss
        A convex loss that does not increase.
    levels : ndarray of shape (n_levels,)
        The shares of the negatives; :math:`T_\beta` of :class:`PartialAUC` for each of them.
    combination : ndarray of shape (n_outputs, n_levels)
        R.
    offset : ndarray of shape (n_outputs,)
        b.
    names : sequence of str
        What each output says.
    width : float, default=0.0
        omega.

    References
    ----------
    Y. Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005).
    """

    cells: Any
    function: ScalarFunction
    levels: Array
    combination: Array
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    width: float = 0.0
    additive = False

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return int(self.cells.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return len(self.combination)

    @property
    def n_statistics(self) -> int:
        """One sum for every level."""
        return len(self.levels)

    @cached_property
    def _members(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Rows and weights of the negatives, and of the positives."""
        by_cell = sp.csr_array(self.cells)
        split = by_cell.indptr[1]
        rows, weights = by_cell.indices, by_cell.data
        return (rows[:split], weights[:split]), (rows[split:], weights[split:])

    @cached_property
    def _whole(self) -> Array:
        """Which levels are all of the negatives."""
        return self.levels >= 1.0

    @property
    def smooth(self) -> bool:
        """Whether the loss is, and no negative is left out unless the sums are rounded."""
        whole = bool(self._whole[np.any(self.combination, axis=0)].all())
        return self.function.smooth and (whole or self.width > 0.0)

    @property
    def smoothable(self) -> bool:
        """Whether the loss is and what is subtracted, if anything, has bounded slopes."""
        return self.function.smoothable and (self.convex or self._bounded)

    @property
    def _bounded(self) -> bool:
        """Whether the slopes of the loss are."""
        return isinstance(self.function, Hinge | Rounded)

    def smoothed(self, width: float) -> TopPairs:
        """Return the term with the loss and the sums rounded."""
        return replace(self, function=self.function.smoothed(width), width=width)

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return |R| times the epsilon of every sum."""
        slacks = []
        for exact, rounded in zip(
            *(self._chosen(scores, w) for w in (0.0, self.width)), strict=True
        ):
            positives, highest, *_ = exact
            _, top, *_ = rounded
            gap = pair_sum(self.function, positives, highest)[0]
            gap -= pair_sum(self.function, positives, top)[0]
            slacks.append(max(gap, 0.0) + pair_subgradient_error(self.function, positives, top))
        return np.abs(self.combination) @ np.array(slacks)

    @property
    def convex(self) -> bool:
        """Whether no weight is negative."""
        return bool(np.all(self.combination >= 0.0))

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return T at every level; the ranks are constants to the derivatives."""
        (low, _), (high, _) = self._members
        sums = [
            (chosen, less, *pair_sum(self.function, positives, top))
            for positives, top, chosen, less in self._chosen(scores, self.width)
        ]

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(self.n_rows)
            for (chosen, _, _, slopes), weight in zip(sums, u, strict=True):
                on_positives, on_negatives = slopes()
                back[high] += weight * on_positives
                back[low[chosen]] += weight * on_negatives
            return back, NO_AUXILIARY

        return np.array([value - less for _, less, value, _ in sums]), pullback

    def _chosen(self, scores: Array, width: float) -> list[tuple[Ranked, Ranked, Array, float]]:
        """Return, for every level, the positives, the highest negatives, which, and rounding."""
        (low, weights), (high, others) = self._members
        negatives, positives = Ranked(scores[low], weights), Ranked(scores[high], others)
        out = []
        for level in self.levels:
            part, less = negatives.top(level), 0.0
            if width > 0.0 and level < 1.0:
                losses = losses_at(self.function, positives, negatives.scores)
                shares = soft_top(losses, weights, level, width)
                part, less = weights * shares, 0.5 * width * float(weights @ shares**2)
            chosen = np.flatnonzero(part)
            out.append((positives, Ranked(negatives.scores[chosen], part[chosen]), chosen, less))
        return out

    def head(self, statistics: Array) -> Array:
        """Return R T - b."""
        return self.combination @ statistics - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return R' v."""
        return self.combination.T @ v

    def batch(self, rows: Array, weights: Array | None = None) -> TopPairs:
        """Return the term on some rows, the highest of them: consistent, not unbiased."""
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        return replace(self, cells=sp.csc_array(self.cells[:, rows].multiply(factor)))

    def zero_one(self) -> TopPairs:
        """Return the term itself: a loss stands for nothing else."""
        return replace(self, function=self.function.zero_one())

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return R T."""
        return self.value(scores) + self.offset

    def convex_parts(self) -> tuple[TopPairs, TopPairs]:
        """Return the sums with positive and those with negative weight, each of them convex."""
        plus = replace(self, combination=np.maximum(self.combination, 0.0))
        minus = np.maximum(-self.combination, 0.0)
        return plus, replace(self, combination=minus, offset=0.0 * self.offset)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> CellMeans:
        """Return the tangent."""
        return tangent(self, scores, 0.0)

    def scaled(self, factor: float) -> TopPairs:
        """Return the term times a factor."""
        return replace(self, combination=factor * self.combination, offset=factor * self.offset)

    def weak_curvature(self) -> Array:
        r"""Return how much the subtracted sums bend up: infinitely where they have kinks.

        Rounded sums of a rounded hinge, whose slopes are at most 1, bend each score by at most
        :math:`4 / \omega` times its weight: twice for the choice of u, twice for the loss.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        down = float(np.maximum(-self.combination, 0.0).sum(axis=1).max())
        bend = 4.0 / self.width if self.width > 0.0 and self._bounded else np.inf
        return down * bend * np.asarray(self.cells.sum(axis=0)).ravel()

    def strata(self) -> Array:
        """Return the class of each row."""
        return np.asarray(self.cells[1].toarray()).ravel() > 0
