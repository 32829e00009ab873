"""Gradient steps on the Lagrangian with backtracking."""

from __future__ import annotations

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.solvers._tools.smoothness import kink_tolerance
from fairconstrained.utils.typing import Array

_MAX_DOUBLINGS = 60  # of the curvature in one step


class Descent:
    r"""Steps :math:`w^+ = \mathrm{Proj}_W(w - \nabla_w \mathcal{L}(w, \lambda) / \eta)`.

    :math:`\eta` is a multiple of a curvature L, which doubles until the step meets

    .. math::
        \mathcal{L}(w^+, \lambda) \le \mathcal{L}(w, \lambda) + \langle \nabla_w \mathcal{L},
        w^+ - w \rangle + \tfrac{\eta}{2} \|w^+ - w\|^2 + \delta

    and decreases slowly to its first value afterwards. The method needs no bound on the multipliers
    or on the curvature of the constraints. With :math:`\delta > 0` it does not need smoothness
    either: at accuracy :math:`\delta` a non-smooth function has a finite curvature.

    Parameters
    ----------
    curvature : float
        The first and smallest L, > 0.
    tolerance : float
        The smallest delta, >= 0; for non-smooth functions delta is at least
        :func:`~fairconstrained.solvers._tools.smoothness.kink_tolerance`.

    References
    ----------
    Y. Nesterov, "Universal gradient methods for convex optimization problems", Mathematical
    Programming 152 (2015).
    """

    def __init__(self, curvature: float, tolerance: float):
        self.smallest = self.curvature = curvature
        self.tolerance = tolerance
        self.steps = 0

    def step(self, at: Evaluation, multipliers: Array, *, growth: float = 1.0) -> Evaluation:
        """Return the evaluation after a step; each trial is one evaluation, usually the only one.

        Parameters
        ----------
        at : Evaluation
            Where the step begins.
        multipliers : ndarray of shape (n_constraints,)
            lambda.
        growth : float, default=1.0
            eta / L.
        """
        gradient = at.gradient(multipliers)
        value = _lagrangian(at, multipliers)
        tolerance = max(self.tolerance, kink_tolerance(at.problem, self.steps))
        self.steps += 1
        for _ in range(_MAX_DOUBLINGS):
            eta = growth * self.curvature
            new = at.problem.at(at.problem.domain.project(at.w - gradient / eta))
            move = new.w - at.w
            bound = value + float(gradient @ move) + 0.5 * eta * float(move @ move)
            if _lagrangian(new, multipliers) <= bound + tolerance:
                break
            self.curvature *= 2.0
        self.curvature = max(0.98 * self.curvature, self.smallest)
        return new


def _lagrangian(at: Evaluation, multipliers: Array) -> float:
    return at.objective + float(multipliers @ at.constraints)
