"""Simple closed convex sets W on which the weights may lie, with exact projections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number

__all__ = ["Box", "Domain", "L1Ball", "L2Ball", "WholeSpace"]

_ON_THE_BOUNDARY = 1e-9


class Domain(BaseEstimator, ABC):
    """A closed convex set with an exact projection.

    Attributes
    ----------
    whole_space : bool
        Whether the set is all of R^n, so that units of the variables may be changed freely.
    """

    whole_space: bool = False

    def check(self) -> None:
        """Check the parameters.

        Raises
        ------
        ValueError
            With the parameter's name, what was found and what is valid.
        """

    @abstractmethod
    def project(self, w: Array) -> Array:
        """Return the point of the set nearest to `w`; a ball returns nan where w is not finite."""

    @abstractmethod
    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + v for the v in the normal cone N_W(w) that makes it smallest.

        Its norm is the distance of -gradient from the normal cone: zero when `w` is stationary.
        """

    def bounds(self, n_variables: int) -> tuple[Array, Array] | None:
        """Return lower and upper bounds when the set is a box, else None."""
        return None


def _check_radius(ball: L2Ball | L1Ball) -> None:
    """Check that the radius of a ball is a number > 0."""
    if not (is_number(ball.radius, Real) and 0.0 < ball.radius < np.inf):
        raise ValueError(
            f"{type(ball).__name__}: radius must be a number > 0; got {ball.radius!r}."
        )


class WholeSpace(Domain):
    """All of R^n.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import WholeSpace
    >>> WholeSpace().project(np.array([3.0, -4.0]))
    array([ 3., -4.])
    """

    whole_space = True

    def project(self, w: Array) -> Array:
        """Return `w`."""
        return w

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the gradient: the normal cone is {0}."""
        return gradient

    def bounds(self, n_variables: int) -> tuple[Array, Array]:
        """Return infinite bounds."""
        return np.full(n_variables, -np.inf), np.full(n_variables, np.inf)


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

    def project(self, w: Array) -> Array:
        """Return `w` clipped to the bounds."""
        return np.clip(w, self.lower, self.upper)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the gradient without what pushes against a bound that is met."""
        finite = [abs(bound) for bound in (self.lower, self.upper) if np.isfinite(bound)]
        rounding = _ON_THE_BOUNDARY * max([1.0, *finite])
        residual = np.array(gradient, dtype=float)
        low, high = w <= self.lower + rounding, w >= self.upper - rounding
        residual[low] = np.minimum(residual[low], 0.0)
        residual[high] = np.maximum(residual[high], 0.0)
        return residual

    def bounds(self, n_variables: int) -> tuple[Array, Array]:
        """Return the bounds, repeated."""
        return np.full(n_variables, float(self.lower)), np.full(n_variables, float(self.upper))


