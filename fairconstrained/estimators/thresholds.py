"""Where decisions are cut, and what a classifier with thresholds predicts."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _estimator_has, _num_samples, check_is_fitted, validate_data

from fairconstrained.data.attributes import names_in_fit, split_strata
from fairconstrained.data.inputs import check_same_rows
from fairconstrained.data.labels import ScoreConvention
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import TrainingData, groups_of
from fairconstrained.estimators import DocumentedEstimator
from fairconstrained.inspection.outputs import scores_of
from fairconstrained.objectives import resolve_objective
from fairconstrained.utils.arguments import is_number
from fairconstrained.utils.arrays import Array, MatrixLike


class SelectionRate(DocumentedEstimator):
    """A threshold at which a given share of the training rows is selected.

    Pass it as the parameter `threshold` of a classifier if the number of favourable decisions is
    limited. The threshold is then the quantile of the scores of the training rows above which the
    share `rate` of their weight lies; `threshold_` is its value. New rows are compared with the
    same value, so the share of them that is selected is about `rate` if they come from the same
    population.

    A constraint changes the scores and their quantile. The fit is therefore repeated until the
    threshold at which surrogates are centred equals the quantile of the scores. If no such
    threshold is found, a ConvergenceWarning is issued, and an InfeasibleConstraintWarning if the
    model violates the bound at the quantile. With enforce="decision" the bound is met by
    predictions that select the share, less at most two per cent of it or two rows, whichever is
    more.

    With `confidence` the threshold and all models are determined by the training rows, so the
    threshold is fixed when the held-out rows test the constraints. The certificate is a statement
    about the constraints at this threshold, not about the share of new rows. Models that select the
    share are preferred. If only models between these and constant predictions are accepted, fewer
    rows are selected (or more, if the constant class is the favourable one), with an InputWarning;
    this is also issued where many rows have equal scores. If no model is accepted, predictions are
    constant.

    Parameters
    ----------
    rate : float
        The share of the rows that is selected, in (0, 1).

    Examples
    --------
    >>> from fairconstrained import (
    ...     FairLogisticClassifier,
    ...     SelectionRate,
    ...     make_biased_classification,
    ... )
    >>> X, y, groups = make_biased_classification(2000, gap=0.1, random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, threshold=SelectionRate(0.2))
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> float(clf.predict(X).mean())
    0.2
    """

    def __init__(self, rate: float):
        self.rate = rate

    def check(self) -> float:
        """Return the rate as a float.

        Raises
        ------
        ValueError
            If it is not a number between 0 and 1.
        """
        if not (is_number(self.rate, Real) and 0.0 < self.rate < 1.0):
            raise ValueError(
                "SelectionRate: rate must be a number between 0 and 1, the share of the rows that "
                f"is selected; got {self.rate!r}."
            )
        return float(self.rate)


Threshold = float | SelectionRate | None


def is_probability(estimator: Any) -> bool:
    """Return whether an estimator's threshold is a probability: its scores are log odds."""
    return resolve_objective("loss", estimator.loss).gives_log_odds


def score_convention(estimator: Any, classes: Array) -> ScoreConvention:
    """Return how the scores of a fit to classes are related to those that users see.

    The threshold is the estimator's, which is checked. Rankers show the scores of the favourable
    label, and have no threshold.
    """
    if not isinstance(estimator, ClassifierMixin):
        return ScoreConvention()
    return ScoreConvention.of_classes(classes, score_threshold(estimator))


def score_threshold(estimator: Any) -> float:
    """Return the score above which an estimator decides for the favourable class.

    It is 0 where the threshold depends on the scores. A threshold that is not valid, or that needs
    an intercept where there is none, raises a ValueError.
    """
    threshold = estimator.threshold
    if threshold is None:
        return 0.0
    score = 0.0
    moves, probability = isinstance(threshold, SelectionRate), is_probability(estimator)
    if moves:
        threshold.check()
    elif not is_number(threshold, Real) or not np.isfinite(threshold):
        raise ValueError(
            f"threshold must be None, a {'probability' if probability else 'score'} or a share of "
            f"the rows such as SelectionRate(0.2); got {threshold!r}."
        )
    elif probability and not 0.0 < threshold < 1.0:
        raise ValueError(
            "threshold must be a probability between 0 and 1, above which the favourable class is "
            f"predicted; got {threshold!r}."
        )
    else:
        score = float(logit(threshold)) if probability else float(threshold)
    if (moves or score != 0.0) and not getattr(estimator, "fit_intercept", True):
        raise ValueError(
            f"threshold={threshold!r} needs an intercept, which moves with it: use "
            "fit_intercept=True, or threshold=None."
        )
    return score


def decision_attributes(estimator: Any, data: TrainingData) -> dict[str, Any]:
    """Return the fitted attributes that say which class is favourable, and where it is decided.

    The estimator has `threshold` and `loss`, if it is no ranker; `data` has the names of the
    classes and the threshold on scores.
    """
    if data.several_classes:
        return {}
    if not isinstance(estimator, ClassifierMixin):
        return {"pos_label_": data.classes.tolist()[1]}
    score, given = data.convention.threshold, estimator.threshold
    shown = float(expit(score)) if is_probability(estimator) else score
    if is_number(given, Real):  # without rounding
        shown = float(given)
    return {"pos_label_": data.classes.tolist()[1], "threshold_": shown, "score_threshold_": score}


