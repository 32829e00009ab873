"""The solvers of networks: which one "auto" is, and how an estimator's parameters reach them."""

from __future__ import annotations

from typing import Any

from fairconstrained.estimators.network.options import uses_validation
from fairconstrained.estimators.network.training import iterations
from fairconstrained.estimators.solving import with_beta
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import PLADA, SOLVERS, Solver, default_solver
from fairconstrained.solvers.registry import without_kinks
from fairconstrained.utils.registry import resolve

_LARGEST_JACOBIAN = 10**6  # entries; polishing needs the gradients of all constraints
_CHECKS = 2  # data passes between two measurements
_MANY_ROWS = 10_000


def default_for_network(problem: Problem, batch_size: int | None) -> Solver:
    """Return the solver that "auto" stands for.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    batch_size : int or None
        The rows of a batch, if batches are asked for.
    """
    if problem.in_epigraph_form:
        return default_solver(problem)
    many = problem.n_rows >= _MANY_ROWS
    on_batches = problem.batchable and (batch_size is not None or many)
    # Steps that are measured at the start are too short: the curvature is largest there.
    return PLADA.stochastic() if on_batches else PLADA(eta=0.5)


def solver_of_network(estimator: Any, problem: Problem) -> Solver:
    """Return the solver with a network classifier's options.

    One that is chosen by name makes steps for `max_epochs` data passes and is measured every two
    of them. It is not polished if rows for validation choose the iterate, or if the gradients of
    all constraints would need much memory.

    Parameters
    ----------
    estimator : FairNetworkClassifier
        Its `solver`, `tol`, `max_iter`, `beta`, `batch_size`, `learning_rate` and `max_epochs`.
    problem : Problem
        What is to be minimised.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is given that the solver does not have.
    """
    names = {"auto": lambda: default_for_network(problem, estimator.batch_size), **SOLVERS}
    solver = resolve("solver", estimator.solver, names, Solver)
    solver = _with_given(solver, estimator)
    if not isinstance(estimator.solver, str):
        return solver.with_options(max_iter=estimator.max_iter)
    solver = _for_epochs(solver, estimator, problem).with_options(
        tol=estimator.tol, max_iter=estimator.max_iter
    )
    solver = solver if _polishes(estimator, problem) else solver.unpolished()
    return without_kinks(problem, solver)


def _with_given(solver: Solver, estimator: Any) -> Solver:
    """Return the solver with the parameters that are given, of those that not all solvers have."""
    solver = with_beta(solver, estimator.beta)
    parameters = solver.get_params(deep=False)
    given = {"batch_size": "batch_size", "learning_rate": "eta"}
    for name, own in given.items():
        value = getattr(estimator, name)
        if value is not None and own not in parameters:
            raise ValueError(
                f"{name}={value!r} is given, but solver {solver!r} has no such parameter; "
                f"leave {name} at None."
            )
        solver = solver.with_options(**{own: value})
    return solver


def _for_epochs(solver: Solver, estimator: Any, problem: Problem) -> Solver:
    """Return the solver with as many steps as there are data passes, and regular measurements."""
    parameters = solver.get_params(deep=False)
    if "check_every" in parameters:
        batch = parameters.get("batch_size")
        rows = problem.n_rows
        batch = int(rows**0.5) if batch == "sqrt" else batch
        return solver.with_options(
            max_iter=iterations(estimator.max_epochs, rows, batch),
            check_every=iterations(_CHECKS, rows, batch),
        )
    return solver


def _polishes(estimator: Any, problem: Problem) -> bool:
    """Return whether a run is finished by steps that need the gradients of all constraints."""
    if estimator.max_iter is not None or uses_validation(estimator, problem.n_rows):
        return False
    return problem.n_variables * max(problem.n_constraints, 1) <= _LARGEST_JACOBIAN
