r"""Tighter bounds with few features: boxes of coefficients, and rows moved to the points of a grid.

**Boxes.** All models with a smaller objective F than that of the fit :math:`w^*` are in a box:
:math:`w_j \le (F(w^*) - \min_w \{F(w) - \tau w_j\}) / \tau` for every :math:`\tau > 0`. In a
box scores are in intervals, where envelopes are tighter than on all numbers. Boxes are halved, and
closed when their bound reaches the target; the least of their bounds is one for all models.

**Interpolation.** The features of a row are the mean of the corners of its cell of a grid, with
shares :math:`\tau`. With the same shares of its weights moved to the corners, Taylor's formula
gives

.. math:: \sum_v \tau_v \varphi(s_v) - \varphi(s) \le
          \tfrac12 \max \varphi'' \sum_j w_j^2 \sum_v \tau_v (x_{vj} - x_j)^2 .

Corners are shared by rows of several groups and labels, whose functions add up to what is nearly
convex, and they are fewer than the rows. The price is :math:`-\tfrac12 \sum_j G_j w_j^2`. In a box
with :math:`l_j \le w_j \le u_j` it is at least
:math:`\tfrac12 \sum_j G_j (l_j u_j - (l_j + u_j) w_j)`, so that the relaxation stays convex.
"""

import heapq
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from fairconstrained.bounds.fenchel import Box
from fairconstrained.bounds.relaxation import EnvelopePoint, Lagrangian, Relaxation, pooled_rows
from fairconstrained.models.linear import LinearModel
from fairconstrained.utils.arrays import Array

_FEW_VALUES = 8  # of a feature: it is on a grid already
_MOST_FEATURES = 30  # to halve the boxes of more takes too long
_MOST_POINTS = 30_000  # of a grid, and of the rows
_SPACINGS = (0.0, 0.07, 0.14, 0.28, 0.5)  # of grids, in units of the score; 0: the rows themselves
_LEAST_REACH = 0.1  # of the largest coefficient: those near zero may grow
_ROUNDING = 1e-9  # by which prices are increased
_ROOT, _NODE = 12, 6  # changes of multipliers for the first box and for others
_NEWTON, _SECANT = 30, 6  # steps to a minimiser, and to the size of a box
_EXACT = 1e-4  # of the objective: how far a bound may be from the least value
_EDGE = 0.3  # of a side, which a cut leaves at least


@dataclass(frozen=True, eq=False)
class Interpolated(Lagrangian):
    """A Lagrangian with its rows moved to the corners of a grid."""

    rows: Lagrangian  # that of the rows
    # the mean squared distance of a row from its corners, in the units of the coefficients,
    # (n_rows, n_features)
    variances: Array

    def price(self, multipliers: Array) -> Array:
        r"""Return G: sums over rows of max phi'' times variances, (n_parameters,).

        phi'' is at most p (1 - p) (N + abs(c) (1 - 2 p)), whose maximum in p is a root of a square.
        """
        p, q, c = self.rows.combined(multipliers)[:3]
        n, c = p + q, np.abs(c)
        curved = c > _ROUNDING * n
        safe = np.where(curved, c, n)
        share = (6.0 * safe + 2.0 * n - np.sqrt(12.0 * safe**2 + 4.0 * n**2)) / (12.0 * safe)
        share = np.where(curved, share, 0.5)
        most = share * (1.0 - share) * (n + c * (1.0 - 2.0 * share)) * (1.0 + _ROUNDING)
        price = np.zeros(self.model.n_parameters)
        price[: self.variances.shape[1]] = most @ self.variances
        return price


