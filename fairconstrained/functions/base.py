"""Scalar functions of a score: the base class of surrogates and losses."""

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import ClassVar

import numpy as np

from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array


class ScalarFunction(Parametrized, ABC):
    r"""A function :math:`\phi: \mathbb{R} \to \mathbb{R}` applied to every score.

    Surrogates and losses are such functions; a term averages them over cells of rows. Instances
    hold hyperparameters only, so they can be shared, cloned and searched over.

    Attributes
    ----------
    smooth : bool
        Whether the derivative is continuous.
    convex : bool
        Whether the function is convex.
    twice_differentiable : bool
        Whether `second_derivative` can be called.
    curvature : tuple of float
        A lower and an upper bound on the second derivative; infinite at a kink. The function is
        weakly convex when the lower bound is finite.
    kinks : tuple of (position, jump)
        Where the derivative jumps, and by how much, for a function that is linear in between;
        `smoothed` needs them.
    knots : tuple of float or None
        In ascending order the positions between which the function is a polynomial of degree at
        most 2; None for other functions. Sums over many differences are then found by sorting.
    corners : tuple of (position, jump, width)
        The kinks that were rounded, see :class:`Rounded`.
    """

    smooth = True
    convex = twice_differentiable = False
    kinks: ClassVar[tuple[tuple[float, float], ...]] = ()
    corners: ClassVar[tuple[tuple[float, float, float], ...]] = ()
    curvature: ClassVar[tuple[float, float]]

    @property
    def knots(self) -> tuple[float, ...] | None:
        """Where the polynomial changes: the kinks."""
        return tuple(sorted(position for position, _ in self.kinks)) or None

    @abstractmethod
    def value(self, t: Array) -> Array:
        """Return phi(t), of the shape of `t`."""

    @abstractmethod
    def derivative(self, t: Array, value: Array) -> Array:
        """Return phi'(t) (an element of the subdifferential at a kink).

        Parameters
        ----------
        t : ndarray
            The points.
        value : ndarray
            phi(t), which the caller has computed already; many derivatives are cheap given it.
        """

    def second_derivative(self, t: Array, derivative: Array) -> Array:
        """Return phi''(t), given phi'(t); only where `twice_differentiable`, for Newton steps."""
        raise NotImplementedError(f"{self!r} has no second derivative.")

    @property
    def difference_of_convex(self) -> bool:
        """Whether `convex_parts` can be called: phi is weakly convex, or the class overrides it."""
        overridden = type(self).convex_parts is not ScalarFunction.convex_parts
        return overridden or self.convex or bool(np.isfinite(self.curvature[0]))

    def convex_parts(self) -> "tuple[ScalarFunction, ScalarFunction]":
        r"""Return convex functions (plus, minus) with phi = plus - minus.

        A convex function is its own plus part. Any other with a finite lower bound :math:`-\ell`
        on its second derivative is split as
        :math:`(\phi + \tfrac{\ell}{2} t^2) - \tfrac{\ell}{2} t^2`.

        Raises
        ------
        ValueError
            If `difference_of_convex` is False.
        """
        if self.convex:
            return self, Parabola(0.0)
        lower = self.curvature[0]
        if not np.isfinite(lower):
            raise ValueError(
                f"{self!r} has no convex parts: its second derivative has no lower bound. Override "
                "convex_parts to split it."
            )
        return PlusParabola(self, max(-lower, 0.0)), Parabola(max(-lower, 0.0))

    def zero_one(self) -> "ScalarFunction":
        """Return the zero-one version: the indicator for a surrogate, otherwise the function."""
        return self

    @property
    def smoothable(self) -> bool:
        """Whether the function is smooth or declares its kinks."""
        return self.smooth or bool(self.kinks)

    def smoothed(self, width: float) -> "ScalarFunction":
        """Return the function with its kinks rounded over `width`; itself if it has none."""
        return self if self.smooth else Rounded(self, width)


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


class Parabola(ScalarFunction):
    r""":math:`\phi(t) = \tfrac{c}{2} t^2`.

    Parameters
    ----------
    coefficient : float, default=1.0
        The curvature c >= 0; 0 is the zero function.
    """

    coefficient: float = 1.0

    convex = True
    knots = ()

    @property
    def curvature(self) -> tuple[float, float]:  # type: ignore[override]
        """The second derivative is the coefficient everywhere."""
        return self.coefficient, self.coefficient

    def value(self, t: Array) -> Array:
        """Return c t^2 / 2."""
        return 0.5 * self.coefficient * t * t

    def derivative(self, t: Array, value: Array) -> Array:
        """Return c t."""
        return self.coefficient * t


class PlusParabola(ScalarFunction):
    r"""phi(t) plus :math:`\tfrac{c}{2} t^2`, which makes a weakly convex function convex.

    Parameters
    ----------
    function : ScalarFunction
        phi, whose second derivative is at least -c.
    coefficient : float
        c.
    """

    function: ScalarFunction
    coefficient: float

    convex = True
    smooth = property(attrgetter("function.smooth"))
    smoothable = property(attrgetter("function.smoothable"))
    knots = property(attrgetter("function.knots"))
    corners = property(attrgetter("function.corners"))

    @property
    def curvature(self) -> tuple[float, float]:  # type: ignore[override]
        """The bounds of phi plus c, at least 0."""
        lower, upper = self.function.curvature
        return max(lower + self.coefficient, 0.0), upper + self.coefficient

    def value(self, t: Array) -> Array:
        """Return phi(t) + c t^2 / 2."""
        return self.function.value(t) + 0.5 * self.coefficient * t * t

    def derivative(self, t: Array, value: Array) -> Array:
        """Return phi'(t) + c t."""
        return self.function.derivative(t, self.function.value(t)) + self.coefficient * t

    def smoothed(self, width: float) -> "PlusParabola":
        """Return the rounded function plus the parabola."""
        return PlusParabola(self.function.smoothed(width), self.coefficient)


