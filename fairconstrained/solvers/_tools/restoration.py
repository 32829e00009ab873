"""Restoration: the smallest move that makes a nearly feasible point feasible."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.typing import Array

_MAX_VIOLATION = 1e10  # of a point that is restored; beyond it squares of gradients overflow
_MAX_LINEARIZED = 50  # constraints; each costs a backward pass
_SOFTNESS = 1e-3  # weight epsilon^(1/2) of the remaining violation t, relative to the Jacobian


def restore(at: Evaluation, tol: float, *, max_iter: int = 3) -> Evaluation:
    r"""Return a point nearby that violates the constraints by at most `tol`, or less than `at`.

    Repeats the move to the nearest point at which the linearised constraints hold,

    .. math::
        \min_{d, t} \tfrac12 \|d\|^2 + \tfrac{1}{2 \epsilon} t^2 \quad\text{s.t.}\quad
        g_j(w) + \langle \nabla g_j(w), d \rangle \le t - \tfrac{\mathrm{tol}}{2},

    where t is the violation that remains if the linearised constraints cannot all be met. To first
    order the objective rises by the multipliers times the violations. Stochastic methods end within
    their noise of the boundary; restoration moves their answer to the feasible side, at the cost of
    one data pass per move.

    Parameters
    ----------
    at : Evaluation
        The problem at a point.
    tol : float
        The largest violation allowed.
    max_iter : int, default=3
        The largest number of moves.

    References
    ----------
    C. Lawson, R. Hanson, "Solving Least Squares Problems" (1974), chapter 23: least distance
    programming by non-negative least squares.
    """
    for _ in range(max_iter):
        if not tol < at.violation < _MAX_VIOLATION:  # also ends for nan
            break
        move = _least_move(at, 0.5 * tol)
        found = _descend(at, move)
        if found is None:
            break
        at = found
    return at


def _descend(at: Evaluation, move: Array) -> Evaluation | None:
    """Return the first of the moves 1, 1/4, 1/16 times `move` that lowers the violation."""
    problem = at.problem
    for fraction in (1.0, 0.25, 0.0625):
        found = problem.at(problem.domain.project(at.w + fraction * move))
        if found.violation < at.violation:
            return found
    return None


def _least_move(at: Evaluation, margin: float) -> Array:
    """Return the smallest d with g + J d <= t - margin for a nearly minimal t >= 0."""
    values = at.constraints
    near = np.argsort(-values)[:_MAX_LINEARIZED]
    near = near[values[near] >= -at.violation]
    unit = np.eye(len(values))
    jacobian = np.array([at.gradient(unit[j], objective=0.0) for j in near])
    wanted = values[near] + margin
    soft = np.full(len(near), _SOFTNESS * np.linalg.norm(jacobian))
    rows = np.vstack([-jacobian.T, soft, wanted])
    target = np.zeros(len(rows))
    target[-1] = 1.0
    residual = rows @ nnls(rows, target)[0] - target
    return -residual[: jacobian.shape[1]] / min(residual[-1], -1e-300)
