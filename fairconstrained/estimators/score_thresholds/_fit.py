"""A fit of thresholds: scores, the constraints on decisions, the search, and what it stores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.validation import has_fit_parameter

from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.candidates import wrong_predictions
from fairconstrained.decisions.held_out import HeldOut, hold_out
from fairconstrained.decisions.population import (
    Certificate,
    check_testable,
    search_with_confidence,
)
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.decisions.threshold_search import ThresholdTask
from fairconstrained.estimators.binding import bound_parts, choices
from fairconstrained.estimators.callbacks import FitTasks
from fairconstrained.estimators.options import check_group_sizes
from fairconstrained.estimators.score_thresholds._rows import CheckedRows
from fairconstrained.estimators.score_thresholds._scores import (
    ScoredRows,
    Scoring,
    limits,
)
from fairconstrained.estimators.solution import Bound
from fairconstrained.exceptions import InfeasibleConstraintWarning
from fairconstrained.inspection.outputs import scores_of
from fairconstrained.models.scores import ThresholdModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.fitted import set_fitted
from fairconstrained.utils.meta_estimators import final_estimator
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_kappa


def routed_params(
    estimator: Any, fit_params: Mapping[str, Any], **known: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the inner classifier's `fit` gets, and what the splitter's `split` gets.

    Parameters
    ----------
    estimator : FairThresholds
        It routes metadata where that is enabled.
    fit_params : mapping
        Further arguments of its `fit`.
    **known : object
        Weights and groups, which the classifier gets if it takes them; None stands for nothing.
    """
    splits = hasattr(estimator.cv, "split")
    if getattr(final_estimator(estimator.estimator), "constraint", True) is None:
        known = {**known, "sensitive_features": None}  # it needs no groups: they may be missing
    passed = {name: value for name, value in known.items() if value is not None}
    if _routing_enabled():
        routed = process_routing(estimator, "fit", **passed, **fit_params)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    own = {k: v for k, v in passed.items() if has_fit_parameter(estimator.estimator, k)}
    others = {k: v for k, v in fit_params.items() if not (splits and k == "groups")}
    return {**own, **others}, {k: v for k, v in fit_params.items() if k not in others}


@dataclass(frozen=True, eq=False)
class Choice:
    """Thresholds that were chosen.

    Attributes
    ----------
    problem : Problem
        The constraints on the rows that chose them.
    search : DecisionSearch
        The thresholds.
    certificate : Certificate or None
        With a confidence: what the held-out rows show.
    """

    problem: Problem
    search: DecisionSearch
    certificate: Certificate | None = None


