"""Where the fits of a path start: extrapolated from the points before."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairconstrained.models import Model
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start

ORDER = 2  # of the polynomial in kappa that extrapolates to the next point


def fitting(warm: Start | Result, problem: Problem, model: Model) -> Start | Result:
    """Return the warm start; its coefficients alone if the terms' own variables are others."""
    if warm.w.size == problem.n_variables:
        return warm
    w = problem.start()
    w[: model.n_parameters] = warm.w[: model.n_parameters]
    return Start(w)


def predicted(solved: Sequence[tuple[float, Result]], kappa: float) -> Start | Result | None:
    """Return the start of the next point, extrapolated by a polynomial through the last ones.

    Only points with the same active constraints are on one smooth branch.
    """
    if not solved:
        return None
    last = solved[-1][1]
    active = last.multipliers > 0
    known: list[tuple[float, Result]] = []
    for at, result in reversed(solved):
        if not (result.converged and np.array_equal(result.multipliers > 0, active)):
            break
        known.append((at, result))
    if len(known) < 2:
        return last
    nodes = [float(at) for at, _ in known]
    weights = np.array(
        [
            math.prod((kappa - other) / (node - other) for other in nodes if other != node)
            for node in nodes
        ]
    )
    w = weights @ np.stack([one.w for _, one in known])
    multipliers = weights @ np.stack([one.multipliers for _, one in known])
    return Start(w, np.maximum(multipliers, 0.0), last.state)
