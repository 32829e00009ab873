"""Checks of the arguments of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_held, check_labels, check_same_rows, check_weight
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike

_TEXT_KINDS = "UTO"  # kinds of dtypes that hold text

COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "between_groups": lambda groups, overall: groups.max(axis=0) - groups.min(axis=0),
    "to_overall": lambda groups, overall: np.abs(groups - overall).max(axis=0),
}


Rows = tuple[Any, Array, Groups, Array]  # labels or None, predictions or scores, groups, weights


def check_rows(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    sensitive_features: MatrixLike | Groups | None,
    sample_weight: ArrayLike | None,
    *,
    scores: bool = False,
    optional: str = "",
    missing: str = "raise",
) -> Rows:
    """Check the arguments of a metric of predictions, or of scores.

    `optional` names the argument that may be None: labels of scores, or groups; without groups all
    rows are in one. `missing` says what missing values of groups mean. Weights may be zero.
    """
    check_same_rows(
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
    )
    if scores:
        values, labels = check_scores("y_pred", y_pred), None
        if y_true is not None or optional != "y_true":
            labels = check_labels("y_true", y_true, len(values), rows="y_pred")
    else:
        labels, values = check_predictions(y_true, y_pred)
    rows = "y_pred" if scores else "y_true"
    members: Any = sensitive_features
    if members is None and optional == "sensitive_features":
        members = np.zeros(len(values))
    groups = check_groups(members, len(values), rows=rows, missing=missing, compared=True)
    return (
        labels,
        values,
        groups,
        check_weight("sample_weight", sample_weight, len(values), rows=rows),
    )


def by_stratum(rows: Rows) -> Iterator[Rows]:
    """Yield the rows of every stratum, see :func:`with_strata`; without strata all rows."""
    labels, values, groups, weight = rows
    if not groups.stratified:
        yield rows
        return
    for part in groups.by_stratum:
        inside = np.flatnonzero(part.known)
        of_rows = None if labels is None else labels[inside]
        yield of_rows, values[inside], part.take(inside), weight[inside]


def counted(labels: Array | None, values: Array, groups: Groups, weight: Array) -> Rows:
    """Return the rows of positive weight."""
    rows = np.flatnonzero(weight)
    labels = None if labels is None else labels[rows]
    return labels, values[rows], groups.take(rows), weight[rows]


def check_score_rows(*arguments: Any, optional: str = "") -> Rows:
    """Check the arguments of a metric of scores, and drop the rows of weight zero."""
    return counted(*check_rows(*arguments, scores=True, optional=optional))


def check_predictions(y_true: Any, y_pred: ArrayLike) -> tuple[Array, Array]:
    """Return labels and predicted labels as arrays of shape (n_rows,)."""
    check_held("y_true", y_true)
    n_rows = np.asarray(y_true).shape[0] if np.ndim(y_true) else 0
    labels = check_labels("y_true", y_true, n_rows, rows="y_true")
    if not n_rows:
        raise ValueError("y_true has no rows.")
    return labels, check_predicted(y_pred, n_rows, like=labels)


def check_predicted(y_pred: ArrayLike, n_rows: int, *, like: Array) -> Array:
    """Return predicted labels, (n_rows,), of the type of the labels or classes in `like`."""
    predicted = check_labels("y_pred", y_pred, n_rows, rows="y_true")
    values, labels = (
        np.asarray(part.tolist()) if part.dtype == object else part for part in (predicted, like)
    )
    if values.dtype.kind == "f" and (values % 1.0).any():
        raise ValueError(
            f"y_pred has numbers that are no labels, such as {values[values % 1.0 != 0.0][0]:g}. "
            "Pass predictions, not scores."
        )
    if (labels.dtype.kind in _TEXT_KINDS) != (values.dtype.kind in _TEXT_KINDS):
        raise ValueError(
            f"y_true and y_pred have labels of different types ({labels.dtype} and "
            f"{values.dtype}): no prediction could be correct."
        )
    return predicted


def check_scores(name: str, scores: ArrayLike) -> Array:
    """Return scores, an argument of a name, as floats of shape (n_rows,)."""
    check_held(name, scores)
    try:
        values = np.asarray(column_or_1d(scores), dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold one number per row: {error}.") from error
    missing = int(np.isnan(values).sum())
    if missing:
        raise ValueError(f"{name} has {missing} missing values (nan): give a score for every row.")
    if not values.size:
        raise ValueError(f"{name} has no rows.")
    return values


def two_classes(values: Array) -> list[Any]:
    """Return the classes of labels and predictions, of which there may not be more than two."""
    classes: list[Any] = np.unique(values).tolist()
    if len(classes) > 2:
        raise ValueError(
            f"Two classes are needed; there are {len(classes)}: {classes[:5]}. Pass predictions, "
            "not scores; with several classes, pass one class against the rest."
        )
    return classes


def positive_class(values: Array, pos_label: object = None) -> Any:
    """Return the positive class: `pos_label`, or the second of the sorted classes.

    A single class other than -1, 0 and 1 may be the positive or the negative one: an error.
    """
    if pos_label is not None:
        classes = np.unique(values).tolist()
        if len(classes) > 1 and (not np.isscalar(pos_label) or pos_label not in classes):
            raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
        return pos_label
    classes = two_classes(values)
    if len(classes) == 1 and classes[0] not in (-1, 0, 1):
        raise ValueError(
            f"All labels and predictions are {classes[0]!r}. Pass the positive class as pos_label."
        )
    return classes[-1] if len(classes) == 2 else 1
