"""From an estimator's options to a solver, a warm start and a reported run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairconstrained.exceptions import ConvergenceWarning, InfeasibleConstraintWarning, InputWarning
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Result, Solver, Status, default_solver
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.registry import without_kinks
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.splits import in_fold
from fairconstrained.utils.typing import Array


def solver_of(
    options: Any,
    problem: Problem,
    *,
    default: Callable[[Problem], Solver] = default_solver,
) -> Solver:
    """Return the solver with an estimator's options.

    A solver that is chosen by name and needs continuous gradients gets a problem with rounded
    kinks.

    Parameters
    ----------
    options : estimator
        Its `solver`, `tol`, `max_iter` and, if it has one, `beta`.
    problem : Problem
        What "auto" chooses by.
    default : callable, default=default_solver
        Returns the solver that "auto" stands for.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    names = {"auto": lambda: default(problem), **SOLVERS}
    solver = resolve("solver", options.solver, names, Solver)
    if isinstance(options.solver, str):
        solver = solver.with_options(tol=options.tol)
    solver = with_beta(solver, getattr(options, "beta", None))
    solver = solver.with_options(max_iter=options.max_iter)
    if options.max_iter is not None:
        solver = solver.unpolished()
    return without_kinks(problem, solver) if isinstance(options.solver, str) else solver


def with_beta(solver: Solver, beta: float | None) -> Solver:
    """Return a solver with `beta`, or the solver itself if it has no such parameter.

    Parameters
    ----------
    solver : Solver
        The solver.
    beta : float or None
        None keeps that of the solver.

    Warns
    -----
    InputWarning
        If the solver has no beta: it names those that have. A search says it once.
    """
    if beta is None:
        return solver
    if "beta" not in solver.get_params(deep=False):
        if in_fold():
            return solver
        have = [repr(name) for name, make in SOLVERS.items() if "beta" in make().get_params()]
        warnings.warn(
            f"beta={beta!r} is not used: {type(solver).__name__} has no such parameter. The "
            f"solvers {', '.join(have)} have it; that of BalancedRate is constraint__beta.",
            InputWarning,
            stacklevel=2,
        )
        return solver
    return solver.with_options(beta=beta)


def warm_start(
    fitted: Any, problem: Problem, variables: Array | None, first: Start | None
) -> Start | None:
    """Return the start of a run, None for the problem's own.

    Parameters
    ----------
    fitted : estimator
        With `warm_start` and an earlier fit, its `result_` gives multipliers and the constraints'
        own variables.
    problem : Problem
        The problem to minimise.
    variables : ndarray of shape (n_parameters,) or None
        The model's variables of the earlier fit, None if it cannot be used.
    first : Start or None
        The start without a warm start.
    """
    if not fitted.warm_start or variables is None:
        return first
    w = problem.start() if first is None else np.array(first.w)
    last = fitted.result_
    if last.w.size == problem.n_variables:
        w[:] = last.w
    w[: len(variables)] = variables
    known = len(last.multipliers) == problem.n_constraints
    return Start(w, last.multipliers if known else None)


def warn_of_other_solver(results: Sequence[Result], stacklevel: int) -> None:
    """Warn once if other solvers' models were taken in place of those of the solver asked for.

    Warns
    -----
    ConvergenceWarning
        It names both solvers.
    """
    replaced = [one for one in results if one.replaces is not None]
    if not replaced:
        return
    asked = {type(one.replaces).__name__ for one in replaced}
    taken = {type(one.solver).__name__ for one in replaced}
    where = f" of {len(replaced)} of {len(results)} fits" if len(results) > 1 else ""
    warnings.warn(
        f"solver: {', '.join(sorted(asked))} did not converge to a model that meets the "
        f"constraints; the model{where} is that of {', '.join(sorted(taken))}, which is better. "
        "Use another solver, raise max_iter, or pass the solver as an object with polish=False to "
        f"keep its own answer. {replaced[0].message}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_of(result: Result, stacklevel: int) -> None:
    """Warn if a run ended short of its tolerance, or another solver's model was taken.

    Warns
    -----
    InfeasibleConstraintWarning
        If its violation is above the tolerance and cannot fall near its point.
    ConvergenceWarning
        If it did not converge otherwise.
    """
    warn_of_other_solver([result], stacklevel + 1)
    if result.violation > result.solver.tol and result.status is Status.INFEASIBLE:
        warnings.warn(
            f"No model that meets the constraints was found; the least violation is "
            f"{result.violation:.3g}, and the model that has it is kept. {result.message}",
            InfeasibleConstraintWarning,
            stacklevel=stacklevel,
        )
    elif result.violation > result.solver.tol:
        warnings.warn(
            f"The run ended before the constraints were met; the least violation is "
            f"{result.violation:.3g}, and the model that has it is kept. {result.message}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    elif not result.complete:
        warnings.warn(result.message, ConvergenceWarning, stacklevel=stacklevel)


Attributes = Callable[[Array], Mapping[str, Any]]
