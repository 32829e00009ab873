"""The arguments of metrics, checked, as rows by group."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import Signature, signature
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d

from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_held, check_labels, check_same_rows, check_weight
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike, some_of

Result = TypeVar("Result")

_ALL = np.array(["all rows"])
_TEXT_KINDS = "UTO"  # kinds of dtypes that hold text

COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "between_groups": lambda groups, overall: groups.max(axis=0) - groups.min(axis=0),
    "to_overall": lambda groups, overall: np.abs(groups - overall).max(axis=0),
}


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Labels and predictions or scores of rows, by group."""

    labels: Any  # the labels, if they are known, (n_rows,)
    values: Array  # the predictions, or the scores, (n_rows,)
    groups: Groups  # the groups. Rows of unknown group count only among all rows
    weight: Array  # the weights, >= 0, (n_rows,)

    @classmethod
    def check(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        sensitive_features: MatrixLike | Groups | None,
        control_features: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        scores: bool = False,
        optional: str = "",
        missing: str = "raise",
    ) -> Self:
        """Check the arguments of a metric of predictions, or of scores.

        `optional` names the argument that may be None: labels of scores, or groups; without groups
        all rows are in one. `missing` says what missing values of groups mean.
        """
        members = with_strata(sensitive_features, control_features)
        check_same_rows(
            y_true=y_true, y_pred=y_pred, sensitive_features=members, sample_weight=sample_weight
        )
        if scores:
            values, labels = check_scores("y_pred", y_pred), None
            if y_true is not None or optional != "y_true":
                labels = check_labels("y_true", y_true, len(values), rows="y_pred")
        else:
            optional_labels = y_true is None and optional == "y_true"
            labels, values = check_predictions(y_pred if optional_labels else y_true, y_pred)
        n_rows, rows = len(values), "y_pred" if scores else "y_true"
        if members is None and optional == "sensitive_features":
            members = np.zeros(n_rows)
        options: Any = {"missing": missing, "compared": True, "probable": True}
        groups = check_groups(members, n_rows, rows=rows, **options)
        weight = check_weight("sample_weight", sample_weight, n_rows, rows=rows)
        some, groups, weight = groups.surveyed(weight)
        labels = None if labels is None else labels[some]
        return cls(labels, values[some], groups, weight)

    @classmethod
    def metric(cls, **options: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
        """Return what makes a metric with fairlearn's signature of a function of checked rows.

        The metric takes labels, predictions, groups, strata and weights in place of the rows, and
        the other parameters of the function by name. `options` are those of :meth:`check`.
        """

        def decorate(measure: Callable[..., Result]) -> Callable[..., Result]:
            def metric(
                y_true: ArrayLike,
                y_pred: ArrayLike,
                *,
                sensitive_features: MatrixLike,
                control_features: MatrixLike | None = None,
                sample_weight: ArrayLike | None = None,
                **others: Any,
            ) -> Result:
                given = y_true, y_pred, sensitive_features, control_features, sample_weight
                rows = cls.check(*given, **options)
                return measure(rows.counted() if options.get("scores") else rows, **others)

            *shared, _ = signature(metric).parameters.values()
            of_rows = signature(measure)
            _, *others = of_rows.parameters.values()
            named = [each.replace(kind=each.KEYWORD_ONLY) for each in others]
            returned = {"return_annotation": of_rows.return_annotation}
            vars(metric)["__signature__"] = Signature([*shared, *named], **returned)
            return wraps(measure)(metric)

        return decorate

    def take(self, rows: Array) -> Self:
        """Return some rows; a group that none of them has is forgotten."""
        return replace(self, **some_of(self, ("labels", "values", "groups", "weight"), rows))

    def counted(self) -> Self:
        """Return the rows of positive weight."""
        return self.take(np.flatnonzero(self.weight))

    def against(self, pos_label: object) -> Self:
        """Return the rows with labels that say whether they are of the positive class."""
        return replace(self, labels=self.labels == positive_class(self.labels, pos_label))

    @property
    def total_weight(self) -> Array:
        """The weights with their errors, see :meth:`Groups.surveyed`; these may be negative."""
        return self.weight if self.groups.errors is None else self.weight + self.groups.errors

    @property
    def strata(self) -> list[Self]:
        """The rows of every stratum, see :func:`with_strata`; without strata all rows."""
        if not self.groups.stratified:
            return [self]
        return [part.take(np.flatnonzero(part.groups.known)) for part in self.separate]

    @property
    def separate(self) -> list[Self]:
        """The rows, once for each grouping that constraints are bound to (`Groups.separate`)."""
        return [replace(self, groups=part) for part in self.groups.separate]

    def means(self, values: Array, among: Array | bool = True) -> tuple[Array, Array]:
        """Return the mean of values in each group, and the effective numbers of rows.

        Rows are those in a mask, True for all. Errors of the weights, see :meth:`Groups.surveyed`,
        count twice in the squares: those of two groups have opposite signs, and the variance of a
        difference of opposite terms is up to twice the sum of their variances.
        """
        rows = np.flatnonzero(self.groups.known & among)
        codes, values, weight = self.groups.codes[rows], values[rows], self.total_weight[rows]
        square = 2.0 * weight**2 - self.weight[rows] ** 2
        sums = partial(np.bincount, codes, minlength=len(self.groups))
        means, sizes = weighted_means(values, weight, square, sums, codes)
        if self.groups.errors is not None and len(values):
            means = np.clip(means, values.min(), values.max())
        return means, sizes

    def of_group(self, k: int, among: Array | bool = True) -> tuple[Array, Array]:
        """Return the values of a group in a mask, True for all, and their shares of its weight."""
        rows = np.flatnonzero((self.groups.codes == k) & among)
        weight = self.weight[rows]
        return self.values[rows], weight / max(weight.sum(), np.finfo(float).tiny)

    def counts(self, mask: Array | bool = True) -> Array:
        """Return how many rows of each group are in a mask, True for all."""
        return np.bincount(self.groups.codes[self.groups.known & mask], minlength=len(self.groups))

    def together(self) -> Self:
        """Return all rows, each once and those of unknown group as well, as one group."""
        places, weight = self.groups.once(self.weight)
        together = replace(self, groups=Groups(np.zeros(len(self.weight), int), _ALL)).take(places)
        return replace(together, weight=weight)

    def table(self, columns: Callable[[Self], Mapping[str, Array]]) -> pd.DataFrame:
        """Return columns with a row for each group, and a last row for all rows."""
        return pd.concat(
            pd.DataFrame(columns(part), index=pd.Index(group_labels(part.groups), name="group"))
            for part in (self, self.together())
        )


def weighted_means(
    values: Array, weight: Array, square: Array, sums: Any = np.sum, codes: Any = ()
) -> tuple[Array, Array]:
    r"""Return weighted means m, and the effective numbers of rows.

    The effective number is the smaller one of two. Kish's is :math:`(\sum w)^2 / \sum w^2`. The
    other one is the variance of the values divided by the linearised variance of their mean,
    :math:`\sum w \sum w (x - m)^2 / \sum w^2 (x - m)^2`. Kish's alone is too large where the values
    of heavy rows vary more. `square` are the squares of the weights. `sums` adds up the rows of
    each group, whose `codes` are given, or all rows.
    """
    total = sums(weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(total > 0.0, sums(weight * values) / total, np.nan)
        rest = (values - means[codes]) ** 2
        kish, linear = total**2 / sums(square), total * sums(weight * rest) / sums(square * rest)
    smaller = (linear > 0.0) & (linear < kish)  # corrected weights may be below 0
    return means, np.select([total <= 0.0, smaller], [0.0, linear], kish)


def group_labels(groups: Groups) -> list[str]:
    """Return the groups' names as text; of several attributes as "attribute=value"."""
    return [str(name) for name in groups.labels]


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
            f"y_pred has numbers that are not labels, such as {values[values % 1.0 != 0.0][0]:g}. "
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
        raise ValueError(f"{name} must hold one number per row: {error}") from error
    if missing := np.count_nonzero(~np.isfinite(values)):
        raise ValueError(f"{name} has {missing} missing values (nan or infinite): give numbers.")
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
