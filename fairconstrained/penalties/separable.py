"""Functions of the weights themselves: sparsity, proximity, and which weights they are about."""

from __future__ import annotations

import numpy as np

from fairconstrained.functions.base import corner, corner_slope, corner_subgradient_error
from fairconstrained.penalties.base import Penalty, Zero, check_strength
from fairconstrained.utils.typing import Array


class _KinkAtZero(Penalty):
    """A penalty of each coordinate whose slope jumps at 0, by `jump`, and nowhere else."""

    smooth = False
    smoothable = True
    jump: float

    def smoothed(self, width: float | Array) -> Penalty:
        """Return the penalty with the kink rounded."""
        return _RoundedAtZero(self, width)


class _RoundedAtZero(Penalty):
    """A penalty with its kink at 0 rounded, see :class:`Rounded`."""

    def __init__(self, penalty: _KinkAtZero, width: float | Array):
        self.penalty = penalty
        self.width = width

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.penalty.convex

    @property
    def modulus(self) -> float:
        return self.penalty.modulus

    def value(self, w: Array) -> float:
        return self.penalty.value(w) + self.penalty.jump * float(corner(w, self.width).sum())

    def gradient(self, w: Array) -> Array:
        return self.penalty.gradient(w) + self.penalty.jump * corner_slope(w, self.width)

    def subgradient_error(self, w: Array) -> float:
        return self.penalty.jump * float(corner_subgradient_error(w, self.width).sum())


class SCAD(_KinkAtZero):
    r"""The smoothly clipped absolute deviation (SCAD), a sum over coordinates.

    A coordinate x counts :math:`\alpha` times

    .. math::
        2|x| \text{ for } |x| \le 1, \quad -x^2 + 4|x| - 1 \text{ for } 1 < |x| \le 2,
        \quad 3 \text{ beyond}.

    The convex parts, without the factor, are :math:`2|x|` and a function that is quadratic between
    1 and 2 and linear beyond.

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
    >>> from fairconstrained.penalties.separable import SCAD
    >>> SCAD(alpha=1.0).value(np.array([0.5, -1.5, 7.0]))
    6.75
    """

    convex = False

    def __init__(self, alpha: float = 0.02):
        self.alpha = alpha

    def check(self) -> None:
        """Raise a ValueError unless alpha is a number >= 0."""
        check_strength(self, self.alpha)

    @property
    def jump(self) -> float:  # type: ignore[override]
        """From -2 alpha to 2 alpha."""
        return 4.0 * self.alpha

    @property
    def modulus(self) -> float:
        """Minus 2 alpha: the middle piece is concave."""
        return -2.0 * self.alpha

    def value(self, w: Array) -> float:
        """Return the penalty summed over the coordinates."""
        x = np.abs(w)
        return float(self.alpha * (2.0 * x - _scad_excess(x)).sum())

    def gradient(self, w: Array) -> Array:
        """Return a subgradient; 0 at 0."""
        x = np.abs(w)
        slope = 2.0 - 2.0 * np.clip(x - 1.0, 0.0, 1.0)
        return self.alpha * np.sign(w) * slope

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return twice the L1 norm, and how much it exceeds SCAD."""
        return L1(2.0 * self.alpha), _SCADExcess(self.alpha)


def _scad_excess(x: Array) -> Array:
    """Return 2 x - SCAD(x) for x >= 0: 0 up to 1, (x - 1)^2 up to 2, then 2 x - 3."""
    bent = np.clip(x - 1.0, 0.0, 1.0)
    return bent**2 + 2.0 * np.maximum(x - 2.0, 0.0)


class _SCADExcess(Penalty):
    """The convex, smooth function twice the L1 norm minus SCAD, times alpha."""

    def __init__(self, alpha: float):
        self.alpha = alpha

    def value(self, w: Array) -> float:
        return float(self.alpha * _scad_excess(np.abs(w)).sum())

    def gradient(self, w: Array) -> Array:
        return self.alpha * np.sign(w) * 2.0 * np.clip(np.abs(w) - 1.0, 0.0, 1.0)


class L1(_KinkAtZero):
    r""":math:`p(w) = \alpha \|w\|_1`.

    Parameters
    ----------
    alpha : float, default=1e-4
        The strength, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties.separable import L1
    >>> L1(alpha=0.5).value(np.array([1.0, -2.0]))
    1.5
    """

    def __init__(self, alpha: float = 1e-4):
        self.alpha = alpha

    def check(self) -> None:
        """Raise a ValueError unless alpha is a number >= 0."""
        check_strength(self, self.alpha)

    @property
    def jump(self) -> float:  # type: ignore[override]
        """From -alpha to alpha."""
        return 2.0 * self.alpha

    def value(self, w: Array) -> float:
        """Return alpha times the L1 norm of w."""
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

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import Proximity
    >>> Proximity(np.array([1.0, 1.0]), rho=2.0).value(np.array([2.0, 3.0]))
    5.0
    """

    quadratic = True

    def __init__(self, center: Array, rho: float):
        self.center = center
        self.rho = rho

    @property
    def modulus(self) -> float:
        """The strength itself."""
        return self.rho

    def value(self, w: Array) -> float:
        """Return rho / 2 times the squared distance from c."""
        step = w - self.center
        return float(0.5 * self.rho * (step @ step))

    def gradient(self, w: Array) -> Array:
        """Return rho (w - c)."""
        return self.rho * (w - self.center)