class ThresholdPredictions(BaseEstimator):
    """The methods of a fitted classifier with thresholds.

    Subclasses have the parameters of :class:`FairThresholds` and set its attributes.
    """

    @property
    def thresholds_(self) -> pd.Series:
        """The thresholds by group, with `per_group`; names of several attributes are tuples."""
        if not hasattr(self, "_by_group"):
            raise AttributeError(
                "thresholds_ is an attribute after a fit with per_group=True. With one threshold "
                "for all rows it is threshold_."
            )
        names, values = self._by_group
        index = pd.Index(names, tupleize_cols=False, name="group")
        return pd.Series(values, index=index, name="threshold")

    @property
    def groups_at_prediction(self) -> bool:
        """Whether `predict` takes the groups: thresholds differ and X does not hold them."""
        return bool(self.per_group) and self.sensitive_columns is None

    @property
    def decided_on_(self) -> str:
        """The method whose output has one threshold for all rows, which displays show."""
        check_is_fitted(self, "estimator_")
        return "decision_margin" if self.per_group else self.response_method_

    @property
    def score_threshold_(self) -> float:
        """The threshold on `decision_function`, if it decides and all rows have the same."""
        if self.decided_on_ != "decision_function":
            raise AttributeError(
                f"{type(self).__name__} has no score_threshold_: it predicts by {self.decided_on_}."
            )
        return float(self.threshold_)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: MatrixLike) -> Array:
        """Return the classifier's scores, which thresholds do not change.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores of ``classes_[1]``. `predict` does not compare them with 0, see
            `decision_margin`.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(self._seen(X)))

    def decision_margin(self, X: MatrixLike, sensitive_features: MatrixLike | None = None) -> Array:
        """Return the scores that `predict` compares with the thresholds, minus the thresholds.

        Parameters
        ----------
        X, sensitive_features
            See `predict`.

        Returns
        -------
        margin : ndarray of shape (n_samples,)
            In the direction of ``classes_[1]``: positive where it is predicted, and zero at a
            threshold, where the favourable class is not.

        Raises
        ------
        ValueError
            See `predict`.
        """
        check_is_fitted(self, "estimator_")
        classes = self.classes_.tolist()
        scores = scores_of(
            self.estimator_, self._seen(X), self.response_method_, self.pos_label_, classes
        )
        margin = scores - self._thresholds_of(X, sensitive_features)
        return margin if self.pos_label_ == self.classes_[1] else -margin

    def predict(self, X: MatrixLike, sensitive_features: MatrixLike | None = None) -> Array:
        """Return the class of each row: the favourable one if its score is above the threshold.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        sensitive_features : array-like or DataFrame or None, default=None
            The groups of the rows. With `per_group` they are needed, here or in
            `sensitive_columns`; otherwise they are not used.

        Returns
        -------
        labels : ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            With `per_group`, if there are no groups, or one of them was not seen in `fit`.
        """
        margin = self.decision_margin(X, sensitive_features)
        last = self.pos_label_ == self.classes_[1]
        return self.classes_[(margin > 0.0 if last else margin >= 0.0).astype(int)]

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the classifier's probabilities, which thresholds do not change.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            In the order of `classes_`.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(self._seen(X)))

    def _seen(self, X: Any, *, reset: bool = False) -> Any:
        """Return what the classifier sees of X; with `reset` also set what is known of its columns.

        Without rows or features there is a ValueError.
        """
        columns = SensitiveColumns(self)
        (X,) = indexable(columns.table(X))
        if reset and _num_samples(X) == 0:
            raise ValueError(
                "X has no rows: found 0 samples, and at least one of each class is needed."
            )
        if reset or columns.columns is not None:  # else the classifier compares X
            validate_data(self, X, reset=reset, skip_check_array=True)
        kept = None if columns.sees_all else columns.kept()
        return X if kept is None else _safe_indexing(X, kept, axis=1)

    def _thresholds_of(self, X: Any, sensitive_features: Any) -> Any:
        """Return the threshold of every row, or the one of all rows."""
        if not self.per_group:
            return self.threshold_
        SensitiveColumns(self).check_only_source(sensitive_features)
        values, _ = split_strata(sensitive_features)
        check_same_rows(X=X, sensitive_features=values)
        groups = groups_of(self, X, values, _num_samples(X), names_in_fit(self))
        if groups is None:
            raise ValueError(
                "per_group=True: every group has a threshold of its own, so that the groups are "
                "needed to predict. Pass sensitive_features, or name columns of X in "
                "sensitive_columns when the estimator is made."
            )
        names, thresholds = self._by_group
        positions = groups.among(names, "there are thresholds for")
        return np.append(thresholds, self.threshold_)[positions]  # the last is of missing groups
