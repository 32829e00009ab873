"""Leaf values of boosted trees as the variables of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fairconstrained.constraints import Constraint
from fairconstrained.data.sensitive_columns import SensitiveColumns, seen_columns
from fairconstrained.data.validation import Split, TrainingData, split
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch, DecisionTask
from fairconstrained.domains import Box, Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.estimators import tree_parameters
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.growth import Grown, Growth
from fairconstrained.estimators.rows import loss_part
from fairconstrained.estimators.solving import with_beta
from fairconstrained.estimators.trees import (
    LogLoss,
    PairLoss,
    feature_names,
    plain_booster,
    raw_scores,
)
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


class TreeScores(FairEstimator):
    """Estimators whose scores may be those of boosted trees: leaf values start at boosted ones."""

    @property
    def _trees(self) -> Any:
        """The parameters of trees, None where scores are others."""
        return self

    @property
    def _stops_early(self) -> bool:
        """Whether rows for validation choose the number of trees."""
        return self._trees is not None and bool(self._trees.early_stopping)

    @property
    def _follows_others(self) -> bool:
        """Whether the constraints are on the rows that trees are not grown on."""
        return getattr(self._trees, "constraint_fraction", None) is not None

    def _split(self, data: TrainingData, others: TrainingData | None) -> Split | None:
        """Return the rows that trees are grown on, and the others, None for all rows."""
        if others is not None and self._follows_others:
            raise ValueError(
                "X_val: with constraint_fraction a share of the queries chooses the number of "
                "trees. Use constraint_fraction=None, or leave X_val out."
            )
        if others is not None or not (self._stops_early or self._follows_others):
            return super()._split(data, others)
        follows, trees = self._follows_others, self._trees
        share = trees.constraint_fraction if follows else trees.validation_fraction
        return split(data, share, self.random_state or 0)[:2]

    @property
    def _saved_categories(self) -> list[list[Any]]:
        """The categories if LightGBM can write them into a model file, else none of them.

        It can write numbers and strings. A booster without categories raises an error for columns
        of pandas' category dtype; it does not take the codes of another table for those of `fit`.
        """
        seen = seen_columns(self)[SensitiveColumns.of(self).kept(self)].tolist()
        categories = [listed for name, listed in self.categories_.items() if name in seen]
        plain = all(isinstance(category, str | int | float) for category in chain(*categories))
        return categories if plain else []

    def _tree_loss(self, data: TrainingData) -> LogLoss | PairLoss:
        """Return the loss that trees are fitted to."""
        return LogLoss(data)

    def _prepared(self, data: TrainingData) -> TrainingData:
        """Return the rows as they are, once parameters and codes of categories are checked."""
        trees, names = self._trees, seen_columns(self)
        tree_parameters.check_lightgbm_params(trees)
        is_category = np.isin(names, list(self.categories_))
        self.is_categorical_ = tree_parameters.categorical_mask(
            trees.categorical_features, names.tolist(), is_category
        )
        kept = SensitiveColumns.of(self).kept(self)
        tree_parameters.check_codes(data.X, self.is_categorical_[kept], names[kept].tolist())
        return data

    def _free_problem(self, data: TrainingData, **growing: Any) -> tuple[Problem, Grown]:
        """Return the problem of the leaf values of trees that are grown here, and these.

        The variables are the values of the leaves, tree after tree, then the intercept, which is
        the score before the first tree. Where only the last trees have variables, the first
        variable is the factor of the trees before them. The penalty is the squared distance from
        the boosted values.
        """
        grown, alpha = self._growth(data, **growing).run(), float(self._trees.alpha)
        values, lengths = grown.trees.values(), grown.trees.lengths
        model = LeafModel.of(
            grown.trees.features(),
            data.X,
            data.loss_weight,
            values,
            grown.scores,
            curvature=grown.curvature,
            alpha=alpha * lengths**2,
            fit_intercept=getattr(self, "fit_intercept", True),
        )
        n = model.n_coefficients
        penalty: Penalty = Proximity(values[:n] * lengths, alpha)
        domain: Domain = WholeSpace()
        if grown.trees.monotone:  # sums of monotone trees with factors >= 0 are monotone
            penalty, domain = InUnits(penalty, lengths), LeadingDomain(Box(0.0, np.inf), n)
        start = np.append(values[: model.n_parameters], grown.auxiliary)
        objective = loss_part(self, model, data).add(Leading(penalty, n))
        first = Start(start, grown.multipliers)
        return Problem(objective, domain=domain), replace(grown, first=first)

    def _growth(
        self,
        data: TrainingData,
        *,
        constraints: Sequence[Constraint],
        split: Split | None,
        path: bool,
    ) -> Growth:
        """Return the boosting iterations under constraints that do not come later."""
        trees, free = self._trees, path or self.goal == "fairness"
        seen, kept = seen_columns(self), SensitiveColumns.of(self).kept(self)
        # As with LightGBM's own estimators, fits without a random_state are alike.
        source = check_random_state(self.random_state or 0)
        parameters = tree_parameters.lightgbm_parameters(trees, source)
        if trees.monotone_constraints is not None:
            signs = tree_parameters.monotone_signs(
                trees.monotone_constraints, seen.tolist(), self.is_categorical_
            )
            parameters["monotone_constraints"] = np.array(signs)[kept].tolist()
        names = seen[kept].tolist() if hasattr(self, "feature_names_in_") else []
        codes = np.flatnonzero(self.is_categorical_[kept]).tolist() or "auto"
        return Growth(
            self,
            parameters,
            {"feature_name": feature_names(names, len(kept)), "categorical_feature": codes},
            data if split is None else split[0],
            () if free else constraints,
            None if split is None else split[1],
            zero_one=self.enforce == "decision",
            n_fitted=None if free else trees.n_fitted_trees,
            seed=source.randint(2**31 - 1),
        )

    def _fitted(self, fit: Fit, w: Array) -> dict[str, Any]:
        """Return a booster with these leaf values and the number of trees."""
        convention, offset, trees = fit.data.convention, fit.model.offset(), fit.grown.trees
        values = np.append(w, 0.0)  # comparisons of scores need no intercept
        if offset is not None:
            values = convention.sign * (w + convention.threshold * offset)
        return {"booster_": trees.with_values(values), "n_estimators_": len(trees.sizes)}

    def _raw_scores(self, features: Any) -> Array:
        """Return the scores of rows with the features of the model."""
        return raw_scores(self.booster_, features, self._trees.n_jobs)

    def _train(
        self,
        problem: Problem,
        fit: Any = None,
        *,
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
            met = "whose predictions meet the constraints"
            message = (
                f"{len(grown.trees.sizes)} boosted trees, "
                f"{met if problem.n_constraints else 'unconstrained'}: "
                "leaf values were not fitted again."
            )
            return replace(result, status=Status.CONVERGED, message=message), at
        warm = first if warm is None else warm
        return super()._train(problem, fit, warm=warm, callback=callback, **options)

    def _decided(self, fit: Fit, result: Result) -> tuple[DecisionSearch, Certificate | None]:
        """Return the search of the leaf values, or the boosted trees if they are the model."""
        if not isinstance(result.solver, BoostedTrees):
            return super()._decided(fit, result)
        data, w = fit.data, result.w[: fit.model.n_parameters]
        task = DecisionTask(fit.problem, result, data.y, data.loss_weight, w)
        return task.without_search(), None

    def to_lightgbm(self) -> Any:
        """Return the fitted trees as a LightGBM model that does not need this library.

        Files, exporters and explainers of LightGBM's models work with it.

        Returns
        -------
        booster : lightgbm.Booster
            A copy of `booster_`. Its `predict` returns the scores of a ranker; of a classifier the
            probability of ``classes_[1]``, and with ``raw_score=True`` the score. See `booster_`
            for columns of pandas' category dtype.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        """
        check_is_fitted(self)
        return plain_booster(self.booster_)


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
