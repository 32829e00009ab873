"""A fit: an estimator's options and checked data as a problem, its solution and its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.held_out import HeldOut
from fairconstrained.decisions.search import DecisionTask
from fairconstrained.decisions.search_kinds import search_kind
from fairconstrained.estimators.binding import (
    ScoresOnRows,
    Unconstrained,
    choices,
    constraints_of,
    loss_part,
    on_all_rows,
    with_constraints,
    without_constraints,
)
from fairconstrained.estimators.expected import expected_constraints
from fairconstrained.estimators.parametrization import Parametrization
from fairconstrained.estimators.rows import RowSplit, checked_data
from fairconstrained.estimators.solution import Solution, measures
from fairconstrained.estimators.thresholds import SelectionRate, decision_attributes
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models import Model
from fairconstrained.penalties import Penalty, Zero
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.solvers.base import Callback, Start
from fairconstrained.utils.fitted import set_fitted
from fairconstrained.utils.threads import limited_threads
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike
from fairconstrained.utils.validation import check_kappa


@dataclass(frozen=True, eq=False)
class Fit:
    r"""An estimator's options bound to checked data.

    `fit`, :func:`~fairconstrained.fairness_path`, the search on decisions and measurements on
    validation rows share it:

    .. math::
        \min_w \mathrm{objective}(\mathrm{model}(w)) + \mathrm{penalty}(w) \quad \text{s.t.} \quad
        g_j(\mathrm{model}(w)) \le 0, \quad w \in \text{domain}.

    Make it with :meth:`of`, which checks the arguments, or with :meth:`bind` from checked data.

    Attributes
    ----------
    estimator : estimator
        Its parameters are read; only :meth:`store` sets attributes.
    data : TrainingData
        The training rows with the features that the model uses.
    parametrization : Parametrization
        The model, its penalty and its domain.
    constraints : tuple of Constraint
        All must hold; their tolerances are set.
    unconstrained : Unconstrained
        The model without constraints; it is solved on first access.
    problem : Problem
        The objective, and the constraints bound to the training rows.
    held_out : HeldOut or None
        With `confidence`: the rows that are not used for training.
    split : tuple of TrainingData or None
        Of the training rows, those that choose the iterate, after those that it is trained on.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.estimators.fit import Fit
    >>> X, y, groups = make_biased_classification(500, gap=0.3, random_state=0)
    >>> fit = Fit.of(FairLogisticClassifier(kappa=0.05), X, y, None, groups)
    >>> fit.problem.n_constraints, fit.unconstrained.result.converged
    (2, True)
    """

    estimator: Any
    data: TrainingData
    parametrization: Parametrization
    constraints: tuple[Constraint, ...]
    unconstrained: Unconstrained
    problem: Problem
    held_out: HeldOut | None = None
    split: tuple[TrainingData, TrainingData] | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        sensitive_features: MatrixLike | None,
        *,
        path: bool = False,
        query: ArrayLike | None = None,
    ) -> Fit:
        """Return the fit for what a user passes to `fit`.

        Parameters
        ----------
        estimator : estimator
            Its parameters are checked, and its `n_features_in_` and `feature_names_in_` are set.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The labels.
        sample_weight : array-like of shape (n_samples,) or None
            The weights.
        sensitive_features : array-like or DataFrame or None
            The groups.
        path : bool, default=False
            See :meth:`bind`.
        query : array-like of shape (n_samples,) or None, default=None
            The queries, for rankers.

        Raises
        ------
        ValueError
            If a parameter or an argument is not valid.
        """
        passed = X, y, sample_weight, sensitive_features, query
        data, constraints = checked_data(estimator, *passed, path=path)
        rows = RowSplit.of(estimator, data, constraints)
        if isinstance(estimator.threshold, SelectionRate):
            own = rows.training, rows.split
            rows = rows.moved(cls.first_threshold(estimator, *own, path=path))
        fit = cls.bind(estimator, rows.training, constraints, rows.split, path=path)
        if rows.held_out is None:
            return fit
        model = fit.model.on(rows.held_out.X)
        held_out = HeldOut.of(
            constraints,
            problem=fit.problem,
            training=rows.training,
            held_out=rows.held_out,
            rows=rows.held_out.positions,
            model=model,
            unconstrained=ScoresOnRows(fit.unconstrained, model),
        )
        return replace(fit, held_out=held_out)

    @classmethod
    def first_threshold(cls, estimator: Any, *rows: Any, path: bool) -> float:
        """Return where the model without constraints selects the share, for rows as in `bind`."""
        free = cls.bind(estimator, rows[0], (), *rows[1:], path=path)
        with limited_threads(free.data.X):
            share, weight = estimator.threshold.check(), free.data.sample_weight
            return free.unconstrained.score_below_share(share, weight)

    @classmethod
    def bind(
        cls,
        estimator: Any,
        data: TrainingData,
        constraints: Sequence[Constraint],
        split: tuple[TrainingData, TrainingData] | None = None,
        *,
        path: bool = False,
    ) -> Fit:
        """Return the fit for checked data.

        Parameters
        ----------
        estimator : estimator
            Its parameters are valid.
        data : TrainingData
            The rows, from `Parametrization.features`.
        constraints : sequence of Constraint
            All must hold; their tolerances are set.
        split : tuple of TrainingData or None, default=None
            The rows that the model is trained on and those that choose the iterate.
        path : bool, default=False
            Whether the tolerances are to vary, see :meth:`Parametrization.of`.
        """
        with limited_threads(data.X):
            parametrization = estimator.parametrization.of(estimator, data, path=path)
            free, unconstrained = without_constraints(estimator, parametrization, data, split)
            rows = parametrization.constrained
            problem = with_constraints(free, constraints, data, unconstrained, rows)
        bound = tuple(constraints), unconstrained, problem
        return cls(estimator, data, parametrization, *bound, split=split)

    @property
    def model(self) -> Model:
        """The model on the training rows."""
        return self.parametrization.model

    @cached_property
    def solver(self) -> Solver:
        """The solver with the estimator's options."""
        return self.parametrization.solver(self.estimator, self.problem)

    def start(self) -> Start:
        """Return the unconstrained model as a start."""
        result = self.unconstrained.result
        return Start(self.problem.start_at(result.w), None, result.state)

    def with_kappa(self, kappa: float) -> Fit:
        """Return the fit with another kappa, for the constraints that have none of their own."""
        constraints = constraints_of(self.estimator, self.data, kappa=check_kappa(kappa))
        with without_vacuous_warnings():
            given = self.data, self.unconstrained, self.parametrization.constrained
            problem = with_constraints(self.problem, constraints, *given)
        return replace(self, constraints=tuple(constraints), problem=problem)

    def problem_on(self, data: TrainingData, penalty: Penalty | None = None) -> Problem:
        """Return mean loss, with a penalty or none, and constraints on other rows, as trained."""
        model = self.model.on(data.X)
        scores = ScoresOnRows(self.unconstrained, model)
        free = Problem(loss_part(self.estimator, model, data).add(penalty or Zero()))
        own = self.problem.constraints
        return with_constraints(free, self.constraints, data, scores, like=own)

    @cached_property
    def split_problems(self) -> tuple[Problem, Problem] | None:
        """The problems on the rows to train on and on those that choose the iterate, if any."""
        if self.split is None:
            return None
        with without_vacuous_warnings():
            trained = self.problem_on(self.split[0], self.parametrization.penalty)
            return trained, self.problem_on(self.split[1])

    def minimize(
        self,
        problem: Problem,
        *,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the solution as the estimator's `fit` finds it, and the evaluation there.

        Rows for validation choose the iterate of the problem of this fit, not of others.
        """
        return self.parametrization.minimize(
            self.estimator,
            problem,
            split=self.split_problems if problem is self.problem else None,
            warm=warm,
            callback=callback,
        )

    def solve(
        self,
        problem: Problem | None = None,
        *,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> Result:
        """Return the solution of this problem, or of another one: see :meth:`solve_at`."""
        return self.solve_at(problem, warm=warm, callback=callback)[0]

    def solve_at(
        self,
        problem: Problem | None = None,
        *,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
        like: Evaluation | None = None,
        split: tuple[Problem, Problem] | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the solution of a problem with the same variables, and the evaluation at it.

        It keeps to the data passes of a fit, see :meth:`Parametrization.follow`.

        Parameters
        ----------
        problem : Problem or None, default=None
            For instance this one with other tolerances; None takes this one.
        warm, callback, like
            See :meth:`Solver.solve`.
        split : tuple of Problem or None, default=None
            See `split_problems`.
        """
        return self.parametrization.follow(
            self.estimator,
            self.problem if problem is None else problem,
            split=split,
            like=like,
            warm=warm,
            callback=callback,
        )

    def decision_task(self, result: Result, budget: SearchBudget | None = None) -> DecisionTask:
        """Return what a search on decisions starts from.

        Parameters
        ----------
        result : Result
            The solution of the problem, which bounds scores.
        budget : SearchBudget or None, default=None
            What the search may cost; None takes the defaults.
        """
        budget = search_kind(self.problem).usual_budget if budget is None else budget
        return DecisionTask(
            self.problem,
            result,
            self.solver,
            self.data.y,
            self.data.loss_weight,
            self.unconstrained.result.w,
            self.estimator.random_state,
            budget,
            expected=expected_constraints(self.problem, self.data, self.unconstrained, budget),
        )

    def enforced(self, result: Result, limits: Sequence[CompositeFunction] = ()) -> Solution:
        """Return the solution, with enforce="decision" a model whose decisions meet the bound.

        Parameters
        ----------
        result : Result
            The solution of the problem, which bounds scores.
        limits : sequence of CompositeFunction, default=()
            Further constraints on decisions that the search meets.
        """
        if self.estimator.enforce == "score" or not self.problem.n_constraints:
            return Solution(result)
        problem = self.problem.with_constraints([*self.problem.constraints, *limits])
        multipliers = np.zeros(problem.n_constraints)
        multipliers[: self.problem.n_constraints] = result.multipliers
        wanted = replace(self, problem=problem)
        space = self.parametrization.search_space(wanted, replace(result, multipliers=multipliers))
        search, certificate = space.found(self.estimator.confidence)
        search = replace(search, w=space.lift(search.w))
        return Solution(search.result(self.problem, result), search, certificate)

    def fitted_attributes(self, w: Array) -> dict[str, Any]:
        """Return what `predict` uses, for the solver's variables."""
        return {**self._names, **self.parametrization.attributes(w[: self.model.n_parameters])}

    @cached_property
    def _names(self) -> dict[str, Any]:
        """The fitted attributes that do not depend on the solution."""
        groups = self.data.groups
        listed = np.array([]) if groups is None else groups.listed
        names = {"classes_": np.unique(self.data.classes), "groups_": listed}
        if groups is not None and groups.column_names:
            names["sensitive_names_in_"] = np.array(groups.column_names, dtype=object)
        return names | decision_attributes(self.estimator, self.data)

    def store(
        self,
        estimator: Any,
        solution: Solution,
        problem: Problem | None = None,
        *,
        like: Evaluation | None = None,
    ) -> None:
        """Set the fitted attributes of an estimator.

        Parameters
        ----------
        estimator : estimator
            The one of this fit, or a copy of it.
        solution : Solution
            What was found.
        problem : Problem or None, default=None
            The problem whose objective and gaps are reported; None takes this one.
        like : Evaluation or None, default=None
            An evaluation at the solution, see :meth:`Problem.at`.
        """
        problem, goal = self.problem if problem is None else problem, self.estimator.goal
        if self.parametrization.constrained is not None:
            given = constraints_of(estimator, self.data), self.data, self.unconstrained
            problem = on_all_rows(problem, *given)
        attributes = {
            **self.fitted_attributes(solution.result.w),
            **measures(problem, solution, like, on_loss=goal == "fairness"),
            "decision_search_": solution.search,
            "certificate_": solution.certificate,
            "constraint_choices_": choices(self.constraints, self.problem.constraints, self.data),
        }
        if self.held_out is not None:
            attributes |= self.held_out.attributes
        chosen_on = self.parametrization.validation if self.split is None else self.split[1]
        if chosen_on is not None and chosen_on.positions is not None:
            attributes["validation_indices_"] = np.sort(chosen_on.positions)
        set_fitted(estimator, attributes)
