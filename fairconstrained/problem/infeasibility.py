"""Evidence that constraints cannot be met: points that are stationary for their violation."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import nearest_to_cone
from fairconstrained.problem.multipliers import Multipliers
from fairconstrained.utils.typing import Array

_FLAT = 1e-2  # the gradient of a rate is of the order of 0.1 per feature scale
_REACH = 10.0  # feature scales within which a mean of convex constraints shows that none is met


def is_stuck(at: Evaluation, tol: float, multipliers: Array | Multipliers | None = None) -> bool:
    """Return whether a point violates the constraints and is stationary for the violation.

    The gradient must be small, and so small that a step of one feature scale would not
    suffice. The violation is the largest one or, with the multipliers of a method, their weighted
    mean: a method that lowers the sum of squares ends where the largest one could still fall.

    Parameters
    ----------
    at : Evaluation
        The problem at the point.
    tol : float
        The violation that is allowed.
    multipliers : ndarray of shape (n_constraints,) or None, default=None
        The method's multipliers at the point.
    """
    if at.violation <= tol:
        return False
    if multipliers is not None:
        violation, slope = combined_violation(at, multipliers)
        if violation > tol and _is_flat(slope, violation):
            return True
    return _is_flat(violation_stationarity(at), at.violation)


def _is_flat(slope: float, violation: float) -> bool:
    """Return whether a slope is small, also relative to the violation that it would lower."""
    return slope <= min(_FLAT, violation)


def violation_stationarity(at: Evaluation) -> float:
    r"""Return how far the largest violation is from a stationary value: 0 where it cannot fall.

    .. math::
        \min_{\lambda \ge 0,\ \sum_j \lambda_j = 1}
        \operatorname{dist}\Big(-\sum_j \lambda_j \nabla g_j(w), N_W(w)\Big),

    over the constraints whose values are within a tenth of the largest one. At a point that
    violates the constraints a small value says that the problem may have no solution.

    Parameters
    ----------
    at : Evaluation
        The problem at the point.

    References
    ----------
    IPC, Remark 1.
    """
    return combined_violation(at, stationary_weights(at))[1]


def stationary_weights(at: Evaluation) -> Multipliers:
    """Return the weights of the constraints for which `violation_stationarity` is the least.

    They are zero where no constraint is violated.

    Parameters
    ----------
    at : Evaluation
        The problem at the point.
    """
    near = np.sort(at.largest(0.9 * at.violation))
    weights = _least_slope(at, at.constraint_gradients(near).T) if near.size else np.zeros(0)
    return Multipliers.at(near, weights, at.problem.n_constraints)


def combined_violation(
    at: Evaluation, multipliers: Array | Multipliers, rounded: Evaluation | None = None
) -> tuple[float, float]:
    r"""Return a weighted mean of constraint values, and how far it is from a stationary value.

    With weights :math:`\lambda_j` that are proportional to multipliers, these are
    :math:`v = \sum_j \lambda_j g_j(w)` and :math:`h = \operatorname{dist}(-\sum_j \lambda_j \nabla
    g_j(w), N_W(w))`. If the constraints are convex, no point of W within v / h of w meets them all.

    Parameters
    ----------
    at : Evaluation
        The problem at the point.
    multipliers : ndarray of shape (n_constraints,)
        Numbers >= 0. If all are zero, v is 0 and h is infinite.
    rounded : Evaluation or None, default=None
        The problem with its kinks rounded, at the same point: its gradients are
        epsilon-subgradients, and epsilon is subtracted from the mean.
    """
    active = Multipliers.of(multipliers)
    if not 0.0 < active.total < np.inf:
        return 0.0, np.inf
    weights = active.scaled(1.0 / active.total)
    near, violation = rounded or at, weights.values @ at.values(weights.which)
    if rounded is not None:
        violation -= rounded.subgradient_error(weights)
    return float(violation), _distance_from_cone(near, near.gradient(weights, objective=0.0))


def shows_infeasible(
    at: Evaluation,
    multipliers: Array | Multipliers,
    tol: float,
    *,
    rounded: Evaluation | None = None,
) -> bool:
    """Return whether a mean of convex constraints shows that they cannot all be met.

    No point within ten feature scales then violates them all by `tol` or less.

    Parameters
    ----------
    at : Evaluation
        A convex problem at a point.
    multipliers, rounded
        See :func:`combined_violation`.
    tol : float
        The violation that is allowed.
    """
    violation, slope = combined_violation(at, multipliers, rounded)
    return violation > tol and slope <= min(_FLAT, violation / _REACH)


def _distance_from_cone(at: Evaluation, slope: Array) -> float:
    """Return the distance of minus a gradient from the normal cone, small near it as well."""
    domain = at.problem.domain
    residual = domain.normal_cone_residual(at.w, slope)
    reach = at.w - domain.project(at.w - slope)  # small near the boundary as well as on it
    return float(min(np.linalg.norm(residual), np.linalg.norm(reach)))


def _least_slope(at: Evaluation, columns: Array) -> Array:
    r"""Return weights of sum one for which a sum of gradients is nearest to the normal cone.

    The distance h from the cone is homogeneous in the weights, so that the minimiser of
    :math:`h(x)^2 + c^2 (1 - \sum_j x_j)^2` over x >= 0 is a multiple of the weights for any c > 0.
    """
    unit = max(float(np.linalg.norm(columns, axis=0).max(initial=0.0)), np.finfo(float).tiny)
    weights = nearest_to_cone(at, columns / unit, np.zeros(len(columns)), total=1.0)
    return weights / max(float(weights.sum()), np.finfo(float).tiny)
