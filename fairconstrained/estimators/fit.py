"""A fit: an estimator's options and checked data as a problem, and what its solutions become."""

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from fairconstrained.bounds import OptimalityGap, optimality_gap
from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import Split, TrainingData, split
from fairconstrained.decisions import new_rows
from fairconstrained.decisions.held_out import HeldOut
from fairconstrained.decisions.left_out import statistics_left_out
from fairconstrained.decisions.population import Certificate, search_with_confidence
from fairconstrained.decisions.search import DecisionSearch, DecisionTask
from fairconstrained.estimators import rows
from fairconstrained.estimators.solution import Solution, measures, names_in_data
from fairconstrained.estimators.solving import Solved
from fairconstrained.estimators.thresholds import SelectionRate, decision_attributes
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models import Model
from fairconstrained.penalties import Penalty, Zero
from fairconstrained.problem import CompositeFunction, Evaluation, Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.terms.classes import class_terms
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.execution import set_fitted

_SHARE_FOR_BOUND = 0.5  # of the data passes of a fit
_PASSES_FOR_BOUND, _ROWS_FOR_BOUND = 16.0, 20_000.0  # so few cost less than the fit's calls
# With at most so many rows the search fits their noise. With more rows it does so where the bound
# costs so much accuracy: the model is then far from the fit on scores, and a formula that is true
# near this fit says too little.
_ROWS_WITH_NOISE, _MUCH_ACCURACY = 20_000, 0.02


