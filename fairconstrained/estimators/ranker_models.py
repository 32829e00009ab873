"""How the scores of a ranker come from features: the objects passed as `model`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairconstrained.data.sensitive_columns import FeatureKind
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.binding import loss_part
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.growth import Grown
from fairconstrained.estimators.leaves import check_trees, leaf_attributes, leaf_problem
from fairconstrained.estimators.linear import feature_map_of, linear_problem, shown_scale
from fairconstrained.estimators.network_training import (
    network_attributes,
    network_scores,
    network_variables,
)
from fairconstrained.estimators.rows import penalty_of
from fairconstrained.estimators.solving import minimize_by_default
from fairconstrained.estimators.tree_parameters import TreeFeatures, TreeParameters
from fairconstrained.estimators.trees import PairLoss, raw_scores
from fairconstrained.models.feature_scale import Features
from fairconstrained.models.linear import LinearModel, finite_scores
from fairconstrained.models.network import TorchModel
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import PLADA, Result, Solver, default_solver
from fairconstrained.utils.parameter_constraints import OpenShare
from fairconstrained.utils.registry import Parametrized, resolve
from fairconstrained.utils.storage import coefficients
from fairconstrained.utils.typing import Array

_EPOCHS, _LEAST_STEPS, _CHECKS = 30, 3000, 15
_OF_LAYERS = {"hidden_layer_sizes": (), "activation": "relu", "alpha": 1e-4, "warm_start": False}


class RankerModel(Parametrized, ABC):
    """How the scores of a :class:`FairRanker` come from features.

    Subclasses hold parameters only; methods get the ranker. Their names are in `MODELS`.
    """

    @property
    def feature_kind(self) -> FeatureKind:
        """What is accepted as features: finite numbers, dense or sparse."""
        return FeatureKind()

    def of(self, ranker: Any) -> RankerModel:
        """Return the model for a ranker's parameters, after those that belong to it are checked."""
        return self

    def check(self, ranker: Any, data: TrainingData) -> None:
        """Check the parameters of the model against the rows."""

    @abstractmethod
    def problem(self, ranker: Any, data: TrainingData, *, path: bool) -> tuple[Problem, Any]:
        """Return the problem without constraints, and how trees were grown, see :class:`Fit`."""

    @abstractmethod
    def attributes(self, fit: Fit, w: Array) -> Mapping[str, Any]:
        """Return the fitted attributes that `predict` uses."""

    @abstractmethod
    def scores(self, ranker: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""

    def variables(self, ranker: Any, fit: Fit) -> Array | None:
        """Return the variables of the ranker's last fit, None if it was to other features."""
        return None

    def default_solver(self, problem: Problem) -> Solver:
        """Return the solver that "auto" stands for."""
        return default_solver(problem)

    def train_free(self, ranker: Any, problem: Problem) -> Result:
        """Return the solution of a problem without constraints."""
        return minimize_by_default(problem)


class LayeredScores(RankerModel):
    """Linear scores, or those of a network with the ranker's `hidden_layer_sizes`."""

    def of(self, ranker: Any) -> RankerModel:
        """Return the model for a ranker's layers."""
        return NetworkScores() if len(ranker.hidden_layer_sizes) else self

    def problem(self, ranker: Any, data: TrainingData, *, path: bool) -> tuple[Problem, Any]:
        """Return the problem without constraints; comparisons in a query need no intercept."""
        return linear_problem(ranker, data), None

    def attributes(self, fit: Fit, w: Array) -> dict[str, Array]:
        """Return the coefficients and feature scales in the units of X."""
        assert isinstance(fit.model, LinearModel)
        feature_map = feature_map_of(fit.estimator, fit.data)
        coef, _ = feature_map.fold(*fit.model.coefficients(w))
        return {"coef_": coef[0], "feature_scale_": shown_scale(feature_map, fit.problem)}

    def variables(self, ranker: Any, fit: Fit) -> Array | None:
        """Return the variables of the ranker's last fit, None if it was to other features."""
        assert isinstance(fit.model, LinearModel)
        feature_map, coef = feature_map_of(fit.estimator, fit.data), coefficients(ranker)
        if coef.shape != (feature_map.n_features,):
            return None
        return fit.model.variables(coef[None, feature_map.kept], np.zeros(1))

    def scores(self, ranker: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""
        return finite_scores(LinearModel(features, fit_intercept=False), ranker.coef_[kept])


class NetworkScores(RankerModel):
    """The scores of a network, with an L2 penalty on all its weights."""

    def problem(self, ranker: Any, data: TrainingData, *, path: bool) -> tuple[Problem, Any]:
        """Return the problem without constraints for a ranker's layers and alpha."""
        model = TorchModel.standardized(
            data.X,
            data.sample_weight,
            hidden_layer_sizes=tuple(ranker.hidden_layer_sizes),
            activation=ranker.activation,
        )
        return Problem(loss_part(ranker, model, data).add(penalty_of(ranker.alpha))), None

    def attributes(self, fit: Fit, w: Array) -> dict[str, Array]:
        """Return the weights, and the centring and the scale of the features."""
        return network_attributes(fit.model, w)

    def variables(self, ranker: Any, fit: Fit) -> Array | None:
        """Return the variables of the ranker's last fit, None if it has another network."""
        return network_variables(ranker, fit.model)

    def default_solver(self, problem: Problem) -> Solver:
        """Return stochastic PLADA, or a solver for goal="fairness"."""
        return default_solver(problem) if problem.in_epigraph_form else default_by_query(problem)

    def train_free(self, ranker: Any, problem: Problem) -> Result:
        """Return the solution of a problem without constraints."""
        return default_by_query(problem).minimize(problem, random_state=ranker.random_state)

    def scores(self, ranker: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            return network_scores(ranker, features)


def default_by_query(problem: Problem) -> Solver:
    """Return stochastic PLADA with one query per step, which passes over all of them 30 times."""
    codes = next((codes for codes in problem.blocks() if codes is not None), None)
    n_queries = 1 if codes is None else int(codes.max(initial=0)) + 1
    steps = max(_EPOCHS * n_queries, _LEAST_STEPS)
    # alpha is measured: the default of 10 is meant for rates, and pairwise errors vary far more.
    return PLADA.stochastic(
        alpha=None,
        batch_size=1,
        max_iter=steps,
        check_every=max(n_queries, steps // _CHECKS),
        polish=False,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class BoostedScores(TreeParameters, RankerModel):
    r"""Scores of gradient boosted trees, for :class:`FairRanker`. Needs LightGBM.

    Trees are grown for the augmented Lagrangian of the ranker's problem in score space, with a
    multiplier for every constraint and the second derivatives of the loss along each score. The
    leaf values of the last trees are then fitted, with a common factor of the trees before, as
    :class:`FairBoostingClassifier` does: the bound on scores holds to `tol`, with a KKT certificate
    of the leaf values, given the trees.

    Parameters
    ----------
    n_estimators, learning_rate, num_leaves, max_depth, min_child_samples, min_child_weight
    min_split_gain, subsample, subsample_freq, colsample_bytree, reg_alpha, reg_lambda, max_bin
        See :class:`FairBoostingClassifier`, for these and their defaults.
    categorical_features, monotone_constraints, lightgbm_params, alpha, n_fitted_trees, n_jobs
        See :class:`FairBoostingClassifier`.
    early_stopping : bool, default=False
        Whether the number of trees is chosen by the loss on validation queries, among the
        iterations that violate the constraints by at most 0.002.
    validation_fraction : float, default=0.1
        The share of the queries that are validation queries, in (0, 1). Leaf values are fitted on
        all rows.
    n_iter_no_change : int, default=10
        Growing stops after this number of iterations without a smaller validation loss.
    constraint_fraction : float or None, default=None
        The share of the queries, in (0, 1), on which the constraints are measured: trees are grown
        on the other queries, with multipliers that follow the constraints on these; so do the
        constraints of the leaf fit. Bounds then carry over to new queries, see the notes. It needs
        constraints that are the same for all queries, such as ``QueryParity(average=True)``. With
        `early_stopping` these queries are the validation queries. None measures the constraints on
        all queries.

    Notes
    -----
    Bounds hold on the queries on which they are measured: all queries of `fit`, or those that
    `constraint_fraction` sets aside, `validation_indices_` of the ranker. Its `gap_`,
    `decision_gap_` and `bound_met_` are of all queries in either case. Trees adapt to the queries
    that they are grown on, so that gaps on other queries are larger. With 200 queries,
    ``QueryParity(0.02, average=True)`` and the defaults, the gap on 500 new queries was 0.57 and
    NDCG@10 0.44; with ``constraint_fraction=0.3`` 0.05 and 0.27; with linear scores, of which these
    labels were made, 0.06 and 0.37. Measure both with
    :func:`~fairconstrained.compare_rankers`. With a constraint for every query, trees take several
    times as long as linear scores.

    References
    ----------
    C. Burges, "From RankNet to LambdaRank to LambdaMART: An overview", 2010, section 2; IPC, Remark
    2, for the augmented Lagrangian; A. Cotter et al., "Training well-generalizing classifiers for
    fairness metrics and other data-dependent constraints", ICML 2019, for multipliers that follow
    constraints on other rows.

    Examples
    --------
    >>> from fairconstrained import BoostedScores, FairRanker, make_biased_ranking
    >>> X, y, query, groups = make_biased_ranking(40, 4, random_state=0)
    >>> trees = BoostedScores(n_estimators=20, num_leaves=7, n_jobs=1)
    >>> ranker = FairRanker(kappa=0.25, model=trees, random_state=0)
    >>> ranker = ranker.fit(X, y, query=query, sensitive_features=groups)
    >>> ranker.result_.status.value, ranker.violation_ <= 1e-4, ranker.n_estimators_
    ('converged', True, 20)
    >>> bool(abs(ranker.to_lightgbm().predict(X) - ranker.predict(X)).max() < 1e-12)
    True
    """

    constraint_fraction: OpenShare | None = None

    @property
    def feature_kind(self) -> FeatureKind:
        """Numbers, missing values and categories."""
        return TreeFeatures(self.categorical_features)

    def of(self, ranker: Any) -> RankerModel:
        """Return this model; raise a ValueError for the ranker's parameters of other models."""
        for name, default in _OF_LAYERS.items():
            value = getattr(ranker, name)
            if value is not default and value != default:
                raise ValueError(
                    f"{name}={value!r} is a parameter of linear scores and networks; with boosted "
                    f"scores leave it at {default!r} and use the parameters of BoostedScores."
                )
        return self

    def check(self, ranker: Any, data: TrainingData) -> None:
        """Check the parameters of trees, and codes of categories."""
        check_trees(ranker, self, data)

    def problem(self, ranker: Any, data: TrainingData, *, path: bool) -> tuple[Problem, Grown]:
        """Return the problem of the leaf values of trees that are grown here, and these."""
        return leaf_problem(
            ranker,
            self,
            data,
            partial(PairLoss, objective=resolve_objective("loss", ranker.loss)),
            path=path,
            fit_intercept=False,
            constraint_fraction=self.constraint_fraction,
        )

    def attributes(self, fit: Fit, w: Array) -> dict[str, Any]:
        """Return a booster with these leaf values and the number of trees."""
        return leaf_attributes(fit.grown, np.append(w, 0.0))

    def scores(self, ranker: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""
        return raw_scores(ranker.booster_, features, self.n_jobs)


MODELS: dict[str, type[RankerModel]] = {"layers": LayeredScores, "boosted": BoostedScores}


def ranker_model(model: str | RankerModel) -> RankerModel:
    """Return what a ranker's `model` stands for."""
    return resolve("model", model, MODELS, RankerModel)


def has_trees(ranker: Any) -> bool:
    """Return True; raise unless the scores are those of boosted trees."""
    if not isinstance(ranker_model(ranker.model), BoostedScores):
        raise AttributeError(
            f"to_lightgbm is for boosted scores, FairRanker(model='boosted'); model is "
            f"{ranker.model!r}."
        )
    return True
