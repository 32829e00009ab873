"""A fit of thresholds: scores, the constraints on decisions, the search, and what it stores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.validation import has_fit_parameter

from fairconstrained.constraints import Constraint, resolve_constraints
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
from fairconstrained.estimators.score_thresholds._rows import (
    CheckedRows,
    threshold_codes,
)
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
class _GivenScores:
    """The scores of all rows, for constraints that depend on those of an unconstrained model."""

    scores: Array

    def weighted_scores(
        self, data: TrainingData, rows: Array | None = None
    ) -> tuple[Array, TrainingData]:
        """Return the scores of rows whose features are positions."""
        return self.scores[data.X], data


@dataclass(frozen=True, eq=False)
class ThresholdFit:
    """Thresholds that were chosen, and the classifier whose scores they are on.

    Attributes
    ----------
    scored : ScoredRows
        The classifier, and the rows that chose the thresholds.
    data : TrainingData
        Labels, groups and weights of these rows.
    model : ThresholdModel
        Their scores.
    problem : Problem
        The constraints on them.
    search : DecisionSearch
        The thresholds.
    certificate : Certificate or None
        With a confidence: what the held-out rows show.
    held_out : ndarray of int
        The positions of these rows in X.
    reported : Problem
        The constraints on all rows that were given, less the held-out ones.
    validation : ndarray of int or None
        The positions of the rows that chose the thresholds, None if these are all of the others.
    """

    scored: ScoredRows
    data: TrainingData
    model: ThresholdModel
    problem: Problem
    search: DecisionSearch
    certificate: Certificate | None
    held_out: Array
    reported: Problem
    validation: Array | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: CheckedRows,
        params: Mapping[str, Any],
        splitting: Mapping[str, Any],
        tasks: FitTasks,
    ) -> ThresholdFit:
        """Return the fit for an estimator's options.

        Parameters
        ----------
        estimator : FairThresholds
            Its parameters are valid.
        rows : CheckedRows
            All rows.
        params : mapping
            What the classifier's `fit` gets.
        splitting : mapping
            What the splitter's `split` gets.
        tasks : FitTasks
            Reports the parts of the fit to callbacks.
        """
        constraints = _constraints(estimator, rows.data)
        check_group_sizes(constraints, rows.data, by_group=estimator.per_group)
        tested = estimator.confidence is not None and bool(constraints)
        held, chosen = None, rows
        if tested:
            check_testable(constraints)
            share, random_state = estimator.holdout, estimator.random_state
            _, _, out = hold_out(rows.data, share, random_state, constraints)
            held = rows.take(out)
            chosen = rows.take(np.setdiff1d(np.arange(len(rows.positions)), out))
        scored = _scoring(estimator, rows, splitting).of(chosen, params, tasks)
        with tasks.task("thresholds"):
            choosing = chosen.take(scored.rows)
            fit = cls._searched(estimator, constraints, scored, choosing, held)
            if len(scored.rows) == len(chosen.positions):
                return fit
            reported = fit._on_all_rows(estimator, constraints, choosing, chosen)
        return replace(fit, reported=reported, validation=choosing.positions)

    @classmethod
    def _searched(
        cls,
        estimator: Any,
        constraints: list[Constraint],
        scored: ScoredRows,
        chosen: CheckedRows,
        held: CheckedRows | None,
    ) -> ThresholdFit:
        """Return the thresholds that some rows choose, and what the held-out rows show."""
        given, model, parts, others = _bound(estimator, constraints, scored, chosen, held)
        data = chosen.data
        task = _task(estimator, model, data, parts, limits(given, scored.method))
        problem = task.problem
        if held is None or others is None or estimator.confidence is None:
            search: DecisionSearch = task.search()
            none = np.zeros(0, dtype=int)
            return cls(scored, data, model, problem, search, None, none, problem)
        test = HeldOut.of(
            constraints,
            problem=problem,
            training=data,
            held_out=others,
            rows=held.positions,
            model=model.on(others.X),
            unconstrained=_GivenScores(given),
        )
        search, certificate = search_with_confidence(task, test, estimator.confidence)
        return cls(scored, data, model, problem, search, certificate, held.positions, problem)

    def _on_all_rows(
        self,
        estimator: Any,
        constraints: list[Constraint],
        choosing: CheckedRows,
        given: CheckedRows,
    ) -> Problem:
        """Return the constraints on all rows; those that chose keep the scores that they chose by.

        A group without rows among these has no threshold of its own: it gets the common one.
        """
        scores = _scores_of_fitted(self.scored, given)
        scores[self.scored.rows] = self.scored.scores
        codes, n = _codes(estimator, [choosing, given])
        model = ThresholdModel(scores, codes[-len(scores) :], n, np.arange(len(scores)))
        wrong = wrong_predictions(given.data.y, given.data.loss_weight)
        like = self.problem.constraints
        parts = bound_parts(constraints, model, given.data, _GivenScores(scores), like)
        return Problem(CompositeFunction(model, wrong), tuple(parts))

    def common_threshold(self) -> float:
        """Return the threshold of rows without a group: the only one, or the most accurate."""
        if self.model.n_thresholds == 1 or self.data.groups is None:
            return float(self.search.w[0])
        return float(self.search.w[-1])

    def store(self, estimator: Any) -> None:
        """Set the fitted attributes of an estimator, and warn of what was not found."""
        groups, at = self.data.groups, self.reported.at(self.search.w)
        bound = Bound.of_decisions(at, self.certificate)
        attributes = {
            "estimator_": self.scored.estimator,
            "classes_": np.sort(self.data.classes),
            "pos_label_": self.data.classes[1],
            "response_method_": self.scored.method,
            "groups_": np.array([]) if groups is None else groups.listed,
            "threshold_": self.common_threshold(),
            "decision_gap_": at.decided.gap,
            **bound.attributes,
            "decision_search_": self.search,
            "certificate_": self.certificate,
            "constraint_choices_": choices(
                _constraints(estimator, self.data), self.problem.constraints, self.data
            ),
        }
        if estimator.per_group and groups is not None:
            attributes["_by_group"] = groups.names.tolist(), self.search.w[:-1]
        if groups is not None and groups.column_names:
            attributes["sensitive_names_in_"] = np.array(groups.column_names, dtype=object)
        if self.validation is not None:
            attributes["validation_indices_"] = self.validation
        if self.certificate is not None:
            attributes["holdout_indices_"] = self.held_out
        set_fitted(estimator, attributes)
        promised = self.certificate or self.search
        promised.warn(stacklevel=5)
        if self.certificate is None and self.search.met and bound.met is False:
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


def _scoring(estimator: Any, rows: CheckedRows, splitting: Mapping[str, Any]) -> Scoring:
    return Scoring(
        estimator.estimator,
        estimator.cv,
        estimator.response_method,
        rows.data.classes[1],
        estimator.n_jobs,
        estimator.random_state,
        splitting,
    )


def _bound(
    estimator: Any,
    constraints: list[Constraint],
    scored: ScoredRows,
    chosen: CheckedRows,
    held: CheckedRows | None,
) -> tuple[Array, ThresholdModel, tuple[CompositeFunction, ...], TrainingData | None]:
    """Return scores, the model and the constraints of the rows that choose, and the other rows."""
    given, rows = [scored.scores], [chosen]
    if held is not None:
        given.append(_scores_of_fitted(scored, held))
        rows.append(replace(held, data=replace(held.data, X=held.data.X + len(scored.scores))))
    scores, n = np.concatenate(given), len(scored.scores)
    model = ThresholdModel(scores, *_codes(estimator, rows), np.arange(n))
    parts = tuple(bound_parts(constraints, model, chosen.data, _GivenScores(scores)))
    return scores, model, parts, rows[1].data if held is not None else None


def _scores_of_fitted(scored: ScoredRows, rows: CheckedRows) -> Array:
    """Return the scores that `predict` compares with the thresholds."""
    classes = rows.data.classes
    labels = np.sort(classes).tolist()
    return scores_of(scored.estimator, rows.features, scored.method, classes[1], labels)


def _codes(estimator: Any, rows: list[CheckedRows]) -> tuple[Array, int]:
    """Return which threshold the rows of several parts have, and how many there are."""
    return threshold_codes(estimator, [part.data for part in rows])


def _task(
    estimator: Any,
    model: ThresholdModel,
    data: TrainingData,
    constraints: tuple[CompositeFunction, ...],
    ends: tuple[float, float],
) -> ThresholdTask:
    """Return the search for thresholds; rows without a group have the most accurate common one."""
    wrong = wrong_predictions(data.y, data.loss_weight)
    problem = Problem(CompositeFunction(model, wrong), constraints)
    task = ThresholdTask(problem, data.y, data.loss_weight, ends)
    if not estimator.per_group:
        return task
    common = replace(model, codes=np.zeros_like(model.codes), n_thresholds=1)
    free = replace(task, problem=Problem(CompositeFunction(common, wrong)))
    return replace(task, fixed={model.n_thresholds - 1: float(free.search().w[0])})
