"""Surrogates of the decision 1{score > 0}."""

from operator import attrgetter

import numpy as np
from scipy.special import expit

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.utils.arguments import check_positive
from fairconstrained.utils.arrays import Array


class Surrogate(ScalarFunction):
    """A function of the score that replaces the indicator 1{t > 0} in a constraint.

    A subclass may have other parameters, and no `scale`.

    Parameters
    ----------
    scale : float, default=1.0
        The temperature tau > 0 of phi(t / tau): smaller values follow the indicator more closely
        and are harder to optimise.
    """

    scale: float = 1.0

    def check_parameters(self) -> None:
        """Raise a ValueError unless the scale, if there is one, is a number > 0."""
        if "scale" in self.get_params(deep=False):
            check_positive(f"{type(self).__name__}: scale", self.scale)

    def zero_one(self) -> ScalarFunction:
        """Return the indicator of t > 0."""
        return Indicator()

    def steeper(self, factor: float) -> "Surrogate":
        r"""Return the surrogate :math:`\phi(c\, t)`.

        Parameters
        ----------
        factor : float
            The factor c > 0. Values above 1 follow the indicator more closely.
        """
        params = self.get_params(deep=False)
        if "scale" in params:
            return type(self)(**{**params, "scale": self.scale / factor})
        return Stretched(self, factor)


class Stretched(Surrogate):
    r"""The function :math:`\phi(c\, t)` of another function.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    factor : float, default=-1.0
        c, not 0. With -1 a surrogate of 1{t > 0} becomes one of 1{t < 0}.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.surrogates import Ramp, Stretched
    >>> Stretched(Ramp(), factor=2.0).value(np.array([-1.0, 0.0, 0.125, 1.0]))
    array([0.  , 0.5 , 0.75, 1.  ])
    """

    smooth = property(attrgetter("function.smooth"))
    convex = property(attrgetter("function.convex"))
    difference_of_convex = property(attrgetter("function.difference_of_convex"))

    def __init__(self, function: ScalarFunction, factor: float = -1.0):
        self.function = function
        self.factor = factor

    def _of(self, function: ScalarFunction) -> "Stretched":
        """Return the same for another function."""
        return Stretched(function, self.factor)

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
    def curvature(self) -> tuple[float, float]:  # type: ignore[override]
        """The bounds of the function times the square of c."""
        lower, upper = self.function.curvature
        return lower * self.factor**2, upper * self.factor**2

    def value(self, t: Array) -> Array:
        """Return phi(c t)."""
        return self.function.value(self.factor * t)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return c phi'(c t)."""
        return self.factor * self.function.derivative(self.factor * t, value)

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
        """Return the zero-one version of the function, of c t: the same for an indicator, c > 0."""
        sharp = self.function.zero_one()
        return sharp if self.factor > 0.0 and isinstance(sharp, Indicator) else self._of(sharp)


class Sigmoid(Surrogate):
    r"""The sigmoid :math:`\phi(t) = 1 / (1 + \exp(-t / \tau))`.

    Smooth and weakly convex with constant :math:`1 / (6 \sqrt{3} \tau^2)`.

    Parameters
    ----------
    scale : float, default=1.0
        The temperature tau > 0.

    References
    ----------
    PLADA, equation (15); IPC, section 1.1.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.surrogates import Sigmoid
    >>> Sigmoid(scale=0.5).value(np.array([-800.0, 0.0, 0.5]))
    array([0.        , 0.5       , 0.73105858])
    """

    twice_differentiable = True

    @property
    def curvature(self) -> tuple[float, float]:  # type: ignore[override]
        """Plus and minus 1 / (6 sqrt(3) tau^2)."""
        bound = 1.0 / (6.0 * np.sqrt(3.0) * self.scale**2)
        return -bound, bound

    def value(self, t: Array) -> Array:
        """Return 1 / (1 + exp(-t / tau))."""
        return np.asarray(expit(t / self.scale))

    def derivative(self, t: Array, value: Array) -> Array:
        """Return phi (1 - phi) / tau."""
        return value * (1.0 - value) / self.scale

    def second_derivative(self, t: Array, derivative: Array) -> Array:
        """Return -phi' tanh(t / (2 tau)) / tau."""
        # (1 - 2 phi)^2 = 1 - 4 tau phi': a root in place of a second exponential. Near t = 0, where
        # it cancels, it is 1e-8 off at most.
        size = np.sqrt(np.maximum(1.0 - 4.0 * self.scale * derivative, 0.0))
        return np.copysign(size * derivative / self.scale, -t)


class PositivePart(ScalarFunction):
    """phi(t) = max(t / scale + shift, 0).

    Parameters
    ----------
    shift : float, default=0.0
        Added before the maximum is taken.
    scale : float, default=1.0
        The unit of t, > 0.
    """

    shift: float = 0.0
    scale: float = 1.0

    smooth = False
    convex = True
    curvature = 0.0, np.inf

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


class Ramp(Surrogate):
    r"""The ramp :math:`\phi(t) = \min\{\max\{t / \tau + 1/2, 0\}, 1\}`.

    Neither smooth nor weakly convex: a difference of two convex functions,
    :math:`\max\{t / \tau + 1/2, 0\} - \max\{t / \tau - 1/2, 0\}`.

    Parameters
    ----------
    scale : float, default=1.0
        The width tau > 0 of the ramp.

    References
    ----------
    IDCA, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.surrogates import Ramp
    >>> Ramp().value(np.array([-1.0, 0.0, 0.25, 1.0]))
    array([0.  , 0.5 , 0.75, 1.  ])
    """

    smooth = False
    curvature = -np.inf, np.inf

    @property
    def kinks(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        """Where the slope begins and where it ends."""
        return (-0.5 * self.scale, 1.0 / self.scale), (0.5 * self.scale, -1.0 / self.scale)

    def value(self, t: Array) -> Array:
        """Return the ramp."""
        return np.clip(t / self.scale + 0.5, 0.0, 1.0)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 / tau on the slope, 0 elsewhere."""
        return ((value > 0.0) & (value < 1.0)) / self.scale

    def convex_parts(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Return the two positive parts whose difference is the ramp."""
        return PositivePart(0.5, self.scale), PositivePart(-0.5, self.scale)


class ShiftedSquare(ScalarFunction):
    r"""The quadratic surrogate :math:`\phi(t) = (1 + t)^2 / 2` of 1{t > 0}, for pairs.

    It is convex, and equal to 1/2 at t = 0, but not bounded: it also penalises the spread of the
    scores.

    References
    ----------
    IDCA, equation (67).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.surrogates import ShiftedSquare
    >>> ShiftedSquare().value(np.array([-1.0, 0.0, 1.0]))
    array([0. , 0.5, 2. ])
    """

    convex = True
    knots = ()
    curvature = 1.0, 1.0

    def value(self, t: Array) -> Array:
        """Return (1 + t)^2 / 2."""
        return 0.5 * (1.0 + t) ** 2

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 + t."""
        return 1.0 + t

    def zero_one(self) -> ScalarFunction:
        """Return the indicator of t > 0."""
        return Indicator()


SURROGATES = {"sigmoid": Sigmoid, "ramp": Ramp}