@dataclass(frozen=True, eq=False)
class Fit:
    r"""An estimator's options bound to checked data.

    `fit`, :func:`~fairconstrained.fairness_path`, the search on decisions and measurements on
    validation rows share it: objective(model(w)) + penalty(w) is minimised over the domain, subject
    to g_j(model(w)) <= 0.
    """

    estimator: Any  # its parameters are read
    data: TrainingData  # the training rows with the features that the model uses
    unconstrained: rows.Unconstrained  # the model without constraints; it is solved on first access
    # the objective with model and penalty, and the constraints bound to the training rows
    problem: Problem
    constraints: tuple[Constraint, ...] = ()  # all must hold; their tolerances are set
    # of the training rows, those that choose the iterate, after those that it is trained on
    split: Split | None = None
    held_out: HeldOut | None = None  # with `confidence`: the rows that are not used for training
    # the fit to half of the rows, and the others; those of another kappa may use it, too
    half: "Callable[[], tuple[Fit, TrainingData]] | None" = None

    @classmethod
    def bind(
        cls,
        estimator: Any,
        data: TrainingData,
        constraints: Sequence[Constraint],
        split: Split | None = None,
        *,
        path: bool = False,
    ) -> "Fit":
        """Return the fit for checked data.

        With `path` the tolerances are to vary, so that nothing may depend on them: trees are grown
        without constraints. Where a share of the rows is selected, scores are measured from where
        the model without constraints selects it.
        """
        if isinstance(estimator.threshold, SelectionRate):
            problem = estimator._free_problem(data, (), split, path)
            step = cls.free(estimator, data, problem, split).unconstrained.cut
            data = data.moved(step)
            split = None if split is None else (split[0].moved(step), split[1].moved(step))
        problem = estimator._free_problem(data, constraints, split, path)
        fit = cls.free(estimator, data, problem, split).constrained(constraints)
        tests = estimator.enforce == "decision" and estimator.bound
        if not tests or estimator.confidence is not None or fit._groups is None:
            return fit
        return replace(fit, half=cache(partial(fit._half, path)))

    @classmethod
    def free(
        cls, estimator: Any, data: TrainingData, problem: Problem, split: Split | None
    ) -> "Fit":
        """Return the fit of a problem without constraints."""
        free = rows.Unconstrained(problem.uncounted())
        bare = cls(estimator, data, free, problem, split=split)
        if isinstance(estimator.threshold, SelectionRate):
            free = replace(free, selects=(estimator.threshold.check(), data.sample_weight))
        solved = replace(free, minimize=partial(estimator._train_free, bare))
        return replace(bare, unconstrained=solved)

    def constrained(self, constraints: Sequence[Constraint]) -> "Fit":
        """Return the fit with other constraints."""
        model, data = self.model, self.data
        if self.split is not None and self.estimator._follows_others:
            data = self.split[1]
            model = model.on(data.X)
        model, data = rows.asked_of(model, data)
        parts = rows.bound_parts(constraints, model, data, self.unconstrained.on(model))
        problem = replace(self.problem, constraints=tuple(parts), n_variables=0)
        return replace(self, constraints=tuple(constraints), problem=problem)

    def tested(self, held_out: TrainingData, attributes: dict[str, Any] | None = None) -> "Fit":
        """Return the fit that tests its models on held-out rows.

        `attributes` name the rows, by default by their positions in X.
        """
        both, model = (self.data.asked, held_out.like(self.data.asked)), self.model.on(held_out.X)
        free = self.unconstrained.on(model)
        test = HeldOut.of(self.constraints, self.problem, both, model, free)
        named = attributes or {"holdout_indices_": held_out.positions}
        return replace(self, held_out=replace(test, attributes=named))

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
        best (3S-Econ, Problem 1), :math:`\min t` subject to :math:`g_j(w) \le t` and
        :math:`f(w) \le (1 + \delta) \min f`, from the unconstrained model.
        """
        if self.estimator.goal == "accuracy" or not self.problem.n_constraints:
            return self.problem, None
        least, w = self.unconstrained.result.objective, self.start().w
        level = self.problem.uncounted().at(w).constraints.max()
        epigraph = self.problem.epigraph((1.0 + self.estimator.max_loss_increase) * least)
        return epigraph, Start(np.append(w, level))

    def with_kappa(self, kappa: float) -> "Fit":
        """Return the fit with another kappa, for the constraints that have none of their own.

        Most constraints subtract kappa or do not depend on it: their problem is shifted. If kappa
        enters a constraint in another way, all of them are bound anew.
        """
        estimator = copy(self.estimator)
        estimator.kappa = kappa
        constraints = rows.constraints_of(estimator, self.data)
        shift = (estimator.kappa - self.estimator.kappa) * self.tolerance_slopes
        fit = replace(self, estimator=estimator, constraints=tuple(constraints))
        if np.all(np.isfinite(shift)):
            return replace(fit, problem=self.problem.shifted(shift))
        with without_vacuous_warnings():
            return fit.constrained(constraints)

    @cached_property
    def tolerance_slopes(self) -> Array:
        """How the tolerance of each constraint follows kappa, nan where it does in another way."""
        declared = [
            np.nan if constraint.tolerance_slope is None else constraint.tolerance_slope
            for constraint in resolve_constraints(self.estimator.constraint)
        ]
        parts = self.problem.constraints
        slopes = [np.full(part.n_outputs, declared[part.source]) for part in parts]
        return np.concatenate([np.zeros(0), *slopes])

    def problem_on(self, data: TrainingData, penalty: Penalty | None = None) -> Problem:
        """Return mean loss, with a penalty or none, and constraints on other rows, as trained."""
        model = self.model.on(data.X)
        objective = rows.loss_part(self.estimator, model, data).add(penalty or Zero())
        model, data = rows.asked_of(model, data)
        data, like = data.like(self.data.asked), self.problem.constraints
        parts = rows.bound_parts(self.constraints, model, data, self.unconstrained.on(model), like)
        return Problem(objective, tuple(parts))

    @cached_property
    def split_problems(self) -> tuple[Problem, Problem] | None:
        """The problems on the rows to train on and on those that choose the iterate, if any."""
        if self.split is None:
            return None
        with without_vacuous_warnings():
            trained = self.problem_on(self.split[0], self.problem.objective.penalty)
            return trained, self.problem_on(self.split[1])

    def solve(self, problem: Problem | None = None, **options: Any) -> Solved:
        """Return the solution of a problem with the same variables, and the evaluation there."""
        problem = self.problem if problem is None else problem
        return self.estimator._train(problem, self, **options)

    def decision_task(self, result: Result) -> DecisionTask:
        """Return what a search on decisions starts from; the model without constraints is near."""
        free = self.unconstrained
        free.near = Start(result.w[: free.problem.n_variables], None, result.state)
        w = free.result.w
        if free.selects is not None:
            w = moved_variables(free.problem, w, free.cut)
        rows, solved = (self.data.y, self.data.loss_weight), free.selects is None
        return DecisionTask(self.problem, result, *rows, w, self._soft_constraints(), solved=solved)

    def _soft_constraints(self) -> tuple[CompositeFunction, ...]:
        """Return the constraints on rates of few rows, estimated with probabilities of labels.

        The scores of the unconstrained model give the probabilities.
        """
        data, problem, groups = self.data, self.problem, self._groups
        if groups is None or data.several_classes:
            return ()
        if data.y.min() == data.y.max() or not new_rows.has_few_rows(problem):
            return ()
        scores, _ = self.unconstrained.on(self.model)(data, None)
        labels = new_rows.SoftLabels(scores, data.y, groups.codes, data.sample_weight)
        return labels.constraints(problem)

    def enforced(self, result: Result, stricter: Any = None) -> Solution:
        """Return the solution, with enforce="decision" a model whose decisions meet the bound.

        The model of a search with a smaller tolerance is taken where it is more accurate.
        """
        if self.estimator.enforce == "score" or not self.problem.n_constraints:
            return Solution(result)
        limits = self.unconstrained.limits(self.estimator, self.model, self.data)
        problem = self.problem.with_constraints([*self.problem.constraints, *limits])
        multipliers, start = np.zeros(problem.n_constraints), result
        if self._by_default is not self:
            start = self._by_default.solve()[0]
        multipliers[: self.problem.n_constraints] = start.multipliers
        first = replace(start, multipliers=multipliers)
        search, certificate = self.estimator._decided(replace(self, problem=problem), first)
        if start is not result:
            search = replace(search, data_passes=search.data_passes + result.data_passes)
        if stricter is not None and stricter.met and stricter.accuracy > search.accuracy:
            search = search.with_model(stricter)
        data, at = self.data.asked, self.problem.uncounted().at(search.w)
        far, likely = search.accuracy_cost > _MUCH_ACCURACY, None
        noisy = far or at.problem.n_rows <= _ROWS_WITH_NOISE or self.model.fits_features
        noisy &= not search.constant
        if noisy and not far:
            fitted = self.problem.uncounted().at(start.w)
            copies = None if data.groups is None else data.groups.original
            likely = statistics_left_out(at, fitted, start.multipliers, copies)
        gaps = new_rows.expected_gaps(at, data.variances, constant=search.constant, likely=likely)
        if gaps and self.half and not limits and noisy and likely is None:
            gaps = self._tested_on_half(gaps, *self.half())
        search = replace(search, w=at.w, expected_gaps=gaps)
        return Solution(search.result(at, result), search, certificate)

    @property
    def _by_default(self) -> "Fit":
        """The fit by the default solver: a search on decisions starts from its solution.

        From the solutions of other solvers, which differ in the last digits, the search would end
        at other decisions: differences grow tenfold in each round.
        """
        if self.estimator.solver == "auto" or self.model.fits_features:
            return self
        estimator = copy(self.estimator)
        estimator.solver, estimator.beta, estimator.max_iter = "auto", None, None
        return replace(self, estimator=estimator)

    @property
    def _groups(self) -> Groups | None:
        """The groups of the rows; None where rows are in shards, or the constraints on others."""
        in_memory = all(model.in_memory for model in self.problem.models)
        return self.data.groups if in_memory and self.data.asked is self.data else None

    def _tested_on_half(
        self, gaps: tuple[new_rows.ExpectedGap, ...], fit: "Fit", others: TrainingData
    ) -> tuple[new_rows.ExpectedGap, ...]:
        """Return the gaps, corrected by the fit to half of the rows, measured on the others."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if fit.estimator.kappa != self.estimator.kappa:
                fit = fit.with_kappa(self.estimator.kappa)
            search, _ = self.estimator._decided(fit, fit._by_default.solve()[0])
            elsewhere = fit.problem_on(others).at(search.w)
        at = fit.problem.at(search.w)
        return new_rows.corrected_by(gaps, at, elsewhere, fit.data.variances)

    def _half(self, path: bool) -> "tuple[Fit, TrainingData]":
        """Return the fit to half of the rows of every group and label, and the other rows."""
        (data, others), estimator = split(self.data, 0.5, 0), self.estimator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows_to_stop = estimator._split(data, None)
            fit = Fit.bind(estimator, data, self.constraints, rows_to_stop, path=path)
        return fit, others

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
        at = estimator._with_linear_scores(at)
        return optimality_gap(at, result.multipliers, **(options or {"data_passes": passes}))

    def attributes(self, w: Array) -> dict[str, Any]:
        """Return what `predict` uses, for the solver's variables."""
        return {**self._names, **self.estimator._fitted(self, w[: self.model.n_parameters])}

    @cached_property
    def _names(self) -> dict[str, Any]:
        """The fitted attributes that do not depend on the solution."""
        return names_in_data(self.data.asked) | decision_attributes(self.estimator, self.data)

    def searched(
        self, task: DecisionTask, held_out: HeldOut | None
    ) -> tuple[DecisionSearch, Certificate | None]:
        """Return the model that is found, and with `confidence` what the held-out rows show."""
        if held_out is None:
            return task.search(), None
        return search_with_confidence(task, held_out, self.estimator.confidence)

    def store(self, estimator: Any, solution: Solution, *, like: Evaluation | None = None) -> None:
        """Set the fitted attributes of the estimator, or of one with another kappa.

        `like` is an evaluation of the same rows, see :meth:`Problem.at`.
        """
        problem = self.problem
        if self.split is not None and self.estimator._follows_others:  # reported on all rows
            with without_vacuous_warnings():
                problem = self.problem_on(self.data, problem.objective.penalty)
        attributes = {
            **self.attributes(solution.result.w),
            **measures(problem, solution, like),
            "decision_search_": solution.search,
            "certificate_": solution.certificate,
            "constraint_choices_": rows.choices(self.problem.constraints),
        }
        if self.data.several_classes:
            attributes["multipliers_"] = self._in_order_of_classes(solution.result.multipliers)
        if self.held_out is not None:
            attributes |= self.held_out.attributes
        if self.split is not None and self.split[1].positions is not None:
            attributes["validation_indices_"] = np.unique(self.split[1].positions)
        set_fitted(estimator, attributes)

    def _in_order_of_classes(self, multipliers: Array) -> Array:
        """Return the multipliers in the order of `classes_`; see :meth:`TrainingData.by_size`."""
        ranks = np.argsort(np.argsort(self.data.classes))
        parts = enumerate(class_terms(part.term) for part in self.problem.constraints)
        each = [(i, ranks[k], t.n_outputs) for i, terms in parts for k, t in enumerate(terms)]
        part, rank, outputs = np.reshape(each, (-1, 3)).astype(int).T
        order = np.lexsort((np.repeat(rank, outputs), np.repeat(part, outputs)))
        return np.append(multipliers[order], multipliers[len(order) :])


def moved_variables(problem: Problem, w: Array, by: float) -> Array:
    """Return the variables whose scores, measured from a higher threshold, are what they were."""
    direction = problem.unit_shift()
    if direction is None:
        raise ValueError(
            "threshold=SelectionRate(...) needs an intercept that moves with the threshold; a "
            "module of PyTorch must end with a linear layer that has a bias."
        )
    w = np.array(w)
    w[: problem.n_variables] -= by * direction
    return w
