"""Exponentials of scores that several functions of the same scores share."""

from __future__ import annotations

from typing import cast

from fairconstrained.functions.base import ExponentialFunction, ScalarFunction, exponential
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
        """Return the exponentials for a scale: the squares of those for twice the scale."""
        if scale not in self._known:
            root = self._known.get(2.0 * scale)
            known = exponential(self._scores, scale) if root is None else root * root
            self._known[scale] = known
        return self._known[scale]


def value_and_derivative(
    function: ScalarFunction, t: Array, known: Exponentials | None
) -> tuple[Array, Array]:
    """Return phi(t) and phi'(t).

    Parameters
    ----------
    function : ScalarFunction
        phi.
    t : ndarray
        The points.
    known : Exponentials or None
        Of t or of -t, which functions of the same scores share; None where there are none.
    """
    shared = isinstance(function, ExponentialFunction) and function.shares_exponential
    if known is None or not shared:
        value = function.value(t)
        return value, function.derivative(t, value)
    found = cast("ExponentialFunction", function)
    exponentials = known.at(found.exponential_scale)
    return found.value_from(t, exponentials), found.derivative_from(t, exponentials)
