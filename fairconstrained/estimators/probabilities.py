"""Probabilities of classifiers whose scores are log odds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.metaestimators import available_if

from fairconstrained.objectives import resolve_objective
from fairconstrained.utils.typing import Array, MatrixLike


def _gives_log_odds(estimator: Any) -> bool:
    """Return whether an estimator's scores are log odds; `fit` reports a loss that is not valid."""
    try:
        objective = resolve_objective("loss", estimator.loss)
    except (TypeError, ValueError):
        return False
    if not objective.gives_log_odds:
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
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return softmax(scores, axis=1)
        return np.column_stack([expit(-scores), expit(scores)])

    @available_if(_gives_log_odds)
    def predict_log_proba(self: Any, X: MatrixLike) -> Array:
        """Return the logarithms of the probabilities.

        It exists where the scores are log odds, that is with ``loss="logistic"``.

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
