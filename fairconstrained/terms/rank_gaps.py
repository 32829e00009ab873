"""The gaps of decisions in a range of ranks, as a term that measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.clipped_rates import OfRates
from fairconstrained.utils.typing import Array

_ROUNDING = 1e-12  # sums of weights are right to this


@dataclass(frozen=True, eq=False)
class RankGaps(OfRates):
    r"""The gaps of decisions in a range of ranks, for every pair of cells, minus kappa.

    .. math::
        \max_\theta \big| \Pr(s > \theta \mid k, \bar F_k(s) \in I) -
        \Pr(s > \theta \mid k', \bar F_{k'}(s) \in I) \big|,

    where :math:`\bar F_k(s)` is the share of cell k with scores above s. It measures: it has no
    slopes, and is no sum over rows.

    Parameters
    ----------
    rates : CellMeans
        Its cells are compared.
    ranks : tuple of float
        I = [alpha, beta).
    offset : ndarray of shape (n_pairs,)
        kappa.
    n_auxiliary : int
        The variables of the term that this is the strict version of; they play no part.
    names : sequence of str
        What each output says.

    References
    ----------
    IDCA, equation (6).
    """

    rates: CellMeans
    ranks: tuple[float, float]
    offset: Array
    n_auxiliary: int = 0
    names: Sequence[str] = field(default=(), repr=False)

    smooth = False
    convex = False
    additive = False

    @property
    def n_statistics(self) -> int:
        """The number of pairs."""
        return len(self.offset)

    @cached_property
    def _by_cell(self) -> list[tuple[Array, Array]]:
        """The rows of every cell and their weights."""
        cells = sp.csr_array(self.rates.cells)
        ends = zip(cells.indptr[:-1], cells.indptr[1:], strict=True)
        return [(cells.indices[a:b], cells.data[a:b]) for a, b in ends]

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the gaps; their pullback gives zeros."""
        inside = [
            within_ranks(scores[rows], weights, self.ranks) for rows, weights in self._by_cell
        ]
        first, second = np.triu_indices(len(inside), 1)
        gaps = [distance(inside[a], inside[b]) for a, b in zip(first, second, strict=True)]

        def pullback(u: Array) -> tuple[Array, Array]:
            return np.zeros(self.n_rows), np.zeros(self.n_auxiliary)

        return np.array(gaps, dtype=float), pullback

    def head(self, statistics: Array) -> Array:
        """Return the gaps minus kappa."""
        return statistics - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return v."""
        return v

    def batch(self, rows: Array, weights: Array | None = None) -> RankGaps:
        """Return the gaps of some rows, which are no unbiased estimates."""
        return replace(self, rates=self.rates.batch(rows, weights))

    def zero_one(self) -> RankGaps:
        """Return itself."""
        return self

    def convex_parts(self) -> tuple[Term, Term]:
        """Raise: gaps of decisions can be measured only."""
        raise ValueError("The gaps of decisions in a range of ranks have no convex parts.")

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Raise: gaps of decisions can be measured only."""
        raise ValueError("The gaps of decisions in a range of ranks have no tangent.")

    def scaled(self, factor: float) -> Term:
        """Raise: gaps of decisions can be measured only."""
        raise ValueError("The gaps of decisions in a range of ranks are not scaled.")

    def weak_curvature(self) -> Array:
        """Return infinities: the gaps jump."""
        return np.full(self.n_rows, np.inf)


def within_ranks(scores: Array, weights: Array, ranks: tuple[float, float]) -> tuple[Array, Array]:
    r"""Return the distribution of the scores whose rank is in a range.

    The rank of a score is the share of weight strictly above it. Where no score has a rank in the
    range, equal scores bridge it, and all of the range is at their value.

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
    values, place = np.unique(-scores, return_inverse=True)
    mass = np.bincount(place, weights, minlength=len(values)) / weights.sum()
    above = np.cumsum(mass) - mass
    low, high = ranks
    inside = (above >= low - _ROUNDING) & (above < high - _ROUNDING)
    if not inside.any():
        inside[np.searchsorted(above, low, side="right") - 1] = True
    share = mass[inside]
    return -values[inside], share / share.sum()


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
