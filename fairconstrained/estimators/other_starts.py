"""Constraints that several kinds of local solutions meet: whether another kind is better."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.auxiliary import unit_shift
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Start

_FEASIBLE = 1e-3  # the violation up to which a point counts as feasible
_WIDTH = 0.1  # of the kinks that are rounded
_ITERATIONS = 20  # of L-BFGS for every estimate
_MIN_IMPROVEMENT = 1e-3  # of the objective; smaller ones are not worth a second run


def better_start(problem: Problem, at: Evaluation) -> tuple[Start | None, float]:
    """Return a start near a better local solution of another kind, and the data passes it took.

    Rates that are compared within a range only may be made equal there, or moved beyond one of its
    ends. From every constant score that a constraint proposes (`Term.other_starts`), one
    short round of the augmented Lagrangian method is made. The Lagrangian after a round estimates
    the objective at the local solution to a few thousandths.

    Parameters
    ----------
    problem : Problem
        With a linear model that has an intercept; for others None is returned.
    at : Evaluation
        The problem at a solution.
    """
    levels: set[float] = set()
    for part in problem.constraints:
        if part.term is not None:
            levels |= set(part.term.other_starts(at.statistics_of(part)))
    comparable = len(problem.models) == 1 and problem.smoothable and problem.models[0].linear
    direction = unit_shift(problem) if levels and comparable else None
    if direction is None:
        return None, 0.0
    smooth = (problem if problem.smooth else problem.smoothed(_WIDTH)).uncounted()
    feasible = at.violation <= _FEASIBLE
    wanted = at.objective - _MIN_IMPROVEMENT * objective_scale(at) if feasible else np.inf
    best: Start | None = None
    for level in sorted(levels):
        solver = AugmentedLagrangian(max_iter=1, max_inner=_ITERATIONS, polish=False)
        result, there = solver.solve(smooth, warm=Start(smooth.start() + level * direction))
        value = there.objective + float(result.multipliers @ there.constraints)
        if value < wanted:
            wanted, best = value, Start(result.w, result.multipliers)
    return best, smooth.passes
