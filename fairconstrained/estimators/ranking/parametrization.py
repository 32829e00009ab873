"""How the scores of rankers depend on the solver's variables: linear, by a network, by trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.estimators.linear.parametrization import ClassifierParametrization
from fairconstrained.estimators.options import penalty_of
from fairconstrained.estimators.parametrization import Parametrization
from fairconstrained.estimators.ranking.boosted import BoostedScores
from fairconstrained.estimators.ranking.models import RankerModel
from fairconstrained.estimators.solving import solver_of
from fairconstrained.models.feature_scale import Features
from fairconstrained.models.linear import LinearModel, checked_scores, finite_scores
from fairconstrained.models.modules import ACTIVATIONS
from fairconstrained.models.network import TorchModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import PLADA, Result, Solver, default_solver
from fairconstrained.utils.registry import check_option, resolve
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_count

_EPOCHS, _LEAST_STEPS, _CHECKS = 30, 3000, 15


class LinearRanking(ClassifierParametrization):
    """Linear scores without an intercept, which no comparison within a query depends on."""

    def attributes(self, w: Array) -> dict[str, Array]:
        """Return the coefficients and feature scales in the units of X."""
        found = super().attributes(w)
        return {"coef_": found["coef_"][0], "feature_scale_": found["feature_scale_"]}

    def variables(self, estimator: object) -> Array | None:
        """Return the variables of a fitted estimator, None if it was fitted to other features."""
        coef = getattr(estimator, "coef_", np.empty(0))
        kept = self.feature_map.kept
        if coef.shape != (self.feature_map.n_features,):
            return None
        return self.model.variables(coef[None, kept], np.zeros(1))

    @staticmethod
    def scores(estimator: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""
        model = LinearModel(features, fit_intercept=False)
        return finite_scores(model, estimator.coef_[kept])


@dataclass(frozen=True, eq=False)
class NetworkRanking(Parametrization):
    """The scores of a network, with an L2 penalty on all its weights.

    Attributes
    ----------
    model : TorchModel
        The model on the training rows.
    penalty : Penalty
        The penalty on the weights.
    domain : Domain
        All weights.
    """

    model: TorchModel
    penalty: Penalty
    domain: Domain

    @classmethod
    def of(cls, estimator: Any, data: TrainingData, *, path: bool = False) -> Self:
        """Return the parametrization for an estimator's layers and alpha."""
        model = TorchModel.standardized(
            data.X,
            data.sample_weight,
            hidden_layer_sizes=tuple(estimator.hidden_layer_sizes),
            activation=estimator.activation,
        )
        return cls(model, penalty_of(estimator.alpha), WholeSpace())

    def solver(self, estimator: Any, problem: Problem) -> Solver:
        """Return the solver with the estimator's options, see :func:`default_of_network`."""
        return solver_of(estimator, problem, default=default_of_network)

    def unconstrained(
        self, estimator: Any, problem: Problem, split: tuple[Problem, Problem] | None
    ) -> Result:
        """Return the solution of a problem without constraints."""
        solver = default_by_query(problem)
        return solver.minimize(problem, random_state=estimator.random_state)

    def attributes(self, w: Array) -> dict[str, object]:
        """Return the weights, and the centring and the scale of the features."""
        network = self.model.network
        return {
            "weights_": np.array(w),
            "feature_mean_": network.shift,
            "feature_scale_": network.scale,
        }

    def variables(self, estimator: object) -> Array | None:
        """Return the variables of a fitted estimator, None if it has another network."""
        found = getattr(estimator, "weights_", np.empty(0))
        return found if found.shape == (self.model.n_parameters,) else None

    @staticmethod
    def scores(estimator: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            return checked_scores(fitted_network(estimator, features).scores(estimator.weights_))


def fitted_network(ranker: Any, X: Features) -> TorchModel:
    """Return the network of a fitted ranker on rows with the features that it uses."""
    return TorchModel.with_scale(
        X,
        ranker.feature_mean_,
        ranker.feature_scale_,
        hidden_layer_sizes=tuple(ranker.hidden_layer_sizes),
        activation=ranker.activation,
        device="cpu",
    )


def default_of_network(problem: Problem) -> Solver:
    """Return the solver that "auto" stands for: stochastic PLADA, or one for goal="fairness"."""
    return default_solver(problem) if problem.in_epigraph_form else default_by_query(problem)


def default_by_query(problem: Problem) -> Solver:
    """Return stochastic PLADA with one query per step, which passes over all of them 30 times."""
    codes = next((one for one in problem.blocks() if one is not None), None)
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


class LayeredScores(RankerModel):
    """Linear scores, or those of a network with the ranker's `hidden_layer_sizes`."""

    kinds: ClassVar[dict[bool, type[LinearRanking] | type[NetworkRanking]]] = {
        False: LinearRanking,
        True: NetworkRanking,
    }

    def parametrization(self, estimator: Any) -> type[LinearRanking] | type[NetworkRanking]:
        """Return the parametrization for a ranker's layers.

        Raises
        ------
        ValueError
            If they are not a sequence of counts, or the activation is unknown.
        """
        check_option("activation", estimator.activation, ACTIVATIONS)
        sizes = estimator.hidden_layer_sizes
        if isinstance(sizes, str | bytes) or not isinstance(sizes, Sequence | np.ndarray):
            raise ValueError(
                "hidden_layer_sizes must be a sequence of integers >= 1, one for every hidden "
                f"layer, or () for linear scores; got {sizes!r}."
            )
        for k, size in enumerate(sizes):
            check_count(f"hidden_layer_sizes[{k}]", size)
        return self.kinds[len(sizes) > 0]


MODELS: dict[str, type[RankerModel]] = {"layers": LayeredScores, "boosted": BoostedScores}


def ranker_model(model: str | RankerModel) -> RankerModel:
    """Return what a ranker's `model` stands for.

    Raises
    ------
    ValueError
        If the name is unknown; the message lists those that are valid.
    TypeError
        If it is neither a name nor an instance.
    """
    return resolve("model", model, MODELS, RankerModel)


def has_trees(ranker: Any) -> bool:
    """Return True; raise unless the scores are those of boosted trees."""
    if not isinstance(ranker_model(ranker.model), BoostedScores):
        raise AttributeError(
            f"to_lightgbm is for boosted scores, FairRanker(model='boosted'); model is "
            f"{ranker.model!r}."
        )
    return True
