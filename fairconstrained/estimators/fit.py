"""A fit: an estimator's options and checked data as a problem, and what its solutions become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fairconstrained.bounds import OptimalityGap, optimality_gap
from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import HeldOut, split
from fairconstrained.decisions.new_rows import expected_gaps
from fairconstrained.decisions.population import Certificate, search_with_confidence
from fairconstrained.decisions.search import DecisionSearch, DecisionTask, search_decisions
from fairconstrained.decisions.soft_labels import SoftLabels, has_few_rows
from fairconstrained.estimators.binding import (
    Unconstrained,
    choices,
    constraints_of,
    loss_part,
    with_constraints,
)
from fairconstrained.estimators.rows import checked_data, moved_split, without_held_out
from fairconstrained.estimators.solution import Solution, measures, names_in_data
from fairconstrained.estimators.thresholds import SelectionRate, decision_attributes
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models import Model
from fairconstrained.penalties import Penalty, Zero
from fairconstrained.problem import CompositeFunction, Evaluation, Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.utils.execution import limited_threads
from fairconstrained.utils.storage import set_fitted
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_kappa

_SHARE_FOR_BOUND = 0.5  # of the data passes of a fit
_PASSES_FOR_BOUND, _ROWS_FOR_BOUND = 16.0, 20_000.0  # so few cost less than the fit's calls

Split = tuple[TrainingData, TrainingData]


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """What a search on decisions varies.

    Attributes
    ----------
    task : DecisionTask
        What the search starts from.
    held_out : HeldOut or None
        The rows held out for `confidence`, with the constraints as functions of the variables that
        are searched.
    lift : callable
        From these variables to those of the fit.
    search : callable
        Returns the search for a task.
    """

    task: DecisionTask
    held_out: HeldOut | None
    lift: Callable[[Array], Array]
    search: Callable[[DecisionTask], DecisionSearch] = search_decisions

    def found(self, confidence: float | None) -> tuple[DecisionSearch, Certificate | None]:
        """Return the model that was found, and with a confidence what the held-out rows show."""
        if self.held_out is None or confidence is None:
            return self.search(self.task), None
        return search_with_confidence(self.task, self.held_out, confidence)


@dataclass(frozen=True, eq=False)
class Fit:
    r"""An estimator's options bound to checked data.

    `fit`, :func:`~fairconstrained.fairness_path`, the search on decisions and measurements on
    validation rows share it:

    .. math::
        \min_w \mathrm{objective}(\mathrm{model}(w)) + \mathrm{penalty}(w) \quad \text{s.t.} \quad
        g_j(\mathrm{model}(w)) \le 0, \quad w \in \text{domain}.

    Attributes
    ----------
    estimator : estimator
        Its parameters are read.
    data : TrainingData
        The training rows with the features that the model uses.
    unconstrained : Unconstrained
        The model without constraints; it is solved on first access.
    problem : Problem
        The objective with model and penalty, and the constraints bound to the training rows.
    constraints : tuple of Constraint
        All must hold; their tolerances are set.
    grown : Grown or None
        Of boosted trees: how they were grown.
    split : tuple of TrainingData or None
        Of the training rows, those that choose the iterate, after those that it is trained on.
    held_out : HeldOut or None
        With `confidence`: the rows that are not used for training.
    """

    estimator: Any
    data: TrainingData
    unconstrained: Unconstrained
    problem: Problem
    constraints: tuple[Constraint, ...] = ()
    grown: Any = None
    split: Split | None = None
    held_out: HeldOut | None = None

    @classmethod
    def of(
        cls, estimator: Any, passed: tuple[Any, ...], validation: tuple[Any, ...], *, path: bool
    ) -> Fit:
        """Return the fit for the arguments of :meth:`TrainingData.check`; `path` as in `bind`."""
        data, constraints = checked_data(estimator, passed, validation, path=path)
        data, held_out = without_held_out(estimator, data, constraints)
        share, parts = estimator._validation_share(data), None
        if data.validation is not None:
            parts = data, data.validation
        elif share is not None:
            parts = split(data, share, estimator.random_state)[:2]
        if isinstance(estimator.threshold, SelectionRate):
            step = cls.first_threshold(estimator, data, parts, path=path)
            data, parts = data.moved(step), moved_split(parts, step)
            held_out = None if held_out is None else held_out.moved(step)
        fit = cls.bind(estimator, data, constraints, parts, path=path)
        if held_out is None:
            return fit
        model = fit.model.on(held_out.X)
        tested = HeldOut.of(
            constraints,
            problem=fit.problem,
            training=data,
            held_out=held_out,
            rows=held_out.positions,
            model=model,
            unconstrained=fit.unconstrained.on(model),
        )
        return replace(fit, held_out=tested)

    @classmethod
    def first_threshold(cls, estimator: Any, *rows: Any, path: bool) -> float:
        """Return where the model without constraints selects the share, for rows as in `bind`."""
        free = cls.bind(estimator, rows[0], (), *rows[1:], path=path)
        with limited_threads(free.data.X):
            share, weight = estimator.threshold.check(), free.data.sample_weight
            return free.unconstrained.rows.score_below_share(share, weight)

    @classmethod
    def bind(
        cls,
        estimator: Any,
        data: TrainingData,
        constraints: Sequence[Constraint],
        split: Split | None = None,
        *,
        path: bool = False,
    ) -> Fit:
        """Return the fit for checked data.

        With `path` the tolerances are to vary, so that nothing may depend on them: trees are grown
        without constraints.
        """
        with limited_threads(data.X):
            free, grown = estimator._free_problem(data, path=path)
            return cls.free(estimator, data, free, split, grown).constrained(constraints)

    @classmethod
    def free(
        cls, estimator: Any, data: TrainingData, problem: Problem, split: Split | None, grown: Any
    ) -> Fit:
        """Return the fit of a problem without constraints."""
        unconstrained = Unconstrained(problem, partial(_train_free, estimator, split))
        return cls(estimator, data, unconstrained, problem, grown=grown, split=split)

    def constrained(self, constraints: Sequence[Constraint]) -> Fit:
        """Return the fit with other constraints."""
        rows = None if self.grown is None else self.grown.constrained
        problem = with_constraints(self.problem, constraints, self.data, self.unconstrained, rows)
        return replace(self, constraints=tuple(constraints), problem=problem)

    @property
    def model(self) -> Model:
        """The model on the training rows."""
        return self.problem.objective.model

    def start(self) -> Start:
        """Return the unconstrained model as a start."""
        result = self.unconstrained.result
        return Start(self.problem.start_at(result.w), None, result.state)

    def wanted(self) -> tuple[Problem, Start | None]:
        r"""Return the problem that the goal asks for, and a start.

        For the goal of fairness it is that of the least unfairness for a loss that is nearly the
        best, from the unconstrained model, which satisfies the bound on the loss (3S-Econ, Problem
        1):

        .. math::
            \min_{w, t} t \quad \text{s.t.} \quad g_j(w) \le t, \quad
            f(w) \le (1 + \delta) \min f.
        """
        if self.estimator.goal == "accuracy" or not self.problem.n_constraints:
            return self.problem, None
        least, w = self.unconstrained.result.objective, self.start().w
        level = self.problem.uncounted().at(w).constraints.max()
        epigraph = self.problem.epigraph((1.0 + self.estimator.max_loss_increase) * least)
        return epigraph, Start(np.append(w, level))

    def with_kappa(self, kappa: float) -> Fit:
        """Return the fit with another kappa, for the constraints that have none of their own."""
        constraints = constraints_of(self.estimator, self.data, kappa=check_kappa(kappa))
        with without_vacuous_warnings():
            return self.constrained(constraints)

    def problem_on(self, data: TrainingData, penalty: Penalty | None = None) -> Problem:
        """Return mean loss, with a penalty or none, and constraints on other rows, as trained."""
        model = self.model.on(data.X)
        scores = self.unconstrained.on(model)
        free = Problem(loss_part(self.estimator, model, data).add(penalty or Zero()))
        like = self.problem.constraints
        return with_constraints(free, self.constraints, data, scores, like=like)

    @cached_property
    def split_problems(self) -> tuple[Problem, Problem] | None:
        """The problems on the rows to train on and on those that choose the iterate, if any."""
        if self.split is None:
            return None
        with without_vacuous_warnings():
            trained = self.problem_on(self.split[0], self.problem.objective.penalty)
            return trained, self.problem_on(self.split[1])

    def solve(
        self,
        problem: Problem | None = None,
        split: tuple[Problem, Problem] | None = None,
        **options: Any,
    ) -> tuple[Result, Evaluation]:
        """Return the solution of a problem with the same variables, and the evaluation there."""
        if problem is None or problem is self.problem:
            problem, split = self.problem, self.split_problems if split is None else split
        solution: tuple[Result, Evaluation] = self.estimator._train(
            problem, fit=self, split=split, **options
        )
        return solution

    def decision_task(self, result: Result) -> DecisionTask:
        """Return what a search on decisions starts from."""
        return DecisionTask(
            self.problem,
            result,
            self.data.y,
            self.data.loss_weight,
            self.unconstrained.result.w,
            () if self._soft_labels is None else self._soft_labels.constraints(self.problem),
        )

    @cached_property
    def _soft_labels(self) -> SoftLabels | None:
        """The rows with the probability of their label, None where all cells are large.

        The scores of the unconstrained model give the probability.
        """
        data, problem = self.data, self.problem
        in_memory = all(model.in_memory for model in problem.models)
        if not in_memory or data.several_classes or data.groups is None:
            return None
        if data.y.min() == data.y.max() or not has_few_rows(problem):
            return None
        scores, _ = self.unconstrained.weighted_scores(data)
        return SoftLabels.of(scores, data.y, data.groups.codes, data.sample_weight)

    def enforced(self, result: Result, limits: Sequence[CompositeFunction] = ()) -> Solution:
        """Return the solution, with enforce="decision" a model whose decisions meet the bound.

        `limits` are further constraints that its decisions meet.
        """
        if self.estimator.enforce == "score" or not self.problem.n_constraints:
            return Solution(result)
        limited, first = self, result
        if limits:
            problem = self.problem.with_constraints([*self.problem.constraints, *limits])
            multipliers = np.zeros(problem.n_constraints)
            multipliers[: self.problem.n_constraints] = result.multipliers
            limited, first = (
                replace(self, problem=problem),
                replace(result, multipliers=multipliers),
            )
        space = self.estimator._search_space(limited, first)
        search, certificate = space.found(self.estimator.confidence)
        data, at = self.data, self.problem.uncounted().at(space.lift(search.w))
        squares = None if data.squares is None else data.squares / data.sample_weight**2
        gaps = expected_gaps(at, limited._soft_labels, squares)
        search = replace(search, w=at.w, expected_gaps=gaps)
        return Solution(search.result(at, result), search, certificate)

    def optimality(self, result: Result, at: Evaluation, **options: Any) -> OptimalityGap:
        """Return how much better a model can be than a solution on scores, at most.

        Without options, see :func:`optimality_gap`, it takes at most half the data passes of the
        fit, or 16, of at most 20,000 rows in all.
        """
        estimator = self.estimator
        if estimator.goal == "fairness":
            return OptimalityGap(None, "goal='fairness' does not minimise the loss")
        if estimator.enforce == "decision" and self.problem.n_constraints:
            return OptimalityGap(None, "enforce='decision' does not minimise the loss")
        at = self.problem.uncounted().at(result.w, like=at)
        cheap = min(_PASSES_FOR_BOUND, _ROWS_FOR_BOUND / at.problem.n_rows)
        passes = max(_SHARE_FOR_BOUND * result.data_passes, cheap)
        return optimality_gap(at, result.multipliers, **(options or {"data_passes": passes}))

    def attributes(self, w: Array) -> dict[str, Any]:
        """Return what `predict` uses, for the solver's variables."""
        return {**self._names, **self.estimator._fitted(self, w[: self.model.n_parameters])}

    @cached_property
    def _names(self) -> dict[str, Any]:
        """The fitted attributes that do not depend on the solution."""
        return names_in_data(self.data) | decision_attributes(self.estimator, self.data)

    def store(
        self,
        estimator: Any,
        solution: Solution,
        problem: Problem | None = None,
        *,
        like: Evaluation | None = None,
    ) -> None:
        """Set the fitted attributes of the estimator, or of one with another kappa.

        `problem` is what is reported, by default that of the fit; `like` is an evaluation of the
        same rows, see :meth:`Problem.at`.
        """
        problem = self.problem if problem is None else problem
        if self.grown is not None and self.grown.constrained is not None:  # reported on all rows
            like_parts, constraints = problem.constraints, constraints_of(estimator, self.data)
            with without_vacuous_warnings():
                problem = with_constraints(
                    problem, constraints, self.data, self.unconstrained, like=like_parts
                )
        attributes = {
            **self.attributes(solution.result.w),
            **measures(problem, solution, like, on_loss=self.estimator.goal == "fairness"),
            "decision_search_": solution.search,
            "certificate_": solution.certificate,
            "constraint_choices_": choices(self.constraints, self.problem.constraints, self.data),
        }
        if self.held_out is not None:
            attributes |= self.held_out.attributes
        grown = None if self.grown is None else self.grown.held
        chose = grown if self.split is None else self.split[1]
        if chose is not None and chose.positions is not None:
            attributes["validation_indices_"] = np.sort(chose.positions)
        set_fitted(estimator, attributes)


def _train_free(estimator: Any, split: Split | None, free: Problem) -> Result:
    """Return the solution without constraints, trained as the estimator trains."""
    problems, model = None, free.objective.model
    if split is not None:
        trained, others = (loss_part(estimator, model.on(rows.X), rows) for rows in split)
        problems = Problem(trained.add(free.objective.penalty)), Problem(others)
    result: Result = estimator._train_free(free, problems)
    return result
