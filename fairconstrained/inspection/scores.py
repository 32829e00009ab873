"""Scores by group, from a fitted model or from arrays: the data of plots and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairconstrained.constraints import Constraint
from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import (
    Groups,
    check_groups,
    in_order,
    names_in_fit,
    names_of_columns,
)
from fairconstrained.data.inputs import check_labels, check_weight, known_labels
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.inspection.chosen_groups import (
    MOST_GROUPS,
    Choice,
    choose_groups,
    stacked,
    with_others,
)
from fairconstrained.metrics.inputs import check_scores
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.utils.meta_estimators import (
    best_estimator,
    decision_margin,
    favourable_label,
    final_estimator,
    last_step,
)
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.validation import check_finite

# For each method: how to read the scores of the first or second class from its output, the usual
# threshold, the attribute that has another one, and the axis label.
_METHODS: dict[str, tuple[Callable[[Array, int], Array], float, str, str]] = {
    "predict_proba": (
        lambda output, k: output[:, k],
        0.5,
        "threshold_",
        "probability of the positive class",
    ),
    "decision_function": (
        lambda output, k: output if k else -output,
        0.0,
        "score_threshold_",
        "score",
    ),
}
# What displays of a model with thresholds by group show; it is not an option of `response_method`.
_BY_ROW = {
    "decision_margin": (_METHODS["decision_function"][0], 0.0, "", "score minus the threshold"),
}
_CHOICES = {"auto": "the first available method", **dict.fromkeys(_METHODS, "")}


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Scores of rows, with their groups and weights.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The scores. A prediction is positive if its score is above the threshold.
    groups : Groups
        The groups.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    threshold : float
        The decision threshold.
    unit : str
        The name of the scores, for axis labels.
    labels : ndarray or None, default=None
        The labels, if known.
    """

    scores: Array
    groups: Groups
    weight: Array
    threshold: float
    unit: str
    labels: Array | None = None

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike | None,
        scores: ArrayLike,
        sensitive_features: MatrixLike | Groups,
        sample_weight: ArrayLike | None = None,
        threshold: float | None = None,
        unit: str = "score",
        rows: str = "y_pred",
    ) -> GroupScores:
        """Check scores and groups, and drop the rows of weight zero.

        `rows` is the argument that has the rows, for messages.

        With ``threshold=None`` the threshold is 1/2 if all scores are between 0 and 1, and else 0.

        Raises
        ------
        ValueError
            If lengths differ, a score or a group is missing, or the threshold is not a number.
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
        n_rows = len(scores)
        groups = check_groups(sensitive_features, n_rows, rows=rows, compared=True)
        labels = None if y_true is None else check_labels("y_true", y_true, n_rows, rows=rows)
        weight = check_weight("sample_weight", sample_weight, n_rows, rows=rows)
        if threshold is None:
            threshold = 0.5 if scores.min() >= 0.0 and scores.max() <= 1.0 else 0.0
        threshold = check_finite("threshold", threshold)
        counted = np.flatnonzero(weight)
        labels = None if labels is None else labels[counted]
        groups = groups.take(counted)
        return cls(scores[counted], groups, weight[counted], threshold, unit, labels)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: MatrixLike,
        y: ArrayLike | None,
        sensitive_features: MatrixLike | Groups | None,
        sample_weight: ArrayLike | None = None,
        *,
        response_method: str = "auto",
        threshold: float | None = None,
        marginal: bool = False,
        pos_label: object = None,
    ) -> GroupScores:
        """Return the scores of a fitted classifier.

        With `marginal`, for a classifier with ``combine="marginal"``, each row is listed once for
        each attribute. `pos_label` is the positive class; None takes that of the classifier. Of
        several classes it is needed: the scores are those of this class, or the logarithms of its
        probabilities, minus the highest of the others.

        Raises
        ------
        ValueError
            If the estimator is not a classifier with scores, has several classes and there is no
            `pos_label`, no groups are known, or the threshold on these scores is not.
        NotFittedError
            If the estimator is not fitted.
        """
        check_same_rows(
            test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        estimator = best_estimator(estimator)
        check_no_ranker(estimator)
        positive = checked_positive(estimator, pos_label)
        method = _method(estimator, response_method)
        if threshold is None:
            _check_decides(estimator, method)
        scores, usual, unit = _scores_of(estimator, X, sensitive_features, method, positive)
        if y is not None:
            y = known_labels("y", y, np.asarray(estimator.classes_).tolist()) == positive
        groups = groups_of(estimator, X, sensitive_features, marginal=marginal)
        threshold = usual if threshold is None else threshold
        if groups.marginal:
            repeated, groups = stacked(groups)
            scores = scores[repeated]
            y, sample_weight = (
                None if one is None else np.asarray(one)[repeated] for one in (y, sample_weight)
            )
        return cls.from_arrays(y, scores, groups, sample_weight, threshold, unit, rows="X")

    def of_group(self, k: int, mask: Array | None = None) -> tuple[Array, Array]:
        """Return the scores of a group in ascending order, and their weights, which sum to one.

        Parameters
        ----------
        k : int
            The index of the group.
        mask : ndarray of bool of shape (n_rows,) or None, default=None
            The rows to use; None uses all rows.
        """
        member = self.groups.codes == k
        rows = np.flatnonzero(member if mask is None else member & mask)
        rows = rows[np.argsort(self.scores[rows], kind="stable")]
        weight = self.weight[rows]
        return self.scores[rows], weight / max(weight.sum(), np.finfo(float).tiny)

    def chosen(self, keep: int | None = None) -> GroupScores:
        """Return the scores with the groups to show, of many groups, and the others as one group.

        Up to eight groups are all shown, in their order. Beyond, the groups are chosen and sorted
        by their selection rates; see `choose_groups`. The group `keep` is shown in any case.
        """
        if len(self.groups) <= MOST_GROUPS:
            return self
        choice = self._choice()
        if keep is not None and keep in choice.others:
            choice = Choice(np.append(choice.shown, keep), choice.others[choice.others != keep])
        return replace(self, groups=with_others(self.groups, choice))

    def _choice(self) -> Choice:
        known, n = self.groups.known, len(self.groups)
        codes, weight = self.groups.codes[known], self.weight[known]
        sizes = np.bincount(codes, weight, n)
        above = np.bincount(codes, weight * (self.scores[known] > self.threshold), n)
        effective = sizes**2 / np.maximum(np.bincount(codes, weight**2, n), 1e-300)
        rates, low, high = clopper_pearson(above / np.maximum(sizes, 1e-300), effective, 0.95)
        return choose_groups(rates, sizes, low=low, high=high)


def _scores_of(
    estimator: Classifier,
    X: MatrixLike,
    sensitive_features: MatrixLike | Groups | None,
    method: str,
    positive: object,
) -> tuple[Array, float, str]:
    """Return the scores of the positive class, their threshold, and what the scores are called."""
    read, usual, attribute, unit = (_METHODS | _BY_ROW)[method]
    classes = np.asarray(estimator.classes_).tolist()
    column = classes.index(positive)
    if method in _BY_ROW:
        output = np.asarray(decision_margin(estimator, X, sensitive_features))
    else:
        output = np.asarray(getattr(estimator, method)(X))
    if len(classes) <= 2:
        return read(output, column), _usual(estimator, positive, attribute, usual), unit
    output = np.log(np.maximum(output, 1e-15)) if method == "predict_proba" else output
    unit = f"score of class {positive} minus the highest of the others"
    return against_others(output, column), 0.0, unit


def against_others(scores: Array, column: int) -> Array:
    """Return the scores of a class minus the highest score of the others.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        The scores; of two classes perhaps those of the second one.
    column : int
        The class.
    """
    if scores.ndim == 1:
        return scores if column == 1 else -scores
    return np.asarray(scores[:, column] - np.delete(scores, column, axis=1).max(axis=1))


def _usual(estimator: object, positive: object, attribute: str, usual: float) -> float:
    """Return the threshold of a classifier of two classes on the scores of its positive class."""
    own = float(getattr(final_estimator(estimator), attribute, usual))
    return own if positive == favourable_label(estimator) else 2.0 * usual - own


def _method(estimator: object, response_method: str) -> str:
    """Return the name of the method that gives the scores."""
    check_option("response_method", response_method, _CHOICES)
    methods = list(_METHODS) if response_method == "auto" else [response_method]
    decides = getattr(final_estimator(estimator), "decided_on_", None)
    if response_method == "auto" and decides is not None:
        return str(decides)
    found = [name for name in methods if hasattr(estimator, name)]
    if not found:
        raise ValueError(
            f"{type(estimator).__name__} has no scores: {' or '.join(methods)} is needed."
        )
    return found[0]


def _check_decides(estimator: object, method: str) -> None:
    """Raise an error if predictions are made by another method, whose thresholds are known."""
    last = final_estimator(estimator)
    decides = getattr(last, "decided_on_", method)
    if decides != method:
        raise ValueError(
            f"response_method={method!r}: {type(last).__name__} predicts by {decides}, so the "
            "threshold on these scores is not known. Pass threshold=, or response_method='auto'."
        )


def check_no_ranker(model: object) -> None:
    """Raise a ValueError if a model is a ranker, whose predictions are scores."""
    last = final_estimator(model)
    if getattr(last, "needs_queries", False):
        raise ValueError(
            f"{type(last).__name__} ranks the rows of queries and predicts no classes: use "
            "compare_rankers(models, X, y, groups, query=...)."
        )


def check_two_classes(estimator: object) -> None:
    """Raise an error unless a model is a fitted classifier with two classes."""
    check_is_fitted(estimator)
    classes = getattr(estimator, "classes_", None)
    if classes is None or len(classes) != 2:
        found = "no classes" if classes is None else f"{len(classes)} classes"
        raise ValueError(
            f"estimator: a classifier with two classes is needed; {type(estimator).__name__} has "
            f"{found}."
        )


def checked_positive(estimator: Classifier, pos_label: object) -> Any:
    """Return the positive class of a fitted classifier: as given, or its favourable class.

    Raises
    ------
    ValueError
        If there are several classes and none is given, or the given one is not a class.
    """
    classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
    if pos_label is None and len(classes) > 2:
        raise ValueError(
            f"pos_label=None: {type(estimator).__name__} has the {len(classes)} classes {classes}, "
            "and one must be chosen. Pass pos_label: this class is compared with all others."
        )
    if len(classes) <= 2:
        check_two_classes(estimator)
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
    return favourable_label(estimator) if pos_label is None else pos_label


def ranks_of(estimator: object) -> tuple[float, float] | None:
    """Return the range of ranks of the model's constraint; None if it has no range."""
    constraint = getattr(final_estimator(estimator), "constraint", None)
    for one in constraint if isinstance(constraint, list | tuple) else [constraint]:
        if isinstance(one, Constraint) and one.rank_range is not None:
            return one.rank_range
    return None


