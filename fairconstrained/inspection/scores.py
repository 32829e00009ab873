"""Scores by group: what pictures and reports read off a fitted model, or are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairconstrained.constraints import Constraint
from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_labels, check_weight
from fairconstrained.data.validation import SensitiveColumns
from fairconstrained.metrics.inputs import check_scores
from fairconstrained.utils.meta_estimators import best_estimator, final_estimator
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array

# From the name of a method to how its answer becomes a score, the threshold, and what it is called.
_METHODS: dict[str, tuple[Any, float, str]] = {
    "predict_proba": (lambda answer: answer[:, 1], 0.5, "probability of the positive class"),
    "decision_function": (lambda answer: answer, 0.0, "score"),
}
_CHOICES = {"auto": "the first that there is", **dict.fromkeys(_METHODS, "")}


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with scores and groups.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        What decides: positive above the threshold.
    groups : Groups
        The groups.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    threshold : float
        Where decisions change.
    unit : str
        What the scores are, for the label of an axis.
    labels : ndarray or None, default=None
        The labels, as they were given.
    """

    scores: Array
    groups: Groups
    weight: Array
    threshold: float
    unit: str
    labels: Array | None = None

    @classmethod
    def check(
        cls,
        y_true: Any,
        scores: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        threshold: float | None = None,
        unit: str = "score",
    ) -> Scored:
        """Check what a user passes; rows of weight zero are left out.

        Without a threshold it is 1/2 for scores between 0 and 1, else 0.

        Raises
        ------
        ValueError
            If lengths differ, or a score or a group is missing.
        """
        check_same_rows(
            test=True,
            y_true=y_true,
            y_pred=scores,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
        )
        scores = check_scores("y_pred", scores)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"{int((~np.isfinite(scores)).sum())} of {len(scores)} scores are not finite: "
                "every row needs a score."
            )
        n_rows, rows = len(scores), "y_pred"
        groups = check_groups(sensitive_features, n_rows, rows=rows)
        labels = None if y_true is None else check_labels("y_true", y_true, n_rows, rows=rows)
        weight = check_weight("sample_weight", sample_weight, n_rows, rows=rows)
        if threshold is None:
            threshold = 0.5 if scores.min() >= 0.0 and scores.max() <= 1.0 else 0.0
        counted = np.flatnonzero(weight)
        labels = None if labels is None else labels[counted]
        groups = groups.take(counted)
        return cls(scores[counted], groups, weight[counted], float(threshold), unit, labels)

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        *,
        response_method: str = "auto",
        threshold: float | None = None,
    ) -> Scored:
        """Return the scores that a fitted classifier gives rows.

        Raises
        ------
        ValueError
            If it is not a classifier of two classes with scores, or no groups are known.
        NotFittedError
            If it is not fitted.
        """
        check_same_rows(
            test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        estimator = best_estimator(estimator)
        check_two_classes(estimator)
        method = _method(estimator, response_method)
        read, usual, unit = _METHODS[method]
        scores = read(np.asarray(getattr(estimator, method)(X)))
        groups = groups_of(estimator, X, sensitive_features)
        threshold = usual if threshold is None else threshold
        return cls.check(y, scores, groups, sample_weight, threshold, unit)

    def of_group(self, k: int, among: Array | None = None) -> tuple[Array, Array]:
        """Return the scores of a group, ascending, and their shares of its weight.

        Parameters
        ----------
        k : int
            Which group.
        among : ndarray of bool of shape (n_rows,) or None, default=None
            The rows that count.
        """
        mine = self.groups.codes == k
        rows = np.flatnonzero(mine if among is None else mine & among)
        rows = rows[np.argsort(self.scores[rows], kind="stable")]
        weight = self.weight[rows]
        return self.scores[rows], weight / max(weight.sum(), np.finfo(float).tiny)


def _method(estimator: Any, response_method: str) -> str:
    """Return the name of the method that scores rows."""
    check_option("response_method", response_method, _CHOICES)
    wanted = list(_METHODS) if response_method == "auto" else [response_method]
    there = [name for name in wanted if hasattr(estimator, name)]
    if not there:
        raise ValueError(
            f"{type(estimator).__name__} has no {' or '.join(wanted)}: it gives no scores."
        )
    return there[0]


def check_two_classes(estimator: Any) -> None:
    """Raise unless a model is fitted and decides between two classes."""
    check_is_fitted(estimator)
    classes = getattr(estimator, "classes_", None)
    if classes is None or len(classes) != 2:
        found = "no classes" if classes is None else f"{len(classes)} classes"
        raise ValueError(
            f"A classifier of two classes is needed; {type(estimator).__name__} has {found}."
        )


def has_scores(estimator: Any) -> bool:
    """Return whether a model gives scores, and not only decisions."""
    return any(hasattr(best_estimator(estimator), method) for method in _METHODS)


def ranks_of(estimator: Any) -> tuple[float, float] | None:
    """Return the range of ranks that a constraint of the model restricts, if one names a range."""
    given = getattr(final_estimator(estimator), "constraint", None)
    for one in given if isinstance(given, list | tuple) else [given]:
        if isinstance(one, Constraint) and one.rank_range is not None:
            return one.rank_range
    return None


def groups_of(estimator: Any, X: Any, sensitive_features: Any, *, marginal: bool = False) -> Groups:
    """Return the groups of rows: those given, else those in the model's own sensitive columns.

    A classifier of this library says in `groups_missing` what missing values mean, and in `combine`
    whether attributes are on their own; that is heeded with `marginal` only.

    Raises
    ------
    ValueError
        If none are given and the model does not say which columns hold them.
    """
    last = final_estimator(estimator)
    values, name = sensitive_features, "sensitive_features"
    if values is None:
        values, name = _own_groups(best_estimator(estimator), last, X), "sensitive_columns"
    groups = Groups.encode(
        values,
        name=name,
        combine=getattr(last, "combine", "intersection"),
        missing=getattr(last, "groups_missing", "raise"),
    )
    return groups if marginal else replace(groups, marginal=False)


def _own_groups(model: Any, last: Any, X: Any) -> Any:
    """Return what the sensitive columns hold, in the X that reaches the last step."""
    columns = SensitiveColumns(
        getattr(last, "sensitive_columns", None), getattr(last, "use_sensitive", False)
    )
    if columns.columns is None:
        raise ValueError(
            "No groups are known: pass sensitive_features. (Only a classifier of this library with "
            "sensitive_columns knows where in X they are.)"
        )
    while hasattr(model, "steps"):
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = best_estimator(model.steps[-1][1])
    return columns.groups(last, columns.table(last, X))
