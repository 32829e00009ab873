"""The search for a model whose decisions meet the constraints on the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.candidates import Candidate, CandidateSearch, most_promising
from fairconstrained.decisions.repair import repair
from fairconstrained.decisions.several_classes import ClassCandidateSearch
from fairconstrained.decisions.tightening import steepened, tightening
from fairconstrained.exceptions import ConstantDecisionWarning, InfeasibleConstraintWarning
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.terms.multinomial import MultinomialLoss
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
    min_passes : float, default=0.0
        The least number of data passes that counts as the cost of the fit on scores.
    """

    problem: Problem
    first: Result
    solver: Solver
    y: Array
    sample_weight: Array
    unconstrained: Array
    random_state: Any = None
    budget: SearchBudget = field(default_factory=SearchBudget)
    min_passes: float = 0.0

    def candidates(self) -> CandidateSearch:
        """Return a search that knows the constant models only."""
        several = isinstance(self.problem.objective.term, MultinomialLoss)
        kind = ClassCandidateSearch if several else CandidateSearch
        return kind(self.problem, self.y, self.sample_weight, self.budget)

    @property
    def first_passes(self) -> float:
        """The data passes of the fit on scores."""
        return self.first.data_passes

    def search(self) -> DecisionSearch:
        """Return the model of :func:`search_decisions`."""
        return search_decisions(self)

    def tightened(self, shifts: Array) -> DecisionTask:
        """Return the task with tolerances that are smaller by `shifts`, (n_constraints,)."""
        passes = self.budget.binding_passes
        return replace(self, problem=self.problem.shifted(shifts), min_passes=passes)


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
        The weighted share of correct predictions on the training rows.
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
    >>> search.data_passes <= 4.0 * search.data_passes_on_scores
    True
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
            f"training accuracy {self.accuracy:.3f}; without constraints it would be "
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
        elif self.constant:
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
        at = problem.uncounted().at(self.w)
        kkt = KKT.of(at, first.multipliers)
        message = (
            f"enforce='decision': violation on decisions {self.violation:.2e}; on scores the model "
            f"has objective {at.objective:.6g}, violation {at.violation:.2e} and KKT residual "
            f"{kkt.residual:.2e}. The search started from a fit on scores: {first.message}"
        )
        return replace(
            first,
            w=self.w,
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


class _Run:
    """The state of one search: the candidates seen, and the data passes made.

    Parameters
    ----------
    task : DecisionTask
        What the search starts from.
    """

    def __init__(self, task: DecisionTask):
        self.task, self.problem, self.budget = task, task.problem, task.budget
        self.begin = task.problem.passes
        self.search = task.candidates()
        self.fit_passes = max(min(task.first.data_passes, task.budget.most_passes), task.min_passes)
        self.start = self.search.evaluate(task.first.w)
        own = task.first.w[len(task.unconstrained) :]  # the variables of the constraints' terms
        self.free = self.search.evaluate(np.append(task.unconstrained, own))
        self.seen = [self.start]

    def spent(self) -> float:
        """Return the data passes made, as a multiple of those of the fit on scores."""
        return (self.problem.passes - self.begin) / self.fit_passes

    def effort(self) -> float:
        """Return the same with a line search counted as one data pass."""
        return self.spent() + self.search.n_lines / self.fit_passes

    def offer(self, one: Candidate) -> None:
        """Offer a candidate, and all intercepts of it."""
        self.search.offer(one)
        self.search.sweep_intercept(one)

    def solve(self) -> None:
        """Solve with other tolerances, repeatedly from the last solution.

        After a solution whose decisions are not nearer to the bound, steeper surrogates are used;
        they describe decisions better and are harder to minimise. Constraints on rankings cannot be
        repaired, and their solves may cost what repairs cost otherwise.
        """
        task, budget = self.task, self.budget
        factor, warm, cost = 1.0, task.first, 0.0
        limit = budget.solve_passes if self.search.counted else budget.repair_passes
        cutoff = max(budget.cutoff_passes, limit)
        sharpness = iter(budget.continuation if self.search.counted else ())
        for _ in range(budget.max_solves):
            factor = next(sharpness, factor)
            before, last = self.spent(), self.seen[-1]
            if before + cost > limit:
                break
            problem = steepened(self.search, self.start, factor)
            warm = task.solver.minimize(
                problem.shifted(tightening(self.search, problem, last)),
                warm=warm,
                tol=budget.solve_tol_factor * task.solver.tol,
                callback=lambda _: self.spent() > limit,
                random_state=task.random_state,
                max_data_passes=max(cutoff - before, 0.0) * self.fit_passes,
            )
            cost = self.spent() - before
            if not np.all(np.isfinite(warm.w)):
                break
            found = self.search.evaluate(warm.w)
            self.seen.append(found)
            self.offer(found)
            if found.violation > budget.sufficient_decrease * max(last.violation, 0.0):
                factor = budget.steepening

    def repair(self) -> None:
        """Repair the most promising models step by step."""
        budget = self.budget
        weight = budget.accuracy_weight
        for one in most_promising(self.seen, weight, budget.n_repaired):
            for _ in range(budget.n_repairs):
                best = self.search.best
                if best.met and one.accuracy <= best.accuracy:
                    break  # repairs cost accuracy: the repaired model would not be better
                found = repair(self.search, one, lambda: self.effort() > budget.repair_passes)
                if found.promise(weight) <= one.promise(weight):
                    break
                one = found

    def join(self) -> None:
        """Search the lines between the best model and the others."""
        best = self.search.best
        for other in (*self.seen, self.free):
            self.search.sweep_between(self.search.best, other)
        if self.search.best is not best:
            self.search.sweep_intercept(self.search.best)

    def rank(self) -> None:
        """Search the lines from the constant model, for constraints on rankings.

        Scores may rank rows well although decisions are constant. Where no model is more accurate
        than the constant one, the loss decides, and it is least on these lines.
        """
        search = self.search
        if search.counted or search.best.accuracy > search.constant.accuracy + ROUNDING:
            return
        for other in (*self.seen, self.free):
            search.sweep_between(search.constant, other)


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
    loss. The constraints on scores are tightened by what the decisions violate, see
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
    run = _Run(task)
    for one in (run.free, run.start):
        run.offer(one)
    if not run.free.met:
        run.solve()
        run.repair()
        run.join()
        run.search.refine(run.seen)
    run.rank()
    return DecisionSearch(
        **_figures(run.search.best),
        accuracy_on_scores=run.start.accuracy,
        accuracy_unconstrained=run.free.accuracy,
        n_solves=len(run.seen) - 1,
        data_passes=task.first.data_passes + run.problem.passes - run.begin,
        data_passes_on_scores=task.first.data_passes,
    )
