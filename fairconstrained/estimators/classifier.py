"""The base classes of classifiers: `fit`, `predict`, probabilities."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from fairconstrained.data.attributes import with_strata
from fairconstrained.data.inputs import check_same_rows
from fairconstrained.data.labels import ClassWeight, ScoreConvention
from fairconstrained.estimators.base import ConstrainedEstimator, FairEstimator
from fairconstrained.estimators.thresholds import Threshold, is_probability
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike
from fairconstrained.utils.execution import with_callbacks
from fairconstrained.utils.parameter_constraints import OpenShare


class ConstrainedClassifier(ClassifierMixin, ConstrainedEstimator):
    """Classifiers trained by minimising a constrained problem."""

    __metadata_request__score: ClassVar = {"sample_weight": True}

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: whether there may be several classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.several_classes
        return tags

    def decision_function(self, X: MatrixLike) -> Array:
        """Return the scores: the log odds if the loss is the logistic one.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,), or (n_samples, n_classes) for several classes
            The score of the second class, or of each of several classes. `predict` compares the
            score of the favourable label with `score_threshold_`.

        Raises
        ------
        ValueError
            If a score overflows. With `group_interactions`, if a row belongs to a group that was
            not in the training rows.
        """
        return self._scores(X)

    def predict(self, X: MatrixLike) -> Array:
        """Return the class of each row: the favourable one if its score is above the threshold.

        With more than two classes it is the class of the largest score.

        The score of the favourable class is `decision_function` if it is the second of `classes_`,
        else its negative.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return self.classes_[scores.argmax(axis=1)]
        convention = ScoreConvention.of(self)
        favourable = convention.fitted(scores) > 0.0
        return self.classes_[(favourable == (convention.sign > 0.0)).astype(int)]

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.

        Returns
        -------
        accuracy : float

        Raises
        ------
        ValueError
            If lengths differ, or pandas objects have the same row labels in another order.
        """
        check_same_rows(X=X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))


@dataclass(eq=False, repr=False, kw_only=True)
class FairClassifier(FairEstimator, ConstrainedClassifier):
    """Classifiers of two classes under fairness constraints, with any model.

    Subclasses have `warm_start` as a parameter or an attribute.
    """

    surrogate: str | Surrogate = "sigmoid"
    class_weight: ClassWeight = None
    threshold: Threshold = None
    enforce: Literal["score", "decision"] = "score"
    confidence: OpenShare | None = None
    holdout: OpenShare | Literal["auto"] = "auto"

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        constraint_data: tuple[Any, Any, Any] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The labels, of two classes, or more where `several_classes` is True.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows, in the loss (times `class_weight`) and in the groups' averages.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups; `combine` defines how several columns form groups. Not needed with
            `sensitive_columns` or without a constraint.
        control_features : array-like or DataFrame or None, default=None
            Strata, such as income bands: groups are compared within each stratum. A stratum has the
            rows with equal values in all columns.
        constraint_data : tuple of (X, y or None, groups) or None, default=None
            Rows that the constraints apply to instead of the training rows, such as later
            applicants. `y` may be None for constraints that need no labels, `groups` with
            `sensitive_columns`; with strata they are those of :func:`with_strata`. It is an error
            to pass `sensitive_features` or `control_features` as well. All these rows have the same
            weight. In a pipeline, X must be transformed before. With `confidence` some of these
            rows are held out for the tests.

        Returns
        -------
        self : FairClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, groups are missing, or the solver cannot solve the problem.
        """
        groups = sensitive_features, control_features
        return self._fit(X, y, sample_weight, *groups, constraint_data=constraint_data)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, and which label is favourable if that was not chosen."""
        text = super().__repr__(N_CHAR_MAX)
        favourable = getattr(self, "pos_label_", None)
        if self.pos_label is not None or not isinstance(favourable, str):
            return text
        return f"{text} (fitted: the favourable label is {favourable!r}, see pos_label)"


class EarlyStoppedClassifier(FairClassifier):
    """Fair classifiers whose training may be stopped by rows for validation."""

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        X_val: MatrixLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        sensitive_features_val: MatrixLike | None = None,
        control_features_val: MatrixLike | None = None,
        constraint_data: tuple[Any, Any, Any] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, control_features, constraint_data
            See :meth:`FairLogisticClassifier.fit`.
        X_val, y_val, sample_weight_val, sensitive_features_val, control_features_val : array-like
            Validation rows that choose when training stops, instead of a share of X. They need
            `early_stopping`.

        Returns
        -------
        self : FairClassifier
            The fitted estimator.
        """
        groups = sensitive_features, control_features
        groups_val = with_strata(sensitive_features_val, control_features_val)
        rows = X_val, y_val, sample_weight_val, groups_val
        others = {"validation": rows, "constraint_data": constraint_data}
        return self._fit(X, y, sample_weight, *groups, **others)


def _gives_log_odds(estimator: Any) -> bool:
    try:
        log_odds = is_probability(estimator)
    except (TypeError, ValueError):
        return False
    if not log_odds:
        raise AttributeError(
            f"loss={estimator.loss!r} gives scores that are not log odds, hence no probabilities; "
            "use loss='logistic', or CalibratedClassifierCV on the scores."
        )
    return True


class ProbabilitiesMixin:
    """`predict_proba` and `predict_log_proba`, where the loss gives log odds.

    Subclasses have the parameter `loss` and a `decision_function`.
    """

    @available_if(_gives_log_odds)
    def predict_proba(self: Any, X: MatrixLike) -> Array:
        """Return the probabilities of the classes: the logistic or soft-max function of the scores.

        It exists where the scores are log odds, that is with ``loss="logistic"``.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    @available_if(_gives_log_odds)
    def predict_log_proba(self: Any, X: MatrixLike) -> Array:
        """Return the logarithms of the probabilities, see `predict_proba`.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return log_softmax(scores, axis=1)
        return np.column_stack([log_expit(-scores), log_expit(scores)])
