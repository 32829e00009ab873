"""Methods that solve a sequence of subproblems with another solver, the oracle."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.polished import PolishedSolver


class OracleSolver(PolishedSolver):
    """Base of the methods whose subproblems another solver solves.

    Attributes
    ----------
    safeguard : bool
        A parameter: whether solutions of subproblems are checked.
    """

    safeguard: bool

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the accepted answers of the oracle; all of them without safeguard."""
        return (self._safeguarded if self.safeguard else self._published)(problem, start)

    @abstractmethod
    def _published(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield all answers of the oracle: the algorithm as published."""

    @abstractmethod
    def _safeguarded(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the accepted answers of the oracle."""


def every_answer(
    oracle: Solver,
    problem: Problem,
    start: Start,
    max_iter: int,
    subproblem: Callable[[Evaluation], Problem],
    note: str = "",
) -> Iterator[Iterate]:
    """Yield the last points of an oracle's runs, each of which starts from the one before.

    Only the point is passed from one subproblem to the next, and no solution is rejected.

    Parameters
    ----------
    oracle : Solver
        Solves the subproblems.
    problem : Problem
        The problem.
    start : Start
        What the run starts from.
    max_iter : int
        The number of subproblems.
    subproblem : callable
        Returns the subproblem at an evaluation of the problem.
    note : str, default=""
        What the message of the result says in addition.
    """
    at = found = start.at(problem)
    for t in range(1, max_iter + 1):
        begin = replace(start, w=at.w, multipliers=None, state=None, like=at)
        for iterate in oracle.iterate(subproblem(at), begin):
            found = iterate.at
        at = problem.at(found.w, like=found)
        yield Iterate(at, None, t, note=note)
        if start.passes_used_up(problem):
            return
