"""Functions of the weights themselves: penalties, proximity, and what convexification makes."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.scalar import Array


class Penalty(BaseEstimator, ABC):
    """A function p(w) of the weights, added to the objective or to a constraint.

    Attributes
    ----------
    smooth, convex : bool
        Whether the gradient is continuous, whether the function is convex.
    modulus : float
        The largest m for which p(w) - m/2 |w|^2 is convex: positive for a strongly convex
        penalty, negative for a weakly convex one.
    """

    smooth: bool = True
    convex: bool = True

    @property
    def modulus(self) -> float:
        """No curvature unless a subclass says otherwise."""
        return 0.0

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return p(w)."""

    @abstractmethod
    def gradient(self, w: Array) -> Array:
        """Return the gradient (an element of the subdifferential), of the shape of `w`."""

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return convex penalties (plus, minus) with p = plus - minus."""
        if self.convex:
            return self, Zero()
        parabola = L2(max(-self.modulus, 0.0))
        return ConvexSum([self, parabola]), parabola

    def convexify(self, w: Array) -> Penalty:
        """Return the convex majorant at `w`: the minus part replaced by its tangent there."""
        plus, minus = self.convex_parts()
        if isinstance(minus, Zero):
            return plus
        gradient = minus.gradient(w)
        return Sum([plus, Linear(-gradient, float(gradient @ w) - minus.value(w))])

    def __add__(self, other: Penalty) -> Penalty:
        """Return the sum of two penalties."""
        terms = [p for p in (self, other) if not isinstance(p, Zero)]
        return Sum(terms) if len(terms) > 1 else (terms[0] if terms else self)


class Zero(Penalty):
    """p(w) = 0."""

    def value(self, w: Array) -> float:
        """Return 0."""
        return 0.0

    def gradient(self, w: Array) -> Array:
        """Return zeros."""
        return np.zeros_like(w)


class L2(Penalty):
    r""":math:`p(w) = \tfrac{\alpha}{2} \|w\|_2^2`.

    Parameters
    ----------
    alpha : float, default=1e-4
        The strength, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L2
    >>> L2(alpha=0.5).value(np.array([1.0, 2.0]))
    1.25
    """

    def __init__(self, alpha: float = 1e-4):
        self.alpha = alpha

    @property
    def modulus(self) -> float:
        """The strength itself."""
        return self.alpha

    def value(self, w: Array) -> float:
        """Return alpha / 2 |w|^2."""
        return float(0.5 * self.alpha * (w @ w))

    def gradient(self, w: Array) -> Array:
        """Return alpha w."""
        return self.alpha * w


class SCAD(Penalty):
    r"""The smoothly clipped absolute deviation, per coordinate, times `strength`.

    .. math::
        2|x| \text{ for } |x| \le 1, \quad -x^2 + 4|x| - 1 \text{ for } 1 < |x| \le 2,
        \quad 3 \text{ beyond}.

    Convex parts: :math:`2|x|` minus a function that is quadratic between 1 and 2 and linear beyond.

    Parameters
    ----------
    strength : float, default=0.02
        The factor, >= 0.

    References
    ----------
    3S-Econ, Problem 2 (with the sign of the middle piece corrected, METHODS.md section 3).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import SCAD
    >>> SCAD(strength=1.0).value(np.array([0.5, -1.5, 7.0]))
    6.75
    """

    smooth = False
    convex = False

    def __init__(self, strength: float = 0.02):
        self.strength = strength

    @property
    def modulus(self) -> float:
        """Minus twice the strength: the middle piece bends down."""
        return -2.0 * self.strength

    def value(self, w: Array) -> float:
        """Return the penalty summed over the coordinates."""
        x = np.abs(w)
        return float(self.strength * (2.0 * x - _scad_excess(x)).sum())

    def gradient(self, w: Array) -> Array:
        """Return a subgradient; 0 at 0."""
        x = np.abs(w)
        slope = 2.0 - 2.0 * np.clip(x - 1.0, 0.0, 1.0)
        return self.strength * np.sign(w) * slope

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return 2 |w|_1 and the excess of it over SCAD."""
        return L1(2.0 * self.strength), _SCADExcess(self.strength)


def _scad_excess(x: Array) -> Array:
    """Return 2 x - SCAD(x) for x >= 0: 0 up to 1, (x - 1)^2 up to 2, then 2 x - 3."""
    bent = np.clip(x - 1.0, 0.0, 1.0)
    return bent**2 + 2.0 * np.maximum(x - 2.0, 0.0)