@dataclass(frozen=True, eq=False)
class ThresholdFit:
    """A fitted classifier, and its scores of all rows.

    Attributes
    ----------
    estimator : FairThresholds
        Its parameters are valid.
    rows : CheckedRows
        All rows.
    constraints : list of Constraint
        All must hold; their tolerances are set.
    scored : ScoredRows
        The classifier.
    scores : ndarray of shape (n_rows,)
        Those that thresholds are chosen by, of other rows those of the classifier.
    choosing, given, held : ndarray of int
        The rows that choose the thresholds, the rows that are not held out, and those that are.
    """

    estimator: Any
    rows: CheckedRows
    constraints: list[Constraint]
    scored: ScoredRows
    scores: Array
    choosing: Array
    given: Array
    held: Array

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: CheckedRows,
        params: Mapping[str, Any],
        splitting: Mapping[str, Any],
        tasks: FitTasks,
    ) -> ThresholdFit:
        """Fit the classifier, with `params` and a splitter with `splitting`, and score the rows."""
        data = rows.data
        constraints = _constraints(estimator, data)
        check_group_sizes(constraints, data, by_group=estimator.per_group)
        every = np.arange(len(data.y))
        held = every[:0]
        if estimator.confidence is not None and constraints:
            check_testable(constraints)
            _, _, held = hold_out(data, estimator.holdout, estimator.random_state, constraints)
        given = np.setdiff1d(every, held)
        scored = Scoring(estimator, data.classes[1], splitting).of(rows.take(given), params, tasks)
        choosing, scores = given[scored.rows], np.empty(len(every))
        others = np.setdiff1d(every, choosing)
        scores[choosing] = scored.scores
        if len(others):  # what `predict` compares with the thresholds
            X, labels = rows.take(others).features, np.sort(data.classes).tolist()
            scores[others] = scores_of(scored.estimator, X, scored.method, data.classes[1], labels)
        return cls(estimator, rows, constraints, scored, scores, choosing, given, held)

    def weighted_scores(
        self, data: TrainingData, rows: Array | None = None
    ) -> tuple[Array, TrainingData]:
        """Return the scores of rows whose features are positions, see :class:`HasScores`."""
        return self.scores[data.X], data

    @cached_property
    def _groups(self) -> Groups | None:
        """The groups of the rows that choose."""
        groups = self.rows.data.groups
        return None if groups is None else groups.take(self.choosing)

    @cached_property
    def _codes(self) -> tuple[Array, int]:
        """Which threshold every row has, and how many there are; the last is of other groups."""
        groups = self.rows.data.groups
        if not self.estimator.per_group or groups is None or self._groups is None:
            return np.zeros(len(self.scores), dtype=int), 1
        place = {name: k for k, name in enumerate(self._groups.names.tolist())}
        n = len(place)
        codes = np.array([place.get(name, n) for name in groups.names.tolist()] + [n])
        return codes[groups.codes], n + 1

    def _problem_on(self, rows: Array, like: Sequence[CompositeFunction] | None = None) -> Problem:
        """Return the errors of rows and the constraints on them, by the thresholds."""
        data = self.rows.data.take(rows)
        model = ThresholdModel(self.scores, *self._codes, rows)
        wrong = wrong_predictions(data.y, data.loss_weight)
        parts = bound_parts(self.constraints, model, data, self, like)
        return Problem(CompositeFunction(model, wrong), tuple(parts))

    def chosen(self) -> Choice:
        """Return the thresholds that the rows choose, and what the held-out rows show."""
        problem, data = self._problem_on(self.choosing), self.rows.data.take(self.choosing)
        ends = limits(self.scores[np.append(self.choosing, self.held)], self.scored.method)
        task = ThresholdTask(problem, data.y, data.loss_weight, ends)
        model = problem.objective.model
        assert isinstance(model, ThresholdModel)
        if self.estimator.per_group:  # rows without a group have the most accurate common one
            common = replace(model, codes=np.zeros_like(model.codes), n_thresholds=1)
            objective = replace(problem.objective, model=common)
            free = replace(task, problem=Problem(objective)).search()
            task = replace(task, fixed={model.n_thresholds - 1: float(free.w[0])})
        if not len(self.held):
            return Choice(problem, task.search())
        held = self.rows.data.take(self.held)
        test = HeldOut.of(
            self.constraints,
            problem=problem,
            training=data,
            held_out=held,
            rows=self.rows.positions[self.held],
            model=model.on(held.X),
            unconstrained=self,
        )
        return Choice(problem, *search_with_confidence(task, test, self.estimator.confidence))

    def store(self, choice: Choice) -> None:
        """Set the fitted attributes of the estimator, and warn of what was not found."""
        estimator, groups, search = self.estimator, self._groups, choice.search
        classes, problem = self.rows.data.classes, choice.problem
        part = len(self.choosing) < len(self.given)
        reported = self._problem_on(self.given, problem.constraints) if part else problem
        at = reported.at(search.w)
        bound = Bound.of_decisions(at, choice.certificate)
        data = self.rows.data.take(self.choosing)
        attributes = {
            "estimator_": self.scored.estimator,
            "classes_": np.sort(classes),
            "pos_label_": classes[1],
            "response_method_": self.scored.method,
            "groups_": np.array([]) if groups is None else groups.listed,
            "threshold_": float(search.w[-1]),  # of rows without a group
            "decision_gap_": at.decided.gap,
            **bound.attributes,
            "decision_search_": search,
            "certificate_": choice.certificate,
            "constraint_choices_": choices(self.constraints, problem.constraints, data),
        }
        if estimator.per_group and groups is not None:
            attributes["_by_group"] = groups.names.tolist(), search.w[:-1]
        if groups is not None and groups.column_names:
            attributes["sensitive_names_in_"] = np.array(groups.column_names, dtype=object)
        if part:
            attributes["validation_indices_"] = self.rows.positions[self.choosing]
        if choice.certificate is not None:
            attributes["holdout_indices_"] = self.rows.positions[self.held]
        set_fitted(estimator, attributes)
        promised = choice.certificate or search
        promised.warn(stacklevel=5)
        if choice.certificate is None and search.met and bound.met is False:
            warnings.warn(
                f"{type(estimator).__name__}: the thresholds meet the bound on the rows that chose "
                f"them, validation_indices_; on all rows passed to fit: {bound.text}. Use a "
                "number of folds for cv, so that all rows choose, or lower kappa.",
                InfeasibleConstraintWarning,
                stacklevel=4,
            )


def _constraints(estimator: Any, data: TrainingData) -> list[Constraint]:
    """Return an estimator's constraints with its kappa where they have none.

    Raises
    ------
    ValueError
        If groups are needed and there are none, or a constraint brings rows of its own.
    """
    given = resolve_constraints(estimator.constraint)
    needed = any(one.needs_groups for one in given) or estimator.per_group
    if needed and data.groups is None:
        raise ValueError(
            f"constraint={estimator.constraint!r} with per_group={estimator.per_group!r} needs "
            "groups: pass sensitive_features to fit (in pipelines and searches by metadata "
            "routing), or name columns of X in sensitive_columns."
        )
    for one in given:
        if getattr(one, "reference", None) is not None:
            raise ValueError(
                f"constraint: {type(one).__name__} has reference rows; thresholds are chosen on "
                "the rows that are passed to fit. Leave reference at None."
            )
    if any(one.takes_kappa for one in given):
        check_kappa(estimator.kappa)
    complete = resolve_constraints(given, kappa=estimator.kappa)
    return [one.naming(data.classes) for one in complete]
