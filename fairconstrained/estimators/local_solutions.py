"""Local solutions: where problems probably have several, and where a better one may be."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.solvers import AugmentedLagrangian
from fairconstrained.solvers.base import Start
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array

_FEW_ROWS = 200  # up to here local solutions that differ are common, and a second solver is cheap
_FEW_PER_VARIABLE = 4  # the same, for the number of rows divided by that of variables
# With more rows, up to the second number, those that differ by 1% are rare (30 of 3,158 generated
# fits), and 28 of these had multipliers this many times as steep as the loss in a cell.
_STEEP, _STEEP_ROWS = 32.0, 2000
CLEAR_GAIN = 1e-3  # of the objective: less may be what the tolerance on the violation allows
_FEASIBLE = 1e-3  # the violation up to which a point's objective is compared with other starts'
_WIDTH = 0.1  # of the kinks that are rounded to compare starts
_ITERATIONS = 20  # of L-BFGS for every start


def several_solutions(problem: Problem, multipliers: Array | None = None) -> bool:
    """Return whether a problem probably has several local solutions: not convex, and of few rows.

    With the multipliers of one also where these are large for cells of few rows.
    """
    most = max(_FEW_ROWS, _FEW_PER_VARIABLE * problem.n_variables)
    if problem.convex or problem.n_rows <= most:
        return not problem.convex
    if multipliers is None or problem.n_rows > _STEEP_ROWS:
        return False
    parts = zip(problem.constraints, problem.places[1:], strict=True)
    return any(
        multipliers[place].sum() * part.term.cells.data.max() * problem.n_rows > _STEEP
        for part, place in parts
        if isinstance(part.term, CellMeans)
    )


def better_start(problem: Problem, at: Evaluation) -> tuple[Start | None, float]:
    """Return a start near a better local solution of another kind, and the data passes it took.

    Rates that are compared within a range only may be made equal there, or moved beyond one of its
    ends. From every constant score that a constraint proposes (`Term.other_starts`), one
    short round of the augmented Lagrangian method is made. The Lagrangian after a round estimates
    the objective at the local solution to a few thousandths.
    """
    levels: set[float] = set()
    for part in problem.constraints:
        levels |= set(part.term.other_starts(at.statistics_of(part)))
    comparable = len(problem.models) == 1 and problem.smoothable and problem.models[0].linear
    direction = problem.unit_shift() if levels and comparable else None
    if direction is None:
        return None, 0.0
    smooth = (problem if problem.smooth else problem.smoothed(_WIDTH)).uncounted()
    feasible = at.violation <= _FEASIBLE
    wanted = at.objective - CLEAR_GAIN * objective_scale(at) if feasible else np.inf
    best: Start | None = None
    for level in sorted(levels):
        solver = AugmentedLagrangian(max_iter=1, max_inner=_ITERATIONS, polish=False)
        result, there = solver.solve(smooth, warm=Start(smooth.start() + level * direction))
        value = there.objective + float(result.multipliers @ there.constraints)
        if value < wanted:
            wanted, best = value, Start(result.w, result.multipliers)
    return best, smooth.passes
