"""The proximal step of PLADA: constraints as they are, the objective linearised."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.solvers._tools.lbfgs import Function, InverseHessian
from fairconstrained.solvers._tools.minimize import minimize_smooth
from fairconstrained.utils.typing import Array

_TOL = 1e-12  # relative, of a move; rounding errors are of the order of 1e-16
_MAX_ITER = 50
_MAX_ITER_KINKS = 10  # if kinks can be rounded: a minimiser between two kinks needs no more
_HALVINGS = 40
_REACH = 10.0  # times the unprojected linearised step
_WIDTHS = (0.3, 0.03, 3e-3, 3e-4, 3e-5)  # times the change of the scores
_ROUNDED_ITER = 20
_ROUNDED_TOL = 1e-5  # of the gradient of the rounded sum, relative to the one at w


def proximal_step(at: Evaluation, multipliers: Array, eta: float) -> Array:
    r"""Return a minimiser of PLADA's equation (9), or the linearised step where none is near.

    .. math::
        \arg\min_{v \in W} \langle \nabla f(w), v \rangle + \langle \lambda, g(v) \rangle
        + \tfrac{1}{2 \eta} \|v - w\|^2.

    Projected gradient steps of length eta, halved where one overshoots. With g linearised at w the
    first of them is the minimiser; with eta times the curvature of the constraints below one each
    of the others divides the error by the inverse of that product. The minimiser is unique if the
    sum is strongly convex, hence for small eta; else a stationary point is returned.

    Gradient steps do not settle at a minimiser that lies on a kink of the constraints. If models
    are linear and ten steps have not settled, quasi-Newton steps minimise the sum with rounded
    kinks, for five decreasing widths. The last width is 3e-5 times the change of the scores, and
    the relative error of the step is of this order. For networks with kinks the answer is the last
    of 50 gradient steps, which need not be accurate.

    If the curvature of :math:`\langle \lambda, g \rangle` is at least :math:`-0.9 / \eta`, the
    minimiser is unique, and its distance from w is at most :math:`10 \eta \|\nabla f(w) + \sum_j
    \lambda_j \nabla g_j(w)\|`. If the gradient steps go farther, the sum may be unbounded below,
    as it is for differences of losses of a network with ReLU units. The answer is then the step
    with the constraints linearised at w.

    Parameters
    ----------
    at : Evaluation
        The problem at w.
    multipliers : ndarray of shape (n_constraints,)
        lambda, of any sign.
    eta : float
        The step, > 0.
    """
    total, parts = _Sum(at, multipliers, eta), at.problem.constraints
    linear = all(part.model is None or part.model.linear for part in parts)
    kinks = not all(part.smooth for part in parts)
    rounds = linear and kinks and all(part.smoothable for part in parts)
    found = _descend(total, _MAX_ITER_KINKS if rounds else _MAX_ITER)
    if found is None:
        return total.linearised
    here, settled = found
    return _minimize_rounded(total, here) if rounds and not settled else here.w


class _Sum:
    """What is minimised."""

    def __init__(self, at: Evaluation, multipliers: Array, eta: float):
        self.at = at
        self.multipliers = multipliers
        self.eta = eta
        self.slope = at.gradient()
        first = self.gradient(at)
        self.linearised = at.problem.domain.project(at.w - eta * first)
        self.steepness = float(np.linalg.norm(first))

    def value(self, here: Evaluation) -> float:
        """Return the value, less that of the linearised objective at w."""
        move = here.w - self.at.w
        near = move @ move / (2.0 * self.eta)
        return float(self.slope @ move + self.multipliers @ here.constraints + near)

    def gradient(self, here: Evaluation) -> Array:
        """Return the gradient."""
        bent = here.gradient(self.multipliers, objective=0.0)
        return self.slope + bent + (here.w - self.at.w) / self.eta

    def reaches(self, w: Array) -> bool:
        """Return whether a point is within the distance where a minimiser is known to be."""
        far = float(np.linalg.norm(w - self.at.w))
        return far <= _REACH * self.eta * self.steepness

    def rounded(self, width: float) -> Function:
        """Return the sum with rounded kinks, as a function of v."""
        problem = self.at.problem.smoothed(width)

        def function(v: Array) -> tuple[float, Array]:
            here = problem.at(v)
            return self.value(here), self.gradient(here)

        return function


def _descend(total: _Sum, max_iter: int) -> tuple[Evaluation, bool] | None:
    """Return where gradient steps lead, and whether they have settled there.

    None if they lead too far away, or to values that are not finite.
    """
    problem, here, length = total.at.problem, total.at, total.eta
    start, smallest = total.value(here), _TOL * (1.0 + float(np.linalg.norm(here.w)))
    for _ in range(max_iter):
        gradient = total.gradient(here)
        noise = 1e-15 * max(abs(start), 1.0)
        for _ in range(_HALVINGS):
            after = problem.at(problem.domain.project(here.w - length * gradient))
            move, value = after.w - here.w, total.value(after)
            bound = start + float(gradient @ move) + float(move @ move) / (2.0 * length)
            if value <= bound + noise:
                break
            length *= 0.5
        if not (np.isfinite(value) and total.reaches(after.w)):
            return None
        here, start = after, value
        if np.linalg.norm(move) <= smallest:
            return here, True
    return here, False


def _minimize_rounded(total: _Sum, here: Evaluation) -> Array:
    """Return the minimiser of the sum with kinks that are rounded less and less."""
    problem, w, hessian = total.at.problem, here.w, InverseHessian()
    change = total.at.root_mean_square_change(w - total.at.w)
    if not change > 0.0:
        return w
    for width in _WIDTHS:
        w = minimize_smooth(
            total.rounded(width * change), w, problem.domain,
            tol=_ROUNDED_TOL * total.steepness, max_iter=_ROUNDED_ITER, inverse_hessian=hessian,
        )  # fmt: skip
    found = problem.at(w)
    better = total.reaches(w) and total.value(found) <= total.value(here)
    return found.w if better else here.w
