"""Restoration: the smallest move that makes a nearly feasible point feasible."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.least_squares import nonnegative_least_squares
from fairconstrained.utils.typing import Array

_FAR = 1e10  # squares of gradients would overflow
_MOST = 50  # constraints that are linearised: each costs a backward pass
_SOFT = 1e-3  # the largest violation left, relative to what a move can change


def restore(
    at: Evaluation, tol: float, *, max_iter: int = 3, last_pass: float = np.inf
) -> Evaluation:
    r"""Return a point nearby that violates the constraints by at most `tol`, or less than `at`.

    Repeats the move to the nearest point at which the linearised constraints hold,

    .. math::
        \min_{d, t} \tfrac12 \|d\|^2 + \tfrac{1}{2 \epsilon} t^2 \quad\text{s.t.}\quad
        g_j(w) + \langle \nabla g_j(w), d \rangle \le t - \tfrac{\mathrm{tol}}{2},

    t being what no move can mend: at a point from which the constraints cannot all be met it
    evens out their violations. The objective rises by multiplier times violation to first order,
    which is little where little is violated. A stochastic method stays within its noise of the
    boundary; this takes it across, for one data pass per move.

    Parameters
    ----------
    at : Evaluation
        The problem at a point.
    tol : float
        The violation that is good enough.
    max_iter : int, default=3
        The largest number of moves.
    last_pass : float, default=inf
        The value of :attr:`Problem.passes` from which on no further move is made.

    References
    ----------
    C. Lawson, R. Hanson, "Solving Least Squares Problems" (1974), chapter 23: least distance
    programming by non-negative least squares.
    """
    for _ in range(max_iter):
        if not tol < at.violation < _FAR:  # points with nan and diverging runs are not restored
            break
        if at.problem.passes >= last_pass:
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
    """Return the least d with g + J d <= t - margin, t nearly as small as can be."""
    values = at.constraints
    near = np.argsort(-values)[:_MOST]
    near = near[values[near] >= -at.violation]
    jacobian = at.constraint_gradients(near)
    wanted = values[near] + margin
    soft = np.full(len(near), _SOFT * np.linalg.norm(jacobian))
    rows = np.vstack([-jacobian.T, soft, wanted])
    target = np.zeros(len(rows))
    target[-1] = 1.0
    residual = rows @ nonnegative_least_squares(rows, target) - target
    return -residual[: jacobian.shape[1]] / min(residual[-1], -1e-300)
