"""The rates of every group that decisions are judged by, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_weight
from fairconstrained.metrics.inputs import check_predictions
from fairconstrained.metrics.intervals import clopper_pearson, largest_gap
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_confidence


@dataclass(frozen=True)
class Rate:
    """How often something happens among rows that something else is true of.

    Parameters
    ----------
    among, counted : callable
        From labels and decisions (true where positive) to the rows that count, and to those of
        them that are counted.
    title : str
        What it is called in a sentence.
    """

    among: Callable[[Array, Array], Array]
    counted: Callable[[Array, Array], Array]
    title: str


def _all(labels: Array, decisions: Array) -> Array:
    return np.ones_like(labels)


def _positive(labels: Array, decisions: Array) -> Array:
    return labels


def _negative(labels: Array, decisions: Array) -> Array:
    return ~labels


def _selected(labels: Array, decisions: Array) -> Array:
    return decisions


def _right(labels: Array, decisions: Array) -> Array:
    return labels == decisions


def _wrong(labels: Array, decisions: Array) -> Array:
    return labels != decisions


RATES: Mapping[str, Rate] = {
    "selection_rate": Rate(_all, _selected, "selection rate"),
    "true_positive_rate": Rate(_positive, _selected, "true positive rate"),
    "false_positive_rate": Rate(_negative, _selected, "false positive rate"),
    "accuracy": Rate(_all, _right, "accuracy"),
    "error_rate": Rate(_all, _wrong, "error rate"),
    "precision": Rate(_selected, _positive, "precision"),
    "base_rate": Rate(_all, _positive, "rate of positive labels"),
}
SHOWN = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")


@dataclass(frozen=True, eq=False)
class Decisions:
    """Labels and decisions by group.

    Parameters
    ----------
    labels, decisions : ndarray of bool of shape (n_rows,)
        Whether they are positive.
    groups : Groups
        The groups; rows without one count among all rows only.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    """

    labels: Array
    decisions: Array
    groups: Groups
    weight: Array

    @classmethod
    def check(
        cls,
        y_true: Any,
        y_pred: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        pos_label: Any = None,
    ) -> Decisions:
        """Check what a user passes; rows of weight zero are left out.

        Raises
        ------
        ValueError
            If lengths differ, groups are missing, there are more than two classes, or it is not
            clear which is the positive one.
        """
        check_same_rows(
            test=True,
            y_true=y_true,
            y_pred=y_pred,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
        )
        labels, decisions = check_predictions(y_true, y_pred)
        groups = check_groups(sensitive_features, len(labels), rows="y_true")
        weight = check_weight("sample_weight", sample_weight, len(labels), rows="y_true")
        positive = positive_class(np.concatenate([labels, decisions]), pos_label)
        counted = np.flatnonzero(weight)
        return cls(
            labels[counted] == positive,
            decisions[counted] == positive,
            groups.take(counted),
            weight[counted],
        )

    def cells(self, name: str) -> tuple[Array, Array]:
        r"""Return the groups' rates and of how many rows each is.

        With weights a rate is as uncertain as that of :math:`(\sum w)^2 / \sum w^2` rows (Kish).
        """
        rate = RATES[name]
        among = np.flatnonzero(rate.among(self.labels, self.decisions) & self.groups.known)
        counted = rate.counted(self.labels, self.decisions)[among]
        codes, weight, n = self.groups.codes[among], self.weight[among], len(self.groups)
        total = np.bincount(codes, weight, n)
        squares = np.bincount(codes, weight**2, n)
        happened = np.bincount(codes, weight * counted, n)
        some = total > 0
        rates = np.divide(happened, total, out=np.full(n, np.nan), where=some)
        sizes = np.divide(total**2, squares, out=np.zeros(n), where=some)
        return rates, sizes

    def table(self, names: Any, confidence: float) -> pd.DataFrame:
        """Return counts and rates, a row per group and one for all of them."""
        together = Groups(np.zeros_like(self.groups.codes), np.array(["all rows"]))
        by_group = self._table(names, confidence)
        overall = Decisions(self.labels, self.decisions, together, self.weight)
        return pd.concat([by_group, overall._table(names, confidence)])

    def _table(self, names: Any, confidence: float) -> pd.DataFrame:
        known, codes, n = self.groups.known, self.groups.codes, len(self.groups)
        columns: dict[str, Array] = {
            "rows": np.bincount(codes[known], minlength=n),
            "positive_labels": np.bincount(codes[known & self.labels], minlength=n),
            "positive_decisions": np.bincount(codes[known & self.decisions], minlength=n),
        }
        for name in names:
            interval = clopper_pearson(*self.cells(name), confidence)
            columns[name] = interval.value
            columns[f"{name}_low"] = interval.low
            columns[f"{name}_high"] = interval.high
        return pd.DataFrame(columns, index=pd.Index(group_labels(self.groups), name="group"))

    def gaps(self, names: Any, confidence: float) -> pd.DataFrame:
        """Return the largest gap of each rate, and between which groups it is."""
        labels = group_labels(self.groups)
        rows = {}
        for name in names:
            rates, sizes = self.cells(name)
            gap, low, high = largest_gap([(rates, sizes)], confidence)
            known = len(rates[sizes > 0]) > 0
            rows[name] = {
                "gap": float(gap), "low": float(low), "high": float(high),
                "highest": labels[np.nanargmax(rates)] if known else "",
                "lowest": labels[np.nanargmin(rates)] if known else "",
            }  # fmt: skip
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("rate")


def group_labels(groups: Groups) -> list[str]:
    """Return the groups' names as text: the values of several attributes with commas."""
    return [
        ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
        for name in groups.names.tolist()
    ]


