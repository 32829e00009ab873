"""Methods that solve a sequence of convex subproblems: the loop that IPC and IDCA share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.conex import ConEx
from fairconstrained.solvers.result import Result, SolverState, Status
from fairconstrained.solvers.smoothing import Smoothing, SmoothingState
from fairconstrained.solvers.sqp import SQP
from fairconstrained.utils.parameter_constraints import ParameterConstraints

# Subproblems are solved more and more accurately. Solutions violate the constraints by at most a
# third of the tolerance: from a feasible point on, those of majorants are feasible.
_FIRST_TOL, _TIGHTEN, _LAST_TOL = 3.0, 0.3, 0.5  # the first and the last in units of tol
_FIRST_POINT = 1e-3  # tolerance of the minimiser without constraints
_MOST_PASSES = 100  # of a subproblem
_HARDER = 10.0  # times rho^ where an answer is refused
_MOST_REFUSALS = 6
_GAINED = ("weakly_convex", "difference_of_convex")  # the properties that subproblems have always
_FLAT = 0.99  # what a model leaves of the violation where surrogates have no slopes


@dataclass(eq=False, repr=False)
class SuccessiveSolver(Solver):
    r"""Base of the methods whose next point solves a convex model of the problem at the last one.

    Attributes
    ----------
    oracle : Solver or None
        A parameter: the solver of the subproblems. None takes the engine: :class:`SQP` if they are
        smooth, :class:`Smoothing` with it if kinks can be rounded, otherwise ConEx with 100 steps.
    safeguard : bool
        A parameter. If False, every answer is the next point, and only the point is passed on: the
        algorithm as published. Otherwise multipliers are passed on, subproblems are solved more and
        more accurately, and answers that are no better are refused.
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "oracle": [Solver, None],
    }
    oracle: Solver | None = None
    _: KW_ONLY
    safeguard: bool = True
    tol: float = 1e-4
    polish: bool = True

    @abstractmethod
    def subproblem(self, at: Evaluation, rho: float) -> Problem:
        """Return the convex model at a point."""

    def first_rho(self, problem: Problem) -> float:
        """Return rho^; 0 for models without it."""
        return 0.0

    def note(self, problem: Problem, rho: float) -> str:
        """Return what the message of a published run says in addition."""
        return ""

    def _oracle_for(self, problem: Problem) -> Solver:
        if self.oracle is not None:
            return self.oracle.unpolished()
        if problem.smooth:
            return SQP()
        return Smoothing(SQP()) if problem.smoothable else ConEx(max_iter=100, polish=False)

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or its subproblems for the oracle."""
        lacking = super().missing(problem)
        if lacking or self.oracle is None:
            return lacking
        return [name for name in self.oracle.missing(problem) if name not in _GAINED]

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers to the subproblems, without safeguard all of them."""
        return (self._safeguarded if self.safeguard else self._published)(problem, start)

    def _published(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        oracle, rho = self._oracle_for(problem), self.first_rho(problem)
        at = found = start.at(problem)
        for t in range(1, self.max_iter + 1):
            begin = replace(start, w=at.w, multipliers=None, state=None, like=at)
            for iterate in oracle.iterate(self.subproblem(at, rho), begin):
                found = iterate.at
            at = problem.at(found.w, like=found)
            yield Iterate(at, None, t, note=self.note(problem, rho))

    def _safeguarded(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        oracle, origin = self._oracle_for(problem), start.at(problem)
        at = self._first(problem, start, origin)
        last = SuccessiveState.of(start.state)
        warm: Start | Result = replace(start, state=None if last is None else last.subproblem)
        rho = self.first_rho(problem) if last is None else last.rho
        tol, refusals = _FIRST_TOL * start.tol, 0
        for t in range(1, self.max_iter + 1):
            model = self.subproblem(at, rho)
            answer, end = oracle.solve(
                model, at.w, like=at, warm=warm, tol=tol, max_data_passes=_MOST_PASSES, within=start
            )
            found = problem.at(answer.w, like=end)
            tol = max(_LAST_TOL * start.tol, _TIGHTEN * tol)
            if _acceptable(answer, at, found, start.tol):
                at, warm, refusals = found, answer, 0
                rounded = SmoothingState.rounded(answer.state, problem, at)
                last = SuccessiveState(rho, answer.state)
                yield Iterate(at, answer.multipliers, t, last, rounded=rounded)
                continue
            nearer = origin.violation < at.violation
            if last is None and nearer and found.violation > _FLAT * at.violation > start.tol:
                # The first point is so far from the constraints that surrogates have no slopes to
                # return by, as the minimiser of the loss of one class: half of the way back.
                at = problem.at(0.5 * (at.w + origin.w))
                continue
            refusals += 1
            if rho == 0.0 or refusals > _MOST_REFUSALS or start.passes_used_up(problem):
                # A point that violates constraints is left to the test of infeasibility.
                stalled = Status.STALLED if at.violation <= start.tol else None
                yield Iterate(at, None, t, status=stalled)
                return
            rho *= _HARDER

    def _first(self, problem: Problem, start: Start, at: Evaluation) -> Evaluation:
        """Return the first point; a run that may be polished begins without constraints.

        Majorants that touch at scores of zero may have their minimum there: where constraints clip
        rates, or where ramps end, that is a stationary point, though a poor one.
        """
        free = problem.with_constraints(())
        oracle = self._oracle_for(free)
        if not self.polish or start.multipliers is not None or oracle.missing(free):
            return at
        answer, end = oracle.solve(
            free, at.w, like=at, tol=_FIRST_POINT, max_data_passes=_MOST_PASSES, within=start
        )
        return problem.at(answer.w, like=end)


def _acceptable(answer: Result, before: Evaluation, after: Evaluation, tol: float) -> bool:
    """Return whether an oracle solved its subproblem, or at least found a better point."""
    if before.violation > tol:  # a model without a feasible point has one of least violation
        return after.violation < 0.9 * before.violation
    return answer.converged or (after.violation <= tol and after.objective < before.objective)


@dataclass(frozen=True, eq=False)
class SuccessiveState(SolverState):
    """What these methods leave for a warm start.

    Attributes
    ----------
    rho : float
        rho^ of the last subproblem.
    subproblem : SolverState or None
        The state that the solver of the subproblems left.
    """

    rho: float
    subproblem: SolverState | None
