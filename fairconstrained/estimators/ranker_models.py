"""How the scores of a ranker come from features: the objects passed as `model`."""

from abc import ABC, abstractmethod
from typing import Any

from fairconstrained.estimators.boosting import TreeScores
from fairconstrained.estimators.linear import LinearScores
from fairconstrained.estimators.network_training import NetworkScores
from fairconstrained.estimators.tree_parameters import TreeParameters
from fairconstrained.utils.arguments import Parametrized, check_unset, resolve
from fairconstrained.utils.parameter_constraints import OpenShare

_OF_LAYERS = {"hidden_layer_sizes": (), "activation": "relu", "alpha": 1e-4, "warm_start": False}


class RankerModel(Parametrized, ABC):
    """How the scores of a :class:`FairRanker` come from features.

    Subclasses hold parameters only; their names are in `MODELS`.
    """

    @abstractmethod
    def kind(self, ranker: Any) -> type[Any]:
        """Return the class of estimators whose scores a ranker has; its parameters are checked."""


class LayeredScores(RankerModel):
    """Linear scores, or those of a network with the ranker's `hidden_layer_sizes`."""

    def kind(self, ranker: Any) -> type[Any]:
        """Return that scores are those of a network where there are layers, else linear."""
        return NetworkScores if len(ranker.hidden_layer_sizes) else LinearScores


class BoostedScores(TreeParameters, RankerModel, kw_only=True):
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
        The share of the queries, in (0, 1), that are set aside to measure the constraints. Trees
        are grown on the other queries; the multipliers and the leaf fit use the constraints on the
        queries set aside. Bounds then carry over to new queries, see the notes. It needs
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
    NDCG@10 0.44; with ``constraint_fraction=0.3`` 0.05 and 0.27; with linear scores, from which
    the labels were generated, 0.06 and 0.37. Measure both with
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

    def kind(self, ranker: Any) -> type[Any]:
        """Return that scores are those of trees; check that the ranker has no layers."""
        why = "is a parameter of linear scores and networks: use those of BoostedScores, and"
        check_unset(ranker, why, **_OF_LAYERS)
        return TreeScores


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
