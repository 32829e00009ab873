"""The domain of the multipliers of a penalised maximum."""

from __future__ import annotations

import numpy as np

from fairconstrained.domains import Domain
from fairconstrained.utils.typing import Array


class CappedSimplex(Domain):
    """The non-negative vectors whose entries add up to at most `total`.

    Parameters
    ----------
    total : float
        The largest sum, > 0.
    """

    def __init__(self, total: float = 1.0):
        self.total = total

    def project(self, w: Array) -> Array:
        """Return the nearest point: shift down and clip."""
        clipped = np.maximum(w, 0.0)
        if clipped.sum() <= self.total:
            return clipped
        w = w - w.max()  # the projection is the same, and nothing is lost to rounding
        descending = np.sort(w)[::-1]
        levels = (np.cumsum(descending) - self.total) / np.arange(1, w.size + 1)
        return np.maximum(w - levels[np.flatnonzero(descending > levels)[-1]], 0.0)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the projected gradient step, which is zero where the residual is."""
        return w - self.project(w - gradient)
