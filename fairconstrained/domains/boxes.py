"""Boxes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real

import numpy as np

from fairconstrained.domains.base import ON_THE_BOUNDARY, Domain
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number


class Bounded(Domain):
    """Base of boxes: a lower and an upper bound for every coordinate."""

    lower: float | Array
    upper: float | Array

    @abstractmethod
    def bounds(self, n_variables: int) -> tuple[Array, Array]:
        """Return the bounds of every coordinate."""

    def project(self, w: Array) -> Array:
        """Return `w` clipped to the bounds."""
        return np.clip(w, self.lower, self.upper)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the gradient without what pushes against a bound that is met."""
        lower, upper = self.bounds(len(w))
        sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)]
        rounding = ON_THE_BOUNDARY * np.maximum(*sizes)
        residual = np.array(gradient, dtype=float)
        low, high = w <= lower + rounding, w >= upper - rounding
        residual[low] = np.minimum(residual[low], 0.0)
        residual[high] = np.maximum(residual[high], 0.0)
        return residual

    def stretched(self, factors: Array) -> Intervals:
        """Return the box with its bounds times the factors."""
        lower, upper = self.bounds(len(factors))
        return Intervals(lower * factors, upper * factors)


class Box(Bounded):
    """The box lower <= w_j <= upper.

    Parameters
    ----------
    lower : float, default=-1.0
        The lower bound of every coordinate.
    upper : float, default=1.0
        The upper bound of every coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import Box
    >>> Box(-1.0, 1.0).project(np.array([3.0, -0.5]))
    array([ 1. , -0.5])
    """

    def __init__(self, lower: float = -1.0, upper: float = 1.0):
        self.lower = lower
        self.upper = upper

    def check(self) -> None:
        """Check that the bounds are numbers, and that there are points between them."""
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if not (is_number(bound, Real) and not np.isnan(bound)):
                raise ValueError(f"Box: {name} must be a number, perhaps infinite; got {bound!r}.")
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise ValueError(
                f"Box: lower must be at most upper; got lower={self.lower!r} and "
                f"upper={self.upper!r}, between which there are no points."
            )

    def bounds(self, n_variables: int) -> tuple[Array, Array]:
        """Return the bounds, repeated."""
        return np.full(n_variables, float(self.lower)), np.full(n_variables, float(self.upper))


class Intervals(Bounded):
    """The box lower_j <= w_j <= upper_j, with bounds for every coordinate.

    Parameters
    ----------
    lower, upper : array-like of shape (n_variables,)
        The bounds, which may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.domains import Intervals
    >>> Intervals([0.0, -1.0], [np.inf, 1.0]).project(np.array([-2.0, 3.0]))
    array([0., 1.])

    Coefficients that are not negative:

    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> positive = Intervals(np.zeros(X.shape[1]), np.full(X.shape[1], np.inf))
    >>> clf = FairLogisticClassifier(domain=positive).fit(X, y, sensitive_features=groups)
    >>> bool(clf.coef_.min() >= 0.0)
    True
    """

    lower: Array
    upper: Array

    def __init__(self, lower: Array, upper: Array):
        self.lower = lower
        self.upper = upper

    def check(self) -> None:
        """Check that the bounds are numbers, and that there are points between them."""
        try:
            lower, upper = np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)
            valid = lower.ndim == 1 and lower.shape == upper.shape and np.all(lower <= upper)
        except (TypeError, ValueError):
            valid = False
        if not valid or np.any(lower == np.inf) or np.any(upper == -np.inf):
            raise ValueError(
                "Intervals: lower and upper must have one number, perhaps infinite, for each "
                f"coordinate, lower <= upper; got lower={self.lower!r} and upper={self.upper!r}."
            )

    @property
    def n_variables(self) -> int:  # type: ignore[override]
        """The number of intervals."""
        return len(self.lower)

    def bounds(self, n_variables: int) -> tuple[Array, Array]:
        """Return the bounds."""
        return np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)
