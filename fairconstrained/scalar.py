"""Scalar functions of a score: what surrogates and losses have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

Array = NDArray[Any]


class ScalarFunction(BaseEstimator, ABC):
    r"""A function :math:`\phi: \mathbb{R} \to \mathbb{R}` applied to every score.

    Surrogates and losses are such functions; a term averages them over cells of rows. Instances
    hold hyperparameters only, so they can be shared, cloned and searched over.

    Attributes
    ----------
    smooth : bool
        Whether the derivative is continuous.
    convex : bool
        Whether the function is convex.
    curvature : tuple of float
        A lower and an upper bound on the second derivative; infinite at a kink. The function is
        weakly convex when the lower bound is finite.
    """

    smooth: bool = True
    convex: bool = False

    @property
    @abstractmethod
    def curvature(self) -> tuple[float, float]:
        """Bounds on the second derivative, (lower, upper)."""

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

    def convex_parts(self) -> tuple[ScalarFunction, ScalarFunction]:
        r"""Return convex functions (plus, minus) with phi = plus - minus.

        A convex function is its own plus part. Any other with a finite lower bound :math:`-\ell`
        on its second derivative is split as
        :math:`(\phi + \tfrac{\ell}{2} t^2) - \tfrac{\ell}{2} t^2`.
        """
        if self.convex:
            return self, Parabola(0.0)
        lower = self.curvature[0]
        if not np.isfinite(lower):
            raise ValueError(f"{self!r} is not weakly convex and declares no convex parts.")
        parabola = Parabola(max(-lower, 0.0))
        return SumFunction(self, parabola), parabola

    def strict(self) -> ScalarFunction:
        """Return what the function stands for: the indicator for a surrogate, itself otherwise."""
        return self


class Parabola(ScalarFunction):
    r""":math:`\phi(t) = \tfrac{c}{2} t^2`.

    Parameters
    ----------
    coefficient : float, default=1.0
        The curvature c >= 0; 0 is the zero function.
    """

    convex = True

    def __init__(self, coefficient: float = 1.0):
        self.coefficient = coefficient

    @property
    def curvature(self) -> tuple[float, float]:
        """The second derivative is the coefficient everywhere."""
        return self.coefficient, self.coefficient

    def value(self, t: Array) -> Array:
        """Return c t^2 / 2."""
        return 0.5 * self.coefficient * t * t

    def derivative(self, t: Array, value: Array) -> Array:
        """Return c t."""
        return self.coefficient * t


class Identity(ScalarFunction):
    """phi(t) = t: the terms that linearisation makes."""

    convex = True

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
    """phi(t) = 1{t > 0}: the decision that surrogates stand for.

    It measures, it cannot be optimised: its derivative is zero almost everywhere.
    """

    smooth = False

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
    def curvature(self) -> tuple[float, float]:
        """Convex, with a kink."""
        return 0.0, np.inf

    def value(self, t: Array) -> Array:
        """Return max(t / scale + shift, 0)."""
        return np.maximum(t / self.scale + self.shift, 0.0)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return 1 / scale where the function is positive, else 0."""
        return (value > 0) / self.scale


class SumFunction(ScalarFunction):
    """phi(t) = first(t) + second(t).

    Parameters
    ----------
    first, second : ScalarFunction
        The summands. The sum is taken as convex: it is made by `convex_parts` only.
    """

    convex = True

    def __init__(self, first: ScalarFunction, second: ScalarFunction):
        self.first = first
        self.second = second

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether both summands are smooth."""
        return self.first.smooth and self.second.smooth

    @property
    def curvature(self) -> tuple[float, float]:
        """The sums of the summands' bounds, 0 at the least since the sum is convex."""
        (a, b), (c, d) = self.first.curvature, self.second.curvature
        return max(a + c, 0.0), b + d

    def value(self, t: Array) -> Array:
        """Return first(t) + second(t)."""
        return self.first.value(t) + self.second.value(t)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return first'(t) + second'(t)."""
        one = self.first.derivative(t, self.first.value(t))
        return one + self.second.derivative(t, self.second.value(t))
