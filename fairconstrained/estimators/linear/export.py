"""Export of fitted linear classifiers to scikit-learn's own classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.functions.losses import (
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    Quadratic,
    SquaredHinge,
)
from fairconstrained.objectives import MeanLoss, resolve_objective
from fairconstrained.utils.fitted import coefficients
from fairconstrained.utils.registry import check_option

if TYPE_CHECKING:
    from fairconstrained.estimators.linear.base import FairLinearClassifier

_SENSITIVE = {
    "zero": "a coefficient of zero for columns that the model does not use",
    "leave_out": "columns that the model does not use are left out",
}


# From a loss to scikit-learn's linear classifier that minimises it.
_COUNTERPARTS: dict[type[Loss], Callable[..., ClassifierMixin]] = {
    Logistic: LogisticRegression,
    Hinge: partial(LinearSVC, loss="hinge"),
    SquaredHinge: partial(LinearSVC, loss="squared_hinge"),
    Quadratic: partial(SGDClassifier, loss="squared_error"),
}


def exported(model: FairLinearClassifier, sensitive: str) -> ClassifierMixin:
    """Return scikit-learn's linear classifier with the coefficients of a fitted model.

    Parameters
    ----------
    model : FairLinearClassifier
        The fitted model.
    sensitive : {"zero", "leave_out"}
        Whether sensitive columns that the model does not use have coefficients of zero or are left
        out.

    Raises
    ------
    ValueError
        If scikit-learn has no linear classifier with the model's loss, the model has coefficients
        for every group, or `sensitive` is not known.
    NotFittedError
        If the model is not fitted.
    """
    check_is_fitted(model)
    check_option("sensitive", sensitive, _SENSITIVE)
    plain = _counterpart(model)
    if model.group_interactions:
        raise ValueError(
            f"{type(model).__name__} was fitted with group_interactions=True: it has coefficients "
            f"for each of {model.coef_.shape[0]} groups, and {type(plain).__name__} has one row of "
            "them for all. Fit with group_interactions=False, or deploy the model as it is, with "
            "pickle or skops."
        )
    kept = visible_columns(model) if sensitive == "leave_out" else np.arange(model.n_features_in_)
    plain.classes_ = model.classes_.copy()
    plain.coef_ = np.ascontiguousarray(coefficients(model)[:, kept])
    plain.intercept_ = np.array(model.intercept_, dtype=plain.coef_.dtype)
    plain.n_features_in_ = len(kept)
    if hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = model.feature_names_in_[kept]
    several = isinstance(plain, LogisticRegression)  # it counts the iterations of each class
    plain.n_iter_ = np.array([model.n_iter_], dtype=np.int32) if several else model.n_iter_
    moved = getattr(model, "score_threshold_", 0.0) != 0.0  # several classes have no threshold
    return _cut_elsewhere(plain, model) if moved else plain


def _cut_elsewhere(plain: ClassifierMixin, model: FairLinearClassifier) -> ClassifierMixin:
    """Return a classifier that predicts by the threshold of a fitted model."""
    cut = FixedThresholdClassifier(
        plain,
        threshold=model.score_threshold_,
        pos_label=model.pos_label_,
        response_method="decision_function",
    )
    cut.estimator_ = plain
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(plain, name):
            setattr(cut, name, getattr(plain, name))
    return cut


def _counterpart(model: FairLinearClassifier) -> ClassifierMixin:
    """Return scikit-learn's classifier that minimises the model's loss, not fitted."""
    objective = resolve_objective("loss", model.loss)
    loss = objective.loss_function if isinstance(objective, MeanLoss) else None
    for kind, counterpart in _COUNTERPARTS.items():
        if type(loss) is kind:
            return counterpart(fit_intercept=model.fit_intercept)
    known = ", ".join(name for name, kind in LOSSES.items() if kind in _COUNTERPARTS)
    raise ValueError(
        f"scikit-learn has no linear classifier with loss={model.loss!r} (it has {known}). Deploy "
        "the model as it is, with pickle or skops."
    )


def visible_columns(model: FairLinearClassifier) -> np.ndarray:
    """Return the positions of the columns of X that a fitted model uses."""
    return SensitiveColumns.of(model).kept(model)
