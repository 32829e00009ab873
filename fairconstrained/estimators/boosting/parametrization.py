"""How the scores of boosted trees depend on the solver's variables: the values of their leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.data.features import seen_columns
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.search import DecisionTask, without_search
from fairconstrained.domains import WholeSpace
from fairconstrained.estimators.binding import constraints_of
from fairconstrained.estimators.boosting._measured import BoostedTrees
from fairconstrained.estimators.boosting.features import categorical_mask, check_codes
from fairconstrained.estimators.boosting.growth import EarlyStopping, Growing, Grown, grow
from fairconstrained.estimators.boosting.losses import LogLoss, LossOf
from fairconstrained.estimators.boosting.options import (
    check_boosting_options,
    lightgbm_parameters,
    thread_count,
)
from fairconstrained.estimators.boosting.trees import feature_names
from fairconstrained.estimators.linear.parametrization import LinearParametrization
from fairconstrained.estimators.parametrization import SearchSpace
from fairconstrained.models.leaves import LeafModel
from fairconstrained.penalties import Leading, Proximity
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Callback, Start
from fairconstrained.utils.typing import Array

if TYPE_CHECKING:
    from fairconstrained.estimators.fit import Fit


@dataclass(frozen=True, eq=False)
class LeafParametrization(LinearParametrization):
    """Scores as sums of leaf values of boosted trees, and an intercept.

    The variables are the values of the leaves, tree after tree, then the intercept, which is the
    score before the first tree. Where only the last trees have variables of their own, the first
    variable is the factor of the trees before them.

    Attributes
    ----------
    model : LeafModel
        The model on the training rows.
    penalty : Penalty
        The squared distance of the variables from the boosted ones; the intercept is free.
    domain : Domain
        The whole space.
    grown : Grown
        The boosted trees.
    first : Start
        The boosted leaf values, the variables of the constraints' terms and the multipliers.
    """

    model: LeafModel
    grown: Grown
    first: Start

    fit_intercept: ClassVar[bool] = True

    @classmethod
    def options(cls, estimator: Any) -> Any:
        """Return the object that has the parameters of the trees: the estimator."""
        return estimator

    @classmethod
    def loss(cls, estimator: Any) -> LossOf:
        """Return the loss that trees are grown for."""
        return LogLoss

    @classmethod
    def growing(cls, estimator: Any) -> Growing:
        """Return how trees are grown."""
        return _growing(estimator, cls.options(estimator), cls.loss(estimator))

    @classmethod
    def features(cls, estimator: Any, data: TrainingData) -> TrainingData:
        """Return the rows as they are, once parameters and codes of categories are checked."""
        options = cls.options(estimator)
        check_boosting_options(options)
        names = seen_columns(estimator)
        is_category = np.isin(names, list(estimator.categories_))
        estimator.is_categorical_ = categorical_mask(
            options.categorical_features, names.tolist(), is_category
        )
        kept = _kept(estimator)
        check_codes(data.X, estimator.is_categorical_[kept], names[kept].tolist())
        return data

    @classmethod
    def of(cls, estimator: Any, data: TrainingData, *, path: bool = False) -> Self:
        """Return the parametrization with trees grown under the estimator's constraints.

        For a path, and with ``goal="fairness"``, which does not use kappa, they are grown without.
        """
        free = path or estimator.goal == "fairness"
        constraints = () if free else constraints_of(estimator, data)
        options = cls.options(estimator)
        how = cls.growing(estimator)
        if not constraints:  # constraints, if any, come later, and need all leaves
            how = replace(how, n_fitted=None)
        grown = grow(how, data, constraints)
        values = grown.trees.values()
        features = grown.trees.features()
        model = LeafModel.of(
            features,
            data.X,
            data.loss_weight,
            values,
            grown.scores,
            curvature=grown.curvature,
            alpha=float(options.alpha),
            fit_intercept=cls.fit_intercept,
        )
        n = model.n_coefficients
        penalty = Leading(Proximity(values[:n], float(options.alpha)), n)
        start = np.append(values[: model.n_parameters], grown.own)
        first = Start(start, grown.multipliers)
        return cls(model, penalty, WholeSpace(), grown, first, convention=data.convention)

    @property
    def constrained(self) -> TrainingData | None:
        """The rows whose constraints the multipliers followed, None for all training rows."""
        return self.grown.held if self.grown.constrains_held else None

    @property
    def validation(self) -> TrainingData | None:
        """The rows that chose the number of trees, or that the multipliers followed."""
        return self.grown.held

    def moved(self, by: float) -> Self:
        """Return the same trees for scores measured from a threshold that is higher by a number."""
        w, offset = self.first.w.copy(), self.model.offset()
        assert offset is not None
        w[: len(offset)] -= by * offset
        w[len(offset) :] -= by  # thresholds on scores
        first, grown = replace(self.first, w=w), replace(self.grown, meets=False)
        return replace(super().moved(by), first=first, grown=grown)

    def minimize(
        self,
        estimator: Any,
        problem: Problem,
        *,
        split: tuple[Problem, Problem] | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the optimal leaf values, and the evaluation there.

        The start is the boosted leaf values and the multipliers with which they were grown. If
        the constraints are on predictions, and those of the boosted trees meet them, the trees are
        returned as they are.
        """
        first = self._first(problem)
        if first is not None and self._is_kept(estimator, problem, first):
            solver = BoostedTrees(tol=estimator.tol)
            result, at = solver.solve(problem, warm=first, callback=callback)
            n_trees = len(self.grown.trees.sizes)
            message = (
                f"{n_trees} boosted trees, whose predictions meet the constraints: their leaf "
                "values were not fitted again."
            )
            return replace(result, message=message), at
        return super().minimize(
            estimator, problem, warm=first if warm is None else warm, callback=callback
        )

    def _first(self, problem: Problem) -> Start | None:
        """Return the start if it has the variables of the problem, else None."""
        first = self.first
        if first.w.size != problem.n_variables:
            return None
        assert first.multipliers is not None
        known = len(first.multipliers) == problem.n_constraints
        return first if known else replace(first, multipliers=None)

    def _is_kept(self, estimator: Any, problem: Problem, first: Start) -> bool:
        """Return whether the boosted trees are the model: see `Grown.meets`."""
        if not self.grown.meets or estimator.confidence is not None:
            return False
        at = problem.uncounted().at(first.w)
        scores = at.scores_of(problem.objective)
        assert scores is not None
        constant = bool(np.all(scores > 0.0) or np.all(scores <= 0.0))
        return at.zero_one_violation == 0.0 and not constant

    def search_space(self, fit: Fit, result: Result) -> SearchSpace:
        """Return the leaf values, or the boosted trees alone if they are the model."""
        if not isinstance(result.solver, BoostedTrees):
            return super().search_space(fit, result)
        data, n = fit.data, self.model.n_parameters
        task = DecisionTask(
            fit.problem, result, result.solver, data.y, data.loss_weight, result.w[:n]
        )
        return SearchSpace(task, None, lambda w: w, without_search)

    def attributes(self, w: Array) -> dict[str, Any]:
        """Return a booster with these leaf values and the number of trees."""
        trees, offset = self.grown.trees, self.model.offset()
        assert offset is not None
        shown = self.convention.sign * (w + self.convention.threshold * offset)
        return {"booster_": trees.with_values(shown), "n_estimators_": len(trees.sizes)}

    def variables(self, estimator: object) -> None:
        """Return None: every fit grows trees of its own."""
        return None


