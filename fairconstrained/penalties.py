"""Penalties: functions of the weights themselves that are added to a composite function."""

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import ClassVar, cast

import numpy as np

from fairconstrained.functions.base import corner, corner_subgradient_error
from fairconstrained.utils.arguments import Parametrized, joined
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import Strength, check_parameters

__all__ = [
    "L1",
    "L2",
    "SCAD",
    "ConvexSum",
    "InUnits",
    "Leading",
    "Penalty",
    "Proximity",
    "Sum",
    "Zero",
]


class Penalty(Parametrized, ABC):
    """A function p(w) of the weights, added to the objective or to a constraint.

    Attributes
    ----------
    smooth, convex : bool
        Whether the gradient is continuous, whether the function is convex.
    quadratic : bool
        Whether it is a quadratic function whose Hessian is diagonal.
    modulus : float
        The largest m for which p(w) minus m / 2 times the squared norm is convex: positive for a
        strongly convex penalty, negative for a weakly convex one.
    elastic_net : tuple of (float, float, ndarray or float) or None
        The strengths of the L1 norm and of half the squared distance from a centre whose sum it is,
        and this centre, which is 0 with an L1 norm; None if it is another function.
    """

    smooth = convex = True
    quadratic = False
    modulus = 0.0
    elastic_net: ClassVar[tuple[float, float, Array | float] | None] = None

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return p(w)."""

    @abstractmethod
    def gradient(self, w: Array) -> Array:
        """Return the gradient (an element of the subdifferential), of the shape of `w`."""

    def second_derivatives(self, n_variables: int) -> Array:
        """Return the diagonal of the Hessian of a penalty that is `quadratic`."""
        return self.gradient(np.ones(n_variables)) - self.gradient(np.zeros(n_variables))

    def convexify(self, w: Array) -> "Penalty":
        """Return the convex majorant at `w`: a parabola about it is added."""
        return self if self.convex else ConvexSum([self, Proximity(w, -self.modulus)])

    def smoothed(self, width: float | Array) -> "Penalty":
        """Return the penalty with known kinks rounded over `width`, a number or one a variable."""
        return self

    def subgradient_error(self, w: Array) -> float:
        """Return the epsilon by which rounding moved the subgradient at `w`."""
        return 0.0

    def __add__(self, other: "Penalty") -> "Penalty":
        """Return the sum of two penalties."""
        terms = [p for p in (self, other) if not isinstance(p, Zero)]
        return Sum(terms) if len(terms) > 1 else (terms[0] if terms else self)


class Proximity(Penalty):
    r""":math:`p(w) = \tfrac{\rho}{2} \|w - c\|_2^2`: what IPC adds to every function.

    Parameters
    ----------
    center : ndarray of shape (n_variables,)
        The centre c.
    rho : float
        The strength, >= 0.
    """

    center: Array | float
    rho: float

    quadratic = True
    modulus = property(attrgetter("rho"))
    elastic_net = property(lambda self: (0.0, self.rho, self.center))

    def value(self, w: Array) -> float:
        """Return rho / 2 times the squared distance from c."""
        step = w - self.center
        return float(0.5 * self.rho * (step @ step))

    def gradient(self, w: Array) -> Array:
        """Return rho (w - c)."""
        return self.rho * (w - self.center)


class L2(Proximity):
    r""":math:`p(w) = \tfrac{\alpha}{2} \|w\|_2^2`.

    Parameters
    ----------
    alpha : float, default=1e-4
        The strength, >= 0.
    """

    center = 0.0
    rho = property(attrgetter("alpha"))

    def __init__(self, alpha: Strength = 1e-4):
        self.alpha = alpha


class L1(Penalty):
    r""":math:`p(w) = \alpha \|w\|_1`.

    Parameters
    ----------
    alpha : float, default=1e-4
        The strength, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L1
    >>> L1(alpha=0.5).value(np.array([1.0, -2.0]))
    1.5
    """

    alpha: Strength = 1e-4

    smooth = False
    jump = 2.0  # of the slope of a coordinate at 0, over alpha
    elastic_net = property(lambda self: (self.alpha, 0.0, 0.0))

    def value(self, w: Array) -> float:
        """Return alpha times the L1 norm of w."""
        return float(self.alpha * np.abs(w).sum())

    def gradient(self, w: Array) -> Array:
        """Return alpha sign(w); 0 at 0."""
        return self.alpha * np.sign(w)

    def smoothed(self, width: float | Array) -> Penalty:
        """Return the penalty with its kink at 0 rounded."""
        return _Rounded(self, width)


class SCAD(L1):
    r"""The smoothly clipped absolute deviation (SCAD), a sum over coordinates.

    A coordinate x counts :math:`\alpha` times

    .. math::
        2|x| \text{ for } |x| \le 1, \quad -x^2 + 4|x| - 1 \text{ for } 1 < |x| \le 2,
        \quad 3 \text{ beyond}.

    Parameters
    ----------
    alpha : float, default=0.02
        The strength :math:`\alpha`, >= 0.

    References
    ----------
    3S-Econ, Problem 2, with the sign of the constant in the middle piece corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import SCAD
    >>> SCAD(alpha=1.0).value(np.array([0.5, -1.5, 7.0]))
    6.75
    """

    alpha: Strength = 0.02

    convex = False
    jump = 4.0
    elastic_net = None
    modulus = property(lambda self: -2.0 * self.alpha)

    def value(self, w: Array) -> float:
        """Return the penalty summed over the coordinates."""
        x = np.abs(w)
        beyond_one, beyond_two = np.clip(x - 1.0, 0.0, 1.0), np.maximum(x - 2.0, 0.0)
        return float(self.alpha * (2.0 * (x - beyond_two) - beyond_one**2).sum())

    def gradient(self, w: Array) -> Array:
        """Return a subgradient; 0 at 0."""
        return self.alpha * np.sign(w) * 2.0 * np.clip(2.0 - np.abs(w), 0.0, 1.0)


class _Rounded(Penalty):
    """A penalty with its kink at 0 rounded, as in :class:`functions.base.Rounded`."""

    def __init__(self, penalty: L1, width: float | Array):
        self.penalty, self.width = penalty, width
        self.convex, self.modulus = penalty.convex, penalty.modulus
        self._jump = penalty.jump * penalty.alpha

    def value(self, w: Array) -> float:
        return self.penalty.value(w) + self._jump * float(corner(w, self.width).sum())

    def gradient(self, w: Array) -> Array:
        inside = np.maximum(0.5 * self.width - np.abs(w), 0.0)
        return self.penalty.gradient(w) - self._jump * np.sign(w) * inside / self.width

    def subgradient_error(self, w: Array) -> float:
        return self._jump * float(corner_subgradient_error(w, self.width).sum())


class Sum(Penalty):
    """The sum of penalties, a list, which has the properties that all of them have."""

    terms: list[Penalty]

    smooth, convex = joined("terms", "smooth"), joined("terms", "convex")
    quadratic, modulus = joined("terms", "quadratic"), joined("terms", "modulus", sum)

    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter of a summand is not valid."""
        for term in self.terms:
            check_parameters(term)

    @property
    def elastic_net(self) -> tuple[float, float, Array | float] | None:  # type: ignore[override]
        """The sums of the strengths; of several terms none has a centre."""
        if len(self.terms) == 1:
            return self.terms[0].elastic_net
        each = [term.elastic_net for term in self.terms]
        if any(strengths is None or np.any(strengths[2]) for strengths in each):
            return None
        return sum(s[0] for s in each if s), sum(s[1] for s in each if s), 0.0

    def value(self, w: Array) -> float:
        """Return the sum of the values."""
        return sum((term.value(w) for term in self.terms), 0.0)

    def gradient(self, w: Array) -> Array:
        """Return the sum of the gradients."""
        return sum((term.gradient(w) for term in self.terms), np.zeros_like(w))

    def smoothed(self, width: float | Array) -> Penalty:
        """Return the sum of the rounded summands."""
        return self if self.smooth else type(self)([term.smoothed(width) for term in self.terms])

    def subgradient_error(self, w: Array) -> float:
        """Return the sum of the subgradient errors."""
        return sum((term.subgradient_error(w) for term in self.terms), 0.0)


