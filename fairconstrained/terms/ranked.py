"""Weighted scores of a cell: in sorted order with cumulative sums, or spread on a grid."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.utils.typing import Array, SparseMatrix

_TIED = 1e-12  # relative to the largest score
NODES = 6  # that a score is spread on: interpolation by polynomials of degree 5
_PLACES = np.arange(NODES) - 0.5 * (NODES - 1)  # of the nodes, from the middle of them
TO_SHARES = np.linalg.inv(np.vander(_PLACES, increasing=True))  # from powers of the score's place


class GridPoints:
    """Points on a uniform grid through 0, each between the six nodes that interpolation uses.

    Parameters
    ----------
    points : ndarray of shape (n,)
        The points.
    step : float
        The distance of the nodes.

    Attributes
    ----------
    first, n_nodes : int
        The number of the first node, counted from 0, and how many there are.
    lowest : ndarray of int32 of shape (n,)
        The lowest of the nodes of each point, counted from the first one.
    shares : ndarray of shape (n, 6)
        The weights of the values of its nodes in the interpolation at a point.
    """

    def __init__(self, points: Array, step: float):
        place = points / step
        bins = np.floor(place)
        place -= bins
        place -= 0.5
        low, high = (int(bins.min()), int(bins.max())) if len(bins) else (0, 0)
        bins -= low
        self.first, self.n_nodes = low - NODES // 2 + 1, high - low + NODES
        self.lowest = bins.astype(np.int32)
        powers = np.empty((NODES, len(points)))
        powers[0] = 1.0
        for k in range(1, NODES):
            np.multiply(powers[k - 1], place, out=powers[k])
        self.shares = powers.T @ TO_SHARES

    @cached_property
    def matrix(self) -> SparseMatrix:
        """The interpolation, CSR of shape (n, n_nodes)."""
        ends = NODES * np.arange(len(self.lowest) + 1, dtype=np.int32)
        nodes = np.add.outer(self.lowest, np.arange(NODES, dtype=np.int32))
        entries = (self.shares.ravel(), nodes.ravel(), ends)
        return sp.csr_array(entries, shape=(len(self.lowest), self.n_nodes))


class Ranked:
    """Weighted scores of a cell, in sorted order or on a grid where that is needed.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The scores.
    weights : ndarray of shape (n,) or None, default=None
        Their weights, >= 0; None stands for ones.
    """

    def __init__(self, scores: Array, weights: Array | None = None):
        self.scores = scores
        self.weights = np.ones(len(scores)) if weights is None else weights
        self._on_grid: tuple[float, GridPoints] | None = None

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
        return self.cumulative(self.masses)

    def cumulative(self, masses: Array) -> tuple[Array, Array, Array]:
        """Return the same for other weights, in the order of `ascending`."""
        out = np.zeros((3, len(masses) + 1))
        np.cumsum(masses, out=out[0, 1:])
        np.cumsum(masses * self.ascending, out=out[1, 1:])
        np.cumsum(masses * self.ascending * self.ascending, out=out[2, 1:])
        return out[0], out[1], out[2]

    def below(self, points: Array, side: str = "left") -> Array:
        """Return the positions in `sums` of the scores < `points` (<= with side="right")."""
        return np.searchsorted(self.ascending, points, side=side)  # type: ignore[call-overload]

    def on_grid(self, step: float) -> GridPoints:
        """Return the scores on a grid through 0 with this distance of its nodes."""
        if self._on_grid is None or self._on_grid[0] != step:
            self._on_grid = step, GridPoints(self.scores, step)
        return self._on_grid[1]

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
