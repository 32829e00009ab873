"""Certificates: how far a point is from optimal, whatever solver it came from."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from fairconstrained.problem import Evaluation
from fairconstrained.scalar import Array


def kkt_residual(at: Evaluation, multipliers: Array) -> float:
    r"""Return the KKT residual of a point with its multipliers.

    .. math::
        \max\Big\{\operatorname{dist}\big(-\nabla f(w) - \sum_j \lambda_j \nabla g_j(w),
        N_W(w)\big),\ \sum_j \lambda_j |g_j(w)| \Big\},

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
    METHODS.md section 5, "Measures of a solution".
    """
    gradient = at.gradient(multipliers)
    residual = at.problem.domain.normal_cone_residual(at.w, gradient)
    complementarity = float(multipliers @ np.abs(at.constraints))
    return max(float(np.linalg.norm(residual)), complementarity)


def estimate_multipliers(at: Evaluation, *, active: float = 1e-3) -> Array:
    r"""Return the multipliers that make the KKT residual at a point smallest.

    Non-negative least squares of :math:`\nabla f + \sum_j \lambda_j \nabla g_j` over the
    constraints with :math:`g_j \ge -` `active`; the others get zero.

    Parameters
    ----------
    at : Evaluation
        The problem at the point.
    active : float, default=1e-3
        How near its bound a constraint must be to get a multiplier.
    """
    multipliers = np.zeros(at.problem.n_constraints)
    near = np.flatnonzero(at.constraints >= -active)
    if near.size == 0:
        return multipliers
    residual = at.problem.domain.normal_cone_residual
    unit = np.eye(at.problem.n_constraints)
    columns = [at.gradient(unit[j], objective=0.0) for j in near]
    target = -residual(at.w, at.gradient())
    multipliers[near] = nnls(np.column_stack(columns), target)[0]
    return multipliers
