"""What a classifier with thresholds predicts: scores, margins, labels and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _estimator_has, _num_samples, check_is_fitted, validate_data

from fairconstrained.data.attributes import names_in_fit, split_strata
from fairconstrained.data.inputs import check_same_rows
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import groups_of
from fairconstrained.inspection.outputs import scores_of
from fairconstrained.utils.typing import Array, MatrixLike


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
        columns = SensitiveColumns.of(self)
        (X,) = indexable(columns.table(self, X))
        if reset and _num_samples(X) == 0:
            raise ValueError(
                "X has no rows: found 0 samples, and at least one of each class is needed."
            )
        if reset or columns.columns is not None:  # else the classifier compares X
            validate_data(self, X, reset=reset, skip_check_array=True)
        kept = None if columns.sees_all else columns.kept(self)
        return X if kept is None else _safe_indexing(X, kept, axis=1)

    def _thresholds_of(self, X: Any, sensitive_features: Any) -> Any:
        """Return the threshold of every row, or the one of all rows."""
        if not self.per_group:
            return self.threshold_
        SensitiveColumns.of(self).check_only_source(sensitive_features)
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
