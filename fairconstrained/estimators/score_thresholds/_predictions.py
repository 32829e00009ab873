"""What a classifier with thresholds predicts: scores, margins, labels and probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.estimators.score_thresholds._rows import (
    read_rows,
    row_thresholds,
)
from fairconstrained.inspection.outputs import scores_of
from fairconstrained.utils.typing import Array, MatrixLike


def _has(method: str) -> Callable[[Any], bool]:
    """Return the check whether the inner classifier has a method."""

    def check(estimator: Any) -> bool:
        return hasattr(getattr(estimator, "estimator_", estimator.estimator), method)

    return check


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
        """Whether the groups are passed to `predict`: thresholds differ and X does not hold them.

        Returns
        -------
        needed : bool
        """
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

    @available_if(_has("decision_function"))
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
        return np.asarray(self.estimator_.decision_function(self._read(X)[0]))

    def decision_margin(self, X: MatrixLike, sensitive_features: MatrixLike | None = None) -> Array:
        """Return the scores that `predict` compares with the thresholds, minus the thresholds.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        sensitive_features : array-like or DataFrame or None, default=None
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
        seen, values = self._read(X)
        margin = scores_of(
            self.estimator_, seen, self.response_method_, self.pos_label_, self.classes_.tolist()
        )
        if self.per_group:
            margin = margin - self._thresholds_of(X, sensitive_features, values)
        else:
            margin = margin - self.threshold_
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
        sign = 1.0 if self.pos_label_ == self.classes_[1] else -1.0
        favoured = sign * margin > 0.0
        other = self.classes_[0] if sign > 0.0 else self.classes_[1]
        return np.where(favoured, self.pos_label_, other).astype(self.classes_.dtype)

    @available_if(_has("predict_proba"))
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
        return np.asarray(self.estimator_.predict_proba(self._read(X)[0]))

    def _read(self, X: Any) -> tuple[Any, Any]:
        """Return what the classifier sees of X, and the values of the sensitive columns."""
        columns = SensitiveColumns.of(self)
        return read_rows(self, columns, X, reset=False)

    def _thresholds_of(self, X: Any, sensitive_features: Any, values: Any) -> Array:
        """Return the threshold of every row."""
        name = "sensitive_features"
        if sensitive_features is not None and values is not None:
            raise ValueError(
                "Groups are given twice, by sensitive_features and by sensitive_columns."
            )
        if sensitive_features is None:
            sensitive_features, name = values, "sensitive_columns"
        if sensitive_features is None:
            raise ValueError(
                "per_group=True: every group has a threshold of its own, so that the groups are "
                "needed to predict. Pass sensitive_features, or name columns of X in "
                "sensitive_columns when the estimator is made."
            )
        check_same_rows(test=True, X=X, sensitive_features=sensitive_features)
        return row_thresholds(self, sensitive_features, name, _num_samples(X))
