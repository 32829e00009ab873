"""The base of all solvers: one loop that measures, stops and reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.iterate import Callback as Callback
from fairconstrained.solvers.iterate import Iterate as Iterate
from fairconstrained.solvers.iterate import Measured as Measured
from fairconstrained.solvers.iterate import Run
from fairconstrained.solvers.result import Result, Status
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
            run = Run(problem, start, callback)
            return run.result(self, self._follow(problem, start, run))

    def _follow(self, problem: Problem, start: Start, run: Run) -> Status:
        """Drive the iterates; return how the run ended."""
        return run.follow(self.iterate(problem, start), start.last_pass)

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
        run = Run(at.problem, Start(at.w, tol=self.tol))
        iterate = Iterate(at, found.multipliers, found.n_iter, found.state)
        status = run.follow(iter([iterate]), np.inf)
        if status is not Status.CONVERGED:
            return None
        if callback is not None and run.last is not None:
            callback(run.last)
        return run.result(self, status)