def groups_of(
    estimator: object,
    X: MatrixLike,
    sensitive_features: MatrixLike | Groups | None,
    *,
    marginal: bool = False,
    missing: str | None = None,
) -> Groups:
    """Return the groups of rows, from `sensitive_features` or from the model's sensitive columns.

    `missing` determines how missing values are treated; None takes the parameter `groups_missing`
    of a classifier of this library, else "raise". Its parameter `combine` is used only if
    `marginal` is true. Columns have the order of its fit if they have the same names.

    Raises
    ------
    ValueError
        If `sensitive_features` is None and the model has no `sensitive_columns`.
    """
    last = final_estimator(estimator)
    values, name = sensitive_features, "sensitive_features"
    if values is None:
        values, name = _own_groups(estimator, X), "sensitive_columns"
    names = names_in_fit(last)
    if set(names) == set(names_of_columns(values)):  # else these are other attributes
        values = in_order(values, names, name)
    groups = Groups.encode(
        values,
        name=name,
        combine=getattr(last, "combine", "intersection"),
        missing=getattr(last, "groups_missing", "raise") if missing is None else missing,
    )
    return groups if marginal else replace(groups, marginal=False)


def _own_groups(estimator: object, X: Any) -> Any:
    """Return the content of the sensitive columns in the X that the last step receives."""
    columns = SensitiveColumns.of(final_estimator(estimator))
    if columns.columns is None:
        raise ValueError(
            "No groups are known: pass sensitive_features. It may be omitted only for a classifier "
            "of this library that has sensitive_columns."
        )
    last, X = last_step(estimator, X)
    return columns.groups(last, columns.table(last, X))
