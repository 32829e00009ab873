"""The solvers by name, in order of preference, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter, call
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem
    from fairconstrained.solvers.base import Solver


def _make(path: str, **options: Any) -> Solver:
    """Return a solver that an attribute of the package makes.

    Solvers call other solvers by name, for subproblems and for refinement. They are therefore
    declared here before they are imported.
    """
    solver: Solver = attrgetter(path)(import_module("fairconstrained.solvers"))(**options)
    return solver


# In order of preference: `default_solver` takes the first that is preferred for the problem.
SOLVERS: dict[str, Callable[..., Solver]] = {
    "sqp": partial(_make, "SQP"),
    "exact-penalty": partial(_make, "ExactPenalty"),
    "augmented-lagrangian": partial(_make, "AugmentedLagrangian"),
    "smoothing": partial(_make, "Smoothing"),
    "ipc": partial(_make, "IPC"),
    "ipp-ssg": partial(_make, "successive.ipp_ssg"),
    "ssg": partial(_make, "SwitchingSubgradient"),
    "ssg-stochastic": partial(_make, "StochasticSwitchingSubgradient"),
    "3s-econ": partial(_make, "ThreeSEcon"),
    "3s-econ-stochastic": partial(_make, "ThreeSEcon.stochastic"),
    "plada": partial(_make, "PLADA"),
    "plada-stochastic": partial(_make, "PLADA.stochastic"),
    "idca": partial(_make, "IDCA"),
    "idca-stochastic": partial(_make, "successive.idca_stochastic"),
    "ipp-conex": partial(_make, "successive.ipp_conex"),
    "conex": partial(_make, "ConEx"),
    "yu-neely-wei": partial(_make, "OnlineStochastic"),
    "lagrangian": partial(_make, "LagrangianDescentAscent"),
    "multiplier-model": partial(_make, "LagrangianDescentAscent.multiplier_model"),
    "regularization": partial(_make, "Regularization"),
}
_FUNCTIONS = {
    "smoothable": "functions whose kinks are known",
    "difference_of_convex": "functions that are differences of convex functions",
}


def available_solvers(problem: Problem) -> list[str]:
    """Return the names of the solvers whose requirements the problem meets.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    names : list of str
        In order of preference.
    """
    return [name for name, make in SOLVERS.items() if not make().missing(problem)]


def default_solver(problem: Problem) -> Solver:
    """Return the solver that ``solver="auto"`` stands for: the first preferred one of the table.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    solver : Solver
        With its default parameters.
    """
    for solver in map(call, SOLVERS.values()):
        if all(getattr(problem, name) for name in (*solver.requires, *solver.preferred_with)):
            break
    return solver


def without_kinks(problem: Problem, solver: Solver) -> Solver:
    """Return the solver if it can solve the problem, else the one that rounds the kinks for it.

    Methods that need continuous gradients are given a sequence of smooth problems in place of one
    with kinks, see :class:`Smoothing`. Where rounding does not help either, the solver is returned
    as it is: its own message says what is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L1
    >>> from fairconstrained.problem import CompositeFunction, Problem
    >>> from fairconstrained.solvers import SQP
    >>> from fairconstrained.solvers.registry import without_kinks
    >>> kinked = Problem(CompositeFunction(penalty=L1(1.0)), n_variables=2)
    >>> without_kinks(kinked, SQP())
    Smoothing(solver=SQP())
    """
    if not solver.missing(problem):
        return solver
    rounded = SOLVERS["smoothing"](solver=solver, tol=solver.tol)
    return solver if rounded.missing(problem) else rounded


def refusal(solver: str, missing: Sequence[str], able: Sequence[str]) -> str:
    """Return the message of a solver that cannot solve a problem.

    Examples
    --------
    >>> from fairconstrained.solvers.registry import refusal
    >>> print(refusal("ExactPenalty()", ["smooth"], ["ssg"]))  # doctest: +NORMALIZE_WHITESPACE
    ExactPenalty() needs smooth functions: change the surrogate, the loss or the penalty, or use
    one of the solvers ssg.
    """
    others = f"use one of the solvers {', '.join(able)}."
    if "batchable" in missing:
        refused = "draws batches of rows, which these data or this constraint do not allow"
        return f"{solver} {refused}: {others}"
    functions = [_FUNCTIONS.get(name, f"{name} functions") for name in missing]
    needs = " and ".join(functions).replace("_", " ")
    return f"{solver} needs {needs}: change the surrogate, the loss or the penalty, or {others}"
