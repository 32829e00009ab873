"""The table of solvers by name, and the choice from it; `registry` fills the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem
    from fairconstrained.solvers.base import Solver

# In order of preference: `default_solver` takes the first that is preferred for the problem.
SOLVERS: dict[str, Callable[..., Solver]] = {}


def _available(problem: Problem) -> Iterator[str]:
    """Yield the names of the solvers that can solve the problem, the preferred one first."""
    return (name for name, make in SOLVERS.items() if not make().missing(problem))


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
    return list(_available(problem))


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
