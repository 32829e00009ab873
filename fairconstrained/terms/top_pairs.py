"""Sums over pairs with the highest-scored negatives: the terms of partial AUC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import Rounded, ScalarFunction
from fairconstrained.functions.losses import Hinge
from fairconstrained.terms.affine import FunctionAverages
from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.terms.cell_means import reweighted, rows_by_cell
from fairconstrained.terms.difference_sums import (
    difference_sums,
    pair_subgradient_error,
    pair_sum,
)
from fairconstrained.terms.ranked import Ranked, centered, soft_top
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True, eq=False)
class TopPairs(FunctionAverages):
    r"""The function :math:`c = R\,T + d - b` of sums over pairs with the highest negatives.

    With a `width` :math:`\omega > 0` the sums are rounded, so that they are smooth if the loss is:

    .. math::
        T_{\beta, \omega} = \max\Big\{\sum_j u_j L_j - \frac{\omega}{2} \sum_j \frac{u_j^2}{b_j}
        : 0 \le u_j \le b_j,\ \sum_j u_j = \beta\Big\},

    attained at :math:`u_j = b_j\, \mathrm{clip}((L_j - \tau) / \omega, 0, 1)` for one
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
        b, the tolerance.
    names : sequence of str
        A description of each output.
    width : float, default=0.0
        omega.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.

    References
    ----------
    Y. Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005).
    """

    cells: SparseMatrix
    function: ScalarFunction
    levels: Array
    combination: Matrix
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    width: float = 0.0
    constant: Array | float = 0.0

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return int(self.cells.shape[1])

    @property
    def n_statistics(self) -> int:
        """One sum for every level."""
        return len(self.levels)

    @cached_property
    def _by_class(self) -> list[tuple[Array, Array]]:
        """Rows and weights of the negatives, and of the positives."""
        return rows_by_cell(self.cells)

    @cached_property
    def _whole(self) -> Array:
        """Which levels are all of the negatives."""
        return self.levels >= 1.0

    @property
    def smooth(self) -> bool:
        """Whether the loss is smooth, and the sums are rounded or leave no negative out."""
        whole = bool(self._whole[(abs(self.combination).sum(axis=0) > 0.0)].all())
        return self.function.smooth and (whole or self.width > 0.0)

    @property
    def smoothable(self) -> bool:
        """Whether the loss is smoothable and a sum that is subtracted has bounded slopes."""
        return self.function.smoothable and (self.convex or self._bounded)

    @property
    def _bounded(self) -> bool:
        """Whether the slopes of the loss are bounded."""
        return isinstance(self.function, Hinge | Rounded)

    def smoothed(self, width: float) -> TopPairs:
        """Return the term with the loss and the sums rounded."""
        return replace(self, function=self.function.smoothed(width), width=width)

    def _with_function(self, function: ScalarFunction) -> TopPairs:
        return replace(self, function=function)

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        errors = []
        for exact, rounded in zip(
            *(self._chosen(scores, w) for w in (0.0, self.width)), strict=True
        ):
            positives, highest, *_ = exact
            _, top, *_ = rounded
            gap = pair_sum(self.function, positives, highest)[0]
            gap -= pair_sum(self.function, positives, top)[0]
            errors.append(max(gap, 0.0) + pair_subgradient_error(self.function, positives, top))
        return np.array(errors)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return T at every level; the ranks are constants to the derivatives."""
        (low, _), (high, _) = self._by_class
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
        (low, weights), (high, others) = self._by_class
        scores = centered(scores)
        negatives, positives = Ranked(scores[low], weights), Ranked(scores[high], others)
        out = []
        for level in self.levels:
            part, less = negatives.top(level), 0.0
            if width > 0.0 and level < 1.0:
                losses = difference_sums(self.function, positives, negatives).over_first()
                shares = soft_top(losses, weights, level, width)
                part, less = weights * shares, 0.5 * width * float(weights @ shares**2)
            chosen = np.flatnonzero(part)
            out.append((positives, Ranked(negatives.scores[chosen], part[chosen]), chosen, less))
        return out

    def take(self, rows: Array, weights: Array) -> TopPairs:
        """Return the term on some rows, the highest of them: consistent, not unbiased."""
        return replace(self, cells=reweighted(sp.csc_array(self.cells[:, rows]), weights))

    def zero_one(self) -> TopPairs:
        """Return the term with the zero-one version of the loss, which is the loss itself."""
        return replace(self, function=self.function.zero_one())

    def weak_curvature(self) -> Array:
        r"""Return the upward curvature of the subtracted sums: infinite where they have kinks.

        The curvature of rounded sums of a rounded hinge, whose slopes are at most 1, along a score
        is at most :math:`4 / \omega` times its weight: twice for the choice of u, twice for the
        loss.
        """
        if self.convex:
            return np.zeros(self.n_rows)
        down = float(self._signed_parts[1].sum(axis=1).max())
        bend = 4.0 / self.width if self.width > 0.0 and self._bounded else np.inf
        return down * bend * np.asarray(self.cells.sum(axis=0)).ravel()

    def strata(self) -> Array:
        """Return the class of each row."""
        return np.asarray(self.cells[1].toarray()).ravel() > 0
