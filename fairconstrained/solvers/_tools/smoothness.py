"""Lipschitz constants that steps are taken from: estimated at the start, corrected on the way."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.scales import Scales
from fairconstrained.utils.typing import Array

_ROUNDING = 1e-14
_KEEPS = 0.95  # of an observed curvature per step: at kinks the next step may see another one


def kink_slack(problem: Problem, k: int) -> float:
    r"""Return what step k may err by where functions have kinks: :math:`0.1 / \sqrt{1 + k/10}`.

    A kink bends without limit, and steps that follow all of it come to nothing. At accuracy delta
    it counts only as the curvature that it amounts to (Nesterov 2015); what is allowed falls like
    the lengths of subgradient steps, from a tenth of a loss. It is 0 for smooth problems.

    Parameters
    ----------
    problem : Problem
        The problem.
    k : int
        The steps made.
    """
    return 0.0 if problem.smooth else float(0.1 / np.sqrt(1.0 + k / 10.0))


class Lipschitz:
    r"""How strongly the functions of a problem bend and how steep the constraints are.

    Both start as the measurements of :class:`Scales`. Every step
    of a method then gives a lower bound without further evaluations, see :meth:`observe`.

    Parameters
    ----------
    at : Evaluation
        The problem, or a batch of it, at the point where a run starts.

    Attributes
    ----------
    curvature : float
        L, a Lipschitz constant of the gradient of the Lagrangian.
    slope : float
        M, a Lipschitz constant of the constraints.
    first : float
        The curvature of the objective, as measured at the start.

    References
    ----------
    PLADA, assumptions 2 and 3 (L_F and M_G).
    """

    def __init__(self, at: Evaluation):
        # a generator of its own: the steps of deterministic solvers do not depend on random_state
        scales = Scales.near(at, np.random.RandomState(0))
        self.first = self.curvature = scales.curvature or 1.0
        self.slope = scales.slope or 1.0
        self.steps = 0

    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        r"""Raise the constants to what a step shows.

        With :math:`d` the step and :math:`\ell = f + \langle \lambda, g \rangle`,

        .. math::
            L \ge 2\,\frac{\ell(w + d) - \ell(w) - \langle \nabla \ell(w), d \rangle - \delta}
            {\|d\|^2}, \qquad M \ge \frac{\|g(w + d) - g(w)\|}{\|d\|},

        with :math:`\delta` the slack that kinks are allowed (:func:`kink_slack`).

        Parameters
        ----------
        before, after : Evaluation
            The same functions at w and at w + d.
        gradient : ndarray of shape (n_variables,)
            That of the Lagrangian at w.
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
        slack = _ROUNDING * size + kink_slack(after.problem, self.steps)
        excess = gain - float(gradient @ step) - slack
        self.steps += 1
        self.curvature = max(self.first, _KEEPS * self.curvature, 2.0 * excess / squared)
        self.slope = max(self.slope, float(np.linalg.norm(rise)) / np.sqrt(squared))