class L2Ball(Domain):
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

    def __init__(self, radius: float = 1.0):
        self.radius = radius

    def check(self) -> None:
        """Check that the radius is a number > 0."""
        _check_radius(self)

    def project(self, w: Array) -> Array:
        """Return `w`, scaled down to the radius if it is longer."""
        largest = np.abs(w).max(initial=0.0)
        if not np.isfinite(largest):
            return np.full_like(w, np.nan)
        if largest == 0.0:
            return w
        unit = w / largest  # its squares neither overflow nor vanish
        norm = np.linalg.norm(unit)
        return w if largest <= self.radius / norm else unit * (self.radius / norm)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + t w with the best t >= 0 on the sphere, the gradient inside."""
        if not (np.isfinite(w).all() and np.isfinite(gradient).all()):
            return np.full_like(gradient, np.nan)
        norm_squared = w @ w
        if np.sqrt(norm_squared) < self.radius * (1.0 - _ON_THE_BOUNDARY):
            return gradient
        return gradient + max(-(gradient @ w) / norm_squared, 0.0) * w


class L1Ball(Domain):
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

    def __init__(self, radius: float = 1.0):
        self.radius = radius

    def check(self) -> None:
        """Check that the radius is a number > 0."""
        _check_radius(self)

    def project(self, w: Array) -> Array:
        """Return the projection: soft thresholding at the level that sorting finds.

        Sizes are measured from the largest one, so that nothing is lost where they are large; no
        entry that is smaller by the radius or more is left.
        """
        size = np.abs(w)
        largest = size.max(initial=0.0)
        if not np.isfinite(largest):
            return np.full_like(w, np.nan)
        if largest <= self.radius and size.sum() <= self.radius:
            return w
        descending = np.maximum(np.sort(size)[::-1] - largest, -self.radius)
        levels = (np.cumsum(descending) - self.radius) / np.arange(1, size.size + 1)
        level = levels[np.flatnonzero(descending > levels)[-1]]
        return np.sign(w) * np.maximum((size - largest) - level, 0.0)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + t s, s a subgradient of the L1 norm, with the best t >= 0 and s."""
        if not (np.isfinite(w).all() and np.isfinite(gradient).all()):
            return np.full_like(gradient, np.nan)
        if np.abs(w).sum() < self.radius * (1.0 - _ON_THE_BOUNDARY):
            return gradient
        support, sign = w != 0, np.sign(w)

        def residual(t: float) -> Array:
            shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - t, 0.0)
            return np.where(support, gradient + t * sign, shrunk)

        def slope(t: float) -> float:
            rest = residual(t)
            return float(np.where(support, rest * sign, -np.abs(rest)).sum())

        if slope(0.0) >= 0.0:
            return gradient
        return residual(brentq(slope, 0.0, 2.0 * np.abs(gradient).max()))


class Blocks(Domain):
    """The product of `n_blocks` copies of a set: every block of variables lies in it on its own.

    Parameters
    ----------
    domain : Domain
        The set of one block.
    n_blocks : int
        How many blocks there are, all of one size, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import Blocks, L2Ball
    >>> Blocks(L2Ball(1.0), 2).project(np.array([3.0, -4.0, 0.6, 0.0]))
    array([ 0.6, -0.8,  0.6,  0. ])
    """

    def __init__(self, domain: Domain, n_blocks: int):
        self.domain = domain
        self.n_blocks = n_blocks

    @property
    def whole_space(self) -> bool:  # type: ignore[override]
        """Whether the set of a block is."""
        return self.domain.whole_space

    def project(self, w: Array) -> Array:
        """Project block by block."""
        return np.concatenate([self.domain.project(v) for v in np.split(w, self.n_blocks)])

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the blocks' residuals: the normal cone of a product is the product of theirs."""
        blocks = zip(np.split(w, self.n_blocks), np.split(gradient, self.n_blocks), strict=True)
        return np.concatenate([self.domain.normal_cone_residual(*block) for block in blocks])

    def bounds(self, n_variables: int) -> tuple[Array, Array] | None:
        """Return the bounds of a block, repeated, or None."""
        one = self.domain.bounds(n_variables // self.n_blocks)
        if one is None:
            return None
        return np.tile(one[0], self.n_blocks), np.tile(one[1], self.n_blocks)


class Leading(Domain):
    """The first `size` variables lie in `domain`, the others (intercept, auxiliary) are free.

    Parameters
    ----------
    domain : Domain
        The set of the leading variables.
    size : int
        How many there are.
    """

    def __init__(self, domain: Domain, size: int):
        self.domain = domain
        self.size = size

    @property
    def whole_space(self) -> bool:  # type: ignore[override]
        """Whether the set of the leading variables is."""
        return self.domain.whole_space

    def project(self, w: Array) -> Array:
        """Project the leading variables."""
        return np.concatenate([self.domain.project(w[: self.size]), w[self.size :]])

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the residual of the leading variables, then the gradient of the free ones."""
        lead = self.domain.normal_cone_residual(w[: self.size], gradient[: self.size])
        return np.concatenate([lead, gradient[self.size :]])

    def bounds(self, n_variables: int) -> tuple[Array, Array] | None:
        """Return the leading bounds followed by infinite ones, or None."""
        lead = self.domain.bounds(self.size)
        if lead is None:
            return None
        free = np.full(n_variables - self.size, np.inf)
        return np.concatenate([lead[0], -free]), np.concatenate([lead[1], free])
