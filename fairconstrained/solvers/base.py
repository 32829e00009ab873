"""The base of all solvers, one loop that measures, stops and reports; the solvers by name."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import chain
from operator import attrgetter, call
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.problem.kkt import is_stuck
from fairconstrained.solvers.result import Iterate, Measured, Result, Start, Status, Trace, measures
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array

_SHARE = 0.25  # of the data passes of a run, kept for its refinement
_MOST_PASSES = 1500  # of a refinement: steps that need more are as slow as those before them
_FUNCTIONS = {
    "smoothable": "functions whose kinks are known",
    "difference_of_convex": "functions that are differences of convex functions",
}
Callback = Annotated[Callable[[Measured], "Status | bool | None"], callable]
_SHORT = Status.ITERATION_LIMIT, Status.PASS_LIMIT, Status.STALLED


class Run:
    """The loop: it measures with the clock stopped, keeps the best point, decides to stop.

    The callback is called with every measured iterate; a true answer stops the run, perhaps with a
    status. `kept` is the best point so far, at the end the result; `last` is the last iterate, and
    `trace` has the measures of all.
    """

    def __init__(self, problem: Problem, start: Start, callback: Callback | None = None):
        self.problem, self.start, self.callback = problem, start, callback
        self.kept: Measured | None = None
        self.last: Measured | None = None
        self.trace, self._passes, self._seconds = Trace(), problem.passes, 0.0

    def follow(self, iterates: Iterator[Iterate], last_pass: float) -> Status:
        """Measure iterates until one ends the run; return why."""
        tol, start, ended = self.start.tol, self.start, cast("Status | None", None)
        clock = time.perf_counter()
        for iterate in iterates:
            self._seconds += time.perf_counter() - clock
            last, ended = self.measure(iterate), iterate.status
            stop = self.callback is not None and self.callback(last)
            if not all(map(math.isfinite, last.figures.values())):
                ended = Status.DIVERGED
            elif last.kkt.holds(tol):
                ended = Status.CONVERGED
            elif stop:
                ended = stop if isinstance(stop, Status) else Status.STOPPED
            elif ended is None and self.problem.passes >= last_pass:
                ended = Status.PASS_LIMIT
            if ended is not Status.DIVERGED and last.better_than(self.kept, tol):
                self.kept = last
            if ended is not None:
                break
            self.kept = None if self.kept is None else self.kept.without_rows()
            clock = time.perf_counter()
        status = ended or Status.ITERATION_LIMIT
        # the point that is kept, and its status
        last = self.last or self.measure(Iterate(start.at(self.problem), None, 0))
        if status is Status.DIVERGED or start.passes_used_up(self.problem):
            first = Measured.of(Iterate(start.at(self.problem.uncounted()), None, 0), tol)
            if self.kept is None or not self.kept.better_than(first, tol):
                self.kept = first
        if self.kept is None or status.met or self.kept.iterate.at.w is last.iterate.at.w:
            self.kept = last
        if status in _SHORT and is_stuck(self.kept.iterate.at, tol, self.kept.certified):
            status = Status.INFEASIBLE
        if status is Status.INFEASIBLE and self.kept.violation <= tol:
            status = Status.STALLED  # of a later point than the one that is returned
        return status

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


def check_point(argument: str, w: Any, problem: Problem) -> None:
    """Raise a ValueError unless a point is one finite number for each variable of a problem."""
    n = problem.n_variables
    with suppress(TypeError, ValueError):
        if np.shape(w) == (n,) and np.all(np.isfinite(np.asarray(w, dtype=float))):
            return
    what = f"a finite number for each of the {n} variables of the problem"
    raise ValueError(f"{argument} must have {what}; got {w!r}.")


class Solver(Parametrized, ABC, kw_only=True):
    """A method for problems. Instances hold hyperparameters only; solving never changes them.

    A solver is a dataclass, the fields of a subclass are its further parameters. Methods whose
    theory does not promise accurate solutions have `polish`, default True: whether a run that ends
    short of its tolerance is finished by sequential quadratic programming from its best point, see
    :func:`refine`. If False, estimators keep the answer of the solver and try no other, so that
    ``paper()`` gives that of the printed algorithm.

    Parameters
    ----------
    max_iter : int, default=1000
        The maximum number of iterations.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    Attributes
    ----------
    requires : tuple of str
        The properties a problem must have ("smooth", "weakly_convex", ...).
    preferred_with : tuple of str
        Further properties that a problem needs for ``solver="auto"`` to choose this solver.
    seeks_feasibility : bool
        Whether the answer is meant to meet the constraints.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    preferred_with: ClassVar[tuple[str, ...]] = ()
    seeks_feasibility = True

    max_iter: valid.Limit = 1000
    tol: valid.NonNegative = 1e-4

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
        valid.check_parameters(self)
        if missing := self.missing(problem):
            functions = [_FUNCTIONS.get(name, f"{name} functions") for name in missing]
            needs = f"needs {' and '.join(functions).replace('_', ' ')}"
            advice = "change the surrogate, the loss or the penalty, or "
            if "batchable" in missing:
                needs = "draws batches of rows, which these data or this constraint do not allow"
                advice = ""
            others = f"use one of the solvers {', '.join(available_solvers(problem))}."
            raise IncompatibleSolverError(f"{self!r} {needs}: {advice}{others}")

    def with_options(self, **options: Any) -> Self:
        """Return a copy with the options that are not None; the solver if it has them already."""
        new = {k: v for k, v in options.items() if v is not None and getattr(self, k, None) != v}
        return clone(self).set_params(**new) if new else self

    @property
    def replaceable(self) -> bool:
        """Whether an estimator may return another solver's answer where this one's is bad."""
        inner = getattr(self, "solver", None) or self  # of a solver that rounds kinks for it
        return inner.seeks_feasibility and getattr(inner, "polish", True)

    @property
    def polishes(self) -> bool:
        """Whether runs are refined with the parameters as they are."""
        return self.seeks_feasibility and getattr(self, "polish", False)

    def unpolished(self) -> Self:
        """Return the solver without refinement: for subproblems, and for runs that are limited."""
        return self.with_options(polish=False) if self.polishes else self

    @abstractmethod
    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the iterates that are worth measuring; end when the iterations are used up."""

    @valid.checked
    def minimize(
        self,
        problem: Problem,
        w0: Array | None = None,
        *,
        warm: Result | Start | None = None,
        tol: valid.NonNegative | None = None,
        callback: Callback | None = None,
        random_state: valid.Seed = None,
        max_data_passes: valid.NonNegative | None = None,
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
            Called with every measured iterate; a true answer stops the run. A
            :class:`~fairconstrained.solvers.NearStationarity` is a further rule for its end.
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
        if w0 is not None:
            warm = replace(warm or Start(w0), w=w0)
        if warm is not None:
            check_point("warm.w" if w0 is None else "w0", warm.w, problem)
        return self.solve(problem, warm, tol, callback, random_state, max_data_passes)[0]

    def solve(
        self,
        problem: Problem,
        warm: Result | Start | None = None,
        tol: float | None = None,
        callback: Callback | None = None,
        random_state: valid.Seed = None,
        max_data_passes: float | None = None,
        like: Evaluation | None = None,
    ) -> tuple[Result, Evaluation]:
        """Minimise the problem, and return the evaluation at the result as well.

        Callers that go on from the result use this. The forward passes of the evaluation serve
        other problems made from the same models, see :meth:`Problem.at`. Those of `like` are used
        again if the first point is the same. All other parameters are those of :meth:`minimize`.
        """
        source: np.random.RandomState = check_random_state(random_state)
        first = Start(problem.start(source)) if warm is None else warm
        w = problem.domain.project(np.asarray(first.w, dtype=float))
        tol = self.tol if tol is None else tol
        last = problem.passes + (np.inf if max_data_passes is None else max_data_passes)
        start = Start(w, first.multipliers, first.state, tol, source, like, last)
        result, at = self.run(problem, start, callback)
        return replace(result, zero_one_violation=at.zero_one_violation), at

    def run(
        self, problem: Problem, start: Start, callback: Callback | None = None
    ) -> tuple[Result, Evaluation]:
        """Minimise a problem, such as a subproblem of another run; refine what falls short.

        The result has no zero-one violation. Parameters are those of :meth:`solve`.
        """
        self.check(problem)
        before = dict(problem.counter.functions)
        run, first, begin = Run(problem, start, callback), list[Iterate](), start
        if self.polishes:
            left = max(start.last_pass - problem.passes, 0.0)
            begin = replace(start, last_pass=problem.passes + (1.0 - _SHARE) * left)
        if start.multipliers is not None:  # the solution of a problem nearby may be one of this
            at = start.at(problem)  # measured before the solver's own evaluation shares its passes
            first, begin = [Iterate(at, start.multipliers, 0, start.state)], replace(begin, like=at)
        with np.errstate(over="ignore", invalid="ignore"):  # the status reports a run that diverges
            status = run.follow(chain(first, self.iterate(problem, begin)), begin.last_pass)
            status = refine(run, status) if self.polishes else status
        assert run.kept is not None and run.last is not None, "see Run.follow"
        last = run.last.iterate
        figures = measures(run.kept, status, last.iteration, last.note)
        at, state, passes = run.kept.iterate.at, run.kept.iterate.state, run.trace.data_passes[-1]
        rows, counts = problem.function_rows, problem.counter.functions.items()
        evaluations = {kind: (n - before[kind]) / rows[kind] for kind, n in counts}
        figures |= {"data_passes": passes, "evaluations": evaluations}
        return Result(**figures, trace=run.trace, solver=self, state=state), at


def refine(run: Run, status: Status) -> Status:
    r"""Make sequential quadratic programming steps from the best point of a run; return its status.

    First-order methods come near a solution and then slow down: where the Lagrangian is not convex,
    its gradient steps need not converge at all, and subgradient steps are as long as their step
    rule. The steps of :class:`~fairconstrained.solvers.SQP` restore the constraints and
    lower the objective at the same time. Kinks are rounded.
    """
    problem, start, kept = run.problem, run.start, run.kept
    steps = without_kinks(problem, SOLVERS["sqp"]())
    done = status.met or status is Status.STOPPED or start.passes_used_up(problem)
    if done or kept is None or steps.missing(problem):
        return status
    at, n_iter = kept.iterate.at, run.trace.iteration[-1]
    last_pass = min(start.last_pass, problem.passes + _MOST_PASSES)
    begin = replace(start, w=at.w, multipliers=None, state=None, like=at, last_pass=last_pass)
    made, state = steps.iterate(problem, begin), kept.iterate.state
    iterates = (replace(each, iteration=n_iter + each.iteration, state=state) for each in made)
    ended = run.follow(iterates, last_pass)
    if run.kept is not None and run.kept.iterate.at.w is at.w:  # no step was better
        return status
    if ended is not Status.PASS_LIMIT or start.passes_used_up(problem):
        return ended
    return status if status in (Status.ITERATION_LIMIT, Status.PASS_LIMIT) else Status.STALLED


def _make(path: str, **options: Any) -> Solver:
    """Return what the package makes; it is imported late, since solvers call others by name."""
    return attrgetter(path)(import_module("fairconstrained.solvers"))(**options)


# In order of preference: `default_solver` takes the first that is preferred for the problem.
SOLVERS: dict[str, Callable[..., Solver]] = {
    "sqp": partial(_make, "SQP"),
    "exact-penalty": partial(_make, "ExactPenalty"),
    "augmented-lagrangian": partial(_make, "AugmentedLagrangian"),
    "smoothing": partial(_make, "Smoothing"),
    "ipc": partial(_make, "IPC"),
    "ipp-ssg": partial(_make, "successive.ipp_ssg"),
    "ssg": partial(_make, "SwitchingSubgradient"),
    "ssg-stochastic": partial(_make, "StochasticSwitchingSubgradient"),
    "3s-econ": partial(_make, "ThreeSEcon"),
    "3s-econ-stochastic": partial(_make, "ThreeSEcon.stochastic"),
    "plada": partial(_make, "PLADA"),
    "plada-stochastic": partial(_make, "PLADA.stochastic"),
    "idca": partial(_make, "IDCA"),
    "idca-stochastic": partial(_make, "successive.idca_stochastic"),
    "ipp-conex": partial(_make, "successive.ipp_conex"),
    "conex": partial(_make, "ConEx"),
    "yu-neely-wei": partial(_make, "OnlineStochastic"),
    "lagrangian": partial(_make, "LagrangianDescentAscent"),
    "multiplier-model": partial(_make, "LagrangianDescentAscent.multiplier_model"),
    "regularization": partial(_make, "Regularization"),
}


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
    return [name for name, make in SOLVERS.items() if not make().missing(problem)]


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
    for solver in map(call, SOLVERS.values()):
        if all(getattr(problem, name) for name in (*solver.requires, *solver.preferred_with)):
            break
    return solver


def without_kinks(problem: Problem, solver: Solver) -> Solver:
    """Return the solver if it can solve the problem, else the one that rounds the kinks for it.

    Where rounding does not help either, the solver is returned as it is: its own message says what
    is missing.
    """
    if not solver.missing(problem):
        return solver
    rounded = SOLVERS["smoothing"](solver=solver, tol=solver.tol)
    return solver if rounded.missing(problem) else rounded
