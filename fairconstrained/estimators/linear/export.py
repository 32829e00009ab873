"""Fitted linear classifiers as scikit-learn's own classes, which exporters know."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.validation import SensitiveColumns
from fairconstrained.utils.registry import check_option

_SENSITIVE = {
    "zero": "a coefficient of zero for columns that the model does not see",
    "leave_out": "such columns are not columns of the plain model",
}


def filled(plain: ClassifierMixin, model: Any, sensitive: str) -> ClassifierMixin:
    """Return an unfitted linear classifier with what a fitted one of ours has learned.

    Parameters
    ----------
    plain : estimator
        scikit-learn's classifier; its fitted attributes are set.
    model : FairLinearClassifier
        The fitted model.
    sensitive : {"zero", "leave_out"}
        What becomes of sensitive columns that the model does not see.

    Raises
    ------
    ValueError
        If the model has coefficients for every group, or `sensitive` is not known.
    NotFittedError
        If the model is not fitted.
    """
    check_is_fitted(model)
    check_option("sensitive", sensitive, _SENSITIVE)
    if len(model.coef_) > 1:
        raise ValueError(
            f"{type(model).__name__} was fitted with group_interactions=True: it has coefficients "
            f"for each of {len(model.coef_)} groups, and {type(plain).__name__} has one row of "
            "them for all. Fit with group_interactions=False, or deploy the model as it is, with "
            "pickle or skops."
        )
    kept = visible_columns(model) if sensitive == "leave_out" else np.arange(model.n_features_in_)
    plain.classes_ = model.classes_.copy()
    plain.coef_ = np.ascontiguousarray(model.coef_[:, kept])
    plain.intercept_ = np.array(model.intercept_, dtype=plain.coef_.dtype)
    plain.n_features_in_ = len(kept)
    if hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = model.feature_names_in_[kept]
    return plain


def visible_columns(model: Any) -> np.ndarray:
    """Return the positions of the columns of X that a fitted model of ours sees."""
    return SensitiveColumns(model.sensitive_columns, model.use_sensitive).kept(model)
