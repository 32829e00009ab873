"""A fit of thresholds: scores, the constraints on decisions, the search, and what it stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import HeldOut
from fairconstrained.decisions.new_rows import expected_gaps
from fairconstrained.decisions.population import Certificate, search_with_confidence
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.decisions.threshold_search import ThresholdTask, wrong_predictions
from fairconstrained.estimators.rows import (
    bound_parts,
    check_group_sizes,
    choices,
    constraints_of,
    without_held_out,
)
from fairconstrained.estimators.solution import Bound, names_in_data
from fairconstrained.estimators.threshold_scores import Scoring, limits
from fairconstrained.exceptions import InfeasibleConstraintWarning, warn
from fairconstrained.inspection.outputs import response_of
from fairconstrained.models.scores import ThresholdModel
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.utils.execution import FitTasks
from fairconstrained.utils.storage import set_fitted
from fairconstrained.utils.typing import Array


class ThresholdFit:
    """A classifier that is fitted here, unless it is already, and its scores of all rows.

    The features of rows are their positions in the X that `fit` was passed. Some rows are held out
    for `confidence`; of the others, some choose the thresholds.

    Parameters
    ----------
    estimator : FairThresholds
        Its parameters are valid.
    X : array-like, DataFrame or sparse matrix
        What the classifier sees of all rows.
    labels : ndarray of shape (n_samples,)
        Their labels.
    data : TrainingData
        The rows of positive weight.
    params : tuple of mapping
        What `fit` of the classifier and the splitter are passed.
    tasks : FitTasks
        The fit as a task of callbacks.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        labels: Array,
        data: TrainingData,
        params: tuple[Mapping[str, Any], Mapping[str, Any]],
        tasks: FitTasks,
    ):
        self.estimator, self.data = estimator, data
        self.constraints = _constraints(estimator, data)
        check_group_sizes(self.constraints, data, by_group=estimator.per_group)
        self.given, self.held = without_held_out(estimator, data, self.constraints)
        weighted = "sample_weight" in params[0]
        absent = np.setdiff1d(labels, labels[data.X]) if weighted else labels[:0]
        added = np.array([np.argmax(labels == label) for label in absent], dtype=int)
        scoring = Scoring(estimator, X, labels, self.given, *params, added)
        self.fitted, rows, chosen = scoring.scored(tasks)
        self.choosing = self.given.take(rows)
        self.scores = np.full(len(labels), np.nan)  # by position in X
        self.scores[self.choosing.X] = chosen
        others = np.setdiff1d(data.X, self.choosing.X)
        if len(others):  # what `predict` compares with the thresholds
            self.scores[others] = scoring.scores(self.fitted, others)
        self.method = response_of(self.fitted, estimator.response_method)

    def weighted_scores(
        self, data: TrainingData, rows: Array | None = None
    ) -> tuple[Array, TrainingData]:
        """Return the scores of rows whose features are positions, see `FreeScores`."""
        return self.scores[data.X], data

    @cached_property
    def _codes(self) -> tuple[Array, int]:
        """Which threshold every row has, and how many there are; the last is of other groups."""
        groups, codes = self.data.groups, np.zeros(len(self.scores), dtype=int)
        if not self.estimator.per_group or groups is None or self.choosing.groups is None:
            return codes, 1
        names = self.choosing.groups.sensitive.names.tolist()
        codes[self.data.X] = groups.sensitive.among(names)
        return codes, len(names) + 1

    def _problem_on(
        self, data: TrainingData, like: Sequence[CompositeFunction] | None = None
    ) -> Problem:
        """Return the errors of rows and the constraints on them, by the thresholds."""
        model = ThresholdModel(self.scores, *self._codes, data.X)
        wrong = wrong_predictions(data.y, data.loss_weight)
        parts = bound_parts(self.constraints, model, data, self.weighted_scores, like)
        return Problem(CompositeFunction(model, wrong), tuple(parts))

    def chosen(self) -> tuple[Problem, DecisionSearch, Certificate | None]:
        """Return the problem of the thresholds, those chosen, and what the held-out rows show."""
        data, held = self.choosing, self.held
        problem = self._problem_on(data)
        compared = data.X if held is None else np.append(data.X, held.X)
        ends = limits(self.scores[compared], self.method)
        task = ThresholdTask(problem, data.y, data.loss_weight, ends)
        model = problem.objective.model
        assert isinstance(model, ThresholdModel)
        if self.estimator.per_group:  # rows without a group have the most accurate common one
            common = replace(model, codes=np.zeros_like(model.codes), n_thresholds=1)
            objective = replace(problem.objective, model=common)
            free = replace(task, problem=Problem(objective)).search()
            task = replace(task, fixed={model.n_thresholds - 1: float(free.w[0])})
        if held is None or not problem.n_constraints:
            return problem, task.search(), None
        test = HeldOut.of(
            self.constraints,
            problem=problem,
            training=data,
            held_out=held,
            rows=held.X,
            model=model.on(held.X),
            unconstrained=self.weighted_scores,
        )
        return problem, *search_with_confidence(task, test, self.estimator.confidence)

    def store(
        self, problem: Problem, search: DecisionSearch, certificate: Certificate | None
    ) -> None:
        """Set the fitted attributes of the estimator, and warn of what was not found."""
        estimator, groups = self.estimator, self.choosing.groups
        part = len(self.choosing.y) < len(self.given.y)
        reported = self._problem_on(self.given, problem.constraints) if part else problem
        at = reported.at(search.w)
        search = replace(search, expected_gaps=expected_gaps(at, None))
        bound = Bound.of_decisions(at, certificate)
        attributes = {
            **names_in_data(self.choosing),
            "estimator_": self.fitted,
            "pos_label_": self.data.classes[1],
            "response_method_": self.method,
            "threshold_": float(search.w[-1]),  # of rows without a group
            "decision_gap_": at.decided.gap,
            **bound.attributes,
            "decision_search_": search,
            "certificate_": certificate,
            "constraint_choices_": choices(self.constraints, problem.constraints, self.choosing),
        }
        if estimator.per_group and groups is not None:
            attributes["_by_group"] = groups.sensitive.names.tolist(), search.w[:-1]
        if part:
            attributes["validation_indices_"] = self.choosing.X
        if self.held is not None:
            attributes["holdout_indices_"] = self.held.X
        set_fitted(estimator, attributes)
        promised = certificate or search
        promised.warn()
        if certificate is None and search.met and bound.met is False:
            warn(
                f"{type(estimator).__name__}: the thresholds meet the bound on the rows that chose "
                f"them, validation_indices_; on all rows passed to fit: {bound.text}. Use a "
                "number of folds for cv, so that all rows choose, or lower kappa.",
                InfeasibleConstraintWarning,
            )


def _constraints(estimator: Any, data: TrainingData) -> list[Constraint]:
    """Return an estimator's constraints with its kappa where they have none.

    Raises
    ------
    ValueError
        If groups are needed and there are none, or a constraint brings rows of its own.
    """
    constraints = constraints_of(estimator, data)
    if estimator.per_group and data.groups is None:
        raise ValueError(
            "per_group=True needs groups: pass sensitive_features to fit (in pipelines and "
            "searches by metadata routing), or name columns of X in sensitive_columns."
        )
    for constraint in constraints:
        if getattr(constraint, "reference", None) is not None:
            raise ValueError(
                f"constraint: {type(constraint).__name__} has reference rows; thresholds are "
                "chosen on the rows that are passed to fit. Leave reference at None."
            )
    return constraints
