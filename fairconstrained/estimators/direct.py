"""Models whose problem a solver minimises on all training rows, without rows for validation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from fairconstrained.estimators.best_of import best_of
from fairconstrained.estimators.binding import minimize_by_default
from fairconstrained.estimators.other_starts import better_start
from fairconstrained.estimators.parametrization import Parametrization, SearchSpace
from fairconstrained.estimators.sampled_start import sampled_start
from fairconstrained.estimators.solving import SolverOptions, solver_of
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver, Status
from fairconstrained.solvers.base import Callback, Start

if TYPE_CHECKING:
    from fairconstrained.estimators.fit import Fit


class SolvedDirectly(Parametrization):
    """Parametrizations whose problem a solver minimises on all rows.

    A subclass has a model, a penalty and a domain, and may override `solver`.
    """

    most_thresholds: ClassVar[int] = 12

    def solver(self, estimator: SolverOptions, problem: Problem) -> Solver:
        """Return the solver with the estimator's options."""
        return solver_of(estimator, problem)

    def minimize(
        self,
        estimator: SolverOptions,
        problem: Problem,
        *,
        split: tuple[Problem, Problem] | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the solution, see `best_of`, and the evaluation there.

        Without a warm start, fits on many rows start from the solution on a sample of them, see
        :func:`~fairconstrained.estimators.sampled_start.sampled_start`, and other fits are repeated
        where a local solution of another kind looks better, see
        :func:`~fairconstrained.estimators.other_starts.better_start`.
        """
        solver = self.solver(estimator, problem)
        solver.check(problem)
        sampled = sampled_start(solver, problem, estimator) if warm is None else None
        if sampled is None:
            result, at = best_of(solver, problem, estimator, warm=warm, callback=callback)
        else:
            at, warmer = sampled.at, sampled.result
            result, at = best_of(
                solver, problem, estimator, like=at, warm=warmer, callback=callback
            )
            result = replace(result, data_passes=result.data_passes + sampled.data_passes)
        if warm is not None:
            return result, at
        return self._of_the_best_kind(estimator, solver, problem, result, at, callback)

    def _of_the_best_kind(
        self,
        estimator: SolverOptions,
        solver: Solver,
        problem: Problem,
        result: Result,
        at: Evaluation,
        callback: Callback | None,
    ) -> tuple[Result, Evaluation]:
        """Return the default solver's solution or, where it is better, one of another kind."""
        if result.status is Status.STOPPED or estimator.solver != "auto":
            return result, at
        start, passes = better_start(problem, at)
        passes += result.data_passes
        if start is not None:
            other, there = best_of(solver, problem, estimator, warm=start, callback=callback)
            passes += other.data_passes
            if (other.violation > solver.tol, other.objective) < (
                result.violation > solver.tol,
                result.objective,
            ):
                result, at = other, there
        return replace(result, data_passes=passes), at

    def follow(
        self,
        estimator: SolverOptions,
        problem: Problem,
        *,
        split: tuple[Problem, Problem] | None = None,
        like: Evaluation | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the solution from a start that is near it, and the evaluation there."""
        solver = self.solver(estimator, problem)
        found = best_of(solver, problem, estimator, like=like, warm=warm, callback=callback)
        return self._of_the_best_kind(estimator, solver, problem, *found, callback)

    def unconstrained(
        self, estimator: SolverOptions, problem: Problem, split: tuple[Problem, Problem] | None
    ) -> Result:
        """Return the default solver's solution."""
        return minimize_by_default(problem)

    def search_space(self, fit: Fit, result: Result) -> SearchSpace:
        """Return the variables of the fit."""
        return SearchSpace(fit.decision_task(result), fit.held_out, lambda w: w)
