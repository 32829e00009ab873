"""Bounds on ratios of averages over cells."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array, Matrix

_CANCELLATION = 1e-12  # a sum smaller than this share of its summands is a rounding error of 0


@dataclass(frozen=True, eq=False)
class Ratios(CellMeans):
    r"""The constraints :math:`\text{ratio} \cdot m_b - m_a \le 0`, affine in the averages.

    `gap` is the shortfall of the ratio, :math:`1 - m_a / m_b`, at most 1 - ratio where the
    constraint holds; 0 where :math:`m_b` is 0 and there is nothing to fall short of.

    Parameters
    ----------
    ratio : float
        The least ratio allowed.
    whole : CSR of shape (n_outputs, n_cells)
        The weights of the averages in :math:`m_b`.
    whole_constant : ndarray of shape (n_outputs,) or float
        The constant part of :math:`m_b`.
    """

    ratio: float = 1.0
    whole: Matrix = field(kw_only=True)
    whole_constant: Array | float = 0.0

    @property
    def gap_bounds(self) -> Array:
        """1 - ratio, the largest shortfall allowed."""
        return np.full(self.n_outputs, 1.0 - self.ratio)

    def largest_gaps(self, statistics: Array) -> tuple[Array, Array]:
        """Return the largest shortfall, that of the least and the largest rate."""
        if self._pairs is None:
            return super().largest_gaps(statistics)
        largest = self.some_outputs(self.largest(statistics, -np.inf, 1))
        return largest.gap_of(statistics), largest.gap_bounds

    def some_outputs(self, outputs: Array) -> Self:
        """Return the term with some of its ratios, on all cells."""
        chosen = super().some_outputs(outputs)
        constant = self._of_outputs(self.whole_constant, outputs)
        return replace(chosen, whole=self.whole[outputs], whole_constant=constant)

    def gap_of(self, statistics: Array) -> Array:
        """Return 1 - m_a / m_b."""
        whole = self.whole @ statistics + self.whole_constant
        excess = self.head(statistics) + self.offset  # ratio m_b - m_a
        summands = abs(self.whole) @ np.abs(statistics) + np.abs(self.whole_constant)
        there = whole > _CANCELLATION * summands
        gap = np.zeros(self.n_outputs)
        gap[there] = 1.0 - self.ratio + excess[there] / whole[there]
        return gap
