"""The search for a model whose decisions meet the constraints on the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from fairconstrained.decisions._run import SearchRun
from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.search_kinds import search_kind
from fairconstrained.exceptions import ConstantDecisionWarning, InfeasibleConstraintWarning
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.utils.rounding import ROUNDING
from fairconstrained.utils.typing import Array


class SearchTask(Protocol):
    """What a search on decisions starts from, as far as tests on held-out rows use it.

    Attributes
    ----------
    problem : Problem
        The problem on the rows that the search uses.
    y : ndarray of shape (n_rows,)
        The labels, -1 or +1.
    sample_weight : ndarray of shape (n_rows,)
        The weights.
    budget : SearchBudget
        Limits and margins.
    """

    @property
    def problem(self) -> Problem:
        """The problem."""

    @property
    def y(self) -> Array:
        """The labels."""

    @property
    def sample_weight(self) -> Array:
        """The weights."""

    @property
    def budget(self) -> SearchBudget:
        """Limits and margins."""

    @property
    def first_passes(self) -> float:
        """The data passes made before the search."""

    def candidates(self) -> CandidateSearch:
        """Return a search that knows the constant models only."""

    def search(self) -> DecisionSearch:
        """Return the best model that was found."""

    def tightened(self, shifts: Array) -> Self:
        """Return the task with tolerances that are smaller by `shifts`."""


@dataclass(frozen=True, eq=False)
class DecisionTask:
    """What a search on decisions starts from.

    Attributes
    ----------
    problem : Problem
        The problem with the surrogate.
    first : Result
        Its solution, the fit on scores.
    solver : Solver
        The solver for problems with other tolerances.
    y : ndarray of shape (n_rows,)
        The labels of the objective's rows, -1 or +1, or the classes 0, 1, ... of several.
    sample_weight : ndarray of shape (n_rows,)
        Their weights.
    unconstrained : ndarray of shape (n_parameters,)
        The model without constraints.
    random_state : int, RandomState or None
        For stochastic solvers.
    budget : SearchBudget, default=SearchBudget()
        What the search may cost.
    expected : tuple of CompositeFunction, default=()
        Estimates of the constraints on new rows, see
        :class:`~fairconstrained.decisions.soft_labels.SoftLabels`.
    """

    problem: Problem
    first: Result
    solver: Solver
    y: Array
    sample_weight: Array
    unconstrained: Array
    random_state: Any = None
    budget: SearchBudget = field(default_factory=SearchBudget)
    expected: tuple[CompositeFunction, ...] = ()

    def candidates(self) -> CandidateSearch:
        """Return a search that knows the constant models only."""
        kind = search_kind(self.problem)
        rows = (self.problem, self.y, self.sample_weight, self.budget)
        return kind(*rows, expected=self.expected)

    @property
    def first_passes(self) -> float:
        """The data passes of the fit on scores."""
        return self.first.data_passes

    def search(self) -> DecisionSearch:
        """Return the model of :func:`search_decisions`."""
        return search_decisions(self)

    def tightened(self, shifts: Array) -> DecisionTask:
        """Return the task with tolerances that are smaller by `shifts`, (n_constraints,)."""
        return replace(self, problem=self.problem.shifted(shifts))


@dataclass(frozen=True, eq=False)
class DecisionSearch:
    """The model that a search on decisions found, and its cost.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The model.
    met : bool
        Whether its decisions on the training rows meet all constraints, up to rounding.
    constant : bool
        Whether it predicts the same class for every row.
    violation : float
        The largest violation of the constraints on decisions; 0 if they are met.
    accuracy : float
        The weighted share of correct predictions on the training rows. The weights are those of
        the loss: `sample_weight` times `class_weight`.
    accuracy_on_scores : float
        The same of the fit that bounds scores, which the search starts from; nan if there was none.
    accuracy_unconstrained : float
        The same of the model without constraints, nan if that was not fitted.
    n_solves : int
        The number of problems solved after the fit on scores.
    data_passes : float
        The data passes of the fit on scores and of the search together.
    data_passes_on_scores : float
        The data passes of the fit on scores.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.1, enforce="decision")
    >>> search = clf.fit(X, y, sensitive_features=groups).decision_search_
    >>> search.met, search.constant, search.violation, clf.decision_gap_ <= 0.1
    (True, False, 0.0, True)
    >>> search.n_solves > 0, search.data_passes > search.data_passes_on_scores
    (True, True)
    """

    what: ClassVar[str] = (
        "enforce='decision'"  # the parameter that requires the search, in messages
    )

    w: Array = field(repr=False)
    met: bool
    constant: bool
    violation: float
    accuracy: float
    accuracy_on_scores: float
    accuracy_unconstrained: float
    n_solves: int
    data_passes: float
    data_passes_on_scores: float

    def warn(self, stacklevel: int) -> None:
        """Warn if the bound is not met, or by constant decisions only."""
        figures = (
            f"weighted training accuracy {self.accuracy:.3f}; without constraints it would be "
            f"{self.accuracy_unconstrained:.3f}"
        )
        if not self.met:
            warnings.warn(
                f"{self.what}: neither a model nor constant decisions were found that meet "
                f"the constraints. The model of least violation is kept: violation "
                f"{self.violation:.3g}, {figures}. Raise kappa.",
                InfeasibleConstraintWarning,
                stacklevel=stacklevel,
            )
        elif self.constant and self.accuracy < 1.0 - ROUNDING:
            warnings.warn(
                f"{self.what}: no model better than constant decisions was found that meets "
                f"the constraints. The same class is predicted for every row: {figures}. Raise "
                "kappa, or merge small groups.",
                ConstantDecisionWarning,
                stacklevel=stacklevel,
            )

    @property
    def accuracy_cost(self) -> float:
        """The training accuracy that the bound costs, compared with the unconstrained model."""
        return self.accuracy_unconstrained - self.accuracy

    def result(self, problem: Problem, first: Result) -> Result:
        """Return a result for this model, with the status and trace of the fit on scores.

        Parameters
        ----------
        problem : Problem
            The problem with the surrogate.
        first : Result
            The fit on scores.
        """
        w = self.w
        if self.constant:  # thresholds of ranks that suit other scores say nothing
            w = problem.start_at(w[: problem.objective.model.n_parameters])
        at = problem.uncounted().at(w)
        kkt = KKT.of(at, first.multipliers)
        message = (
            f"enforce='decision': violation on decisions {self.violation:.2e}; on scores the model "
            f"has objective {at.objective:.6g}, violation {at.violation:.2e} and KKT residual "
            f"{kkt.residual:.2e}. The search started from a fit on scores: {first.message}"
        )
        return replace(
            first,
            w=w,
            objective=at.objective,
            violation=at.violation,
            zero_one_violation=at.zero_one_violation,
            kkt_residual=kkt.residual,
            message=message,
            data_passes=self.data_passes,
        )

    def with_model(self, candidate: Candidate) -> DecisionSearch:
        """Return the same search with another model."""
        return replace(self, **_figures(candidate))


def _figures(best: Candidate) -> dict[str, Any]:
    """Return the fields that describe the model."""
    return {
        "w": best.w,
        "met": best.met,
        "constant": best.constant,
        "violation": 0.0 if best.met else best.violation,
        "accuracy": best.accuracy,
    }


def without_search(task: DecisionTask) -> DecisionSearch:
    """Return the model of the fit on scores as it is, with its predictions measured.

    Parameters
    ----------
    task : DecisionTask
        Its first result is the model. No other one was fitted; other accuracies are nan.
    """
    passes = task.first.data_passes
    return DecisionSearch(
        **_figures(task.candidates().evaluate(task.first.w)),
        accuracy_on_scores=np.nan,
        accuracy_unconstrained=np.nan,
        n_solves=0,
        data_passes=passes,
        data_passes_on_scores=passes,
    )


def search_decisions(task: DecisionTask) -> DecisionSearch:
    r"""Return a model whose decisions meet the constraints, the best one that was found.

    Among models that meet the constraints the more accurate one is better, then the one of smaller
    loss. Rates of few rows are estimated from more rows as well, see
    :class:`~fairconstrained.decisions.soft_labels.SoftLabels`: the amount by which the estimates
    exceed the bound has a price in accuracy, and the problems and repairs below bound them, too.

    The constraints on scores are tightened by what the decisions violate, see
    :func:`~fairconstrained.decisions.tightening.tightening`, and the problem is solved again from
    the last solution, several times. All intercepts of every solution and the lines between
    solutions are searched by counting. Solutions short of the bound are repaired. The constant
    models are candidates, so that the answer is never worse than a constant one that meets the
    constraints.

    Parameters
    ----------
    task : DecisionTask
        What the search starts from.
    """
    run = SearchRun(task)
    for one in (run.free, run.start):
        run.offer(one)
    if not run.free.met or run.free.price > 0.0:
        run.solve()
        run.repair()
        run.join()
        run.refine()
    run.rank()
    return DecisionSearch(
        **_figures(run.search.best),
        accuracy_on_scores=run.start.accuracy,
        accuracy_unconstrained=run.free.accuracy,
        n_solves=len(run.seen) - 1,
        data_passes=task.first.data_passes + run.problem.passes - run.begin,
        data_passes_on_scores=task.first.data_passes,
    )
