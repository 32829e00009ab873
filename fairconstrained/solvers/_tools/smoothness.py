"""Estimates of Lipschitz constants, for step sizes."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.scales import Scales
from fairconstrained.utils.typing import Array

_ROUNDING = 1e-14  # relative error of a function value
_DECAY = 0.95  # of an observed curvature per step; a curvature at a kink is soon irrelevant


def kink_tolerance(problem: Problem, k: int) -> float:
    r"""Return the error allowed in the quadratic bound of step k on non-smooth problems.

    It is :math:`0.1 / \sqrt{1 + k/10}`, and 0 for smooth problems. The curvature of a kink is
    infinite, but finite at accuracy delta (Nesterov 2015). The allowed error decreases like the
    lengths of subgradient steps.

    Parameters
    ----------
    problem : Problem
        The problem.
    k : int
        The number of steps made.
    """
    return 0.0 if problem.smooth else float(0.1 / np.sqrt(1.0 + k / 10.0))


class Lipschitz:
    r"""Lipschitz constants of the Lagrangian's gradient and of the constraints.

    The first values come from :class:`Scales`. Every step of a method gives lower bounds without
    further evaluations, see :meth:`observe`.

    Parameters
    ----------
    at : Evaluation
        The problem, or a batch of it, at the first point.

    Attributes
    ----------
    curvature : float
        L, a Lipschitz constant of the gradient of the Lagrangian.
    slope : float
        M, a Lipschitz constant of the constraints.
    first : float
        The curvature of the objective at the first point.

    References
    ----------
    PLADA, assumptions 2 and 3 (L_F and M_G).
    """

    def __init__(self, at: Evaluation):
        # a fixed seed: deterministic solvers must not depend on random_state
        scales = Scales.near(at, np.random.RandomState(0))
        self.first = self.curvature = scales.curvature or 1.0
        self.slope = scales.slope or 1.0
        self.steps = 0

    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        r"""Raise the constants to the lower bounds that a step gives.

        With :math:`d` the step and :math:`\ell = f + \langle \lambda, g \rangle`,

        .. math::
            L \ge 2\,\frac{\ell(w + d) - \ell(w) - \langle \nabla \ell(w), d \rangle - \delta}
            {\|d\|^2}, \qquad M \ge \frac{\|g(w + d) - g(w)\|}{\|d\|},

        with :math:`\delta` the error allowed at kinks (:func:`kink_tolerance`).

        Parameters
        ----------
        before, after : Evaluation
            The same functions at w and w + d.
        gradient : ndarray of shape (n_variables,)
            The gradient of the Lagrangian at w.
        multipliers : ndarray of shape (n_constraints,)
            lambda.
        """
        step = after.w - before.w
        squared = float(step @ step)
        if squared == 0.0:
            return
        rise = after.constraints - before.constraints
        gain = after.objective - before.objective + float(multipliers @ rise)
        size = abs(before.objective) + float(np.abs(multipliers) @ np.abs(before.constraints))
        error = _ROUNDING * size + kink_tolerance(after.problem, self.steps)
        bend = gain - float(gradient @ step) - error
        self.steps += 1
        self.curvature = max(self.first, _DECAY * self.curvature, 2.0 * bend / squared)
        self.slope = max(self.slope, float(np.linalg.norm(rise)) / np.sqrt(squared))
