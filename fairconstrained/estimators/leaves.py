"""Leaf values of boosted trees as the variables of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

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
from fairconstrained.estimators.selection_rate import moved_variables
from fairconstrained.estimators.solving import Solved, with_beta
from fairconstrained.estimators.trees import LogLoss, PairLoss, as_lightgbm_data
from fairconstrained.models import LeafModel
from fairconstrained.penalties import InUnits, Leading, Penalty, Proximity
from fairconstrained.problem import Problem
from fairconstrained.solvers import Result, Solver, Status
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.utils.typing import Array


class BoostedTrees(Solver):
    """Measures the start, the boosted leaf values, and makes no step.

    It stands for the boosting iterations in the result of a fit whose trees meet the constraints.
    """

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the start with its multipliers."""
        yield Iterate(start.at(problem), start.multipliers, 1)


@dataclass(frozen=True, eq=False)
class BoostedLeaves(LeafModel):
    """The model of the leaf values of trees, with how these were grown."""

    grown: Grown | None = None


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

    def _free_problem(self, data: TrainingData, *growing: Any) -> Problem:
        """Return the problem of the leaf values of trees that are grown here.

        The variables are those of `Trees`; the penalty is the squared distance from the boosted
        values. Constraints that come later, those of a path, do not count.
        """
        constraints, split, path = growing
        trees, free = self._trees, path or self.goal == "fairness"
        rows, held = (data, None) if split is None else split
        n_fitted = None if free else trees.n_fitted_trees
        grown = Growth(self, rows, () if free else constraints, held, n_fitted).run()
        values, lengths = grown.trees.values(), grown.trees.lengths
        model = BoostedLeaves.of(
            grown.trees.features(),
            data.X,
            data.loss_weight,
            values,
            grown.scores,
            curvature=grown.curvature,
            alpha=float(trees.alpha) * lengths**2,
            fit_intercept=getattr(self, "fit_intercept", True),
        )
        model, n = replace(model, grown=grown), model.n_coefficients
        penalty: Penalty = Proximity(values[:n] * lengths, float(trees.alpha))
        domain: Domain = WholeSpace()
        if grown.trees.monotone:  # sums of monotone trees with factors >= 0 are monotone
            penalty, domain = InUnits(penalty, lengths), LeadingDomain(Box(0.0, np.inf), n)
        objective = loss_part(self, model, data).add(Leading(penalty, n))
        return Problem(objective, domain=domain)

    def _fitted(self, fit: Fit, w: Array) -> dict[str, Any]:
        """Return a booster with these leaf values and the number of trees."""
        assert isinstance(fit.model, BoostedLeaves) and fit.model.grown is not None
        convention, offset, trees = fit.data.convention, fit.model.offset(), fit.model.grown.trees
        values = np.append(w, 0.0)  # comparisons of scores need no intercept
        if offset is not None:
            values = convention.sign * (w + convention.threshold * offset)
        return {"booster_": trees.with_values(values), "n_estimators_": trees.n_trees}

    def _raw_scores(self, features: Any) -> Array:
        """Return the scores of rows with the features of the model."""
        rows, threads = as_lightgbm_data(features), tree_parameters.thread_count(self._trees.n_jobs)
        return np.asarray(self.booster_.predict(rows, raw_score=True, num_threads=threads))

    def _train(self, problem: Problem, fit: Any = None, **options: Any) -> Solved:
        """Return the optimal leaf values, and the evaluation there.

        The start has the multipliers with which the trees were grown. The boosted trees are
        returned as they are without constraints, and where these are on predictions that meet them.
        """
        model = problem.objective.model
        grown = model.grown if isinstance(model, BoostedLeaves) else None
        if grown is not None and grown.first.w.size == problem.n_variables:  # else an epigraph
            w, multipliers = grown.first.w, grown.first.multipliers
            if by := fit.data.convention.threshold - grown.threshold:
                w = moved_variables(problem, w, by)
            same = multipliers is not None and len(multipliers) == problem.n_constraints
            first = Start(w, multipliers if same else None)
            if self._are_kept(grown, first, problem):
                solver = with_beta(BoostedTrees(tol=self.tol), self.beta)
                result, at = solver.solve(problem, warm=first, callback=options.get("callback"))
                met = "whose predictions meet the constraints"
                message = (
                    f"{grown.trees.n_trees} boosted trees, "
                    f"{met if problem.n_constraints else 'unconstrained'}: "
                    "leaf values were not fitted again."
                )
                return replace(result, status=Status.CONVERGED, message=message), at
            if options.get("warm") is None:
                options["warm"] = first
        return super()._train(problem, fit, **options)

    def _are_kept(self, grown: Grown, first: Start, problem: Problem) -> bool:
        """Return whether the boosted trees are the model: see `Grown.meets`."""
        if not problem.n_constraints:
            return True
        if self.confidence is not None or first.w is not grown.first.w or not grown.meets:
            return False
        at = problem.uncounted().at(first.w)
        selected = at.scores_of(problem.objective) > 0.0
        return at.zero_one_violation == 0.0 and bool(selected.any() and not selected.all())

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
        text = self.booster_.model_to_string()
        return tree_parameters.import_lightgbm().Booster(model_str=text)
