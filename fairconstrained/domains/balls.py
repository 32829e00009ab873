"""Balls of the Euclidean and of the L1 norm, and the same with coordinates in other units."""

from __future__ import annotations

import numpy as np

from fairconstrained.domains.base import ON_THE_BOUNDARY, Domain
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_numbers, check_positive

_MAX_NEWTON_STEPS = 100
_ROUNDING = 1e-15  # of the norm, relative
_SQUARES = 1e-250, 1e250  # between these, squared norms of rows are exact to rounding
_FARTHEST = 1e20  # in units of an ellipsoid: beyond, only the direction of a point matters


def _check_positive_vector(argument: str, values: object) -> None:
    """Check that values are a vector of finite numbers > 0."""
    if not np.all(check_numbers(argument, values, 0.0, np.inf) > 0.0):
        raise ValueError(f"{argument} must be numbers > 0; got {values!r}.")


def _ordinary(squares: Array) -> bool:
    """Return whether squared norms have neither overflowed nor lost digits; zeros are exact."""
    low, high = _SQUARES
    return bool(np.all((squares < high) & ((squares > low) | (squares == 0.0))))


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
        check_positive("L2Ball: radius", self.radius)

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
        if np.sqrt(norm_squared) < self.radius * (1.0 - ON_THE_BOUNDARY):
            return gradient
        return gradient + max(-(gradient @ w) / norm_squared, 0.0) * w

    def project_rows(self, rows: Array) -> Array:
        """Return the rows, those that are longer than the radius scaled down to it."""
        squares = np.einsum("ij,ij->i", rows, rows)
        if not _ordinary(squares):
            return super().project_rows(rows)
        norms = np.maximum(np.sqrt(squares), self.radius)
        return rows * (self.radius / norms)[:, None]

    def residual_rows(self, rows: Array, gradients: Array) -> Array:
        """Return gradient + t w for every row, see `normal_cone_residual`."""
        squares, slopes = np.einsum("kij,ij->ki", np.stack([rows, gradients]), rows)
        if not (_ordinary(squares) and np.isfinite(slopes).all()):
            return super().residual_rows(rows, gradients)
        outside = np.sqrt(squares) >= self.radius * (1.0 - ON_THE_BOUNDARY)
        pull = np.where(outside & (slopes < 0.0), -slopes, 0.0) / np.where(outside, squares, 1.0)
        return gradients + pull[:, None] * rows

    def stretched(self, factors: Array) -> Ellipsoid:
        """Return the ellipsoid whose half axes are the radius times the factors."""
        return Ellipsoid(self.radius * factors)


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
        check_positive("L1Ball: radius", self.radius)

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
        if np.abs(w).sum() < self.radius * (1.0 - ON_THE_BOUNDARY):
            return gradient
        return _l1_residual(w, gradient, np.ones(len(w)))

    def stretched(self, factors: Array) -> WeightedL1Ball:
        """Return the ball of the L1 norm of w / factors."""
        return WeightedL1Ball(self.radius, factors)


class Ellipsoid(Domain):
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

    def __init__(self, axes: Array):
        self.axes = axes

    def check(self) -> None:
        """Check that the half axes are numbers > 0."""
        _check_positive_vector("Ellipsoid: axes", self.axes)

    @property
    def n_variables(self) -> int:  # type: ignore[override]
        """The number of half axes."""
        return len(self.axes)

    def project(self, w: Array) -> Array:
        r"""Return the nearest point, :math:`w_j a_j^2 / (a_j^2 + t)` with the t that fits."""
        if not np.isfinite(w).all():
            return np.full_like(w, np.nan)
        axes = np.asarray(self.axes)
        largest = float(np.abs(w).max(initial=0.0))
        if largest == 0.0:
            return w
        unit = w / largest  # its squares neither overflow nor vanish
        norm = float(np.linalg.norm(unit / axes))
        largest = min(largest, _FARTHEST * float(axes.max()) ** 2 / float(axes.min()))
        if largest * norm <= 1.0:
            return w
        squares, t = axes**2, 0.0
        for _ in range(_MAX_NEWTON_STEPS):
            point = unit * (axes / (squares + t))
            norm = float(np.linalg.norm(point))
            if largest * norm <= 1.0 + _ROUNDING:
                break
            t += (largest * norm - 1.0) * norm**2 / float(point @ (point / (squares + t)))
        return point / norm * axes

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + t w / a^2 with the best t >= 0 on the boundary, the gradient inside."""
        if not (np.isfinite(w).all() and np.isfinite(gradient).all()):
            return np.full_like(gradient, np.nan)
        axes = np.asarray(self.axes)
        ratio = w / axes
        if np.linalg.norm(ratio) < 1.0 - ON_THE_BOUNDARY:
            return gradient
        normal = ratio / axes
        normal = normal / np.linalg.norm(normal)
        return gradient + max(-float(gradient @ normal), 0.0) * normal

    def project_rows(self, rows: Array) -> Array:
        """Return the nearest points, by Newton's method for the multipliers of all rows."""
        axes = np.asarray(self.axes)
        ratios = rows / axes
        squares = np.einsum("ij,ij->i", ratios, ratios)
        if not _ordinary(squares):
            return super().project_rows(rows)
        outside = squares > 1.0
        if not outside.any():
            return rows.copy()
        moved, bend = rows[outside], axes**2
        t = (np.sqrt(squares[outside])[:, None] - 1.0) * bend.min()  # at most the multiplier
        for _ in range(_MAX_NEWTON_STEPS):
            shifted = bend + t
            points = moved * (axes / shifted)
            squares = np.einsum("ij,ij->i", points, points)[:, None]
            norms = np.sqrt(squares)
            if np.all(norms <= 1.0 + _ROUNDING):
                break
            falls = np.einsum("ij,ij->i", points, points / shifted)[:, None]
            t += np.maximum(norms - 1.0, 0.0) * squares / falls
        found = rows.copy()
        found[outside] = points / norms * axes
        return found

    def residual_rows(self, rows: Array, gradients: Array) -> Array:
        """Return gradient + t w / a^2 for every row, see `normal_cone_residual`."""
        axes = np.asarray(self.axes)
        ratios = rows / axes
        normals = ratios / axes
        squares, sizes = (np.einsum("ij,ij->i", one, one) for one in (ratios, normals))
        slopes = np.einsum("ij,ij->i", gradients, normals)
        if not (_ordinary(squares) and _ordinary(sizes) and np.isfinite(slopes).all()):
            return super().residual_rows(rows, gradients)
        outside = np.sqrt(squares) >= 1.0 - ON_THE_BOUNDARY
        pull = np.where(outside & (slopes < 0.0), -slopes, 0.0) / np.where(outside, sizes, 1.0)
        return gradients + pull[:, None] * normals

    def stretched(self, factors: Array) -> Ellipsoid:
        """Return the ellipsoid with its half axes times the factors."""
        return Ellipsoid(np.asarray(self.axes) * factors)