class Branching:
    """The search for a bound over boxes of coefficients, from the best bound without boxes.

    The search ends when the bound reaches the `target`, or when ``over(bound)`` is true. Bounds are
    compared with the `objective`.
    """

    def __init__(
        self, start: EnvelopePoint, objective: float, target: float, over: Callable[[float], bool]
    ):
        self.start, self.objective, self.target, self.over = start, objective, target, over
        self.lagrangian = start.relaxed.lagrangian.pooled()
        self.multipliers = start.relaxed.multipliers
        self.grids: list[Lagrangian] = []
        self._exact = _EXACT * objective

    def run(self) -> float:
        """Return the bound on all boxes, minus infinity where it is out of reach."""
        l1, _, center = self.lagrangian.strengths
        X = self.lagrangian.model.X
        few = isinstance(X, np.ndarray) and X.shape[1] <= _MOST_FEATURES
        if not few or not np.any(self.multipliers) or l1 > 0.0 or np.any(center):
            return -np.inf
        w = self._rotate(self.start.w)
        least = self._relaxed(self.lagrangian, np.zeros_like(self.multipliers), None, w)
        self.grids, box = self._grids(np.abs(least.w)), self._first_box(least)
        if not self.grids or box is None:
            return -np.inf
        # bounds on boxes, where they were obtained, and the positions of the grids
        nodes: list[tuple[float, int, EnvelopePoint, int]] = []
        ticks = count()

        def add(
            box: Box, w: Array, multipliers: Array, grid: int, changes: int, least: float
        ) -> None:
            at, grid = self._solved(box, w, multipliers, grid, changes)
            heapq.heappush(nodes, (max(at.bound, least), next(ticks), at, grid))

        add(box, w, self.multipliers, len(self.grids) // 2, _ROOT, -np.inf)
        while nodes[0][0] < self.target and not self.over(nodes[0][0]):
            bound, _, at, grid = heapq.heappop(nodes)
            for half in self._halves(at, grid):
                add(half, at.w, at.relaxed.multipliers, grid, _NODE, bound)
        return min(nodes[0][0], self.objective)

    def _rotate(self, w: Array) -> Array:
        """Make features of few values uncorrelated by a rotation; return the parameters after it.

        Of indicators of all values of a column only the differences matter: boxes of each say
        nothing about scores.
        """
        model = self.lagrangian.model
        shift = 0.0 if model.shift is None else model.shift
        Z = (model.X - shift) / (1.0 if model.scale is None else model.scale)
        few = np.flatnonzero([len(np.unique(column)) <= _FEW_VALUES for column in Z.T])
        turn = np.linalg.eigh(Z[:, few].T @ Z[:, few])[1]
        Z[:, few], w = Z[:, few] @ turn, w.copy()
        w[few] = turn.T @ w[few]
        model = LinearModel(Z, fit_intercept=model.fit_intercept)
        self.lagrangian = replace(self.lagrangian, model=model)
        self.few = few
        return w

    def _grids(self, size: Array) -> list[Lagrangian]:
        """Return the rows on grids that are not too large."""
        model = self.lagrangian.model
        size, many = size[: model.X.shape[1]], np.ones(model.X.shape[1], bool)
        many[self.few] = False
        reach = np.where(many, np.maximum(size, _LEAST_REACH * size.max()), np.inf)
        grids = [interpolated(self.lagrangian, reach, spacing) for spacing in _SPACINGS]
        return [grid for grid in grids if grid is not None]

    def _hessian(self, at: EnvelopePoint) -> Array:
        lagrangian = at.relaxed.lagrangian
        hessian = lagrangian.model.gram(at.curvatures)
        n = lagrangian.model.n_coefficients
        hessian.flat[: n * (len(hessian) + 1) : len(hessian) + 1] += lagrangian.strengths[1]
        hessian.flat[:: len(hessian) + 1] += 1e-14
        return hessian

    def _minimized(self, relaxed: Relaxation, w: Array, excess: float) -> EnvelopePoint:
        """Return a point in the box, with a bound near the least value, by Newton's method."""
        box = relaxed.box or Box(np.full(len(w), -np.inf), np.full(len(w), np.inf))
        at = relaxed.at(np.clip(w, box.low, box.high))
        for _ in range(_NEWTON):
            if at.value - at.bound <= excess:
                break
            slope = at.slope
            free = np.flatnonzero(
                ~((at.w <= box.low) & (slope > 0.0) | (at.w >= box.high) & (slope < 0.0))
            )
            step, length, there = np.zeros(len(w)), 1.0, at
            step[free] = np.linalg.solve(self._hessian(at)[np.ix_(free, free)], slope[free])
            while length > 1e-6:
                there = relaxed.at(np.clip(at.w - length * step, box.low, box.high))
                if there.value <= at.value + 1e-4 * float(slope @ (there.w - at.w)):
                    break
                length *= 0.25
            at = there
        return at

    def _first_box(self, least: EnvelopePoint) -> Box | None:
        """Return a box of all models with less than the objective, None if none is found."""
        room, sides = self.objective - least.value, []
        inverse = np.linalg.inv(self._hessian(least))
        for j, sign in np.ndindex(len(least.w), 2):
            if self.over(self.start.bound):
                return None
            direction = np.zeros(len(least.w))
            direction[j] = 1.0 - 2.0 * sign
            slope, most = float(np.sqrt(2.0 * room / inverse[j, j])), np.inf  # that of a quadratic
            w = least.w + slope * inverse @ direction
            for _ in range(_SECANT):
                tilted = replace(least.relaxed, tilt=-slope * direction)
                at = self._minimized(tilted, w, 0.05 * room)
                most = min(most, (self.objective - at.bound) / slope)
                rise = at.value + slope * float(direction @ at.w) - least.value
                if abs(rise - room) < 0.3 * room:
                    break
                slope, w = slope * min(max((room / max(rise, 1e-12)) ** 0.5, 0.2), 5.0), at.w
            sides.append(most)
        return Box(-np.array(sides[1::2]), np.array(sides[::2])) if max(sides) < np.inf else None

    def _solved(
        self, box: Box, w: Array, multipliers: Array, grid: int, changes: int
    ) -> tuple[EnvelopePoint, int]:
        """Return where a bound on a box is, by the best of a grid, a coarser and a finer one."""
        others = range(max(grid - 1, 0), min(grid + 2, len(self.grids)))
        points = {other: self._relaxed(self.grids[other], multipliers, box, w) for other in others}
        grid = max(points, key=lambda other: points[other].bound)
        return self._raised(points[grid], changes), grid

    def _relaxed(
        self, lagrangian: Lagrangian, multipliers: Array, box: Box | None, w: Array
    ) -> EnvelopePoint:
        return self._minimized(lagrangian.relaxed(multipliers, box), w, self._exact)

    def _raised(self, start: EnvelopePoint, changes: int) -> EnvelopePoint:
        """Return the point of the best bound over some multipliers."""
        relaxed, points = start.relaxed, [start]
        unit = np.maximum(relaxed.multipliers, 0.05 * relaxed.multipliers.max() + 1e-12)

        def negative(x: Array) -> tuple[float, Array]:
            multipliers = x * unit
            if np.any(multipliers != relaxed.multipliers):
                points.append(
                    self._relaxed(relaxed.lagrangian, multipliers, relaxed.box, points[-1].w)
                )
            if points[-1].bound >= self.target:
                raise StopIteration
            return -points[-1].bound, -points[-1].gradient * unit

        with suppress(StopIteration):
            minimize(
                negative,
                relaxed.multipliers / unit,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * len(unit),
                options={"maxfun": changes, "maxiter": changes},
            )
        return max(points, key=lambda point: point.bound)

    def _halves(self, at: EnvelopePoint, grid: int) -> list[Box]:
        """Return the halves of a box along the parameter whose interval costs most."""
        box, lagrangian, w = at.relaxed.box, at.relaxed.lagrangian, at.w
        price = lagrangian.price(at.relaxed.multipliers)
        coarser = self.grids[min(grid + 1, len(self.grids) - 1)].price(at.relaxed.multipliers)
        middle = np.maximum((w - box.low) * (box.high - w), 0.02 * box.width**2)
        loss = np.append(at.losses @ np.abs(lagrangian.model.X), at.losses.sum())[: len(w)]
        cost = (price + coarser) * middle + loss * box.width
        j = int(np.argmax(cost))
        cut = np.clip(w[j], box.low[j] + _EDGE * box.width[j], box.high[j] - _EDGE * box.width[j])
        upper, lower = box.low.copy(), box.high.copy()
        upper[j] = lower[j] = cut
        return [Box(box.low, lower), Box(upper, box.high)]


def interpolated(lagrangian: Lagrangian, reach: Array, spacing: float) -> Lagrangian | None:
    """Return the rows moved to a grid, None if it has too many points.

    The distance of its points is the spacing over the reach of the coefficient; features of
    infinite reach stay as they are, and all with a spacing of zero.
    """
    model = lagrangian.model
    if not spacing:
        return lagrangian if model.n_rows <= _MOST_POINTS else None
    rows = np.asarray(model.X, dtype=float)
    points, shares = rows, sp.csr_array(sp.eye_array(len(rows), format="csr"))
    variances = np.zeros_like(rows)
    for j in np.flatnonzero(np.isfinite(reach)):
        low, high = rows[:, j].min(), rows[:, j].max()
        number = max(int(np.ceil((high - low) * reach[j] / spacing)) + 1, 2)
        if len(np.unique(rows[:, j])) <= number:
            continue
        grid = np.linspace(low, high, number)
        below = np.clip(np.searchsorted(grid, rows[:, j], side="right") - 1, 0, number - 2)
        variances[:, j] = (rows[:, j] - grid[below]) * (grid[below + 1] - rows[:, j])
        below = np.clip(np.searchsorted(grid, points[:, j], side="right") - 1, 0, number - 2)
        upper = (points[:, j] - grid[below]) / (grid[below + 1] - grid[below])
        both = np.tile(points, (2, 1))
        both[:, j] = grid[np.concatenate([below, below + 1])]
        first, place = pooled_rows(replace(model, X=both)) or (np.arange(len(both)),) * 2
        points = both[first]
        if len(points) > _MOST_POINTS:
            return None
        order = np.tile(np.arange(len(upper)), 2)
        shares = shares @ sp.csr_array((np.concatenate([1.0 - upper, upper]), (order, place)))
    held = np.flatnonzero((lagrangian.up[0] + lagrangian.down[0]) @ shares > 0.0)
    moved = lagrangian.spread(replace(model, X=points[held]), shares[:, held])
    return Interpolated(
        moved.model,
        moved.of_loss,
        moved.up,
        moved.down,
        moved.share,
        moved.level,
        moved.penalty,
        rows=lagrangian,
        variances=np.maximum(variances, 0.0) * (1.0 + _ROUNDING),
    )
