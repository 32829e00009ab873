"""Thresholds on the scores of any classifier, so that its decisions meet fairness constraints."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, column_or_1d, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import _num_samples

from fairconstrained.constraints import ConstraintLike
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import COMBINE, GROUPS_MISSING
from fairconstrained.data.inputs import check_same_rows
from fairconstrained.data.labels import ClassWeight
from fairconstrained.data.sensitive_columns import Columns, SensitiveColumns
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators import ConstraintParameters, DocumentedEstimator, threshold_fit
from fairconstrained.estimators.rows import warn_of_unused_kappa
from fairconstrained.estimators.thresholds import ThresholdPredictions
from fairconstrained.utils import execution
from fairconstrained.utils.arrays import ArrayLike, MatrixLike
from fairconstrained.utils.meta_estimators import final_estimator
from fairconstrained.utils.parameter_constraints import Jobs, OpenShare, Seed, Splits, one_of


@dataclass(eq=False, repr=False)
class FairThresholds(
    execution.CallbackSupportMixin,
    ThresholdPredictions,
    ConstraintParameters,
    MetaEstimatorMixin,
    ClassifierMixin,
    DocumentedEstimator,
):
    r"""Thresholds on the scores of any classifier, so that its decisions meet fairness constraints.

    The classifier and its scores stay as they are. With scores r, groups z and one threshold for
    all rows, or one for each group,

    .. math::
        \max_\theta \text{accuracy of } 1\{r_i > \theta_{z_i}\} \quad \text{s.t.} \quad
        \text{the gap of these decisions} \le \kappa,

    is solved on rows that the classifier was not trained on. Decisions are deterministic. A single
    threshold does not need the groups to predict. If the scores of the groups differ much, it can
    meet a small kappa only with nearly constant decisions, at a large cost of accuracy. With
    ``per_group=True`` **the group of every row is needed to predict**, and rows with equal scores
    are treated differently by group, which is illegal in some jurisdictions.

    Parameters
    ----------
    estimator : classifier
        Any classifier of two classes with `predict_proba` or `decision_function`, a pipeline or a
        search. It is cloned and fitted, unless ``cv="prefit"`` or it is a fitted classifier in a
        ``sklearn.frozen.FrozenEstimator``.
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        The constraint on decisions: a name such as "demographic_parity", "equal_opportunity",
        "predictive_equality", "equalized_odds", "error_rate_parity" or "disparate_impact", an
        object such as ``EqualizedOdds(kappa=0.1)``, or a list, all of which must hold. Constraints
        on scores, such as ROC parity, raise an error. None chooses the most accurate thresholds.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    per_group : bool, default=False
        Whether every group has a threshold of its own.
    cv : None, int, float, splitter or "prefit", default=None
        Which scores choose the thresholds. None (five folds), an int or a splitter with disjoint
        test folds: the out-of-fold scores of all rows; the classifier is then fitted to all rows. A
        float in (0, 1): the scores of this share of the rows; the classifier is fitted to the
        others. "prefit": the scores of the fitted classifier, which must not have been trained on
        these rows.
    confidence : float or None, default=None
        The probability, over the draw of the data, with which the gap of the decisions in the
        population is at most kappa. Some of the rows are held out; thresholds that are chosen on
        the others, with margins below the bound, are tested on them. See
        :mod:`fairconstrained.decisions.population`. For constraints on rates of predictions and on
        error rates.
    holdout : float or "auto", default="auto"
        The share of every group that is held out for `confidence`. "auto" takes half of the rows,
        or fewer where fewer suffice for the test.
    sensitive_columns : str, int, list of these, callable or None, default=None
        The columns of X that hold the sensitive attributes, or a function of X that returns the
        groups. With None the groups are passed to `fit`, and with `per_group` to `predict`. `fit`
        of the classifier gets the groups if it takes `sensitive_features`.
    use_sensitive : bool, default=False
        Whether the sensitive columns are features of the classifier. For a classifier that is
        already fitted, use True if they were among its features, and for one that has
        `sensitive_columns` of its own as well.
    combine : {"intersection", "marginal"}, default="intersection"
        How several sensitive columns form the groups that constraints compare, see
        :class:`FairLogisticClassifier`. Thresholds are for intersections.
    groups_missing : {"raise", "own_group", "ignore_in_constraint"}, default="raise"
        How missing values of sensitive columns are treated: an error, a group named "missing", or
        rows that are part of the accuracy but of no constraint. With `per_group` such rows get the
        most accurate common threshold.
    pos_label : label or None, default=None
        The favourable class, whose rates are compared; None takes the second of the sorted classes.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the accuracy that thresholds maximise, by label; constraints do
        not use them. "balanced" maximises the balanced accuracy; without it, thresholds select
        hardly any row if positive labels are rare.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        The method that returns the scores; "auto" takes the first one that the classifier has.
    n_jobs : int or None, default=None
        The number of folds that are fitted in parallel, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        The source of randomness of a single split and of the choice of held-out rows.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    threshold_ : float
        The common threshold, on the output of `response_method_`; with `per_group` that of rows
        whose group is missing.
    thresholds_ : Series of shape (n_groups,)
        With `per_group`: the thresholds by group.
    classes_ : ndarray of shape (2,)
        The class labels, sorted.
    pos_label_ : label
        The favourable class.
    groups_ : ndarray
        The groups that are compared, sorted.
    decision_gap_ : float
        The largest gap of the decisions on the rows passed to `fit`, without held-out rows (nan
        without constraints). For rows that chose the thresholds it uses the scores of this choice,
        such as out-of-fold scores; for other rows the scores of the fitted classifier.
    bound_violation_ : float
        By how much that gap exceeds its bound; with `confidence` the upper limit in the population.
    bound_met_ : bool or None
        Whether the bound is met; None without constraints.
    decision_search_ : ThresholdSearch
        On the rows that chose the thresholds: whether the bound is met, the accuracy, that of the
        most accurate thresholds, and an upper bound on that of thresholds that meet the bound; see
        :class:`~fairconstrained.decisions.threshold_search.ThresholdSearch`.
    certificate_ : Certificate or None
        With `confidence`: whether the constraints hold for the population, and upper bounds on
        them; see :class:`~fairconstrained.decisions.population.Certificate`.
    holdout_indices_ : ndarray of int
        With `confidence`: the rows of X that were held out.
    validation_indices_ : ndarray of int
        Where `cv` gives scores to a share of the rows: the rows of X that chose the thresholds.
    constraint_choices_ : list of dict
        For every constraint the values of the parameters that these rows chose, such as the
        minority of :class:`MinorityRate`. Reports measure with them.
    response_method_ : str
        The method that returns the scores.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        The names of the columns of X, if they are all strings.
    sensitive_names_in_ : ndarray of shape (n_attributes,)
        The names of the columns of the groups, if a DataFrame had them. `predict` matches columns
        by these names, and those of arrays by position.

    Warns
    -----
    InfeasibleConstraintWarning
        If no thresholds meet the bound, or those of a share of the rows do not meet it on all rows.
    ConstantDecisionWarning
        If only constant decisions meet it, or all decisions of the classifier that is fitted to
        all rows are equal.
    InputWarning
        If `kappa` is given and no constraint uses it.
    VacuousConstraintWarning
        If a cell of a constraint has no rows.
    GeneralizationWarning
        If a gap expected on new rows is more than twice its bound.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Thresholds without constraints.
    FairLogisticClassifier : With ``enforce="decision"`` the model itself meets the bound, without
        groups when predicting.

    Notes
    -----
    Under constraints on rates of groups the thresholds are the most accurate ones: a single
    threshold by counting, one for each group by branch and bound
    (:mod:`fairconstrained.decisions.threshold_search`) or a mixed-integer program
    (:mod:`fairconstrained.decisions.threshold_choices`). With very many rows or groups this program
    ends early, and states how much accuracy may be missing.

    `decision_function` and `predict_proba` are those of the classifier, as for scikit-learn's
    FixedThresholdClassifier; `decision_margin` has the thresholds subtracted.

    With `per_group`, `score` and the scorers of :func:`make_fairness_scorer` get the groups by
    metadata routing; other scorers predict without them and need `sensitive_columns`.

    References
    ----------
    .. [1] M. Hardt, E. Price, N. Srebro, "Equality of opportunity in supervised learning" (2016),
       with random thresholds.
    .. [2] A. Cotter, H. Narasimhan, M. Gupta, "On making stochastic classifiers deterministic"
       (2019), section 4, with a hash function.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fairconstrained import FairThresholds, make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, gap=0.3, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0)
    >>> clf = FairThresholds(forest, "equal_opportunity", kappa=0.02, per_group=True)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.decision_search_.met, clf.decision_gap_ <= 0.02, clf.thresholds_.index.tolist()
    (True, True, [0, 1])
    >>> clf.predict(X[:3], sensitive_features=groups[:3]).shape
    (3,)
    """

    __metadata_request__fit: ClassVar = dict.fromkeys(
        ("sample_weight", "sensitive_features", "control_features"), True
    )
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sample_weight": True, "sensitive_features": True}
    # The options of other estimators, which are not parameters here.
    enforce: ClassVar[str] = "decision"
    goal: ClassVar[str] = "accuracy"
    surrogate: ClassVar[None] = None
    loss: ClassVar[None] = None
    several_classes: ClassVar[bool] = False

    estimator: Any
    constraint: ConstraintLike = "demographic_parity"
    kappa: float = 0.05
    _: KW_ONLY
    per_group: bool = False
    cv: Splits | OpenShare | Literal["prefit"] = None
    confidence: OpenShare | None = None
    holdout: OpenShare | Literal["auto"] = "auto"
    sensitive_columns: Columns = None
    use_sensitive: bool = False
    combine: Annotated[str, one_of(*COMBINE)] = "intersection"
    groups_missing: Annotated[str, one_of(*GROUPS_MISSING)] = "raise"
    pos_label: object = None
    class_weight: ClassWeight = None
    response_method: str = "auto"
    n_jobs: Jobs = None
    random_state: Seed = None

    @execution.with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier, unless it is fitted already, and choose the thresholds.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            What the classifier accepts.
        y : array-like of shape (n_samples,)
            The labels, of two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows, in the accuracy and in the groups' rates. The classifier's
            `fit` gets them if it has such a parameter, with metadata routing if it requests them.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups; not needed with `sensitive_columns` or without a constraint.
        control_features : array-like or DataFrame or None, default=None
            Strata in which groups are compared, see :meth:`FairLogisticClassifier.fit`. The rows of
            a group have the same threshold in all strata.
        **fit_params : object
            Further arguments of the classifier's `fit`; a splitter in `cv` gets `groups`.
            `constraint_data` raises an error.

        Returns
        -------
        self : FairThresholds
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, groups are missing, or the constraint does not bound
            decisions.
        """
        with execution.all_or_nothing(self):
            if "constraint_data" in fit_params:
                raise ValueError(
                    "constraint_data: thresholds are chosen on rows of X, whose groups they "
                    "compare. Leave it out, or fit the estimator with it and use cv='prefit'."
                )
            threshold_fit.check_threshold_options(self)
            warn_of_unused_kappa(self)
            passed: dict[str, Any] = {
                "sample_weight": sample_weight,
                "sensitive_features": sensitive_features,
                "control_features": control_features,
            }
            seen = self._seen(X, reset=True)
            positions = np.arange(_num_samples(seen))
            groups = with_strata(sensitive_features, control_features)
            data = TrainingData.check(self, X, y, groups, sample_weight, features=positions)
            last = final_estimator(self.estimator)  # it may find the groups in X itself
            if sensitive_features is None and getattr(last, "sensitive_columns", None) is None:
                passed["sensitive_features"] = SensitiveColumns(self).groups(X)
            params = threshold_fit.routed_params(self, fit_params, **passed)
            tasks = execution.FitTasks(self, (X, y, sample_weight))
            fit = threshold_fit.ThresholdFit(self, seen, column_or_1d(y), data, params, tasks)
            with tasks.task("thresholds"):
                chosen = fit.chosen()
            fit.store(*chosen)
            tasks.close(partial(execution.fitted_attributes, self))
        return self

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
    ) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X, y, sample_weight
            See :meth:`FairLogisticClassifier.score`.
        sensitive_features : array-like or DataFrame or None, default=None
            The groups of the rows, see `predict`.

        Returns
        -------
        accuracy : float

        Raises
        ------
        ValueError
            See `predict` and :meth:`FairLogisticClassifier.score`.
        """
        check_same_rows(X=X, y=y, sample_weight=sample_weight)
        decided = self.predict(X, sensitive_features)
        return float(accuracy_score(y, decided, sample_weight=sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what this estimator requests, and what its classifier and splitter get."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = execution.with_splitter(MetadataRouter(owner=self).add_self_request(self), self.cv)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        """Return tags: two classes, and the inputs of the classifier."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if not hasattr(self.estimator, "__sklearn_tags__"):  # of a class without BaseEstimator
            return tags
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
