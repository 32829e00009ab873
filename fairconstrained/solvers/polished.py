"""Solvers whose runs are finished by steps of another method if they end short of the tolerance."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Measured, Solver, Start
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.iterate import Run
from fairconstrained.solvers.result import Status
from fairconstrained.solvers.smoothing import Smoothing, SmoothingState
from fairconstrained.solvers.state import SolverState

_SHARE = 0.25  # of the data passes of a run, kept for polishing
_MAX_PASSES = 500
_LEAST_FALL, _MAX_IDLE = 0.5, 60  # of the error; data passes that may go by without such a fall
_FEW, _MANY = 10, 50  # constraints: up to the first a step costs little; no more are linearised


class PolishedSolver(Solver):
    """Base of the methods whose theory does not promise accurate solutions.

    Attributes
    ----------
    polish : bool
        A parameter: whether a run that ends short of its tolerance is finished by sequential
        quadratic programming steps from its best point, see :func:`refine`. If False, estimators
        keep the answer of the solver, so that ``paper()`` gives that of the printed algorithm.
    """

    polish: bool

    @property
    def replaceable(self) -> bool:
        """Whether an estimator may return another solver's answer where this one's is bad."""
        return super().replaceable and self.polish

    @property
    def polishes(self) -> bool:
        """Whether runs are polished with the parameters as they are."""
        return self.polish

    def unpolished(self) -> Self:
        """Return the solver without polishing: for subproblems, and for runs that are limited."""
        return self.with_options(polish=False) if self.polishes else self

    def _follow(self, problem: Problem, start: Start, run: Run) -> Status:
        """Drive the iterates, and those of `refine` where they end short of the tolerance."""
        if not self.polishes:
            return super()._follow(problem, start, run)
        last_pass = start.last_pass
        if np.isfinite(last_pass):
            last_pass -= _SHARE * start.passes_left(problem)
        begin = replace(start, last_pass=last_pass)
        return refine(run, run.follow(self.iterate(problem, begin), last_pass))


def refine(run: Run, status: Status) -> Status:
    r"""Make sequential quadratic programming steps from the best point of a run; return its status.

    First-order methods come near a solution and then slow down: where the Lagrangian is not convex,
    its gradient steps need not converge at all, and subgradient steps are as long as their step
    rule. From their best point each step here solves the linearised problem

    .. math::
        \min_d \langle \nabla f(w), d \rangle + \tfrac12 d^\top B d + \rho \max_j \big(g_j(w)
        + \langle \nabla g_j(w), d \rangle\big)_+

    in a trust region (:class:`~fairconstrained.solvers.ExactPenalty`), which restores the
    constraints and lowers the objective at the same time. Kinks are rounded.

    Parameters
    ----------
    run : Run
        The run so far. Nothing is done if it converged, if a callback stopped it, or if no steps
        are possible.
    status : Status
        How it ended.
    """
    problem, start, kept = run.problem, run.start, run.kept
    steps: Solver = ExactPenalty()
    if steps.missing(problem):
        steps = Smoothing(steps, tol=steps.tol)
    done = status in (Status.CONVERGED, Status.STOPPED) or start.passes_used_up(problem)
    if done or kept is None or steps.missing(problem):
        return status
    most = min(start.passes_left(problem), _most_passes(problem.n_constraints))
    at, n_iter, last_pass = kept.iterate.at, run.n_iter, problem.passes + most
    begin = replace(start, w=at.w, multipliers=None, state=None, like=at, last_pass=last_pass)
    iterates = (
        replace(one, iteration=n_iter + one.iteration, state=_state(one.state, kept.iterate.state))
        for one in steps.iterate(problem, begin)
    )
    ended = run.follow(iterates, last_pass, Progress(problem))
    if run.kept is not None and run.kept.iterate.at.w is at.w:  # no step was better
        return status
    if ended is not Status.PASS_LIMIT or start.passes_used_up(problem):
        return ended
    return status if status in (Status.ITERATION_LIMIT, Status.PASS_LIMIT) else Status.STALLED


def _state(found: SolverState | None, before: SolverState | None) -> SolverState | None:
    """Return the state after a step: that of the solver itself, unless kinks are rounded."""
    return found if isinstance(found, SmoothingState) else before


class Progress:
    """Whether steps no longer reduce the error of the optimality conditions.

    Parameters
    ----------
    problem : Problem
        Counts the data passes.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self._least, self._last_fall = np.inf, problem.passes

    def __call__(self, measured: Measured) -> bool:
        """Return whether the steps are to end."""
        if measured.kkt.error <= _LEAST_FALL * self._least:
            self._least, self._last_fall = measured.kkt.error, self.problem.passes
        return self.problem.passes - self._last_fall >= _MAX_IDLE


def _most_passes(n_constraints: int) -> float:
    """Return the data passes for polishing: each comes with a backward pass per constraint."""
    return _MAX_PASSES * min(1.0, _FEW / min(max(n_constraints, 1), _MANY))
