"""Gradient steps on the Lagrangian whose length follows the curvature that they meet."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.smoothness import kink_slack
from fairconstrained.solvers.base import Start
from fairconstrained.utils.typing import Array

_DOUBLINGS = 60


class Descent:
    r"""Steps :math:`w^+ = \mathrm{Proj}_W(w - \nabla_w \mathcal{L}(w, \lambda) / \eta)`.

    :math:`\eta` is a multiple of a curvature L, which doubles until the step meets

    .. math::
        \mathcal{L}(w^+, \lambda) \le \mathcal{L}(w, \lambda) + \langle \nabla_w \mathcal{L},
        w^+ - w \rangle + \tfrac{\eta}{2} \|w^+ - w\|^2 + \delta

    and falls slowly back to where it began. No bound on the multipliers or on the curvature of the
    constraints has to be known, and with :math:`\delta > 0` neither has smoothness: a kink then
    counts as the curvature that it amounts to at accuracy :math:`\delta`.

    Parameters
    ----------
    curvature : float
        The first and least L, > 0.
    slack : float
        The least accuracy delta, >= 0; where functions have kinks it begins at
        :func:`~fairconstrained.solvers._tools.smoothness.kink_slack`.
    adapt : bool, default=True
        Whether L is adapted; if not, it is the first one in all steps.

    References
    ----------
    Y. Nesterov, "Universal gradient methods for convex optimization problems", Mathematical
    Programming 152 (2015).
    """

    def __init__(self, curvature: float, slack: float, *, adapt: bool = True):
        self.least = self.curvature = curvature
        self.slack = slack
        self.adapt = adapt
        self.steps = 0

    def step(self, at: Evaluation, multipliers: Array, *, growth: float = 1.0) -> Evaluation:
        """Return the evaluation after a step; each trial is one evaluation, most often the only.

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
        if not self.adapt:
            return _moved(at, gradient, growth * self.curvature)
        value = _lagrangian(at, multipliers)
        slack = max(self.slack, kink_slack(at.problem, self.steps))
        self.steps += 1
        for _ in range(_DOUBLINGS):
            eta = growth * self.curvature
            new = _moved(at, gradient, eta)
            move = new.w - at.w
            bound = value + float(gradient @ move) + 0.5 * eta * float(move @ move)
            if _lagrangian(new, multipliers) <= bound + slack:
                break
            self.curvature *= 2.0
        self.curvature = max(0.98 * self.curvature, self.least)
        return new


def _moved(at: Evaluation, gradient: Array, eta: float) -> Evaluation:
    return at.problem.at(at.problem.domain.project(at.w - gradient / eta))


def _lagrangian(at: Evaluation, multipliers: Array) -> float:
    return at.objective + float(multipliers @ at.constraints)


class SuffixAverage:
    """The weighted average of the later half, or more, of what is added.

    The average starts anew at every power of two, so that it needs neither memory nor the number
    of points to come.

    Parameters
    ----------
    restarts : bool, default=True
        Whether the average starts anew at powers of two; if not, it is that of all points.

    References
    ----------
    A. Rakhlin, O. Shamir, K. Sridharan, "Making gradient descent optimal for strongly convex
    stochastic optimization", ICML 2012.
    """

    def __init__(self, *, restarts: bool = True) -> None:
        self.restarts = restarts
        self.mean: Array = np.zeros(0)
        self.count = 0
        self.total = 0.0

    def add(self, x: Array, weight: float = 1.0) -> None:
        """Add a point."""
        self.count += 1
        power_of_two = self.count & (self.count - 1) == 0
        if self.count == 1 or (self.restarts and power_of_two):
            self.total, self.mean = 0.0, np.zeros_like(x)
        self.total += weight
        self.mean = self.mean + (weight / self.total) * (x - self.mean)


def linearised(before: Evaluation, after: Evaluation) -> Array:
    """Return the constraints of a point in their linearisation at the point before."""
    jacobian = before.constraint_gradients(np.arange(before.problem.n_constraints))
    return np.asarray(before.constraints + jacobian @ (after.w - before.w))


def first_multipliers(problem: Problem, start: Start) -> Array:
    """Return the multipliers that a start knows, else zeros."""
    known = start.multipliers
    return np.zeros(problem.n_constraints) if known is None else known
