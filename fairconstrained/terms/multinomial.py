"""The loss of several classes, and the share of wrong predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from fairconstrained.functions.elementary import Indicator
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Shardable
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.head import AffineHead
from fairconstrained.utils.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class MultinomialLoss(AffineHead, Shardable):
    r"""The weighted mean of the multinomial logistic loss.

    .. math:: \sum_i v_i \Bigl(\log \sum_k e^{s_{ik}} - s_{i, y_i}\Bigr), \qquad \sum_i v_i = 1.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The class of every row, the column of its own score.
    weights : ndarray of shape (n_rows,)
        v, which sums to one on the full data.
    offset : ndarray of shape (1,)
        Subtracted from the loss.
    """

    labels: Array
    weights: Array
    offset: Array = field(default_factory=lambda: np.zeros(1))
    names: Sequence[str] = ("loss",)
    combination: Matrix = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]
    constant: Array | float = field(default=0.0, kw_only=True)

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return len(self.labels)

    @property
    def n_statistics(self) -> int:
        """One, the loss."""
        return 1

    @property
    def smooth(self) -> bool:
        """The loss is smooth."""
        return True

    @property
    def convex(self) -> bool:
        """The loss is convex."""
        return True

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the mean loss and its pullback."""
        rows = np.arange(len(scores))
        total = logsumexp(scores, axis=1)
        loss = self.weights @ (total - scores[rows, self.labels])

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.exp(scores - total[:, None])
            back[rows, self.labels] -= 1.0
            back *= (u[0] * self.weights)[:, None]
            return back, NO_AUXILIARY

        return np.array([loss]), pullback

    def zero_one(self) -> ErrorRate:
        """Return the share of wrong predictions."""
        return ErrorRate(
            self.labels, self.weights, self.offset, self.names, combination=self.combination
        )

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; the number of all rows stays that of the full data."""
        return replace(self, labels=self.labels[rows], weights=self.weights[rows] * weights)

    def strata(self) -> Array:
        """Return the labels."""
        return self.labels

    @property
    def least_constant(self) -> tuple[float, Array]:
        """The least loss of constant scores and these scores: logarithms of the classes' shares."""
        n_classes = int(self.labels.max()) + 1
        shares = np.bincount(self.labels, self.weights, minlength=n_classes)
        scores = np.log(np.maximum(shares, np.finfo(float).tiny))
        return float(-shares @ scores), scores


@dataclass(frozen=True, eq=False)
class ErrorRate(MultinomialLoss):
    """The share of rows whose largest score is that of another class; parameters as above."""

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the error rate; its pullback is zero, as the derivative is."""
        wrong = scores.argmax(axis=1) != self.labels
        return np.array([self.weights @ wrong]), lambda u: (np.zeros(scores.shape), NO_AUXILIARY)

    @cached_property
    def by_class(self) -> tuple[CellMeans, ...]:
        """For every class, the share of all rows that are of this class and predicted so."""
        n_classes = int(self.labels.max()) + 1
        return tuple(
            CellMeans(
                sp.csc_array((self.weights * (self.labels == k))[None, :]),
                Indicator(), np.ones((1, 1)), np.zeros(1),
            )
            for k in range(n_classes)
        )  # fmt: skip

    def outputs_at(self, shares: Sequence[Array]) -> Array:
        """Return the outputs for shares of predictions, (n_outputs, n_points).

        Parameters
        ----------
        shares : sequence of ndarray of shape (1, n_points)
            The averages of `by_class`.
        """
        wrong = self.weights.sum() - sum(one[0] for one in shares)
        level = self.head(np.zeros(1))
        return np.asarray(level[:, None] + (self.head(np.ones(1)) - level)[:, None] * wrong)

    @property
    def convex(self) -> bool:
        """Rates of predictions are not convex."""
        return False

    @property
    def smooth(self) -> bool:
        """Rates of predictions are not smooth."""
        return False


def correct_share(labels: Array, sample_weight: Array) -> ErrorRate:
    """Return the share of rows whose largest score is that of their class: one less the error rate.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The classes of the rows.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows.
    """
    weights = sample_weight / sample_weight.sum()
    return ErrorRate(labels, weights, combination=np.array([[-1.0]]), constant=1.0)
