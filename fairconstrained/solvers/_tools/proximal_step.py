"""The proximal step of PLADA: constraints as they are, the objective linearised."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.typing import Array

_TOL = 1e-12  # relative, of a move; rounding errors are of the order of 1e-16
_MAX_ITER = 50  # where constraints have kinks moves need not tend to zero
_HALVINGS = 40


def proximal_step(at: Evaluation, multipliers: Array, eta: float) -> Array:
    r"""Return the minimiser of PLADA's equation (9).

    .. math::
        \arg\min_{v \in W} \langle \nabla f(w), v \rangle + \langle \lambda, g(v) \rangle
        + \tfrac{1}{2 \eta} \|v - w\|^2.

    Projected gradient steps of length eta, halved where one overshoots. With g linearised at w the
    first of them is the minimiser; with eta times the curvature of the constraints below one each
    of the others divides the error by the inverse of that product. The minimiser is unique if the
    sum is strongly convex, hence for small eta; else a stationary point is returned.

    Parameters
    ----------
    at : Evaluation
        The problem at w.
    multipliers : ndarray of shape (n_constraints,)
        lambda, of any sign.
    eta : float
        The step, > 0.
    """
    problem, w = at.problem, at.w
    slope = at.gradient()

    def value(here: Evaluation) -> float:
        move = here.w - w
        return float(slope @ move + multipliers @ here.constraints + move @ move / (2.0 * eta))

    here, length = at, eta
    for _ in range(_MAX_ITER):
        gradient = slope + here.gradient(multipliers, objective=0.0) + (here.w - w) / eta
        start = value(here)
        noise = 1e-15 * max(abs(start), 1.0)
        for _ in range(_HALVINGS):
            after = problem.at(problem.domain.project(here.w - length * gradient))
            move = after.w - here.w
            bound = start + float(gradient @ move) + float(move @ move) / (2.0 * length)
            if value(after) <= bound + noise:
                break
            length *= 0.5
        here = after
        if np.linalg.norm(move) <= _TOL * (1.0 + np.linalg.norm(w)):
            break
    return here.w
