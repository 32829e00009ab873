"""Constraints bound to rows, and the unconstrained model that some of them depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.constraints.base import FreeScores
from fairconstrained.constraints.losses import measured_from
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.solving import minimize_by_default
from fairconstrained.models import Model
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.problem.passes import ModelPass
from fairconstrained.solvers import Result
from fairconstrained.terms.base import Term
from fairconstrained.terms.class_scores import ByClass, class_terms, log_odds
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_kappa


def scores_by_row(compute: Callable[[], Array]) -> FreeScores:
    """Return the scores of an unconstrained model that has one for every row, computed once."""
    every = cache(compute)
    return lambda data, rows: (every() if rows is None else every()[rows], data)


class Unconstrained:
    """The model without constraints; it is solved on first access.

    Parameters
    ----------
    problem : Problem
        The problem without constraints.
    minimize : callable, default=minimize_by_default
        Returns the solution of the problem.
    """

    def __init__(
        self, problem: Problem, minimize: Callable[[Problem], Result] = minimize_by_default
    ):
        self.problem, self.minimize = problem.uncounted(), minimize

    @cached_property
    def result(self) -> Result:
        """The solution."""
        return self.minimize(self.problem)

    def on(self, model: Model) -> FreeScores:
        """Return the scores of the rows of another model with the same parameters."""
        return scores_by_row(lambda: model.forward(self.result.w[: model.n_parameters])[0])

    @cached_property
    def rows(self) -> ModelPass:
        """The rows at the solution."""
        return self.problem.at(self.result.w).model_pass(self.problem.objective.model)

    @cached_property
    def _distribution(self) -> tuple[Array, Array | None, Array | None]:
        return self.rows.distribution()

    def weighted_scores(
        self, data: TrainingData, rows: Array | None = None
    ) -> tuple[Array, TrainingData]:
        """Return scores and the rows that have them, see `FreeScores`."""
        scores, atoms, weight = self._distribution
        if atoms is None or weight is None:
            return (scores if rows is None else scores[rows]), data
        if rows is None:
            return scores, _repeated(data, atoms, weight)
        places = np.full(int(atoms.max()) + 1, -1)
        places[rows] = np.arange(len(rows))
        inside = np.flatnonzero(places[atoms] >= 0)
        return scores[inside], _repeated(data, places[atoms[inside]], weight[inside])


def _repeated(data: TrainingData, rows: Array, weight: Array) -> TrainingData:
    """Return rows, perhaps repeated, with other weights."""
    return replace(data.take(rows), sample_weight=weight)


def constraints_of(
    estimator: Any, data: TrainingData, *, kappa: float | None = None
) -> list[Constraint]:
    """Return an estimator's constraints with its kappa, surrogate and loss where they have none."""
    if kappa is None:
        kappa = estimator.kappa if estimator.goal == "accuracy" else 0.0
    given = resolve_constraints(estimator.constraint)
    if any(constraint.needs_groups for constraint in given) and data.groups is None:
        raise ValueError(
            f"constraint={estimator.constraint!r} needs groups: pass sensitive_features to fit (in "
            "pipelines and searches by metadata routing), or name columns of X in "
            "sensitive_columns."
        )
    if any(constraint.takes_kappa for constraint in given):
        check_kappa(kappa)
    defaults = {"kappa": kappa, "surrogate": estimator.surrogate, "loss": estimator.loss}
    complete = [constraint.with_defaults(**defaults) for constraint in given]
    if data.several_classes:
        return complete
    return [constraint.naming(data.classes) for constraint in complete]


def loss_part(estimator: Any, model: Model, data: TrainingData) -> CompositeFunction:
    """Return an estimator's loss of a model on rows, without a penalty."""
    return CompositeFunction(model, resolve_objective("loss", estimator.loss).build(data))


def bound_parts(
    constraints: Sequence[Constraint],
    model: Model,
    data: TrainingData,
    unconstrained: FreeScores,
    like: Sequence[CompositeFunction] | None = None,
) -> list[CompositeFunction]:
    """Return the constraints on rows; variables of their terms follow the model's in order.

    With `like`, the same constraints on the training rows, what they chose there is kept, for
    instance the minority.
    """
    parts: list[CompositeFunction] = []
    for constraint in constraints:
        end = len(parts) + len(constraint.groupings(data))
        terms = None if like is None else [part.term for part in like[len(parts) : end]]
        if data.several_classes:
            parts += _class_parts(constraint, model, data, unconstrained, terms)
        else:
            for part in constraint.parts(model, data, unconstrained, terms):
                term = measured_from(part.term, data.convention.threshold)
                parts.append(replace(part, term=term))
    placed, start = [], model.n_parameters
    for part in parts:
        end = start + part.term.n_auxiliary
        placed.append(replace(part, auxiliary=slice(start, end)) if end > start else part)
        start = end
    return placed


def _class_parts(
    constraint: Constraint,
    model: Model,
    data: TrainingData,
    unconstrained: FreeScores,
    like: Sequence[Term] | None,
) -> list[CompositeFunction]:
    """Return a constraint's parts on the log odds of each of several classes."""
    names = tuple(map(str, data.classes.tolist()))
    by_class = []

    def of_class(k: int, rows: TrainingData, some: Array | None) -> tuple[Array, TrainingData]:
        scores, rows_of_scores = unconstrained(rows, some)
        return log_odds(scores)[:, k], rows_of_scores

    for k in range(len(names)):
        rows = data.one_versus_rest(k)
        named = constraint.naming(rows.classes)
        terms = None if like is None else [class_terms(term)[k] for term in like]
        by_class.append(named.parts(model, rows, partial(of_class, k), terms))
    return [
        replace(parts[0], term=ByClass(tuple(part.term for part in parts if part.term), names))
        for parts in zip(*by_class, strict=True)
    ]


def choices(
    constraints: Sequence[Constraint], bound: Sequence[CompositeFunction], data: TrainingData
) -> list[dict[str, Any]]:
    """Return what each constraint chose on the training rows, for measurements on other rows.

    It is empty where a constraint chooses nothing, or not the same for all classes and groupings.
    """
    chosen, parts = [], iter(bound)
    for constraint in constraints:
        groupings = islice(parts, len(constraint.groupings(data)))
        terms = [term for part in groupings for term in class_terms(part.term)]
        first, *others = map(constraint.chosen, terms)
        same = all(np.array_equal(first[name], other[name]) for other in others for name in first)
        chosen.append(first if same else {})
    return chosen
