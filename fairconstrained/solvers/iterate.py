"""Where runs start, the points that solvers offer, and the loop that measures them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_stuck
from fairconstrained.problem.kkt import KKT, certify
from fairconstrained.problem.multipliers import Multipliers
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.result import SolverState, Status, Trace
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Start:
    """What a run starts from.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The first point.
    multipliers : ndarray of shape (n_constraints,) or None
        The first multipliers; None where there are none.
    state : SolverState or None
        The state of an earlier run; a solver of another kind ignores it.
    tol : float
        The tolerance of this run.
    random_state : numpy.random.RandomState
        The source of randomness, by default NumPy's own.
    like : Evaluation or None
        An evaluation whose forward passes are used again if it is at `w`.
    last_pass : float
        The value of :attr:`Problem.passes` at which the run ends.
    """

    w: Array
    multipliers: Array | None = None
    state: SolverState | None = None
    tol: float = 1e-4
    random_state: np.random.RandomState = field(default_factory=partial(check_random_state, None))
    like: Evaluation | None = None
    last_pass: float = np.inf

    def first_multipliers(self, n_constraints: int) -> Array:
        """Return the first multipliers, zeros where there are none."""
        return np.zeros(n_constraints) if self.multipliers is None else self.multipliers

    @property
    def feasibility_tol(self) -> float:
        """The largest violation of an optimal point, see :meth:`KKT.holds`."""
        return self.tol / 3.0

    def at(self, problem: Problem) -> Evaluation:
        """Return the evaluation of a problem at the first point."""
        return problem.at(self.w, like=self.like)

    def passes_used_up(self, problem: Problem) -> bool:
        """Return whether the run has made all data passes that it may make."""
        return problem.passes >= self.last_pass


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point that a solver offers for measurement.

    Attributes
    ----------
    at : Evaluation
        The problem at the point.
    multipliers : ndarray, Multipliers or None
        The solver's multipliers; None has them estimated.
    iteration : int
        Iterations made so far.
    state : SolverState or None
        What a warm start takes over.
    status : Status or None
        Set when the solver cannot go on.
    rounded : Evaluation or None
        For problems with kinks: the problem with its kinks rounded, at the same point, whose
        gradient is the subgradient that the solver means (see :meth:`KKT.of`).
    note : str
        What the message of the result says in addition.
    """

    at: Evaluation
    multipliers: Array | Multipliers | None
    iteration: int
    state: SolverState | None = None
    status: Status | None = None
    rounded: Evaluation | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Measured:
    """An iterate with its measures: what callbacks receive and the loop compares."""

    iterate: Iterate
    certified: Array | Multipliers
    kkt: KKT
    objective: float
    violation: float
    kkt_residual: float

    @classmethod
    def of(cls, iterate: Iterate, tol: float) -> Measured:
        """Measure an iterate."""
        at = iterate.at
        multipliers, kkt = certify(at, iterate.multipliers, tol, rounded=iterate.rounded)
        return cls(iterate, multipliers, kkt, at.objective, kkt.violation, kkt.residual)

    @property
    def multipliers(self) -> Array:
        """The multipliers of the certificate, shape (n_constraints,)."""
        values = self.certified
        return values.dense() if isinstance(values, Multipliers) else values

    @property
    def figures(self) -> dict[str, float]:
        """Objective, violation and KKT residual, by the names that results have for them."""
        names = "objective", "violation", "kkt_residual"
        return {name: getattr(self, name) for name in names}

    def without_rows(self) -> Measured:
        """Return the same without the forward passes of its evaluation."""
        at = self.iterate.at
        return replace(self, iterate=replace(self.iterate, at=at.problem.at(at.w), rounded=None))

    def better_than(self, other: Measured | None, tol: float) -> bool:
        """Return whether this one is to be kept: feasible first, then by objective."""
        if other is None:
            return True
        kinds = [(m.violation if m.violation > tol else 0.0, m.objective) for m in (self, other)]
        return kinds[0] <= kinds[1]


Callback = Annotated[Callable[[Measured], bool | None], callable]
_SHORT = Status.ITERATION_LIMIT, Status.PASS_LIMIT, Status.STALLED


class Run:
    """The loop: it measures with the clock stopped, keeps the best point, decides to stop.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    start : Start
        What the run starts from.
    callback : callable or None
        Called with every measured iterate; a true answer stops the run.

    Attributes
    ----------
    kept : Measured or None
        The best point so far; at the end the result.
    last : Measured or None
        The last iterate.
    trace : Trace
        The measures of all iterates.
    """

    def __init__(self, problem: Problem, start: Start, callback: Callback | None = None):
        self.problem, self.start, self.callback = problem, start, callback
        self.kept: Measured | None = None
        self.last: Measured | None = None
        self.trace, self._passes, self._seconds = Trace(), problem.passes, 0.0

    def follow(self, iterates: Iterator[Iterate], last_pass: float) -> Status:
        """Measure iterates until one ends the run; return why.

        Parameters
        ----------
        iterates : iterator of Iterate
            Those of a solver.
        last_pass : float
            The value of :attr:`Problem.passes` at which it ends.
        """
        tol, status = self.start.tol, Status.ITERATION_LIMIT
        clock = time.perf_counter()
        for iterate in iterates:
            self._seconds += time.perf_counter() - clock
            last = self.measure(iterate)
            ended = self._status(last)
            if ended is None and self.problem.passes >= last_pass:
                ended = Status.PASS_LIMIT
            if ended is not Status.DIVERGED and last.better_than(self.kept, tol):
                self.kept = last
            if ended is not None:
                status = ended
                break
            self.kept = None if self.kept is None else self.kept.without_rows()
            clock = time.perf_counter()
        return self._settled(status)

    def measure(self, iterate: Iterate) -> Measured:
        """Measure an iterate, unless it is the last one once more, and add it to the trace."""
        last = self.last
        if last is not None and iterate.at is last.iterate.at and iterate.multipliers is None:
            self.last = replace(last, iterate=iterate)
        else:
            self.last = Measured.of(iterate, self.start.tol)
        passes = self.problem.passes - self._passes
        entry = {"iteration": iterate.iteration, "data_passes": passes, "seconds": self._seconds}
        self.trace.append(**entry, **self.last.figures)
        return self.last

    def _status(self, last: Measured) -> Status | None:
        stop = self.callback is not None and self.callback(last)
        if not all(map(math.isfinite, last.figures.values())):
            return Status.DIVERGED
        if last.kkt.holds(self.start.tol):
            return Status.CONVERGED
        return Status.STOPPED if stop else last.iterate.status

    def _settled(self, status: Status) -> Status:
        """Return the status of the point that is kept, which is chosen here."""
        tol, start = self.start.tol, self.start
        last = self.last or self.measure(Iterate(start.at(self.problem), None, 0))
        if status is Status.DIVERGED or start.passes_used_up(self.problem):
            first = Measured.of(Iterate(start.at(self.problem.uncounted()), None, 0), tol)
            if self.kept is None or not self.kept.better_than(first, tol):
                self.kept = first
        kept = self.kept or last
        if status is Status.CONVERGED or kept.iterate.at.w is last.iterate.at.w:
            kept = last
        self.kept = kept
        if status in _SHORT and is_stuck(kept.iterate.at, tol, kept.certified):
            status = Status.INFEASIBLE
        if status is Status.INFEASIBLE and kept.violation <= tol:
            status = Status.STALLED  # of a later point than the one that is returned
        return status
