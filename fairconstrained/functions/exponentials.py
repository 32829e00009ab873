"""Exponentials of scores that several functions of the same scores share."""

from __future__ import annotations

from fairconstrained.functions.base import exponential
from fairconstrained.utils.typing import Array


class Exponentials:
    r"""Computes :math:`\exp(-|s| / \tau)` of scores once for every scale :math:`\tau`.

    It is the same for s and for -s, so that a loss of margins and a surrogate of scores share it.

    Parameters
    ----------
    scores : ndarray
        The scores s.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.exponentials import Exponentials
    >>> known = Exponentials(np.array([-1.0, 0.0, 1.0]))
    >>> known.at(1.0).round(3), known.at(1.0) is known.at(1.0)
    (array([0.368, 1.   , 0.368]), True)
    """

    def __init__(self, scores: Array):
        self._scores = scores
        self._known: dict[float, Array] = {}

    def at(self, scale: float) -> Array:
        """Return the exponentials for a scale."""
        if scale not in self._known:
            self._known[scale] = exponential(self._scores, scale)
        return self._known[scale]
