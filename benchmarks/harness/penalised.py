"""Regularisation as IDCA compares with it, solved to a tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Solver, default_solver
from fairconstrained.solvers.base import Iterate, Start


class Penalised(Solver):
    r"""The minimiser of the objective plus s times the largest violation.

    .. math::
        \min_{w \in W,\, t \ge 0} f(w) + s\, t \quad \text{s.t.} \quad g_j(w) \le t.

    Subgradient steps, as the paper makes them, end above this minimum.

    Parameters
    ----------
    strength : float
        s > 0.
    max_iter : int, default=100
        The iterations of the solver that `default_solver` takes for the problem.
    tol : float, default=1e-4
        Its tolerance.
    """

    seeks_feasibility = False

    def __init__(self, strength: float, *, max_iter: int = 100, tol: float = 1e-4):
        self.strength = strength
        self.max_iter = max_iter
        self.tol = tol

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the minimiser."""
        at = start.at(problem)
        with_level = penalised(problem, self.strength)
        solver = default_solver(with_level).with_options(max_iter=self.max_iter)
        first = np.append(at.w, max(at.violation, 0.0))
        answer, _ = solver.solve(with_level, first, tol=start.tol, within=start)
        yield Iterate(problem.at(answer.w[:-1]), None, 1, status=answer.status)


def penalised(problem: Problem, strength: float) -> Problem:
    """Return the problem with the violation as a last variable t, which costs its strength."""
    n, lifted = problem.n_variables, problem.epigraph()  # its constraints are g_j(w) <= t
    not_negative = CompositeFunction().widened(n, -1.0)
    return replace(
        lifted,
        objective=problem.objective.widened(n, strength),
        constraints=(*lifted.constraints, not_negative),
    )
