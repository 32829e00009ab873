"""A problem of a paper in the forms that its lines need, and near-stationarity at its points."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.penalties import Leading, Proximity
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Smoothing, Solver, default_solver
from fairconstrained.utils.typing import Array

SVIO_TOL = 1e-4  # of the subproblem of near-stationarity


@dataclass(frozen=True)
class Setup:
    """A problem of a paper.

    Attributes
    ----------
    problem : Problem
        In the paper's form.
    start : ndarray
        Where the paper starts.
    rho : float
        The constant of near-stationarity, and half of rho^ of the proximal methods.
    default : Problem
        The problem for the library's default: without kinks or in epigraph form where that helps.
    first : ndarray
        Its start.
    remark : str
        What the page says about the problem.
    constraint_rho : float or None
        The constant of near-stationarity for the constraints; None is `rho`.
    """

    problem: Problem
    start: Array
    rho: float
    default: Problem
    first: Array
    remark: str = ""
    constraint_rho: float | None = None

    def near_stationarity(self, w: Array, tol: float) -> float:
        """Return SVio at a point: the distance to the solution of its proximal subproblem.

        The subproblem of a maximum of outputs is solved in epigraph form.

        Returns
        -------
        distance : float
            It is nan if the subproblem is not solved to the tolerance.
        """
        rho, constraint_rho = self.rho, self.constraint_rho
        if self.default is self.problem:
            bound = None if constraint_rho is None else 2.0 * constraint_rho
            near, start = self.problem.uncounted().proximal(w, 2.0 * rho, bound), w
        else:
            assert constraint_rho == 0.0
            near = _with_proximal_objective(self.default.uncounted(), w, 2.0 * rho)
            start = np.append(w, self.problem.uncounted().at(w).objective)
        found = solver_for(near).minimize(near, start, tol=tol, random_state=0)
        return float(np.linalg.norm(found.w[: w.size] - w)) if found.converged else np.nan


def _with_proximal_objective(problem: Problem, w: Array, rho: float) -> Problem:
    """Return the problem with a proximal term of the leading variables in its objective."""
    near = problem.objective.add(Leading(Proximity(w, rho), w.size))
    return replace(problem, objective=near)


def solver_for(problem: Problem) -> Solver:
    """Return the library's default, which gets a problem with rounded kinks where it needs to."""
    solver = default_solver(problem)
    return Smoothing() if solver.missing(problem) else solver


def minimized(solver: Solver, problem: Problem, start: Array, passes: float) -> Result:
    """Return the result of a run; how runs that are cut short or diverge end is in the table."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return solver.minimize(problem.uncounted(), start, max_data_passes=passes, random_state=0)
