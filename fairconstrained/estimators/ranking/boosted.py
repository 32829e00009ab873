"""Rankers whose scores are those of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from fairconstrained.data.features import FeatureKind
from fairconstrained.estimators.boosting.features import TreeFeatures
from fairconstrained.estimators.boosting.growth import Growing
from fairconstrained.estimators.boosting.losses import LossOf, PairLoss
from fairconstrained.estimators.boosting.options import TreeParameters
from fairconstrained.estimators.boosting.parametrization import LeafParametrization
from fairconstrained.estimators.boosting.trees import raw_scores
from fairconstrained.estimators.ranking.models import RankerModel
from fairconstrained.models.feature_scale import Features
from fairconstrained.objectives import resolve_objective
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number

_OF_LAYERS = {"hidden_layer_sizes": (), "activation": "relu", "alpha": 1e-4, "warm_start": False}


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
    n_estimators : int, default=100
        The number of trees.
    learning_rate : float, default=0.1
        The factor by which the values of every tree are multiplied.
    num_leaves : int, default=15
        The maximum number of leaves of a tree.
    max_depth : int, default=-1
        The maximum depth of a tree; -1 for no limit.
    min_child_samples : int, default=50
        The minimum number of rows in a leaf.
    min_child_weight : float, default=1e-3
        The minimum sum of the second derivatives of the loss in a leaf.
    min_split_gain : float, default=0.0
        The minimum gain of a split.
    subsample : float, default=1.0
        The share of the rows that a tree is grown on; it needs a positive `subsample_freq`.
    subsample_freq : int, default=0
        The number of trees after which rows are drawn again; 0 uses all rows.
    colsample_bytree : float, default=1.0
        The share of the features that a tree may use.
    reg_alpha, reg_lambda : float, default=0.0 and 10.0
        L1 and L2 regularisation of the leaf values while trees are grown.
    max_bin : int, default=255
        The maximum number of bins of a feature.
    categorical_features : "from_dtype", list of str, int or bool, or None, default="from_dtype"
        The categorical columns, see :class:`FairBoostingClassifier`; for columns of pandas'
        category dtype in tables for the booster, see its `booster_`.
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
    lightgbm_params : dict or None, default=None
        Other parameters of LightGBM, see :class:`FairBoostingClassifier`.
    alpha : float, default=0.1
        The strength of the penalty that keeps leaf values close to the boosted ones, >= 0.
    n_fitted_trees : int or None, default=25
        The number of trees, counted from the last, whose leaf values are fitted; None for all.
    n_jobs : int or None, default=None
        The number of threads of LightGBM; None takes its default, all cores.

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

    constraint_fraction: float | None = None

    @property
    def feature_kind(self) -> FeatureKind:
        """Numbers, missing values and categories."""
        return TreeFeatures(self.categorical_features)

    def parametrization(self, estimator: object) -> type[BoostedRanking]:
        """Return the parametrization by leaf values.

        Raises
        ------
        ValueError
            If parameters of linear scores or networks are given.
        """
        for name, default in _OF_LAYERS.items():
            value = getattr(estimator, name)
            if value is not default and value != default:
                raise ValueError(
                    f"{name}={value!r} is a parameter of linear scores and networks; with boosted "
                    f"scores leave it at {default!r} and use the parameters of BoostedScores."
                )
        fraction = self.constraint_fraction
        if fraction is not None and not (is_number(fraction, Real) and 0.0 < fraction < 1.0):
            raise ValueError(
                f"constraint_fraction must be None or a number > 0 and < 1; got {fraction!r}."
            )
        return BoostedRanking


class BoostedRanking(LeafParametrization):
    """The scores of boosted trees without an intercept."""

    fit_intercept: ClassVar[bool] = False

    @classmethod
    def options(cls, estimator: Any) -> BoostedScores:
        """Return the object that has the parameters of the trees: the ranker's model."""
        return boosted_scores(estimator.model)

    @classmethod
    def loss(cls, estimator: Any) -> LossOf:
        """Return the loss that trees are grown for: that of pairs within queries."""
        return partial(PairLoss, objective=resolve_objective("loss", estimator.loss))

    @classmethod
    def growing(cls, estimator: Any) -> Growing:
        """Return how trees are grown, with the share of queries that constraints are on."""
        fraction = cls.options(estimator).constraint_fraction
        return replace(super().growing(estimator), constraint_fraction=fraction)

    def attributes(self, w: Array) -> dict[str, Any]:
        """Return a booster with these leaf values and the number of trees."""
        trees = self.grown.trees
        return {
            "booster_": trees.with_values(np.append(w, 0.0)),
            "n_estimators_": len(trees.sizes),
        }

    @staticmethod
    def scores(estimator: Any, features: Features, kept: Array) -> Array:
        """Return the scores of rows."""
        n_jobs = boosted_scores(estimator.model).n_jobs
        return raw_scores(estimator.booster_, features, n_jobs)


def boosted_scores(model: str | BoostedScores) -> BoostedScores:
    """Return a model, with the default parameters for its name."""
    return BoostedScores() if isinstance(model, str) else model
