"""Leaf values of boosted trees as the variables of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.data.sensitive_columns import SensitiveColumns, seen_columns
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.search import DecisionTask, without_search
from fairconstrained.domains import Box, Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.estimators.binding import constraints_of, loss_part
from fairconstrained.estimators.fit import Fit, SearchSpace
from fairconstrained.estimators.growth import Growing, Grown, Growth
from fairconstrained.estimators.solving import with_beta
from fairconstrained.estimators.tree_parameters import (
    TreeParameters,
    categorical_mask,
    check_codes,
    check_lightgbm_params,
    lightgbm_parameters,
    monotone_signs,
    thread_count,
)
from fairconstrained.estimators.trees import LossOf, feature_names
from fairconstrained.models import LeafModel
from fairconstrained.penalties import InUnits, Leading, Penalty, Proximity
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.solvers import Result, Solver, Status
from fairconstrained.solvers.base import Callback, Iterate, Start
from fairconstrained.utils.typing import Array


class BoostedTrees(Solver):
    """Measures the start, the boosted leaf values, and makes no step.

    It stands for the boosting iterations in the result of a fit whose trees meet the constraints.
    """

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the start with its multipliers."""
        yield Iterate(start.at(problem), start.multipliers, 1)


class LeafTraining(FairEstimator):
    """Estimators whose fits may be of leaf values: training starts at the boosted ones."""

    def _train(
        self,
        problem: Problem,
        *,
        fit: Fit | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> tuple[Result, Evaluation]:
        """Return the optimal leaf values, and the evaluation there.

        The start has the multipliers with which the trees were grown. The boosted trees are
        returned as they are without constraints, and where these are on predictions that meet them.
        """
        grown: Any = None if fit is None else fit.grown
        first = None if grown is None else _first(grown, problem)
        if first and _are_kept(self, grown, problem, first):
            solver = with_beta(BoostedTrees(tol=self.tol), self.beta)
            result, at = solver.solve(problem, warm=first, callback=callback)
            why = (
                "whose predictions meet the constraints"
                if problem.n_constraints
                else "unconstrained"
            )
            message = (
                f"{len(grown.trees.sizes)} boosted trees, {why}: leaf values were not fitted again."
            )
            return replace(result, status=Status.CONVERGED, message=message), at
        warm = first if warm is None else warm
        return super()._train(problem, warm=warm, callback=callback, **options)

    def _search_space(self, fit: Fit, result: Result) -> SearchSpace:
        """Return the leaf values, or the boosted trees alone if they are the model."""
        if not isinstance(result.solver, BoostedTrees):
            return super()._search_space(fit, result)
        data, w = fit.data, result.w[: fit.model.n_parameters]
        task = DecisionTask(fit.problem, result, data.y, data.loss_weight, w)
        return SearchSpace(task, None, lambda w: w, without_search)


def _first(grown: Grown, problem: Problem) -> Start | None:
    """Return the boosted start if it has the variables of the problem, else None."""
    first = grown.first
    if first is None or first.w.size != problem.n_variables:
        return None
    assert first.multipliers is not None
    same = len(first.multipliers) == problem.n_constraints
    return first if same else replace(first, multipliers=None)


def _are_kept(estimator: Any, grown: Grown, problem: Problem, first: Start) -> bool:
    """Return whether the boosted trees are the model: see `Grown.meets`."""
    if not problem.n_constraints:
        return True
    if estimator.confidence is not None or not grown.meets:
        return False
    at = problem.uncounted().at(first.w)
    scores = at.scores_of(problem.objective)
    constant = bool(np.all(scores > 0.0) or np.all(scores <= 0.0))
    return at.zero_one_violation == 0.0 and not constant


def check_trees(estimator: Any, trees: TreeParameters, data: TrainingData) -> None:
    """Check the parameters of trees and the codes of categories; sets `is_categorical_`."""
    check_lightgbm_params(trees)
    names = seen_columns(estimator)
    is_category = np.isin(names, list(estimator.categories_))
    estimator.is_categorical_ = categorical_mask(
        trees.categorical_features, names.tolist(), is_category
    )
    kept = SensitiveColumns.of(estimator).kept(estimator)
    check_codes(data.X, estimator.is_categorical_[kept], names[kept].tolist())


def leaf_problem(
    estimator: Any,
    trees: TreeParameters,
    data: TrainingData,
    loss: LossOf,
    *,
    path: bool,
    fit_intercept: bool = True,
    constraint_fraction: float | None = None,
) -> tuple[Problem, Grown]:
    """Grow trees under an estimator's constraints, and return the problem of their leaf values.

    The variables are the values of the leaves, tree after tree, then the intercept, which is the
    score before the first tree. Where only the last trees have variables, the first variable is the
    factor of the trees before them. The penalty is the squared distance from the boosted values.
    """
    free = path or estimator.goal == "fairness"
    constraints = () if free else constraints_of(estimator, data)
    how = _growing(estimator, trees, loss, constraint_fraction)
    if free:  # constraints come later, and need all leaves
        how = replace(how, n_fitted=None)
    grown = Growth(how, data, constraints).run()
    values, lengths = grown.trees.values(), grown.trees.lengths
    model = LeafModel.of(
        grown.trees.features(),
        data.X,
        data.loss_weight,
        values,
        grown.scores,
        curvature=grown.curvature,
        alpha=trees.alpha * lengths**2,
        fit_intercept=fit_intercept,
    )
    n = model.n_coefficients
    penalty: Penalty = Proximity(values[:n] * lengths, float(trees.alpha))
    domain: Domain = WholeSpace()
    if grown.trees.monotone:  # sums of monotone trees with factors >= 0 are monotone
        penalty, domain = InUnits(penalty, lengths), LeadingDomain(Box(0.0, np.inf), n)
    start = np.append(values[: model.n_parameters], grown.auxiliary)
    objective = loss_part(estimator, model, data).add(Leading(penalty, n))
    problem = Problem(objective, domain=domain)
    return problem, replace(grown, first=Start(start, grown.multipliers))


def _growing(
    estimator: Any, trees: TreeParameters, loss: LossOf, constraint_fraction: float | None
) -> Growing:
    """Return how trees are grown, for an estimator's parameters and the columns it has seen."""
    kept = SensitiveColumns.of(estimator).kept(estimator)
    # As with LightGBM's own estimators, fits without a random_state are alike.
    source = check_random_state(estimator.random_state or 0)
    seen = seen_columns(estimator)[kept].tolist()
    names = seen if hasattr(estimator, "feature_names_in_") else []
    codes = np.flatnonzero(estimator.is_categorical_[kept]).tolist()
    categories = [categories for name, categories in estimator.categories_.items() if name in seen]
    aside = trees.validation_fraction if trees.early_stopping else None
    seed, threads = source.randint(2**31 - 1), thread_count(trees.n_jobs)
    parameters = lightgbm_parameters(trees, seed, threads)
    if trees.monotone_constraints is not None:
        columns = seen_columns(estimator).tolist(), estimator.is_categorical_
        signs = np.array(monotone_signs(trees.monotone_constraints, *columns))
        parameters["monotone_constraints"] = signs[kept].tolist()
    return Growing(
        trees,
        parameters,
        {"feature_name": feature_names(names, len(kept)), "categorical_feature": codes or "auto"},
        loss,
        categories=_saved(categories),
        share_aside=aside if constraint_fraction is None else constraint_fraction,
        follows_others=constraint_fraction is not None,
        zero_one=estimator.enforce == "decision",
        n_fitted=trees.n_fitted_trees,
        seed=source.randint(2**31 - 1),
    )


def _saved(categories: list[list[Any]]) -> list[list[Any]]:
    """Return the categories if LightGBM can write them into a model file, else none of them.

    It can write numbers and strings. A booster without categories raises an error for columns of
    pandas' category dtype; it does not take the codes of another table for those of `fit`.
    """
    values = [value for column in categories for value in column]
    return categories if all(isinstance(value, str | int | float) for value in values) else []


def leaf_attributes(grown: Grown, values: Array) -> dict[str, Any]:
    """Return a booster with these leaf values and intercept, and the number of trees."""
    trees = grown.trees
    return {"booster_": trees.with_values(values), "n_estimators_": len(trees.sizes)}
