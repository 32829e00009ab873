"""Boxes, and balls of the Euclidean and of the L1 norm, with coordinates in any units."""

from abc import abstractmethod
from numbers import Real
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np

from fairconstrained.domains.base import ON_THE_BOUNDARY, Domain
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import POSITIVE, Number, Numbers, Positive

_MAX_NEWTON_STEPS = 100  # from below, so that they converge: most take ten
_ROUNDING = 1e-15  # of the norm, relative
_FARTHEST = 1e20  # in units of an ellipsoid: beyond, only the direction of a point matters
_BOUND = Number(Real, None, None, closed="both")  # perhaps infinite

Bound = Annotated[float | Array, _BOUND]
Bounds = Annotated[Array, Numbers(_BOUND)]
Lengths = Annotated[Array, Numbers(POSITIVE)]


class Box(Domain):
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

    lower: Bound = -1.0
    upper: Bound = 1.0

    def check_parameters(self) -> None:
        """Check that there are points between the bounds."""
        lower, upper = np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)
        if lower.shape != upper.shape or not np.all(
            (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
        ):
            raise ValueError(
                f"{type(self).__name__}: lower and upper must have one length and points "
                f"between them; got lower={self.lower!r} and upper={self.upper!r}."
            )

    def project(self, w: Array) -> Array:
        """Return `w` clipped to the bounds."""
        return np.clip(w, self.lower, self.upper)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the gradient without what pushes against a bound that is met."""
        lower, upper = np.asarray(self.lower, float), np.asarray(self.upper, float)
        sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)]
        rounding = ON_THE_BOUNDARY * np.maximum(*sizes)
        residual = np.where(w <= lower + rounding, np.minimum(gradient, 0.0), gradient)
        return np.where(w >= upper - rounding, np.maximum(residual, 0.0), residual)

    def stretched(self, factors: Array) -> "Intervals":
        """Return the box with its bounds times the factors."""
        return Intervals(np.multiply(self.lower, factors), np.multiply(self.upper, factors))


class Intervals(Box):
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

    def __init__(self, lower: Bounds, upper: Bounds):
        super().__init__(lower, upper)


class _Ball(Domain):
    """A norm of w / axes is at most 1, where the axes are a number or one per variable."""

    order: ClassVar[int]  # of the norm
    _axes: ClassVar[Any]

    @abstractmethod
    def _nearest(self, w: Array) -> Array:
        """Return the projections of points outside."""

    @abstractmethod
    def _residual(self, w: Array, gradient: Array) -> Array:
        """Return the normal cone residuals of points on the boundary."""

    def _norm(self, w: Array) -> Array:
        return np.linalg.norm(w / self._axes, self.order, axis=-1, keepdims=True)

    def project(self, w: Array) -> Array:
        """Return `w` where it is inside, else the nearest point of the boundary."""
        with np.errstate(over="ignore", invalid="ignore"):
            inside = self._norm(w) <= 1.0
            return w if inside.all() else np.where(inside, w, self._nearest(w))

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + t n, n a normal of the boundary at `w`, with the best t >= 0 and n.

        Inside it is the gradient; nan where `w` or the gradient is not finite.
        """
        finite = (np.isfinite(w) & np.isfinite(gradient)).all(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            inside = self._norm(w) < 1.0 - ON_THE_BOUNDARY
            residual = gradient if inside.all() else self._residual(w, gradient)
        return np.where(finite, np.where(inside, gradient, residual), np.nan)


class Ellipsoid(_Ball):
    r"""The ellipsoid :math:`\sum_j (w_j / a_j)^2 \le 1`.

    Parameters
    ----------
    axes : array-like of shape (n_variables,)
        The half axes a, > 0.

    References
    ----------
    J. More, D. Sorensen, "Computing a trust region step", SIAM Journal on Scientific and
    Statistical Computing 4 (1983): Newton's method for the multiplier.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import Ellipsoid
    >>> Ellipsoid(np.array([2.0, 1.0])).project(np.array([4.0, 0.0]))
    array([2., 0.])
    """

    axes: Lengths

    order = 2

    @property
    def _axes(self) -> Array:
        return np.asarray(self.axes, dtype=float)

    def _nearest(self, w: Array) -> Array:
        r"""Return :math:`w_j a_j^2 / (a_j^2 + t)` with the t that fits."""
        axes = self._axes
        largest = np.abs(w).max(axis=-1, keepdims=True)
        unit = w / largest  # its squares neither overflow nor vanish
        largest = np.minimum(largest, _FARTHEST * axes.max() ** 2 / axes.min())
        squares, t = axes**2, np.zeros_like(largest)
        for _ in range(_MAX_NEWTON_STEPS):
            point = unit * (axes / (squares + t))
            norm = np.linalg.norm(point, axis=-1, keepdims=True)
            excess = largest * norm - 1.0
            if not np.any(excess > _ROUNDING):
                break
            fall = np.sum(point * (point / (squares + t)), axis=-1, keepdims=True)
            t += np.maximum(excess, 0.0) * norm**2 / fall
        return point / norm * axes

    def _residual(self, w: Array, gradient: Array) -> Array:
        normal = w / self._axes / self._axes
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
        slope = np.sum(gradient * normal, axis=-1, keepdims=True)
        return gradient + np.maximum(-slope, 0.0) * normal

    def stretched(self, factors: Array) -> "Ellipsoid":
        """Return the ellipsoid with its half axes times the factors."""
        return Ellipsoid(self._axes * factors)


class L2Ball(Ellipsoid):
    r""":math:`\|w\|_2 \le` radius, the Euclidean ball.

    Parameters
    ----------
    radius : float, default=1.0
        The radius, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import L2Ball
    >>> L2Ball(1.0).project(np.array([3.0, -4.0]))
    array([ 0.6, -0.8])
    """

    axes = property(attrgetter("radius"))

    def __init__(self, radius: Positive = 1.0):
        self.radius = radius


class WeightedL1Ball(_Ball):
    r"""The ball :math:`\sum_j |w_j| / a_j \le` radius.

    Parameters
    ----------
    radius : float
        The radius, > 0.
    factors : array-like of shape (n_variables,)
        a, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import WeightedL1Ball
    >>> WeightedL1Ball(1.0, np.array([1.0, 2.0])).project(np.array([0.0, 3.0]))
    array([0., 2.])
    """

    radius: Positive
    factors: Lengths

    order = 1

    @property
    def _axes(self) -> Array:
        return self.radius * np.asarray(self.factors, dtype=float)

    def _nearest(self, w: Array) -> Array:
        r"""Return :math:`\mathrm{sign}(w_j) \max(|w_j| - t / a_j, 0)` with the t that fits.

        t is measured from the largest :math:`|w_j| a_j`, and then from itself, so that nothing is
        lost in differences of large numbers.
        """
        axes, rates = self._axes, np.broadcast_to(1.0 / self._axes, w.shape)
        products = np.abs(w) * axes
        origin = products.max(axis=-1, keepdims=True)
        for _ in range(2):
            above = products - origin
            # A coordinate that is lower by more than this is zero; it must not overflow the sums.
            level = _level(np.maximum(above, -(axes.max() ** 2)), rates, -1.0, 0.0)
            origin = origin + level
        return np.sign(w) * np.maximum(above - level, 0.0) * rates

    def _residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + t s, s a subgradient of the norm, with the best t >= 0 and s.

        The squared norm of the residual is convex and piecewise quadratic in t; its slope vanishes
        between two of the points where a coordinate outside of the support leaves zero.
        """
        rates, support = np.broadcast_to(1.0 / self._axes, w.shape), w != 0
        slopes, squares = (
            np.sum(values, axis=-1, keepdims=True, where=support)
            for values in (-gradient * np.sign(w) * rates, rates**2)
        )
        corners = np.where(support, -np.inf, np.abs(gradient) / rates)
        t = np.maximum(slopes / squares, _level(corners, rates, slopes, squares))
        t = np.maximum(t, 0.0)
        shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - t * rates, 0.0)
        return np.where(support, gradient + t * rates * np.sign(w), shrunk)

    def stretched(self, factors: Array) -> "WeightedL1Ball":
        """Return the ball with its factors times these."""
        return WeightedL1Ball(self.radius, np.asarray(self.factors, dtype=float) * factors)


class L1Ball(WeightedL1Ball):
    r""":math:`\|w\|_1 \le` radius, the ball of the L1 norm.

    Parameters
    ----------
    radius : float, default=1.0
        The radius, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import L1Ball
    >>> L1Ball(2.0).project(np.array([3.0, -2.0, 0.5]))
    array([ 1.5, -0.5,  0. ])
    """

    factors = 1.0  # type: ignore[assignment]

    def __init__(self, radius: Positive = 1.0):
        self.radius = radius


def _level(corners: Array, rates: Array, start: Any, squares: Any) -> Array:
    r"""Return the t at which a sum of positive parts has a given value.

    It is the largest, over k, of the t of the k highest corners c: with rates r,
    :math:`(start + \sum_{i \le k} r_i^2 c_i) / (squares + \sum_{i \le k} r_i^2)`.
    """
    order = np.argsort(-corners, axis=-1)
    corners, rates = (np.take_along_axis(a, order, axis=-1) for a in (corners, rates))
    sums = start + np.cumsum(corners * rates**2, axis=-1)
    levels = sums / (squares + np.cumsum(rates**2, axis=-1))
    return np.asarray(levels.max(axis=-1, keepdims=True))