class WeightedL1Ball(Domain):
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

    def __init__(self, radius: float, factors: Array):
        self.radius = radius
        self.factors = factors

    def check(self) -> None:
        """Check that the radius and the factors are numbers > 0."""
        check_positive("WeightedL1Ball: radius", self.radius)
        _check_positive_vector("WeightedL1Ball: factors", self.factors)

    @property
    def n_variables(self) -> int:  # type: ignore[override]
        """The number of factors."""
        return len(self.factors)

    def project(self, w: Array) -> Array:
        r"""Return the projection: soft thresholding at levels that sorting finds.

        It is :math:`\mathrm{sign}(w_j) \max(|w_j| - t / a_j, 0)`. A point so far away that this is
        lost in rounding errors gets a point of the set near its projection.
        """
        factors = np.asarray(self.factors, dtype=float)
        with np.errstate(over="ignore"):
            size, product = np.abs(w) / factors, np.abs(w) * factors
        total = float(size.sum())
        if total <= self.radius:
            return w
        if not (np.isfinite(total + product.max()) or np.isfinite([size, product]).all()):
            return np.full_like(w, np.nan)
        order = np.argsort(-product, kind="stable")
        sums = np.cumsum(size[order]) - self.radius
        levels = np.maximum(sums, 0.0) / np.cumsum(factors[order] ** -2.0)
        last = np.flatnonzero(product[order] > levels)[-1:]
        level = levels[last[0]] if last.size else levels[0]
        found = np.clip(size - level / factors**2, 0.0, self.radius)
        found *= min(1.0, self.radius / max(float(found.sum()), np.finfo(float).tiny))
        return np.asarray(np.sign(w) * found * factors)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + t s, s a subgradient of the norm, with the best t >= 0 and s."""
        if not (np.isfinite(w).all() and np.isfinite(gradient).all()):
            return np.full_like(gradient, np.nan)
        factors = np.asarray(self.factors, dtype=float)
        if (np.abs(w) / factors).sum() < self.radius * (1.0 - ON_THE_BOUNDARY):
            return gradient
        return _l1_residual(w, gradient, factors)

    def stretched(self, factors: Array) -> WeightedL1Ball:
        """Return the ball with its factors times these."""
        return WeightedL1Ball(self.radius, np.asarray(self.factors) * factors)


def _l1_residual(w: Array, gradient: Array, factors: Array) -> Array:
    """Return the residual of the normal cone at a point on the boundary of a ball of the L1 norm.

    The squared norm of the residual is convex and piecewise quadratic in t; its slope vanishes
    between two of the points where a coordinate outside of the support leaves zero.
    """
    support, rate = w != 0, 1.0 / factors
    sign = np.sign(w)
    corners = np.abs(gradient * factors)[~support]
    order = np.argsort(-corners)
    outside, rates = np.abs(gradient)[~support][order], rate[~support][order]
    pull = -float((gradient * sign * rate)[support].sum())
    sums = np.append(0.0, np.cumsum(outside * rates)) + pull
    squares = np.append(0.0, np.cumsum(rates**2)) + float((rate[support] ** 2).sum())
    levels = sums / squares
    t = max(float(levels[np.count_nonzero(corners[order] > levels[:-1])]), 0.0)
    shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - t * rate, 0.0)
    return np.where(support, gradient + t * rate * sign, shrunk)
