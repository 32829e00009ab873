"""Certificates: how far a point is from optimal, and evidence that constraints cannot be met."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, dropwhile, islice

import numpy as np
from scipy.optimize import least_squares

from fairconstrained.problem.composite import NO_MODEL, Dual, Multipliers
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.arrays import Array, nonnegative_least_squares

_SHARE = 1.0 / 6.0  # of the tolerance: what rounded kinks may add to complementarity
# Of rounding: from a part of the scores' unit to where arcs are lost in rounding errors.
_WIDTHS = 0.05 * 0.3 ** np.arange(12)
_STEP = 1e-6  # of the derivatives of residuals
_TRIED = 4  # of these, once they are narrow enough: solvers meet kinks at one scale or another
_SMALL_LOSS, _LEAST_SCALE = 3.0, 1e-3  # losses below a third make tolerances relative


@dataclass(frozen=True)
class KKT:
    r"""The optimality conditions of Karush, Kuhn and Tucker at a point with its multipliers.

    Attributes
    ----------
    stationarity : float
        :math:`\operatorname{dist}(-\nabla f(w) - \sum_j \lambda_j \nabla g_j(w), N_W(w))`.
    complementarity : float
        :math:`\sum_j \lambda_j \max\{-g_j(w), 0\} + \sum_j \lambda_j \max\{g_j(w), 0\} /
        \max\{1, \sum_j \lambda_j\}`, which bounds what the objective owes to constraints that are
        met too well or not well enough. The multipliers of a problem without an interior may be
        unbounded: what is violated counts at most as itself.
    violation, scale : float
        :math:`\max\{0, \max_j g_j(w)\}`, and the factor of the tolerance on the first two, see
        :func:`objective_scale`.
    """

    stationarity: float
    complementarity: float
    violation: float
    scale: float = 1.0

    @classmethod
    def of(cls, at: Evaluation, multipliers: Dual, *, rounded: Evaluation | None = None) -> "KKT":
        r"""Return the conditions at an evaluation, with multipliers >= 0, (n_constraints,).

        `rounded` is the problem with its kinks rounded, at the same point. Its gradient is an
        :math:`\epsilon`-subgradient of the problem's Lagrangian and is taken in place of the one
        that happens to be chosen on the kinks; epsilon counts as complementarity, which it is once
        every max{} is written as constraints on a variable of its own.
        """
        active = Multipliers.of(multipliers)
        if rounded is None and at.certified is not None and at.certified[0] is active:
            return at.certified[1]
        gradient = (rounded or at).gradient(active)
        residual = at.problem.domain.normal_cone_residual(at.w, gradient)
        values = at.values(active.which)
        unused = float(active.values @ np.maximum(-values, 0.0))
        violated = float(active.values @ np.maximum(values, 0.0))
        complementarity = unused + violated / max(1.0, float(active.values.sum()))
        complementarity += 0.0 if rounded is None else rounded.subgradient_error(active)
        stationarity = float(np.linalg.norm(residual))
        conditions = cls(stationarity, complementarity, at.violation, objective_scale(at))
        if rounded is None:
            at.certified = active, conditions
        return conditions

    @property
    def residual(self) -> float:
        """The larger one of stationarity and complementarity."""
        return max(self.stationarity, self.complementarity)

    @property
    def error(self) -> float:
        """What `holds` compares with the tolerance; infinite if it is not finite."""
        optimality = max(self.stationarity, 3.0 * self.complementarity) / self.scale
        error = max(optimality, 3.0 * self.violation)
        return error if np.isfinite(error) else np.inf

    def holds(self, tol: float) -> bool:
        """Return whether the point is optimal to a tolerance.

        Violation and complementarity are held to a third of it: multipliers are of the order of
        one and losses of a third, so the objective is then right to the tolerance, relatively.
        Where losses are small, stationarity and complementarity are held to as much less.
        """
        return self.error <= tol


def objective_scale(at: Evaluation) -> float:
    r"""Return the factor :math:`\min\{1, \max\{3 |f(w)|, 10^{-3}\}\}` of a tolerance.

    It makes tolerances relative where a loss is near zero, on separable data for instance. It is 1
    for objectives that are not losses: the level of an epigraph problem may be zero.
    """
    if at.problem.objective.model is NO_MODEL:
        return 1.0
    # nan is not larger than a number and no number than nan: as the first argument it is returned
    return min(max(_SMALL_LOSS * abs(at.objective), _LEAST_SCALE), 1.0)


def certify(
    at: Evaluation, multipliers: Dual | None, tol: float, *, rounded: Evaluation | None = None
) -> tuple[Multipliers, KKT]:
    """Return multipliers, by default estimated, and the optimality conditions at a point.

    On a kink every subgradient is as good as any other, and the one that an evaluation happens to
    give says little. Where the problem can be smoothed, that of the problem with its kinks rounded
    is looked at as well, rounded as widely as a part of the tolerance allows; or `rounded`, where a
    solver had one. The better conditions are returned.
    """
    # Where a run has diverged, constraints that sort scores cannot be evaluated.
    violation = at.violation if np.isfinite(at.objective) else np.nan
    if not np.isfinite(violation):
        return Multipliers.of(None, at.problem.n_constraints), KKT(np.nan, np.nan, violation)
    active = Multipliers.of(estimate_multipliers(at) if multipliers is None else multipliers)
    best = active, KKT.of(at, active)
    if best[1].holds(tol) or at.problem.smooth or not at.problem.smoothable:
        return best
    allowed = _SHARE * tol * best[1].scale
    for near in _roundings(at, multipliers, allowed) if rounded is None else [rounded]:
        active = Multipliers.of(estimate_multipliers(near)) if multipliers is None else active
        other = active, KKT.of(at, active, rounded=near)
        best = min(best, other, key=lambda certificate: certificate[1].error)
        if best[1].holds(tol):
            break
    return best


def _roundings(at: Evaluation, multipliers: Dual | None, allowed: float) -> Iterator[Evaluation]:
    """Return rounded problems whose gradients are `allowed`-subgradients."""
    problem = at.problem.uncounted()
    weights = np.ones(problem.n_constraints) if multipliers is None else multipliers
    rounded = (problem.smoothed(width).at(at.w, like=at) for width in _WIDTHS)
    narrow = dropwhile(lambda near: near.subgradient_error(weights) > allowed, rounded)
    return islice(narrow, _TRIED)


def kkt_residual(at: Evaluation, multipliers: Array) -> float:
    r"""Return the KKT residual of a point with its multipliers.

    .. math::
        \max\Big\{\operatorname{dist}\big(-\nabla f(w) - \sum_j \lambda_j \nabla g_j(w),
        N_W(w)\big),\ \sum_j \lambda_j \max\{-g_j(w), 0\} + \frac{\sum_j \lambda_j
        \max\{g_j(w), 0\}}{\max\{1, \sum_j \lambda_j\}} \Big\},

    the Euclidean distance from stationarity and the failure of complementarity; the violation is
    reported on its own.

    Parameters
    ----------
    at : Evaluation
        The problem at the point.
    multipliers : ndarray of shape (n_constraints,)
        lambda >= 0.

    References
    ----------
    IPC, section 3, equations (2) and (3).
    """
    return KKT.of(at, multipliers).residual


def estimate_multipliers(at: Evaluation, *, active: float = 1e-3) -> Array:
    r"""Return the multipliers that make the KKT residual at a point smallest.

    They minimise :math:`\operatorname{dist}(-\nabla f(w) - \sum_j \lambda_j \nabla g_j(w),
    N_W(w))` over the constraints with :math:`g_j \ge -` `active`, at most 300 of them, those of
    the largest values; the others get zero.
    """
    return _nearest_to_cone(at, -active, at.gradient(), whole=0.0).dense()


def _nearest_to_cone(at: Evaluation, least: float, gradient: Array, whole: float) -> Multipliers:
    r"""Return the :math:`x \ge 0` for which :math:`-g - C x` is nearest to the normal cone.

    C has the gradients of the largest constraints, of at least `least`. Away from the boundary of W
    this is non-negative least squares; on it, that is where the search starts. With `whole` the sum
    of x is to be near one: what it lacks is added to the distance, in units of the longest column.
    """
    near = np.sort(at.largest(least))
    columns = at.constraint_gradients(near).T
    unit = float(np.linalg.norm(columns, axis=0).max(initial=0.0)) or 1.0
    columns, gradient = columns / unit, gradient / unit
    table, target = np.vstack([columns, np.full(len(near), whole)]), np.append(-gradient, whole)
    weights = nonnegative_least_squares(table, target)

    def residual(slopes: Array) -> Array:
        return at.problem.domain.normal_cone_residual(np.broadcast_to(at.w, slopes.shape), slopes)

    def rest(x: Array) -> Array:
        return np.append(residual(gradient + columns @ x), whole * (x.sum() - 1.0))

    def derivatives(x: Array) -> Array:
        # A residual is linear but at kinks, so that a difference is its derivative.
        slope = gradient + columns @ x
        step = _STEP * max(1.0, float(np.abs(slope).max(initial=0.0)))
        moved = (residual(slope + step * columns.T) - residual(slope)) / step
        return np.vstack([moved.T, np.full(len(near), whole)])

    if not np.array_equal(rest(weights)[:-1], gradient + columns @ weights):
        weights = least_squares(rest, weights, derivatives, (0.0, np.inf), xtol=1e-12).x
    return Multipliers.at(near, weights, at.problem.n_constraints)


_FLAT = 1e-2  # the gradient of a rate is of the order of 0.1 per feature scale
FAR = 10.0  # feature scales within which a mean of convex constraints shows that none is met


def is_stuck(
    at: Evaluation,
    tol: float,
    multipliers: Dual,
    rounded: Evaluation | None = None,
    reach: float = 1.0,
) -> bool:
    """Return whether a point violates the constraints and is stationary for the violation.

    The gradient must be small, and so small that a step of `reach` feature scales would not
    suffice: if the constraints are convex, no point within that distance meets them all. The
    violation is the largest one or, with the multipliers of a method, their weighted mean: a
    method that lowers the sum of squares ends where the largest one could still fall. For
    `rounded` see :func:`combined_violation`.
    """
    if at.violation <= tol:
        return False
    for each in chain([multipliers], map(stationary_weights, [rounded or at])):  # where needed
        violation, slope = combined_violation(at, each, rounded)
        if violation > tol and slope <= min(_FLAT, violation / reach):
            return True
    return False


def stationary_weights(at: Evaluation) -> Multipliers:
    r"""Return the weights for which the violation is the most nearly stationary.

    They minimise :math:`\operatorname{dist}(-\sum_j \lambda_j \nabla g_j(w), N_W(w))`, the sum of
    lambda being one, over the constraints within a tenth of the largest value, and are zero where
    no constraint is violated (IPC, Remark 1).
    """
    # The distance h from the cone is homogeneous in the weights, so that the minimiser of
    # h(x)^2 + c^2 (1 - sum(x))^2 over x >= 0 is a multiple of the weights for any c > 0.
    weights = _nearest_to_cone(at, 0.9 * at.violation, np.zeros_like(at.w), whole=1.0)
    return replace(weights, values=weights.values / max(weights.total, np.finfo(float).tiny))


def combined_violation(
    at: Evaluation, multipliers: Dual, rounded: Evaluation | None = None
) -> tuple[float, float]:
    r"""Return a weighted mean of constraint values, and how far it is from a stationary value.

    With weights :math:`\lambda_j` that are proportional to multipliers, these are
    :math:`v = \sum_j \lambda_j g_j(w)` and :math:`h = \operatorname{dist}(-\sum_j \lambda_j \nabla
    g_j(w), N_W(w))`. If the constraints are convex, no point of W within v / h of w meets them all.
    If all weights are zero, v is 0 and h is infinite. With the problem `rounded` at the same point,
    whose gradients are epsilon-subgradients, epsilon is subtracted from the mean. Near the boundary
    of W, h is the length of a projected gradient step if that is less, which proves nothing.
    """
    active = Multipliers.of(multipliers)
    if not 0.0 < active.total < np.inf:
        return 0.0, np.inf
    weights = replace(active, values=active.values / active.total)
    near, violation = rounded or at, weights.values @ at.values(weights.which)
    if rounded is not None:
        violation -= rounded.subgradient_error(weights)
    slope, domain = near.gradient(weights, objective=0.0), at.problem.domain
    residual = domain.normal_cone_residual(at.w, slope)
    reach = at.w - domain.project(at.w - slope)  # small near the boundary as well as on it
    return float(violation), float(min(np.linalg.norm(residual), np.linalg.norm(reach)))