class ConvexSum(Sum):
    """A sum that is convex though a summand is not: made by `Penalty.convexify`."""

    convex = True


class Zero(Sum):
    """p(w) = 0, the empty sum."""

    def __init__(self) -> None:
        self.terms = []


class InUnits(Penalty):
    """A penalty on the variables times their units: p(units * w).

    Parameters
    ----------
    penalty : Penalty
        p.
    units : ndarray of shape (n_variables,)
        Positive.
    """

    penalty: Penalty
    units: float | Array

    smooth = property(attrgetter("penalty.smooth"))
    convex = property(attrgetter("penalty.convex"))
    quadratic = property(attrgetter("penalty.quadratic"))
    size = cast("int | None", None)  # of the variables that the penalty is about, None for all

    @property
    def modulus(self) -> float:  # type: ignore[override]
        """The smallest product of the penalty's modulus and the square of a unit."""
        most = np.inf if self.size is None else 0.0  # the free variables have no curvature
        modulus = min(self.penalty.modulus, most)
        return float(modulus * (np.min if modulus > 0.0 else np.max)(self.units) ** 2)

    def value(self, w: Array) -> float:
        """Return the penalty's value at its variables."""
        return self.penalty.value(self.units * w[: self.size])

    def gradient(self, w: Array) -> Array:
        """Return the gradient by the chain rule; zeros for the free variables."""
        out = np.zeros_like(w)
        out[: self.size] = self.units * self.penalty.gradient(self.units * w[: self.size])
        return out

    def smoothed(self, width: float | Array) -> Penalty:
        """Return the rounded penalty of the same variables; the width is one of w."""
        inside = width[: self.size] if isinstance(width, np.ndarray) else width
        rounded = self.penalty.smoothed(self.units * inside)
        return type(self)(**self.get_params(deep=False) | {"penalty": rounded})

    def subgradient_error(self, w: Array) -> float:
        """Return the penalty's subgradient error at its variables."""
        return self.penalty.subgradient_error(self.units * w[: self.size])


class Leading(InUnits):
    """A penalty on the first `size` variables; the others (intercept, auxiliary) are free.

    Parameters
    ----------
    penalty : Penalty
        The penalty on the leading variables.
    size : int
        The number of leading variables.
    """

    elastic_net = property(attrgetter("penalty.elastic_net"))

    def __init__(self, penalty: Penalty, size: int):
        self.penalty, self.units, self.size = penalty, 1.0, size
