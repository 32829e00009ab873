"""Solvers whose runs are finished by steps of another method if they end short of the tolerance."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_stuck
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Callback, Measured, Solver, Start
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.result import Result, Status, describe
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.solvers.state import RoundingState

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

    def _solve(
        self, problem: Problem, start: Start, callback: Callback | None
    ) -> tuple[Result, Evaluation]:
        """Return the polished result of a run and the evaluation at it."""
        if not self.polishes:
            return self._run(problem, start, callback)
        before_polish = replace(start, last_pass=last_pass_before_polish(problem, start))
        result, at = self._run(problem, before_polish, callback)
        return refine(self, problem, start, callback, result, at)


def last_pass_before_polish(problem: Problem, start: Start) -> float:
    """Return the value of `problem.passes` at which a run that is polished leaves off."""
    if not np.isfinite(start.last_pass):
        return start.last_pass
    return start.last_pass - _SHARE * start.passes_left(problem)


def refine(
    solver: Solver,
    problem: Problem,
    start: Start,
    callback: Callback | None,
    result: Result,
    at: Evaluation,
) -> tuple[Result, Evaluation]:
    r"""Return the result of sequential quadratic programming steps from the best point of a run.

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
    solver : Solver
        The method of the run.
    problem : Problem
        The problem.
    start : Start
        The tolerance of the run and the data passes that it may make.
    callback : callable or None
        Called with every measured iterate.
    result, at : Result and Evaluation
        The result of the run and the problem there. They are returned if the run converged, if a
        callback stopped it, if no steps are possible, or if these find nothing better.
    """
    steps: Solver = ExactPenalty()
    if steps.missing(problem):
        steps = Smoothing(steps, tol=steps.tol)
    done = result.status in (Status.CONVERGED, Status.STOPPED) or start.passes_used_up(problem)
    if done or steps.missing(problem):
        return result, at
    passes, progress = problem.passes, Progress(problem, callback)
    found, end = steps.solve(
        problem,
        result.w,
        like=at,
        tol=start.tol,
        callback=progress,
        random_state=start.random_state,
        max_data_passes=min(start.passes_left(problem), _most_passes(problem.n_constraints)),
        measures_decisions=start.measures_decisions,
    )
    if not found.at_least_as_good_as(result, start.tol):
        return result, at
    status = found.status
    limited = status is Status.PASS_LIMIT and not start.passes_used_up(problem)
    if limited or (status is Status.STOPPED and progress.idle):
        stuck = is_stuck(end, start.tol, found.multipliers)
        status = Status.INFEASIBLE if stuck else _status_without_polish(result)
    return _joined(result, found, status, problem.passes - passes, solver), end


class Progress:
    """A callback that stops steps which no longer reduce the error of the optimality conditions.

    Parameters
    ----------
    problem : Problem
        Counts the data passes.
    callback : callable or None, default=None
        Called with every measured iterate first.

    Attributes
    ----------
    idle : bool
        Whether the steps were stopped here, not by the other callback.
    """

    def __init__(self, problem: Problem, callback: Callback | None = None):
        self.problem, self.callback, self.idle = problem, callback, False
        self._least, self._last_fall = np.inf, problem.passes

    def __call__(self, measured: Measured) -> bool:
        """Return whether the steps are to end."""
        stop = self.callback is not None and bool(self.callback(measured))
        if measured.kkt.error <= _LEAST_FALL * self._least:
            self._least, self._last_fall = measured.kkt.error, self.problem.passes
        self.idle = not stop and self.problem.passes - self._last_fall >= _MAX_IDLE
        return stop or self.idle


def _joined(result: Result, found: Result, status: Status, passes: float, solver: Solver) -> Result:
    """Return the result of polishing as that of the whole run."""
    result.trace.extend(found.trace)
    n_iter = result.n_iter + found.n_iter
    figures = found.objective, found.violation, found.kkt_residual, n_iter
    return replace(
        found,
        status=status,
        message=describe(status, *figures),
        n_iter=n_iter,
        data_passes=result.data_passes + passes,
        trace=result.trace,
        solver=solver,
        state=found.state if isinstance(found.state, RoundingState) else result.state,
    )


def _status_without_polish(result: Result) -> Status:
    """Return what ended a run if polishing improves its point without coming to an end itself."""
    limits = (Status.ITERATION_LIMIT, Status.PASS_LIMIT)
    return result.status if result.status in limits else Status.STALLED


def _most_passes(n_constraints: int) -> float:
    """Return the data passes for polishing: each comes with a backward pass per constraint."""
    return _MAX_PASSES * min(1.0, _FEW / min(max(n_constraints, 1), _MANY))
