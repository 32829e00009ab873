"""The table of solvers by name, and the choice from it; `registry` fills the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem
    from fairconstrained.solvers.base import Solver

# In order of preference: `default_solver` takes the first that is preferred for the problem.
SOLVERS: dict[str, Callable[..., Solver]] = {}
_FUNCTIONS = {
    "smooth": "smooth functions",
    "weakly_convex": "weakly convex functions",
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
    solvers = (make() for make in SOLVERS.values())
    return next(one for one in solvers if _is_preferred(one, problem))


def _is_preferred(solver: Solver, problem: Problem) -> bool:
    """Return whether a problem has all properties that a solver requires or is preferred with."""
    return all(getattr(problem, name) for name in (*solver.requires, *solver.preferred_with))


def refusal(solver: str, missing: Sequence[str], able: Sequence[str]) -> str:
    """Return the message of a solver that cannot solve a problem.

    Parameters
    ----------
    solver : str
        The solver.
    missing : sequence of str
        The properties that the problem lacks, at least one.
    able : sequence of str
        The names of the solvers that can solve it.

    Examples
    --------
    >>> from fairconstrained.solvers.table import refusal
    >>> print(refusal("ExactPenalty()", ["smooth"], ["ssg"]))  # doctest: +NORMALIZE_WHITESPACE
    ExactPenalty() needs smooth functions: change the surrogate, the loss or the penalty, or use
    one of the solvers ssg.
    """
    others = f"use one of the solvers {', '.join(able)}."
    if "batchable" in missing:
        refused = "draws batches of rows, which these data or this constraint do not allow"
        return f"{solver} {refused}: {others}"
    needs = " and ".join(_FUNCTIONS.get(name, name.replace("_", " ")) for name in missing)
    return f"{solver} needs {needs}: change the surrogate, the loss or the penalty, or {others}"
