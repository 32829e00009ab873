"""What a penalty is: a function of the weights themselves; and sums of penalties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number


class Penalty(BaseEstimator, ABC):
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
    """

    smooth: bool = True
    convex: bool = True
    quadratic: bool = False

    def check(self) -> None:
        """Raise a ValueError if a parameter is not valid; estimators call it."""

    @property
    def modulus(self) -> float:
        """Zero unless a subclass overrides it."""
        return 0.0

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return p(w)."""

    @abstractmethod
    def gradient(self, w: Array) -> Array:
        """Return the gradient (an element of the subdifferential), of the shape of `w`."""

    def second_derivatives(self, n_variables: int) -> Array:
        """Return the diagonal of the Hessian of a penalty that is `quadratic`.

        Parameters
        ----------
        n_variables : int
            The number of variables.
        """
        return np.full(n_variables, float(self.modulus))

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

    @property
    def smoothable(self) -> bool:
        """Whether `smoothed` returns a smooth penalty."""
        return self.smooth

    def smoothed(self, width: float | Array) -> Penalty:
        """Return the penalty with its kinks rounded over `width`, a number or one per variable."""
        return self

    def subgradient_error(self, w: Array) -> float:
        """Return the epsilon by which rounding moved the subgradient at `w`."""
        return 0.0

    def __add__(self, other: Penalty) -> Penalty:
        """Return the sum of two penalties."""
        terms = [p for p in (self, other) if not isinstance(p, Zero)]
        return Sum(terms) if len(terms) > 1 else (terms[0] if terms else self)


class Zero(Penalty):
    """p(w) = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import Zero
    >>> Zero().gradient(np.array([1.0, 2.0]))
    array([0., 0.])
    """

    quadratic = True

    def value(self, w: Array) -> float:
        """Return 0."""
        return 0.0

    def gradient(self, w: Array) -> Array:
        """Return zeros."""
        return np.zeros_like(w)


def check_strength(penalty: Penalty, alpha: object) -> None:
    """Check the strength of a penalty.

    Raises
    ------
    ValueError
        If it is not a finite number >= 0; with a negative one problems have no solution.
    """
    if not (is_number(alpha, Real) and 0.0 <= alpha < np.inf):
        raise ValueError(
            f"alpha: the strength of {type(penalty).__name__} must be a number >= 0; got {alpha!r}."
        )


class L2(Penalty):
    r""":math:`p(w) = \tfrac{\alpha}{2} \|w\|_2^2`.

    Parameters
    ----------
    alpha : float, default=1e-4
        The strength, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties.base import L2
    >>> L2(alpha=0.5).value(np.array([1.0, 2.0]))
    1.25
    """

    quadratic = True

    def __init__(self, alpha: float = 1e-4):
        self.alpha = alpha

    def check(self) -> None:
        """Raise a ValueError unless alpha is a number >= 0."""
        check_strength(self, self.alpha)

    @property
    def modulus(self) -> float:
        """The strength itself."""
        return self.alpha

    def value(self, w: Array) -> float:
        """Return alpha / 2 times the squared norm of w."""
        return float(0.5 * self.alpha * (w @ w))

    def gradient(self, w: Array) -> Array:
        """Return alpha w."""
        return self.alpha * w


class Linear(Penalty):
    """p(w) = <direction, w> + offset.

    Parameters
    ----------
    direction : ndarray of shape (n_variables,)
        The slope.
    offset : float, default=0.0
        The value at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import Linear
    >>> Linear(np.array([1.0, -2.0]), 0.5).value(np.array([3.0, 1.0]))
    1.5
    """

    quadratic = True

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

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L1, L2, Sum
    >>> Sum([L1(0.5), L2(1.0)]).value(np.array([1.0, -2.0]))
    4.0
    """

    def __init__(self, terms: list[Penalty]):
        self.terms = terms

    def check(self) -> None:
        """Raise a ValueError if a parameter of a summand is not valid."""
        for term in self.terms:
            term.check()

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
        first, *others = self.terms
        total = first.gradient(w)
        for term in others:
            total = total + term.gradient(w)
        return total

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        """Whether every summand is."""
        return all(term.quadratic for term in self.terms)

    def second_derivatives(self, n_variables: int) -> Array:
        """Return the sum of those of the summands."""
        found = (term.second_derivatives(n_variables) for term in self.terms)
        return sum(found, np.zeros(n_variables))

    def convex_parts(self) -> tuple[Penalty, Penalty]:
        """Return the sums of the plus and of the minus parts."""
        plus, minus = zip(*(term.convex_parts() for term in self.terms), strict=True)
        return Sum(list(plus)), sum(minus, start=Zero())

    @property
    def smoothable(self) -> bool:
        """Whether every summand is."""
        return all(term.smoothable for term in self.terms)

    def smoothed(self, width: float | Array) -> Penalty:
        """Return the sum of the rounded summands."""
        return type(self)([term.smoothed(width) for term in self.terms])

    def subgradient_error(self, w: Array) -> float:
        """Return the sum of the subgradient errors."""
        return sum(term.subgradient_error(w) for term in self.terms)


class ConvexSum(Sum):
    """A sum that is convex though a summand is not: made by `Penalty.convex_parts`.

    Parameters
    ----------
    terms : list of Penalty
        The summands.

    Examples
    --------
    >>> from fairconstrained.penalties import L2, SCAD, ConvexSum, Sum
    >>> terms = [SCAD(1.0), L2(2.0)]
    >>> Sum(terms).convex, ConvexSum(terms).convex
    (False, True)
    """

    convex = True