def _kept(estimator: Any) -> Array:
    """Return the positions of the model's features among the columns of X."""
    return SensitiveColumns.of(estimator).kept(estimator)


def _saved(categories: list[list[Any]]) -> list[list[Any]]:
    """Return the categories if LightGBM can write them into a model file, else none of them.

    It can write numbers and strings. A booster without categories raises an error for columns of
    pandas' category dtype; it does not take the codes of another table for those of `fit`.
    """
    values = [one for column in categories for one in column]
    return categories if all(isinstance(one, str | int | float) for one in values) else []


def _growing(estimator: Any, options: Any, loss: LossOf) -> Growing:
    """Return how trees are grown, for an estimator's parameters and the columns it has seen."""
    kept = _kept(estimator)
    source = check_random_state(estimator.random_state)
    seen = seen_columns(estimator)[kept].tolist()
    categories = [categories for name, categories in estimator.categories_.items() if name in seen]
    threads = thread_count(options.n_jobs)
    stopping = EarlyStopping(options.validation_fraction, options.n_iter_no_change)
    return Growing(
        n_trees=options.n_estimators,
        learning_rate=float(options.learning_rate),
        parameters=lightgbm_parameters(options, source.randint(2**31 - 1), threads),
        names=feature_names(seen if hasattr(estimator, "feature_names_in_") else [], len(kept)),
        is_categorical=estimator.is_categorical_[kept],
        categories=_saved(categories),
        early_stopping=stopping if options.early_stopping else None,
        zero_one=estimator.enforce == "decision",
        n_fitted=options.n_fitted_trees,
        seed=source.randint(2**31 - 1),
        loss=loss,
    )
