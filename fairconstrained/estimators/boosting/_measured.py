"""The solver of a fit whose boosted trees are kept as they are."""

from __future__ import annotations

from collections.abc import Iterator

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Solver
from fairconstrained.solvers.base import Iterate, Start


class BoostedTrees(Solver):
    """Measures the start, the boosted leaf values, and makes no step.

    Parameters
    ----------
    tol : float, default=1e-4
        The tolerance on violation and KKT residual at which the start counts as a solution.
    max_iter : int, default=1
        The number of measured points.
    """

    def __init__(self, tol: float = 1e-4, max_iter: int = 1):
        self.tol = tol
        self.max_iter = max_iter

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the start with its multipliers."""
        yield Iterate(start.at(problem), start.multipliers, 1)