class _SCADExcess(Penalty):
    """The convex, smooth function 2 |w|_1 - SCAD(w), times the strength."""

    def __init__(self, strength: float):
        self.strength = strength

    def value(self, w: Array) -> float:
        return float(self.strength * _scad_excess(np.abs(w)).sum())

    def gradient(self, w: Array) -> Array:
        return self.strength * np.sign(w) * 2.0 * np.clip(np.abs(w) - 1.0, 0.0, 1.0)


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

    smooth = False

    def __init__(self, alpha: float = 1e-4):
        self.alpha = alpha

    def value(self, w: Array) -> float:
        """Return alpha |w|_1."""
        return float(self.alpha * np.abs(w).sum())

    def gradient(self, w: Array) -> Array:
        """Return alpha sign(w); 0 at 0."""
        return self.alpha * np.sign(w)


class Proximity(Penalty):
    r""":math:`p(w) = \tfrac{\rho}{2} \|w - c\|_2^2`: what IPC adds to every function.

    Parameters
    ----------
    center : ndarray of shape (n_variables,)
        The centre c.
    rho : float
        The strength, >= 0.
    """

    def __init__(self, center: Array, rho: float):
        self.center = center
        self.rho = rho

    @property
    def modulus(self) -> float:
        """The strength itself."""
        return self.rho

    def value(self, w: Array) -> float:
        """Return rho / 2 |w - c|^2."""
        step = w - self.center
        return float(0.5 * self.rho * (step @ step))

    def gradient(self, w: Array) -> Array:
        """Return rho (w - c)."""
        return self.rho * (w - self.center)


class Linear(Penalty):
    """p(w) = <direction, w> + offset.

    Parameters
    ----------
    direction : ndarray of shape (n_variables,)
        The slope.
    offset : float, default=0.0
        The value at 0.
    """

    def __init__(self, direction: Array, offset: float = 0.0):
        self.direction = direction
        self.offset = offset

    def value(self, w: Array) -> float:
        """Return the value of the affine function."""
        return float(self.direction @ w) + self.offset

    def gradient(self, w: Array) -> Array:
        """Return the direction."""
        return self.direction


class Sum(Penalty):
    """The sum of penalties.

    Parameters
    ----------
    terms : list of Penalty
        The summands.
    """

    def __init__(self, terms: list[Penalty]):
        self.terms = terms

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether every summand is."""
        return all(term.smooth for term in self.terms)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether every summand is (sufficient, not necessary)."""
        return all(term.convex for term in self.terms)

    @property
    def modulus(self) -> float:
        """The sum of the summands' moduli."""
        return sum(term.modulus for term in self.terms)

    def value(self, w: Array) -> float:
        """Return the sum of the values."""
        return sum(term.value(w) for term in self.terms)

    def gradient(self, w: Array) -> Array:
        """Return the sum of the gradients."""
        return np.sum([term.gradient(w) for term in self.terms], axis=0)

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return the sums of the plus and of the minus parts."""
        plus, minus = zip(*(term.convex_parts() for term in self.terms), strict=True)
        return Sum(list(plus)), sum(minus, start=Zero())


class ConvexSum(Sum):
    """A sum that is convex though a summand is not: made by `Penalty.convex_parts`."""

    convex = True


class Leading(Penalty):
    """A penalty on the first `size` variables; the others (intercept, auxiliary) are free.

    Parameters
    ----------
    penalty : Penalty
        What the leading variables pay.
    size : int
        How many there are.
    """

    def __init__(self, penalty: Penalty, size: int):
        self.penalty = penalty
        self.size = size

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the penalty is."""
        return self.penalty.smooth

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether the penalty is."""
        return self.penalty.convex

    @property
    def modulus(self) -> float:
        """The penalty's if that is negative, else 0: the free variables have no curvature."""
        return min(self.penalty.modulus, 0.0)

    def value(self, w: Array) -> float:
        """Return the penalty of the leading variables."""
        return self.penalty.value(w[: self.size])

    def gradient(self, w: Array) -> Array:
        """Return the penalty's gradient, followed by zeros."""
        out = np.zeros_like(w)
        out[: self.size] = self.penalty.gradient(w[: self.size])
        return out

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return the penalty's parts, each on the leading variables."""
        plus, minus = self.penalty.convex_parts()
        if isinstance(minus, Zero):
            return self, minus
        return Leading(plus, self.size), Leading(minus, self.size)