class Rounded(ScalarFunction):
    r"""The mean of a piecewise linear function over an interval about t: its kinks are rounded.

    .. math::
        \phi_\omega(t) = \frac{1}{\omega} \int_{-\omega/2}^{\omega/2} \phi(t + u)\, du
        = \phi(t) + \sum_j d_j \frac{\max\{\omega/2 - |t - k_j|, 0\}^2}{2 \omega}

    for kinks at k_j where the slope jumps by d_j. It is convex if :math:`\phi` is, and differs from
    it within :math:`\omega / 2` of a kink only, by at most :math:`d_j\, \omega / 8`.

    Its derivative is an :math:`\epsilon`-subgradient of a convex :math:`\phi` at t with
    :math:`\epsilon = \sum_j |d_j|\, |t - k_j| \max\{\omega/2 - |t - k_j|, 0\} / \omega`, which is
    what :class:`SubgradientError` is; it is at most :math:`d_j\, \omega / 16`.

    Parameters
    ----------
    function : ScalarFunction
        phi, linear between its `kinks`.
    width : float
        omega > 0.

    References
    ----------
    J.-B. Hiriart-Urruty, C. Lemarechal, "Convex Analysis and Minimization Algorithms II", 1993,
    chapter XI (approximate subdifferentials).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> Hinge().smoothed(0.4).value(np.array([0.5, 1.0, 1.5]))
    array([0.5 , 0.05, 0.  ])
    """

    function: ScalarFunction
    width: float

    convex = property(attrgetter("function.convex"))

    @property
    def knots(self) -> tuple[float, ...]:
        """Where the rounding of a kink begins and where it ends."""
        half = 0.5 * self.width
        return tuple(sorted({at + side for at, _ in self.function.kinks for side in (-half, half)}))

    @property
    def curvature(self) -> tuple[float, float]:  # type: ignore[override]
        """Between the sums of the negative and of the positive jumps, over the width."""
        jumps = [jump / self.width for _, jump in self.function.kinks]
        return sum(min(jump, 0.0) for jump in jumps), sum(max(jump, 0.0) for jump in jumps)

    def value(self, t: Array) -> Array:
        """Return phi(t) plus the effect of rounding near the kinks."""
        out = self.function.value(t)
        for position, jump in self.function.kinks:
            out += jump * corner(t - position, self.width)
        return out

    def derivative(self, t: Array, value: Array) -> Array:
        """Return the slope, which runs evenly from one side of a kink to the other."""
        kinks, half = self.function.kinks, 0.5 * self.width
        before = np.array([min(position for position, _ in kinks) - 1.0])
        first = self.function.derivative(before, self.function.value(before))
        out = np.full(np.shape(t), first[0], dtype=float)
        for position, jump in kinks:
            out += (np.clip(t - position, -half, half) + half) * (jump / self.width)
        return out

    @property
    def corners(self) -> tuple[tuple[float, float, float], ...]:  # type: ignore[override]
        """The kinks with the width."""
        return tuple((position, jump, self.width) for position, jump in self.function.kinks)


def corner(u: Array, width: float | Array) -> Array:
    """Return what rounding over `width` adds to max(u, 0)."""
    return np.maximum(0.5 * width - np.abs(u), 0.0) ** 2 / (2.0 * width)


def corner_subgradient_error(u: Array, width: float | Array) -> Array:
    """Return the epsilon for which the slope of the rounded max(u, 0) is an epsilon-subgradient."""
    return np.abs(u) * np.maximum(0.5 * width - np.abs(u), 0.0) / width


class SubgradientError(ScalarFunction):
    r"""The subgradient error of rounded kinks, see :class:`Rounded`.

    Parameters
    ----------
    corners : tuple of (position, jump, width)
        The kinks.
    """

    corners: tuple[tuple[float, float, float], ...]  # type: ignore[misc]

    smooth = False
    curvature = -np.inf, np.inf

    @property
    def knots(self) -> tuple[float, ...]:
        """The kinks, and where their rounding begins and ends."""
        sides = (-0.5, 0.0, 0.5)
        return tuple(sorted({at + side * w for at, _, w in self.corners for side in sides}))

    def value(self, t: Array) -> Array:
        """Return the sum over the kinks."""
        errors = (abs(d) * corner_subgradient_error(t - at, width) for at, d, width in self.corners)
        return sum(errors, np.zeros_like(t))

    def derivative(self, t: Array, value: Array) -> Array:
        """Return the sum of the derivatives."""
        out = np.zeros_like(t)
        for position, jump, width in self.corners:
            u = t - position
            inside = np.abs(u) < 0.5 * width
            out += abs(jump) / width * inside * (0.5 * width * np.sign(u) - 2.0 * u)
        return out
