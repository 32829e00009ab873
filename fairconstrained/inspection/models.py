"""Fitted models of any library: whether one predicts, its methods, and how they are called."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.attributes import (
    in_order,
    names_in_fit,
    names_of_columns,
    split_strata,
    with_strata,
)
from fairconstrained.data.groups import Groups
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.utils.meta_estimators import best_estimator, final_estimator, last_step
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, MatrixLike

# For each method: the usual threshold, the attribute that has another one, and the axis label.
RESPONSES = {
    "predict_proba": (0.5, "threshold_", "probability of the positive class"),
    "decision_function": (0.0, "score_threshold_", "score"),
    "decision_margin": (0.0, "", "score minus the threshold"),
}
_CHOICES = {"auto": "the first that there is", "predict_proba": "", "decision_function": ""}


def check_predicts(model: Any) -> Any:
    """Return the model that decides: a fitted one."""
    model = best_estimator(model)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        kind = "a class" if isinstance(model, type) else f"of type {type(model).__name__}"
        raise TypeError(
            f"estimator must be a fitted classifier with a method predict; got {model!r}, {kind}."
        )
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    return model


def check_model(model: Any) -> Any:
    """Return the model that decides: a fitted one that predicts labels."""
    model = check_predicts(model)
    last = final_estimator(model)
    if getattr(last, "needs_queries", False):
        raise ValueError(
            f"{type(last).__name__} ranks the rows of queries and predicts no classes: use "
            "compare_rankers(models, X, y, groups, query=...)."
        )
    return model


def response_of(model: Any, response_method: str = "auto") -> str:
    """Return the name of the method that gives a model's scores."""
    check_option("response_method", response_method, _CHOICES)
    decides = getattr(final_estimator(model), "decided_on_", None)
    if response_method == "auto" and decides is not None:
        return str(decides)
    names = [*_CHOICES][1:] if response_method == "auto" else [response_method]
    for name in names:
        if hasattr(model, name):
            return name
    raise ValueError(
        f"estimator: {type(model).__name__} has no scores: it lacks the method "
        f"{' or '.join(names)}."
    )


def methods_of(model: Any) -> list[str]:
    """Return the methods that a model has; its decisions are those of the last one."""
    last = final_estimator(model)
    by_row = getattr(last, "decided_on_", None) == "decision_margin"
    names = ["predict", "predict_proba", *([] if by_row else ["decision_function"])]
    return [*(name for name in names if hasattr(model, name)), *(["decision_margin"] * by_row)]


def output_of(model: Any, method: str, X: Any, sensitive_features: Any) -> Array:
    """Return the output of a method.

    Groups are passed to methods that take them. A model whose predictions are random gets a seed.
    """
    last = final_estimator(model)
    try:
        taken = set(inspect.signature(getattr(last, method)).parameters)
    except (AttributeError, TypeError, ValueError):  # compiled methods may have no signature
        taken = set()
    given: dict[str, Any] = {"random_state": 0} if "random_state" in taken else {}
    if "sensitive_features" in taken and getattr(last, "groups_at_prediction", True):
        given["sensitive_features"], _ = split_strata(sensitive_features)
    if given or method == "decision_margin":  # pipelines pass such arguments on only if routed
        model, X = last_step(model, X)
    output = np.asarray(getattr(model, method)(X, **given))
    return output[:, 0] if method == "predict" and output.shape[1:] == (1,) else output


def groups_of(
    estimator: object,
    X: MatrixLike,
    sensitive_features: MatrixLike | Groups | None,
    *,
    missing: str | None = None,
) -> Groups:
    """Return the groups of rows, from `sensitive_features` or from the model's sensitive columns.

    `missing` determines how missing values are treated; None takes the parameter `groups_missing`
    of a classifier of this library, else "raise". Its parameter `combine` says what several
    attributes mean. Columns have the order of its fit if they have the same names.
    """
    last, name = final_estimator(estimator), "sensitive_features"
    values, strata = split_strata(sensitive_features)
    if values is None:
        name, columns = "sensitive_columns", SensitiveColumns.of(last)
        if columns.columns is None:
            raise ValueError(
                "No groups are known: pass sensitive_features. It may be omitted only for a "
                "classifier of this library that has sensitive_columns."
            )
        values = columns.groups(last, last_step(estimator, X)[1])
    names = names_in_fit(last)
    if set(names) == set(names_of_columns(values)):  # else these are other attributes
        values = in_order(values, names, name)
    return Groups.encode(
        with_strata(values, strata),
        name=name,
        combine=getattr(last, "combine", "intersection"),
        missing=getattr(last, "groups_missing", "raise") if missing is None else missing,
    )
