"""Checks of the arguments of a run of a solver."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.parameters import PARAMETERS
from fairconstrained.solvers.result import Result
from fairconstrained.solvers.start import Start


def check_point(argument: str, w: object, problem: Problem) -> None:
    """Check that a point is one finite number for each variable of a problem.

    Raises
    ------
    ValueError
        Names the argument and what was found.
    """
    try:
        found = np.asarray(w, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(())
    if found.shape != (problem.n_variables,) or not np.all(np.isfinite(found)):
        raise ValueError(
            f"{argument} must have a finite number for each of the {problem.n_variables} variables "
            f"of the problem; got {w!r}."
        )


def check_run(problem: Problem, w0: object, warm: object, tol: object, callback: object) -> None:
    """Check what a run starts from, its tolerance and its callback, as in `Solver.minimize`.

    Raises
    ------
    ValueError, TypeError
        Names the argument and what was found.
    """
    if not isinstance(warm, Result | Start | None):
        raise TypeError(f"warm must be the Result of an earlier run, or None; got {warm!r}.")
    if w0 is not None:
        check_point("w0", w0, problem)
    elif warm is not None:
        check_point("warm.w", warm.w, problem)
    if tol is not None and not PARAMETERS["tol"].contains(tol):
        raise ValueError(f"tol must be {PARAMETERS['tol']}, or None; got {tol!r}.")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of the iterate, or None; got {callback!r}.")
