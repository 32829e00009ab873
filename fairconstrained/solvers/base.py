"""The base of all solvers: one loop that measures, stops and reports."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_stuck
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.iterate import Iterate as Iterate
from fairconstrained.solvers.iterate import Measured as Measured
from fairconstrained.solvers.result import Result, Status, Trace, describe
from fairconstrained.solvers.start import Start as Start
from fairconstrained.solvers.table import available_solvers, refusal
from fairconstrained.utils.parameter_constraints import (
    COUNT,
    LIMIT,
    NON_NEGATIVE,
    ParameterConstraints,
    check_arguments,
    check_parameters,
)
from fairconstrained.utils.parameters import Parametrized
from fairconstrained.utils.typing import Array, RandomState

Callback = Callable[[Measured], bool | None]
_ARGUMENTS: ParameterConstraints = {  # of `Solver.minimize`
    "warm": [Result, Start, None],
    "tol": [NON_NEGATIVE, None],
    "callback": [callable, None],
    "random_state": ["random_state"],
    "max_data_passes": [NON_NEGATIVE, None],
}


def check_point(argument: str, w: object, problem: Problem) -> None:
    """Check that a point is one finite number for each variable of a problem.

    Raises
    ------
    ValueError
        Names the argument and what was found.
    """
    try:
        point = np.asarray(w, dtype=float)
    except (TypeError, ValueError):
        point = np.empty(())
    if point.shape != (problem.n_variables,) or not np.all(np.isfinite(point)):
        raise ValueError(
            f"{argument} must have a finite number for each of the {problem.n_variables} variables "
            f"of the problem; got {w!r}."
        )


def _again(last: Measured | None, iterate: Iterate) -> Measured | None:
    """Return what is known of a point that is offered once more, None for another point."""
    same = last is not None and iterate.at is last.iterate.at and iterate.multipliers is None
    return replace(last, iterate=iterate) if last is not None and same else None


class Solver(Parametrized, ABC):
    """A method for problems. Instances hold hyperparameters only; solving never changes them.

    Attributes
    ----------
    requires : tuple of str
        The properties a problem must have ("smooth", "weakly_convex", ...).
    preferred_with : tuple of str
        Further properties that a problem needs for ``solver="auto"`` to choose this solver.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    preferred_with: ClassVar[tuple[str, ...]] = ()
    _parameter_constraints: ClassVar[ParameterConstraints] = {  # those that many solvers have
        "max_iter": [LIMIT],
        "check_every": [COUNT],
        "tol": [NON_NEGATIVE],
        "polish": ["boolean"],
        "safeguard": ["boolean"],
    }
    tol: float = 1e-4  # these three hold for solvers that do not have them as parameters
    max_iter: int = 1000
    check_every: int = 1

    def missing(self, problem: Problem) -> list[str]:
        """Return the properties that the problem lacks for this solver."""
        return [name for name in self.requires if not getattr(problem, name)]

    def check(self, problem: Problem) -> None:
        """Raise if a parameter is not valid, or the problem lacks what the solver needs.

        Raises
        ------
        ValueError, TypeError
            Names the parameter, what was found and what is valid.
        IncompatibleSolverError
            Names what is missing and which solvers can do without.
        """
        check_parameters(self)
        missing = self.missing(problem)
        if missing:
            raise IncompatibleSolverError(refusal(repr(self), missing, available_solvers(problem)))

    def measures(self, problem: Problem, start: Start, k: int) -> bool:
        """Return whether step k is measured, for solvers that have `check_every`.

        Every `check_every`-th step is, the last one, and the one that uses up the data passes.
        """
        return k % self.check_every == 0 or k == self.max_iter or start.passes_used_up(problem)

    def with_options(self, **options: Any) -> Self:
        """Return a copy with the options that are not None; the solver if it has them already."""
        own = self.get_params(deep=False)
        new = {k: v for k, v in options.items() if v is not None and (k not in own or own[k] != v)}
        return clone(self).set_params(**new) if new else self

    @property
    def seeks_feasibility(self) -> bool:
        """Whether the answer is meant to meet the constraints."""
        return True

    @property
    def replaceable(self) -> bool:
        """Whether an estimator may return another solver's answer where this one's is bad."""
        return self.seeks_feasibility

    @property
    def polishes(self) -> bool:
        """Whether runs are polished, see :mod:`fairconstrained.solvers.polished`."""
        return False

    def unpolished(self) -> Self:
        """Return the solver without polishing: for subproblems, and for runs that are limited."""
        return self

    @abstractmethod
    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the iterates that are worth measuring; end when the iterations are used up."""

    def minimize(
        self,
        problem: Problem,
        w0: Array | None = None,
        *,
        warm: Result | Start | None = None,
        tol: float | None = None,
        callback: Callback | None = None,
        random_state: RandomState = None,
        max_data_passes: float | None = None,
    ) -> Result:
        """Minimise the problem.

        Parameters
        ----------
        problem : Problem
            What to minimise.
        w0 : ndarray of shape (n_variables,) or None, default=None
            The first point; None takes the warm start's, else the problem's.
        warm : Result, Start or None, default=None
            What its point, multipliers and state are taken over from.
        tol : float or None, default=None
            Overrides the solver's tolerance on violation and KKT residual.
        callback : callable or None, default=None
            Called with every measured iterate; a true answer stops the run.
        random_state : int, RandomState or None, default=None
            The source of randomness.
        max_data_passes : float or None, default=None
            The data passes after which the run ends and returns the best point so far, >= 0; None
            for no limit. The subproblem solvers of the run keep to it as well. It is checked once
            per iteration, so that a run may exceed it by what one iteration reads.

        Returns
        -------
        Result
            With a certificate computed from the point and its multipliers alone.

        Raises
        ------
        IncompatibleSolverError
            If the problem lacks what the solver needs.
        ValueError, TypeError
            If another argument is not valid.
        """
        check_arguments(
            "minimize", _ARGUMENTS, warm=warm, tol=tol, callback=callback,
            random_state=random_state, max_data_passes=max_data_passes,
        )  # fmt: skip
        if w0 is not None:
            check_point("w0", w0, problem)
        elif warm is not None:
            check_point("warm.w", warm.w, problem)
        return self.solve(
            problem,
            w0,
            warm=warm,
            tol=tol,
            callback=callback,
            random_state=random_state,
            max_data_passes=max_data_passes,
        )[0]

    def solve(
        self,
        problem: Problem,
        w0: Array | None = None,
        *,
        like: Evaluation | None = None,
        warm: Result | Start | None = None,
        tol: float | None = None,
        callback: Callback | None = None,
        random_state: RandomState = None,
        max_data_passes: float | None = None,
        measures_decisions: bool = True,
    ) -> tuple[Result, Evaluation]:
        """Minimise the problem, and return the evaluation at the result as well.

        Callers that go on from the result use this. The forward passes of the evaluation serve
        other problems made from the same models, see :meth:`Problem.at`. All other parameters are
        those of :meth:`minimize`.

        Parameters
        ----------
        like : Evaluation or None, default=None
            An evaluation whose forward passes are used again if the first point is the same.
        measures_decisions : bool, default=True
            Whether the result has a zero-one violation; else it is nan, for subproblems.
        """
        self.check(problem)
        source: np.random.RandomState = check_random_state(random_state)
        first = w0 if w0 is not None else (problem.start(source) if warm is None else warm.w)
        start = Start(
            w=problem.domain.project(np.asarray(first, dtype=float)),
            multipliers=None if warm is None else warm.multipliers,
            state=None if warm is None else warm.state,
            tol=self.tol if tol is None else tol,
            random_state=source,
            like=like,
            last_pass=problem.passes + (np.inf if max_data_passes is None else max_data_passes),
            measures_decisions=measures_decisions,
        )
        with np.errstate(over="ignore", invalid="ignore"):  # the status reports a run that diverges
            return self._solve(problem, start, callback)

    def _solve(
        self, problem: Problem, start: Start, callback: Callback | None
    ) -> tuple[Result, Evaluation]:
        """Return the result of a run and the evaluation at it."""
        return self._run(problem, start, callback)

    def certified(
        self, at: Evaluation, found: Result, callback: Callback | None = None
    ) -> tuple[Result, Evaluation] | None:
        """Return the result of a run that begins at an optimal point, None if it is not optimal.

        Parameters
        ----------
        at : Evaluation
            The problem at the point.
        found : Result
            Its multipliers, iterations and state count.
        callback : callable or None, default=None
            Called with the point.
        """
        clock = time.perf_counter()
        iterate = Iterate(at, found.multipliers, found.n_iter, found.state)
        measured, trace = Measured.of(iterate, self.tol), Trace()
        if not measured.kkt.holds(self.tol):
            return None
        trace.add(measured, 0.0, time.perf_counter() - clock)
        status = self._status(measured, self.tol, callback)
        return self._result(measured, measured, status or Status.CONVERGED, trace, True), at

    def _run(
        self, problem: Problem, start: Start, callback: Callback | None
    ) -> tuple[Result, Evaluation]:
        """Drive the iterates: measure with the clock stopped, keep the best, decide to stop."""
        trace, status = Trace(), Status.ITERATION_LIMIT
        kept: Measured | None = None
        last: Measured | None = None
        passes, seconds, clock = problem.passes, 0.0, time.perf_counter()
        for iterate in self.iterate(problem, start):
            seconds += time.perf_counter() - clock
            last = _again(last, iterate) or Measured.of(iterate, start.tol)
            trace.add(last, problem.passes - passes, seconds)
            ended = self._status(last, start.tol, callback)
            if ended is None and start.passes_used_up(problem):
                ended = Status.PASS_LIMIT
            if ended is not Status.DIVERGED and last.better_than(kept, start.tol):
                kept = last
            if ended is not None:
                status = ended
                break
            kept = None if kept is None else kept.without_rows()
            clock = time.perf_counter()
        if last is None:  # every answer of the subproblem solver was rejected
            last = Measured.of(Iterate(start.at(problem), None, 0), start.tol)
            seconds += time.perf_counter() - clock
            trace.add(last, problem.passes - passes, seconds)
        if status in (Status.DIVERGED, Status.PASS_LIMIT):
            first = Measured.of(Iterate(start.at(problem.uncounted()), None, 0), start.tol)
            kept = kept if kept is not None and kept.better_than(first, start.tol) else first
        if kept is None or status is Status.CONVERGED or kept.iterate.at.w is last.iterate.at.w:
            kept = last
        limits = (Status.ITERATION_LIMIT, Status.PASS_LIMIT)
        if status in limits and is_stuck(kept.iterate.at, start.tol, kept.certified):
            status = Status.INFEASIBLE
        if status is Status.INFEASIBLE and kept.violation <= start.tol:
            status = Status.STALLED  # of a later point than the one that is returned
        zero_one = start.measures_decisions
        return self._result(kept, last, status, trace, zero_one), kept.iterate.at

    @staticmethod
    def _status(last: Measured, tol: float, callback: Callback | None) -> Status | None:
        stop = callback is not None and callback(last)
        if not np.all(np.isfinite([last.objective, last.violation, last.kkt_residual])):
            return Status.DIVERGED
        if last.kkt.holds(tol):
            return Status.CONVERGED
        return Status.STOPPED if stop else last.iterate.status

    def _result(
        self, kept: Measured, last: Measured, status: Status, trace: Trace, zero_one: bool
    ) -> Result:
        at, n_iter = kept.iterate.at, last.iterate.iteration
        message = describe(status, kept.objective, kept.violation, kept.kkt_residual, n_iter)
        note = last.iterate.note
        return Result(
            w=at.w,
            multipliers=kept.multipliers,
            objective=kept.objective,
            violation=kept.violation,
            zero_one_violation=(at.uncounted().zero_one_violation if zero_one else np.nan),
            kkt_residual=kept.kkt_residual,
            status=status,
            message=f"{message} {note}" if note else message,
            n_iter=n_iter,
            data_passes=trace.data_passes[-1],
            trace=trace,
            solver=self,
            state=kept.iterate.state,
        )
