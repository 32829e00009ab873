"""What outer loops do about feasibility: where they start from, and which answers they take."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers.base import Measured, Solver, Start
from fairconstrained.solvers.result import Result


def phase_one(solver: Solver, problem: Problem, at: Evaluation, start: Start) -> Evaluation:
    r"""Return a feasible point, or one at which the violation is stationary.

    The solver itself minimises :math:`\max_j g_j` (as a level t with :math:`g_j \le t`, see
    :meth:`Problem.epigraph`; every point has a feasible level) until a point is feasible.

    Parameters
    ----------
    solver : Solver
        The method.
    problem : Problem
        The problem.
    at : Evaluation
        Where to start from.
    start : Start
        What the run was asked: its tolerance and its source of randomness.

    References
    ----------
    IPC, Remark 1.
    """
    first = np.append(at.w, at.constraints.max())
    least = [at]

    def feasible(measured: Measured) -> bool:
        above = measured.iterate.at
        here = problem.uncounted().at(above.w[:-1], like=above)
        if here.violation <= least[0].violation:
            least[0] = here
        return here.violation <= start.feasible

    solver.unpolished().minimize(
        problem.epigraph(), first, tol=0.5 * start.tol, callback=feasible,
        random_state=start.random_state, max_data_passes=start.passes_left(problem),
    )  # fmt: skip
    return restore(problem.at(least[0].w, like=least[0]), start.feasible)


def acceptable(answer: Result, before: Evaluation, after: Evaluation, tol: float) -> bool:
    """Return whether an oracle solved its subproblem, or at least found a better point.

    Parameters
    ----------
    answer : Result
        The oracle's.
    before, after : Evaluation
        The problem itself where the subproblem was made and where the oracle ended.
    tol : float
        The largest violation of a feasible point.
    """
    if answer.converged:
        return True
    if before.violation > tol:
        return after.violation < 0.9 * before.violation
    return after.violation <= tol and after.objective < before.objective
