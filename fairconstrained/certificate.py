"""Certificates: how far a point is from optimal, whatever solver it came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, nnls

from fairconstrained.problem import Evaluation
from fairconstrained.scalar import Array


@dataclass(frozen=True)
class KKT:
    r"""The optimality conditions of Karush, Kuhn and Tucker at a point with its multipliers.

    Attributes
    ----------
    stationarity : float
        :math:`\operatorname{dist}(-\nabla f(w) - \sum_j \lambda_j \nabla g_j(w), N_W(w))`.
    complementarity : float
        :math:`\sum_j \lambda_j |g_j(w)|`, which bounds what the objective owes to constraints
        that are met too well or not well enough.
    violation : float
        :math:`\max\{0, \max_j g_j(w)\}`.
    """

    stationarity: float
    complementarity: float
    violation: float

    @classmethod
    def of(cls, at: Evaluation, multipliers: Array) -> KKT:
        """Return the conditions at an evaluation."""
        gradient = at.gradient(multipliers)
        residual = at.problem.domain.normal_cone_residual(at.w, gradient)
        complementarity = float(multipliers @ np.abs(at.constraints))
        return cls(float(np.linalg.norm(residual)), complementarity, at.violation)

    @property
    def residual(self) -> float:
        """The larger one of stationarity and complementarity."""
        return max(self.stationarity, self.complementarity)

    def holds(self, tol: float) -> bool:
        """Return whether the point is optimal to a tolerance.

        Violation and complementarity are held to a third of it: multipliers are of the order of
        one and losses of a third, so the objective is then right to the tolerance, relatively.
        """
        return self.stationarity <= tol and max(self.complementarity, self.violation) <= tol / 3.0


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
    return KKT.of(at, multipliers).residual


def estimate_multipliers(at: Evaluation, *, active: float = 1e-3) -> Array:
    r"""Return the multipliers that make the KKT residual at a point smallest.

    They minimise :math:`\operatorname{dist}(-\nabla f(w) - \sum_j \lambda_j \nabla g_j(w),
    N_W(w))` over the constraints with :math:`g_j \ge -` `active`; the others get zero. Away from
    the boundary of W this is non-negative least squares; on it, it is where the search starts.

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
    unit = np.eye(at.problem.n_constraints)
    columns = np.column_stack([at.gradient(unit[j], objective=0.0) for j in near])
    gradient = at.gradient()

    def half_squared_distance(some: Array) -> tuple[float, Array]:
        rest = at.problem.domain.normal_cone_residual(at.w, gradient + columns @ some)
        return 0.5 * float(rest @ rest), columns.T @ rest

    multipliers[near] = minimize(
        half_squared_distance,
        nnls(columns, -gradient)[0],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * near.size,
        options={"gtol": 1e-10, "ftol": 1e-15, "maxiter": 500},
    ).x
    return multipliers


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
    level = at.violation
    near = np.flatnonzero(at.constraints >= 0.9 * level)
    unit = np.eye(at.problem.n_constraints)
    columns = np.column_stack([at.gradient(unit[j], objective=0.0) for j in near])
    heavy = 1e3  # a row that holds the sum of the multipliers at one
    rows = np.vstack([columns, np.full(near.size, heavy)])
    weights = nnls(rows, np.append(np.zeros(len(at.w)), heavy))[0]
    return float(np.linalg.norm(at.problem.domain.normal_cone_residual(at.w, columns @ weights)))
