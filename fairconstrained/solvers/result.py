"""Where runs start, the points that solvers offer, and what they return: point and history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from fairconstrained.problem import KKT, Evaluation, Problem
from fairconstrained.problem.composite import Multipliers
from fairconstrained.problem.kkt import certify
from fairconstrained.utils.arrays import Array

if TYPE_CHECKING:
    from fairconstrained.solvers.base import Solver


class Status(Enum):
    """The status of a run of a solver.

    Attributes
    ----------
    value : str
        "converged", "nearly stationary", "iteration limit", "data pass limit", "stalled",
        "infeasible stationary point", "diverged", "stopped by a callback" or "chosen on validation
        rows".
    advice : str
        What to do about it; empty if nothing has to be done.

    Examples
    --------
    >>> from fairconstrained.solvers import Status
    >>> Status.INFEASIBLE.value
    'infeasible stationary point'
    """

    CONVERGED = "converged"
    NEARLY_STATIONARY = "nearly stationary"
    ITERATION_LIMIT = "iteration limit"
    PASS_LIMIT = "data pass limit"
    STALLED = "stalled"
    INFEASIBLE = "infeasible stationary point"
    DIVERGED = "diverged"
    STOPPED = "stopped by a callback"
    VALIDATED = "chosen on validation rows"

    @property
    def met(self) -> bool:
        """Whether the run ended where it was to end."""
        return self in (Status.CONVERGED, Status.NEARLY_STATIONARY)

    @property
    def advice(self) -> str:
        """What the user can do."""
        return _ADVICE.get(self, "")

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        """Return how it is made from its value: skops asks here, where pickle asks Enum."""
        return Status, (self.value,)


_ADVICE = {
    Status.ITERATION_LIMIT: "Raise max_iter or tol. If the solver was named, solver='auto' may "
    "need far fewer passes.",
    Status.PASS_LIMIT: "Raise tol, max_epochs of a network, max_iter of another estimator, or "
    "max_data_passes of a solver; the best point so far is kept.",
    Status.STALLED: "No further progress is possible in floating point or with this method; "
    "raise tol or alpha.",
    Status.INFEASIBLE: "The violation cannot be made smaller near this point: loosen the "
    "bound (kappa, or the constraint's own tolerance), or start elsewhere.",
    Status.DIVERGED: "The iterates left all bounds: raise alpha, pass a solver with smaller "
    "steps, or give a domain where the estimator has one.",
}


@dataclass
class Trace:
    """The measured iterates of a run, one entry for each.

    Attributes
    ----------
    iteration : list of int
        The number of iterations so far.
    data_passes : list of float
        The number of data passes so far: forward passes over all rows.
    seconds : list of float
        The seconds spent in the solver so far, without those for measuring the iterates.
    objective, violation, kkt_residual : list of float
        The measures of the iterate, see :class:`Result`.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> clf.result_.trace.to_frame().columns.tolist()
    ['iteration', 'data_passes', 'seconds', 'objective', 'violation', 'kkt_residual']
    """

    iteration: list[int] = field(default_factory=list)
    data_passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    violation: list[float] = field(default_factory=list)
    kkt_residual: list[float] = field(default_factory=list)

    def append(self, **entry: float) -> None:
        """Add one entry to every column."""
        for name, value in entry.items():
            getattr(self, name).append(value)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.iteration)

    def to_frame(self) -> pd.DataFrame:
        """Return the trace as a DataFrame with a row per measured iterate."""
        return pd.DataFrame(vars(self))


@dataclass(frozen=True, eq=False)
class SolverState:
    """What a solver has learned beyond the point and its multipliers, for a warm start.

    It never holds arrays with the length of the rows.
    """

    kind: type  # the class of the solver that left it; solvers of other classes ignore it
    # the penalty parameter, the width of rounding or the proximal parameter that it came to
    parameter: float = 0.0
    tol: float = 0.0  # the tolerance of the next round
    hessian: Array | None = None  # the last Hessian of the Lagrangian, (n_variables, n_variables)
    subproblem: SolverState | None = None  # what the solver of the subproblems left


@dataclass(frozen=True, eq=False)
class Start:
    """What a run starts from."""

    w: Array  # the first point, (n_variables,)
    # the first multipliers; None where there are none, (n_constraints,)
    multipliers: Array | None = None
    # the state of an earlier run; a solver of another kind ignores it
    state: SolverState | None = None
    tol: float = 1e-4  # the tolerance of this run
    # the source of randomness, by default NumPy's own
    random_state: np.random.RandomState = field(default_factory=partial(check_random_state, None))
    # an evaluation whose forward passes are used again if it is at `w`
    like: Evaluation | None = None
    last_pass: float = np.inf  # the value of `Problem.passes` at which the run ends

    def left_by(self, kind: type, parameter: float = 0.0, tol: float = 0.0) -> SolverState:
        """Return the state, or a first one if a solver of another kind left it."""
        state = self.state or SolverState(kind, parameter, tol)
        return state if state.kind is kind else SolverState(kind, parameter, tol)

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
    """A point that a solver offers for measurement."""

    at: Evaluation  # the problem at the point
    multipliers: Array | Multipliers | None  # the solver's multipliers; None has them estimated
    iteration: int  # iterations made so far
    state: SolverState | None = None  # what a warm start takes over
    status: Status | None = None  # set when the solver cannot go on
    # for problems with kinks: the problem with its kinks rounded, at the same point, whose gradient
    # is the subgradient that the solver means (see `KKT.of`)
    rounded: Evaluation | None = None
    note: str = ""  # what the message of the result says in addition


@dataclass(frozen=True, eq=False)
class Measured:
    """An iterate with its measures: what callbacks receive and the loop compares."""

    iterate: Iterate
    certified: Multipliers
    kkt: KKT
    objective: float
    violation: float
    kkt_residual: float

    @classmethod
    def of(cls, iterate: Iterate, tol: float) -> Measured:
        """Measure an iterate."""
        at = iterate.at
        certified, kkt = certify(at, iterate.multipliers, tol, rounded=iterate.rounded)
        return cls(iterate, certified, kkt, at.objective, kkt.violation, kkt.residual)

    @property
    def multipliers(self) -> Array:
        """The multipliers of the certificate, shape (n_constraints,)."""
        return self.certified.dense()

    @cached_property
    def figures(self) -> dict[str, float]:
        """Objective, violation and KKT residual, by the names that results have for them."""
        return {name: getattr(self, name) for name in ("objective", "violation", "kkt_residual")}

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


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a solver, returned by :meth:`Solver.minimize`; `result_` of an estimator.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The last iterate if the run converged, else the best feasible one, else the one of least
        violation.
    multipliers : ndarray of shape (n_constraints,)
        The Lagrange multipliers, >= 0; estimated by non-negative least squares if the method has
        none.
    objective : float
        f(w).
    violation, zero_one_violation : float
        max(0, max_j g_j(w)), with the surrogate and with the predictions.
    kkt_residual : float
        See :func:`~fairconstrained.problem.kkt.kkt_residual`.
    status : Status
        How the run ended.
    message : str
        The status in a sentence, with the measures and with advice.
    n_iter : int
        The number of iterations.
    data_passes : float
        The number of data passes: forward passes over all rows.
    evaluations : dict of float
        How often "objective", "constraints" and "constraint_gradients" were evaluated by the run
        that gave the answer, each in passes over its own rows: a batch counts as its share. At a
        point each counts once, whatever is asked of it. Starts and other runs of a fit are in
        `data_passes` alone.
    trace : Trace
        The measured iterates.
    solver : Solver
        The solver that found `w`.
    state : SolverState or None
        The state that a warm start uses.
    bound, optimality : str
        Whether the bound that an estimator was asked for is met, and how much better another model
        can be, in words; empty where there is nothing to say.
    replaces : Solver or None
        The solver that the estimator was asked for, if its answer failed and another solver's was
        taken; else None.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> clf.result_.converged, clf.result_.violation <= 1e-4
    (True, True)
    """

    w: Array
    multipliers: Array
    objective: float
    violation: float
    kkt_residual: float
    status: Status
    message: str
    n_iter: int
    data_passes: float
    evaluations: dict[str, float] = field(repr=False)
    trace: Trace = field(repr=False)
    solver: Solver
    state: SolverState | None = field(default=None, repr=False)
    replaces: Solver | None = field(default=None, repr=False)
    bound: str = ""
    optimality: str = ""
    zero_one_violation: float = np.nan

    @property
    def converged(self) -> bool:
        """Whether the run met its tolerance, or the near-stationarity that it was to end at."""
        return self.status.met

    def with_point(self, measured: Measured, status: Status) -> Result:
        """Return the result of the same run with another point, its measures and no state."""
        zero_one = measured.iterate.at.zero_one_violation
        figures = measures(measured, status, measured.iterate.iteration)
        return replace(self, **figures, zero_one_violation=zero_one, state=None)

    def without_arrays(self) -> Result:
        """Return the result with its figures alone: no point, multipliers, trace or state."""
        nothing = self.w[:0]
        return replace(self, w=nothing, multipliers=nothing, trace=Trace(), state=None)

    def __str__(self) -> str:
        """Return whether the bound is met, how far the best model may be, and the message."""
        return "; ".join(text for text in (self.bound, self.optimality, self.message) if text)

    def _repr_html_(self) -> str:
        """Return a table of the figures for notebooks."""
        figures = {
            "bound": self.bound.removeprefix("bound ") or "none",
            "optimality": self.optimality,
            "status": self.status.value,
            "objective": f"{self.objective:.6g}",
            "violation": f"{self.violation:.2e}",
            "KKT residual": f"{self.kkt_residual:.2e}",
            "iterations": self.n_iter,
            "data passes": f"{self.data_passes:.1f}",
            "solver": repr(self.solver),
            "advice": self.status.advice,
        }
        shown = pd.Series({name: str(value) for name, value in figures.items() if value != ""})
        with pd.option_context("display.max_colwidth", None):
            return str(shown.to_frame().to_html(header=False))


def describe(
    status: Status, objective: float, violation: float, kkt_residual: float, n_iter: int
) -> str:
    """Return the sentence that says how a run ended."""
    return (
        f"{status.value} after {n_iter} iterations: objective {objective:.6g}, "
        f"violation {violation:.2e}, KKT residual {kkt_residual:.2e}. {status.advice}"
    ).strip()


def measures(measured: Measured, status: Status, n_iter: int, note: str = "") -> dict[str, Any]:
    """Return the attributes of a result that say where and how a run ended."""
    figures = measured.figures
    message = f"{describe(status, n_iter=n_iter, **figures)} {note}".strip()
    run = {"status": status, "message": message, "n_iter": n_iter}
    return {"w": measured.iterate.at.w, "multipliers": measured.multipliers, **figures, **run}
