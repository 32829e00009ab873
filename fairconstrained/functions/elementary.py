"""Elementary scalar functions: identity, indicator, positive part, reflection."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.utils.typing import Array


class Identity(ScalarFunction):
    """phi(t) = t, the function of tangents."""

    convex = True
    knots = ()

    @property
    def curvature(self) -> tuple[float, float]:
        """No curvature."""
        return 0.0, 0.0

    def value(self, t: Array) -> Array:
        """Return t."""
        return t

    def derivative(self, t: Array, value: Array) -> Array:
        """Return ones."""
        return np.ones_like(t)


class Indicator(ScalarFunction):
    """phi(t) = 1{t > 0}: the zero-one function that surrogates approximate.

    It is evaluated, not optimised: its derivative is zero almost everywhere.
    """

    smooth = False
    knots = (0.0,)

    @property
    def curvature(self) -> tuple[float, float]:
        """Unbounded: the function jumps."""
        return -np.inf, np.inf

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

    def __init__(self, shift: float = 0.0, scale: float = 1.0):
        self.shift = shift
        self.scale = scale

    @property
    def kinks(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        """One, where t / scale + shift is 0."""
        return ((-self.shift * self.scale, 1.0 / self.scale),)

    @property
    def curvature(self) -> tuple[float, float]:
        """Convex, with a kink."""
        return 0.0, np.inf

    def value(self, t: Array) -> Array:
        """Return max(t / scale + shift, 0)."""
        return np.maximum(t / self.scale + self.shift, 0.0)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 / scale where the function is positive, else 0."""
        return (value > 0) / self.scale


class Stretched(ScalarFunction):
    r"""Base of the functions :math:`\phi(c\, t)` of another function.

    Attributes
    ----------
    function : ScalarFunction
        phi.
    factor : float
        c, not 0.
    """

    factor: float

    @abstractmethod
    def __init__(self, function: ScalarFunction):
        self.function = function

    def _of(self, function: ScalarFunction) -> ScalarFunction:
        """Return the same for another function."""
        return type(self)(**{**self.get_params(deep=False), "function": function})

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the function is smooth."""
        return self.function.smooth

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether the function is convex."""
        return self.function.convex

    @property
    def kinks(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        """Those of the function, with positions divided by c and jumps multiplied by abs(c)."""
        factor = self.factor
        return tuple((at / factor, jump * abs(factor)) for at, jump in self.function.kinks)

    @property
    def knots(self) -> tuple[float, ...] | None:
        """Those of the function divided by c."""
        knots = self.function.knots
        return None if knots is None else tuple(sorted(at / self.factor for at in knots))

    @property
    def curvature(self) -> tuple[float, float]:
        """The bounds of the function times the square of c."""
        lower, upper = self.function.curvature
        return lower * self.factor**2, upper * self.factor**2

    def value(self, t: Array) -> Array:
        """Return phi(c t)."""
        return self.function.value(self.factor * t)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return c phi'(c t)."""
        return self.factor * self.function.derivative(self.factor * t, value)

    @property
    def difference_of_convex(self) -> bool:
        """Whether the function is a difference of convex functions."""
        return self.function.difference_of_convex

    def convex_parts(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Return those of the function, of c t."""
        plus, minus = self.function.convex_parts()
        return self._of(plus), self._of(minus)

    def smoothed(self, width: float) -> ScalarFunction:
        """Return the rounded function of c t."""
        return self._of(self.function.smoothed(abs(self.factor) * width))

    @property
    def corners(self) -> tuple[tuple[float, float, float], ...]:  # type: ignore[override]
        """Those of the function, with positions and widths divided by c."""
        c, size = self.factor, abs(self.factor)
        return tuple((at / c, jump * size, w / size) for at, jump, w in self.function.corners)

    def zero_one(self) -> ScalarFunction:
        """Return the zero-one version of the function, of c t."""
        return self._of(self.function.zero_one())


class Reflected(Stretched):
    """phi(t) = function(-t): a surrogate of 1{t > 0} becomes one of 1{t < 0}.

    Parameters
    ----------
    function : ScalarFunction
        The function to reflect.
    """

    factor = -1.0

    def __init__(self, function: ScalarFunction):
        self.function = function


class SubgradientError(ScalarFunction):
    r"""The subgradient error of rounded kinks, see :class:`Rounded`.

    Parameters
    ----------
    corners : tuple of (position, jump, width)
        The kinks.
    """

    smooth = False

    def __init__(self, corners: tuple[tuple[float, float, float], ...]):
        self.corners = corners

    @property
    def knots(self) -> tuple[float, ...]:
        """The kinks, and where their rounding begins and ends."""
        sides = (-0.5, 0.0, 0.5)
        return tuple(sorted({at + side * w for at, _, w in self.corners for side in sides}))

    @property
    def curvature(self) -> tuple[float, float]:
        """Unbounded: it has kinks of either sign."""
        return -np.inf, np.inf

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
