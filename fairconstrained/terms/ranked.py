"""Weighted scores of a cell in sorted order, with cumulative sums."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.utils.typing import Array

_TIED = 1e-12  # relative to the largest score


class Ranked:
    """Weighted scores of a cell, sorted where that is needed.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The scores.
    weights : ndarray of shape (n,) or None, default=None
        Their weights, >= 0; None stands for ones.
    rows : ndarray of int of shape (n,) or slice, default=slice(None)
        The rows that have them.
    """

    def __init__(self, scores: Array, weights: Array | None = None, rows: Any = slice(None)):
        self.scores, self.rows = scores, rows
        self.weights = np.ones(len(scores)) if weights is None else weights

    @cached_property
    def order(self) -> Array:
        """The positions of the scores in ascending order; ties keep the order of the rows."""
        return np.argsort(self.scores, kind="stable")

    @cached_property
    def ascending(self) -> Array:
        """The sorted scores."""
        return self.scores[self.order]

    @cached_property
    def negated(self) -> Ranked:
        """The scores with the other sign."""
        other = Ranked(-self.scores, self.weights, self.rows)
        other.order = self.order[::-1]
        return other

    def as_given(self, values: Array) -> Array:
        """Return values that are in the order of `ascending` in that of the scores."""
        out = np.empty_like(values)
        out[self.order] = values
        return out

    @cached_property
    def sums(self) -> Array:
        """Weights, weighted scores and weighted squares, summed over the k lowest, k = 0 to n."""
        return self.cumulative(self.weights)

    def cumulative(self, weights: Array) -> Array:
        """Return the same for other weights, of shape (3, n + 1)."""
        out = np.zeros((3, len(weights) + 1))
        masses = weights[self.order]
        for moment in out:
            np.cumsum(masses, out=moment[1:])
            masses = masses * self.ascending
        return out

    def below(self, points: Array, side: str = "left") -> Array:
        """Return the positions in `sums` of the scores < `points` (<= with side="right")."""
        return np.searchsorted(self.ascending, points, side=side)  # type: ignore[call-overload]

    def share_above(self, points: Array) -> Array:
        """Return the weight of the scores > `points`."""
        weight = self.sums[0]
        return weight[-1] - weight[self.below(points, "right")]

    def share_below(self, points: Array) -> Array:
        """Return the weight of the scores < `points`, and half of that of scores equal to them.

        Scores that differ by rounding errors only are equal: a matrix product may give equal rows
        scores that differ in their last digits.
        """
        largest = max(np.abs(points).max(initial=0.0), np.abs(self.scores).max(initial=0.0))
        near, weight = _TIED * largest, self.sums[0]
        return 0.5 * (
            weight[self.below(points - near)] + weight[self.below(points + near, "right")]
        )

    def top(self, level: float) -> Array:
        """Return the part of every weight that is within the highest `level` of all weight.

        The score on the boundary counts in part, so that the parts sum to `level` times the total.
        """
        weight = self.sums[0]
        inside = np.minimum(weight[-1] - weight, level * weight[-1])
        return self.as_given(inside[:-1] - inside[1:])


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
    kinks = np.unique(np.concatenate([values - width, values]))
    start, end = ranked.sums[:, ranked.below(kinks)], ranked.sums[:, ranked.below(kinks + width)]
    mass, mean = (end - start)[:2]
    sums = ranked.sums[0, -1] - end[0] + (mean - kinks * mass) / width
    # the sums fall in the kinks
    tau = np.interp(-level * weights.sum(), -sums, kinks)
    return np.clip((values - tau) / width, 0.0, 1.0)
