"""Weighted scores in sorted order, with cumulative sums."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairconstrained.utils.typing import Array


class Ranked:
    """Weighted scores of a cell, in sorted order where that is needed.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The scores.
    weights : ndarray of shape (n,)
        Their weights, >= 0.
    """

    def __init__(self, scores: Array, weights: Array):
        self.scores = scores
        self.weights = weights

    @cached_property
    def order(self) -> Array:
        """The positions of the scores in ascending order; ties keep the order of the rows."""
        return np.argsort(self.scores, kind="stable")

    @cached_property
    def ascending(self) -> Array:
        """The sorted scores."""
        return self.scores[self.order]

    @cached_property
    def masses(self) -> Array:
        """The weights in the order of `ascending`."""
        return self.weights[self.order]

    def as_given(self, values: Array) -> Array:
        """Return values that are in the order of `ascending` in that of the scores."""
        out = np.empty_like(values)
        out[self.order] = values
        return out

    @cached_property
    def sums(self) -> tuple[Array, Array, Array]:
        """Weights, weighted scores and weighted squares, summed over the k lowest, k = 0 to n."""
        scores, weights = self.ascending, self.masses
        return tuple(
            np.concatenate([[0.0], np.cumsum(weights * power)])
            for power in (1.0, scores, scores * scores)
        )  # type: ignore[return-value]

    def below(self, points: Array, side: str = "left") -> Array:
        """Return the positions in `sums` of the scores < `points` (<= with side="right")."""
        return np.searchsorted(self.ascending, points, side=side)  # type: ignore[call-overload]

    def share_above(self, points: Array) -> Array:
        """Return the weight of the scores > `points`."""
        weight = self.sums[0]
        return weight[-1] - weight[self.below(points, "right")]

    def top(self, level: float) -> Array:
        """Return the part of every weight that is within the highest `level` of all weight.

        The score on the boundary counts in part, so that the parts sum to `level` times the total.
        """
        weight = self.sums[0]
        inside = np.minimum(weight[-1] - weight, level * weight[-1])
        out = np.empty(len(self.scores))
        out[self.order] = inside[:-1] - inside[1:]
        return out


def centered(scores: Array) -> Array:
    """Return the scores minus their mean.

    Sums over differences are equal, and a large intercept does not cost them their digits.
    """
    return scores - np.mean(scores) if scores.size else scores


def soft_top(values: Array, weights: Array, level: float, width: float) -> Array:
    r"""Return the shares :math:`\mathrm{clip}((v - \tau) / \omega, 0, 1)` that add up to a level.

    Their weighted sum is `level` times that of all weights; it falls piecewise linearly in
    :math:`\tau`, which is found between two of its kinks.

    Parameters
    ----------
    values, weights : ndarray of shape (n,)
        v and the weights, > 0.
    level : float
        In (0, 1).
    width : float
        omega > 0.
    """
    ranked = Ranked(values, weights)

    def held(tau: Array) -> Array:
        start, end = ranked.below(tau), ranked.below(tau + width)
        mass, mean = (total[end] - total[start] for total in ranked.sums[:2])
        return ranked.sums[0][-1] - ranked.sums[0][end] + (mean - tau * mass) / width

    kinks = np.unique(np.concatenate([values - width, values]))
    sums, wanted = held(kinks), level * weights.sum()
    right = int(np.clip(np.searchsorted(-sums, -wanted), 1, len(kinks) - 1))
    (high, low), (a, b) = sums[right - 1 : right + 1], kinks[right - 1 : right + 1]
    tau = a + (b - a) * (high - wanted) / (high - low) if high > low else a
    return np.clip((values - tau) / width, 0.0, 1.0)
