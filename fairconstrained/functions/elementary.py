"""Elementary scalar functions: indicator, positive part, subgradient error."""

from __future__ import annotations

import numpy as np

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.utils.typing import Array


class Indicator(ScalarFunction):
    """phi(t) = 1{t > 0}: the zero-one function that surrogates approximate.

    It is evaluated, not optimised: its derivative is zero almost everywhere.
    """

    smooth = False
    knots = (0.0,)
    curvature = -np.inf, np.inf

    def value(self, t: Array) -> Array:
        """Return 1.0 where t > 0, else 0.0."""
        return (t > 0).astype(float)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return zeros."""
        return np.zeros_like(t)


class PositivePart(ScalarFunction):
    """phi(t) = max(t / scale + shift, 0).

    Parameters
    ----------
    shift : float, default=0.0
        Added before the maximum is taken.
    scale : float, default=1.0
        The unit of t, > 0.
    """

    smooth = False
    convex = True
    curvature = 0.0, np.inf

    def __init__(self, shift: float = 0.0, scale: float = 1.0):
        self.shift = shift
        self.scale = scale

    @property
    def kinks(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        """One, where t / scale + shift is 0."""
        return ((-self.shift * self.scale, 1.0 / self.scale),)

    def value(self, t: Array) -> Array:
        """Return max(t / scale + shift, 0)."""
        return np.maximum(t / self.scale + self.shift, 0.0)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 / scale where the function is positive, else 0."""
        return (value > 0) / self.scale


class SubgradientError(ScalarFunction):
    r"""The subgradient error of rounded kinks, see :class:`Rounded`.

    Parameters
    ----------
    corners : tuple of (position, jump, width)
        The kinks.
    """

    smooth = False
    curvature = -np.inf, np.inf

    def __init__(self, corners: tuple[tuple[float, float, float], ...]):
        self.corners = corners

    @property
    def knots(self) -> tuple[float, ...]:
        """The kinks, and where their rounding begins and ends."""
        sides = (-0.5, 0.0, 0.5)
        return tuple(sorted({at + side * w for at, _, w in self.corners for side in sides}))

    def value(self, t: Array) -> Array:
        """Return the sum over the kinks."""
        return self.subgradient_error(t)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return the sum of the derivatives."""
        out = np.zeros_like(t)
        for position, jump, width in self.corners:
            u = t - position
            inside = np.abs(u) < 0.5 * width
            out += abs(jump) / width * inside * (0.5 * width * np.sign(u) - 2.0 * u)
        return out
