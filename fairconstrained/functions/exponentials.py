"""Exponentials of scores that several functions of the same scores share."""

from __future__ import annotations

from collections.abc import Callable

from fairconstrained.functions.base import ExponentialFunction, ScalarFunction, exponential
from fairconstrained.utils.typing import Array

_MOST_KEPT = 100_000  # scores; beyond, kept values would take much memory


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
        self._computed: dict[tuple[object, ...], Array] = {}

    def at(self, scale: float) -> Array:
        """Return the exponentials for a scale: the squares of those for twice the scale."""
        if scale not in self._known:
            root = self._known.get(2.0 * scale)
            known = exponential(self._scores, scale) if root is None else root * root
            self._known[scale] = known
        return self._known[scale]

    def value(self, function: ExponentialFunction, t: Array) -> Array:
        """Return phi(t). The array must not be changed.

        If t is the array of the scores, and has at most 100,000 of them, phi is computed once.

        Parameters
        ----------
        function : ExponentialFunction
            phi.
        t : ndarray
            The scores, or numbers of the same absolute values.
        """
        return self._once(function, t, function.value_from)

    def derivative(self, function: ExponentialFunction, t: Array) -> Array:
        """Return phi'(t). The array must not be changed; see :meth:`value`."""
        return self._once(function, t, function.derivative_from)

    def _once(
        self, function: ExponentialFunction, t: Array, compute: Callable[[Array, Array], Array]
    ) -> Array:
        exponential = self.at(function.exponential_scale)
        if t is not self._scores or len(t) > _MOST_KEPT:
            return compute(t, exponential)
        key = (compute.__name__, type(function), *vars(function).values())
        if key not in self._computed:
            self._computed[key] = compute(t, exponential)
        return self._computed[key]


def value_of(function: ScalarFunction, t: Array, known: Exponentials | None) -> Array:
    """Return phi(t).

    Parameters
    ----------
    function, t, known
        See :func:`value_and_derivative`.
    """
    shared = _sharing(function)
    if known is None or shared is None:
        return function.value(t)
    return shared.value_from(t, known.at(shared.exponential_scale))


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
    shared = _sharing(function)
    if known is None or shared is None:
        value = function.value(t)
        return value, function.derivative(t, value)
    exponentials = known.at(shared.exponential_scale)
    return shared.value_from(t, exponentials), shared.derivative_from(t, exponentials)


def total_and_derivative(
    function: ScalarFunction, t: Array, known: Exponentials | None
) -> tuple[float, Array]:
    """Return the sum of phi(t) over all points, and phi'(t).

    Parameters
    ----------
    function, t, known
        See :func:`value_and_derivative`.
    """
    shared = _sharing(function)
    if known is None or shared is None:
        value, derivative = value_and_derivative(function, t, known)
        return float(value.sum()), derivative
    return shared.total_and_derivative_from(t, known.at(shared.exponential_scale))


def _sharing(function: ScalarFunction) -> ExponentialFunction | None:
    """Return a function that is computed from an exponential, None if it is not."""
    if isinstance(function, ExponentialFunction) and function.shares_exponential:
        return function
    return None
