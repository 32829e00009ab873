"""Rankers under fairness constraints."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from fairconstrained.constraints import ConstraintLike
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.inputs import check_labels, check_same_rows, known_labels
from fairconstrained.data.labels import given_queries
from fairconstrained.data.sensitive_columns import FeatureKind, feature_kind
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators import network_training as training
from fairconstrained.estimators.boosting import TreeScores
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.ranker_models import RankerModel, has_trees, ranker_model
from fairconstrained.estimators.score_lagrangian import LogLoss, PairLoss
from fairconstrained.estimators.solving import Solved
from fairconstrained.estimators.tree_parameters import TreeParameters
from fairconstrained.functions.losses import Loss
from fairconstrained.metrics import mean_ndcg
from fairconstrained.models.modules import ACTIVATIONS
from fairconstrained.objectives import Objective, resolve_objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import PLADA, Result, Solver
from fairconstrained.solvers.base import Start
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike
from fairconstrained.utils.execution import with_callbacks
from fairconstrained.utils.parameter_constraints import LayerSizes, one_of

if TYPE_CHECKING:
    from torch.nn import Module

_EPOCHS, _LEAST_STEPS, _CHECKS = 30, 3000, 15


def _of_kind(name: str) -> Any:
    """Return the method of this name that the class of estimators with the same scores has."""
    return lambda ranker, *args: getattr(ranker._kind, name)(ranker, *args)


@dataclass(eq=False, repr=False)
class FairRanker(TreeScores):
    r"""Pairwise ranking under explicit fairness constraints.

    .. math::
        \min_w \sum_{(i, j)} \omega_{ij}\, \ell(s_i - s_j) + \frac{\alpha}{2} \|w\|_2^2
        \quad \text{s.t.} \quad g_j(w) \le 0, \quad s_i = h_w(x_i),

    over all pairs of a relevant row i and an irrelevant row j of the same query, with the logistic
    loss and weights :math:`\omega` that sum to one. With the default constraint there are two
    constraints for every query: the share of pairs in which a relevant row of one group is ranked
    below an irrelevant row of the other differs by at most `kappa` between the groups. The model is
    deterministic, and needs neither queries nor groups to predict.

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="query_parity"
        The constraint: "query_parity", an object such as ``QueryParity(0.1, average=True)``,
        another constraint on scores such as "inter_group_auc", or a list, all of which must hold.
        None fits the model without constraints and needs no groups.
    kappa : float, default=0.25
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    model : {"layers", "boosted"} or BoostedScores, default="layers"
        The kind of scores: "layers" for linear scores or a network, "boosted" for boosted trees
        (``pip install fairconstrained[boosting]``). An object
        :class:`~fairconstrained.BoostedScores` has the parameters of the trees.
    hidden_layer_sizes : sequence of int, default=()
        The units of the hidden layers of a network; () stands for linear scores. Networks need
        PyTorch (``pip install fairconstrained[torch]``).
    activation : {"relu", "tanh", "elu", "gelu", "silu"}, default="relu"
        The function after every hidden layer.
    loss : str, Loss or Objective, default="query_pairs"
        "query_pairs" is :class:`~fairconstrained.objectives.QueryPairLoss`, the logistic loss of
        pairs within queries; an object can have another loss, or give all queries the same weight.
    goal : {"accuracy", "fairness"}, default="accuracy"
        "accuracy" minimises the loss subject to gaps of at most `kappa`; "fairness" minimises the
        largest gap subject to a loss of at most ``1 + max_loss_increase`` times the least one. With
        a constraint for every query this is the gap of the worst query;
        ``QueryParity(average=True)`` has one gap for all queries.
    max_loss_increase : float, default=0.001
        For goal="fairness": the relative increase of the loss that is allowed, > 0.
    solver, beta
        As for :class:`FairLogisticClassifier`. With thousands of queries,
        ``PLADA.stochastic(batch_size=...)`` draws whole queries with their constraints.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty, on the coefficients of scaled features,
        or on the weights of a network.
    sensitive_columns, use_sensitive, combine, groups_missing
        See :class:`FairLogisticClassifier`.
    pos_label : label or None, default=None
        The label of relevant rows; None takes the second of the sorted labels.
    max_iter, tol, verbose
        See :class:`FairLogisticClassifier`.
    warm_start : bool, default=False
        Whether `fit` starts from the weights and multipliers of the last fit.
    random_state : int, RandomState or None, default=None
        The source of randomness of stochastic solvers and of the initial weights of a network.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients of linear scores; zero for sensitive columns that are not features.
    feature_scale_ : ndarray of shape (n_features,)
        With linear scores: the scale of each feature that the penalty refers to. With a network:
        the scale of the features that it uses, infinite for those that are constant.
    feature_mean_ : ndarray of shape (n_model_features,)
        With a network: the centring of these features.
    weights_ : ndarray of shape (n_weights,)
        With a network: its weights.
    module_ : torch.nn.Module
        With a network: the scores of rows in the units of X, made of these arrays when it is read.
    booster_ : lightgbm.Booster
        With boosted scores: the fitted trees.
    n_estimators_, feature_importances_, is_categorical_, categories_, validation_indices_
        With boosted scores: see :class:`FairBoostingClassifier`.
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    pos_label_ : label
        The label of relevant rows.
    gap_ : float
        The largest gap on scores, measured with the loss of the constraint, before kappa is
        subtracted (nan without constraints).
    decision_gap_ : float
        The largest gap of rankings: for the default constraint the largest difference of pairwise
        errors in a query of the training rows.
    n_features_in_, feature_names_in_, groups_, n_iter_, multipliers_, objective_, violation_
    sensitive_names_in_, bound_violation_, bound_met_, kkt_residual_, constraint_choices_, result_
        See :class:`FairLogisticClassifier`.
    optimality_gap_, optimality_gap_reason_ : None, str
        No bound is known for losses of pairs.

    Warns
    -----
    ConvergenceWarning
        If the solver ends before it reaches its tolerance.
    InfeasibleConstraintWarning
        If the violation is above the tolerance.
    VacuousConstraintWarning
        If queries lack the pairs that the constraint compares; the message has their numbers.

    References
    ----------
    PLADA, appendix D.3; C. Burges et al., "Learning to rank using gradient descent", ICML 2005.

    Examples
    --------
    >>> from fairconstrained import FairRanker, make_biased_ranking
    >>> X, y, query, groups = make_biased_ranking(20, 4, random_state=0)
    >>> ranker = FairRanker(kappa=0.1).fit(X, y, query=query, sensitive_features=groups)
    >>> ranker.result_.status.value, ranker.violation_ <= 1e-4, len(ranker.multipliers_)
    ('converged', True, 40)
    >>> unconstrained = FairRanker(constraint=None).fit(X, y, query=query)
    >>> ranker.objective_ > unconstrained.objective_
    True
    >>> ranker.predict(X).shape == y.shape, 0.0 < ranker.score(X, y, query=query) < 1.0
    (True, True)
    """

    __metadata_request__fit: ClassVar = {"query": True}
    __metadata_request__score: ClassVar = {"query": True, "sample_weight": True}
    needs_queries: ClassVar[bool] = True

    # The options of classifiers that rankers do not have: see `Fit`.
    enforce: ClassVar[str] = "score"
    bound: ClassVar[bool] = True  # type: ignore[misc]
    confidence: ClassVar[float | None] = None
    class_weight: ClassVar[None] = None
    threshold: ClassVar[None] = None
    surrogate: ClassVar[str] = "sigmoid"
    group_interactions: ClassVar[bool] = False
    fit_intercept: ClassVar[bool] = False
    domain: ClassVar[None] = None
    module: ClassVar[None] = None
    device: ClassVar[str] = "auto"
    _penalizes_biases: ClassVar[bool] = True

    constraint: ConstraintLike = "query_parity"
    kappa: float = 0.25
    _: KW_ONLY
    model: str | RankerModel = "layers"
    hidden_layer_sizes: LayerSizes = ()
    activation: Annotated[str, one_of(*ACTIVATIONS)] = "relu"
    loss: str | Loss | Objective = "query_pairs"
    warm_start: bool = False

    @property
    def feature_kind(self) -> FeatureKind:
        """What it accepts as features, for developers."""
        return feature_kind(ranker_model(self.model))

    @property
    def module_(self) -> Module:
        """The scores of a network as a module of PyTorch, for rows in the units of X."""
        if not hasattr(self, "weights_"):
            raise AttributeError("module_ is an attribute of fitted rankers with a network.")
        return training.fitted_network(self).module(self.weights_)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: labels are required."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        query: ArrayLike | None = None,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        X_val: MatrixLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        query_val: ArrayLike | None = None,
        sensitive_features_val: MatrixLike | None = None,
        control_features_val: MatrixLike | None = None,
        constraint_data: tuple[Any, Any, Any] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, sensitive_features, control_features
            See :meth:`FairLogisticClassifier.fit`.
        y : array-like of shape (n_samples,)
            The labels, of two classes; rows of the second one are relevant.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows. The weight of a pair is the product of the weights of its rows.
        query : array-like of shape (n_samples,)
            The query of each row: strings, numbers or other labels. Rows need not be sorted.
        X_val, y_val, sample_weight_val, query_val, sensitive_features_val, control_features_val
            The queries that choose the number of trees, in place of a share of those of X. They
            need boosted scores with ``early_stopping=True``.
        constraint_data : tuple of (X, y or None, groups) or None, default=None
            Rows that the constraints apply to, see :meth:`FairLogisticClassifier.fit`; not
            available for constraints within queries.

        Returns
        -------
        self : FairRanker
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, queries or groups are missing, no query has rows of both
            classes, or the solver cannot solve the problem.
        """
        groups = sensitive_features, control_features
        groups_val = with_strata(sensitive_features_val, control_features_val)
        rows = X_val, y_val, sample_weight_val, groups_val, query_val
        others = {"query": query, "validation": rows, "constraint_data": constraint_data}
        return self._fit(X, y, sample_weight, *groups, **others)

    def predict(self, X: MatrixLike) -> Array:
        """Return the scores: rows of a query are ranked by decreasing scores.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._scores(X)

    @property
    def _kind(self) -> type[Any]:
        return ranker_model(self.model).kind(self)

    @property
    def _trees(self) -> Any:
        model = ranker_model(self.model)
        return model if isinstance(model, TreeParameters) else None

    def _tree_loss(self, data: TrainingData) -> LogLoss | PairLoss:
        return PairLoss(data, resolve_objective("loss", self.loss))

    _prepared, _free_problem = _of_kind("_prepared"), _of_kind("_free_problem")
    _variables, _raw_scores = _of_kind("_variables"), _of_kind("_raw_scores")

    def _fitted(self, fit: Fit, w: Array) -> dict[str, Any]:
        """Return the fitted attributes that `predict` uses; comparisons need no intercept."""
        attributes = self._kind._fitted(self, fit, w)
        if attributes.pop("intercept_", None) is not None:
            attributes["coef_"] = attributes["coef_"][0]
        return attributes

    def _default_solver(self, problem: Problem) -> Solver:
        if self._kind is training.NetworkScores and not problem.in_epigraph_form:
            return _by_query(problem)
        return super()._default_solver(problem)

    def _train(self, problem: Problem, fit: Any = None, **options: Any) -> Solved:
        """Return the solution; where a network violates constraints, its last layer is fitted."""
        result, at = super()._train(problem, fit, **options)
        if self._kind is not training.NetworkScores:
            return result, at
        return training.with_fitted_last_layer(problem, (result, at), self.random_state)

    def _train_free(self, fit: Fit, problem: Problem, near: Start | None) -> Result:
        if self._kind is training.NetworkScores:
            return _by_query(problem).minimize(problem, random_state=self.random_state)
        return super()._train_free(fit, problem, near)

    to_lightgbm = available_if(has_trees)(TreeScores.to_lightgbm)

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        query: ArrayLike | None = None,
    ) -> float:
        """Return the mean over queries of ``NDCG@10``.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.
        y : array-like of shape (n_samples,)
            Their labels, of the classes seen in `fit`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows; the weight of a query is the mean weight of its rows.
        query : array-like of shape (n_samples,)
            The query of each row.

        Returns
        -------
        ndcg : float
            See :func:`~fairconstrained.metrics.mean_ndcg`.

        Raises
        ------
        ValueError
            If there are no queries, or lengths differ.
        """
        queries = given_queries(self, query, "score")
        check_same_rows(X=X, y=y, query=query, sample_weight=sample_weight)
        scores = self.predict(X)
        labels = known_labels("y", check_labels("y", y, len(scores)), self.classes_.tolist())
        queries = check_labels("query", queries, len(scores))
        relevant = labels == self.pos_label_
        return mean_ndcg(relevant, scores, query=queries, sample_weight=sample_weight)


def _by_query(problem: Problem) -> Solver:
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
