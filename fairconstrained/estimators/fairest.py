"""The goal of least unfairness as a problem."""

from __future__ import annotations

import numpy as np

from fairconstrained.estimators.fit import Fit
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start


def fairest_problem(fit: Fit, max_loss_increase: float) -> tuple[Problem, Start]:
    r"""Return the problem of the least unfairness for a loss that is nearly the best, and a start.

    .. math::
        \min_{w, t} t \quad \text{s.t.} \quad g_j(w) \le t, \quad
        f(w) \le (1 + \delta) \min f.

    The start is the unconstrained model, which satisfies the bound on the loss.

    Parameters
    ----------
    fit : Fit
        f and g.
    max_loss_increase : float
        delta > 0; with 0 only the unconstrained model would be feasible.

    References
    ----------
    3S-Econ, Problem 1.
    """
    least, w = fit.unconstrained.result.objective, fit.start().w
    level = fit.problem.uncounted().at(w).constraints.max()
    epigraph = fit.problem.epigraph((1.0 + max_loss_increase) * least)
    return epigraph, Start(np.append(w, level))
