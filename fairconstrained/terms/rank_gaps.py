"""The gaps of predictions in a range of ranks: a term that is evaluated, not optimised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.terms.cell_means import OfRates, rows_by_cell
from fairconstrained.terms.head import AffineHead
from fairconstrained.utils.typing import Array, Matrix

_ROUNDING = 1e-12  # the error of sums of weights


@dataclass(frozen=True, eq=False)
class RankGaps(OfRates, AffineHead):
    r"""The gaps of predictions in a range of ranks, for every pair of cells, minus kappa.

    .. math::
        \max_\theta \big| \Pr(s > \theta \mid k, \bar F_k(s) \in I) -
        \Pr(s > \theta \mid k', \bar F_{k'}(s) \in I) \big|,

    where :math:`\bar F_k(s)` is the share of cell k with scores above s. The gaps are piecewise
    constant, so that their derivatives are zero, and their statistics are not sums over rows.

    Parameters
    ----------
    rates : CellMeans
        The rates whose cells are compared.
    ranks : tuple of float
        I = [alpha, beta).
    offset : ndarray of shape (n_pairs,)
        kappa.
    n_auxiliary : int
        The number of auxiliary variables of the term whose zero-one version this is; the gaps do
        not depend on them.
    names : sequence of str
        A description of each output.
    combination : sparse matrix of shape (n_outputs, n_pairs) or None, default=None
        R; None is the identity.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        The constant part of the gaps.

    References
    ----------
    IDCA, equation (6).
    """

    ranks: tuple[float, float]
    offset: Array
    n_auxiliary: int = 0
    names: Sequence[str] = field(default=(), repr=False)
    combination: Matrix = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]
    constant: Array | float = field(default=0.0, kw_only=True)
    batchable = True

    @cached_property
    def _rows_by_cell(self) -> list[tuple[Array, Array]]:
        return rows_by_cell(self.rates.cells)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the gaps; their pullback gives zeros."""
        inside = [
            within_ranks(scores[rows], weights, self.ranks) for rows, weights in self._rows_by_cell
        ]

        def pullback(u: Array) -> tuple[Array, Array]:
            return np.zeros(self.n_rows), np.zeros(self.n_auxiliary)

        return distances(inside), pullback

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

    def share_above(values: Array, shares: Array) -> Array:
        sums = np.append(0.0, np.cumsum(shares))
        return sums[np.searchsorted(-values, -points)]

    gaps = np.abs(share_above(*first) - share_above(*second))
    return min(float(gaps.max(initial=0.0)), 1.0)