class _OfAnother(Penalty):
    """A penalty of transformed variables: it is smooth or convex if the penalty there is."""

    penalty: Penalty

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the penalty has continuous gradients."""
        return self.penalty.smooth

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether the penalty is convex."""
        return self.penalty.convex

    @property
    def smoothable(self) -> bool:
        """Whether the kinks of the penalty can be rounded."""
        return self.penalty.smoothable


class InUnits(_OfAnother):
    """A penalty on the variables times their units: p(units * w).

    Parameters
    ----------
    penalty : Penalty
        p.
    units : ndarray of shape (n_variables,)
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L1, InUnits
    >>> InUnits(L1(1.0), np.array([1.0, 10.0])).value(np.array([2.0, -0.5]))
    7.0
    """

    def __init__(self, penalty: Penalty, units: Array):
        self.penalty = penalty
        self.units = units

    @property
    def modulus(self) -> float:
        """The smallest product of the penalty's modulus and the square of a unit."""
        modulus = self.penalty.modulus
        unit = self.units.min() if modulus > 0.0 else self.units.max()
        return float(modulus * unit**2)

    def value(self, w: Array) -> float:
        """Return p(units * w)."""
        return self.penalty.value(self.units * w)

    def gradient(self, w: Array) -> Array:
        """Return the gradient by the chain rule."""
        return self.units * self.penalty.gradient(self.units * w)

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return the penalty's parts, each in these units."""
        plus, minus = self.penalty.convex_parts()
        if isinstance(minus, Zero):
            return self, minus
        return InUnits(plus, self.units), InUnits(minus, self.units)

    def smoothed(self, width: float | Array) -> InUnits:
        """Return the rounded penalty in these units; the width is one of w."""
        return InUnits(self.penalty.smoothed(width * self.units), self.units)

    def subgradient_error(self, w: Array) -> float:
        """Return the subgradient error at units * w."""
        return self.penalty.subgradient_error(self.units * w)


class Leading(_OfAnother):
    """A penalty on the first `size` variables; the others (intercept, auxiliary) are free.

    Parameters
    ----------
    penalty : Penalty
        The penalty on the leading variables.
    size : int
        The number of leading variables.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L1, Leading
    >>> Leading(L1(1.0), 2).value(np.array([1.0, -2.0, 7.0]))
    3.0
    """

    def __init__(self, penalty: Penalty, size: int):
        self.penalty = penalty
        self.size = size

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

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        """Whether the penalty is."""
        return self.penalty.quadratic

    def second_derivatives(self, n_variables: int) -> Array:
        """Return those of the penalty, followed by zeros."""
        found = np.zeros(n_variables)
        found[: self.size] = self.penalty.second_derivatives(self.size)
        return found

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return the penalty's parts, each on the leading variables."""
        plus, minus = self.penalty.convex_parts()
        if isinstance(minus, Zero):
            return self, minus
        return Leading(plus, self.size), Leading(minus, self.size)

    def smoothed(self, width: float | Array) -> Leading:
        """Return the rounded penalty of the leading variables."""
        return Leading(self.penalty.smoothed(width), self.size)

    def subgradient_error(self, w: Array) -> float:
        """Return the subgradient error of the leading variables."""
        return self.penalty.subgradient_error(w[: self.size])