def positive_class(values: Array, pos_label: Any = None) -> Any:
    """Return the positive class: `pos_label`, else the second one in sorted order.

    Raises
    ------
    ValueError
        If there are more than two classes, `pos_label` is none of them, or there is one class and
        no telling which.
    """
    classes = np.unique(values).tolist()
    if len(classes) > 2:
        raise ValueError(
            f"Two classes are needed; labels and decisions have {len(classes)}: {classes[:5]}. "
            "Pass decisions, not scores, and one class against the rest where there are several."
        )
    if pos_label is not None:
        if len(classes) == 2 and pos_label not in classes:
            raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes}.")
        return pos_label
    if len(classes) == 1 and classes[0] not in (-1, 0, 1):
        raise ValueError(
            f"All labels and decisions are {classes[0]!r}: say in pos_label which class is the "
            "positive one."
        )
    return classes[-1] if len(classes) == 2 else 1


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> pd.DataFrame:
    """Return what the decisions do in every group, with confidence intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels, of two classes.
    y_pred : array-like of shape (n_samples,)
        The decisions.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups; rows that agree in all columns are one group.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows. Intervals are then approximate: those of as many rows as the
        weights are worth (Kish).
    confidence : float, default=0.95
        Of each interval on its own; exact (Clopper-Pearson).
    pos_label : label or None, default=None
        The positive class; None takes the second one in sorted order.

    Returns
    -------
    rates : DataFrame
        A row per group and last one of all rows: the columns rows, positive_labels,
        positive_decisions (counts), and selection_rate, true_positive_rate, false_positive_rate and
        accuracy, each with ``_low`` and ``_high``.

    Examples
    --------
    >>> from fairconstrained.metrics import group_rates
    >>> y, decisions = [0, 1, 0, 1, 1], [0, 1, 1, 1, 0]
    >>> rates = group_rates(y, decisions, sensitive_features=["a", "a", "b", "b", "b"])
    >>> rates[["rows", "selection_rate", "accuracy"]].round(2)
              rows  selection_rate  accuracy
    group
    a            2            0.50      1.00
    b            3            0.67      0.33
    all rows     5            0.60      0.60
    """
    confidence = check_confidence(confidence)
    decisions = Decisions.check(y_true, y_pred, sensitive_features, sample_weight, pos_label)
    return decisions.table(SHOWN, confidence)


def rate_gaps(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> pd.DataFrame:
    """Return the largest gaps of the groups' rates, with confidence intervals.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label
        See :func:`group_rates`.
    confidence : float, default=0.95
        Of each row's interval: Newcombe's, for all pairs of groups at once (Bonferroni).

    Returns
    -------
    gaps : DataFrame
        A row per rate: gap, low, high, and the groups with the highest and the lowest rate.

    Examples
    --------
    >>> from fairconstrained.metrics import rate_gaps
    >>> y, decisions = [0, 1, 0, 1, 1], [0, 1, 1, 1, 0]
    >>> gaps = rate_gaps(y, decisions, sensitive_features=["a", "a", "b", "b", "b"])
    >>> gaps.loc[["selection_rate"], ["gap", "highest", "lowest"]].round(2)
                     gap highest lowest
    rate
    selection_rate  0.17       b      a
    """
    confidence = check_confidence(confidence)
    decisions = Decisions.check(y_true, y_pred, sensitive_features, sample_weight, pos_label)
    return decisions.gaps(SHOWN, confidence)
