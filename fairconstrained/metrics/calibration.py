"""Whether predictions mean the same in all groups: precision, and calibration in the large."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import Groups
from fairconstrained.metrics.inputs import COMPARISONS, by_stratum, check_score_rows, positive_class
from fairconstrained.metrics.intervals import Interval, differences, largest_of
from fairconstrained.metrics.rates import Predictions, all_rows, group_labels
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike
from fairconstrained.utils.validation import check_confidence


def predictive_parity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    method: str = "between_groups",
    pos_label: object = None,
) -> float:
    r"""Return the largest difference of the precisions of the groups.

    .. math::
        \max_{a, b} |\Pr(y = 1 \mid \hat y = 1, a) - \Pr(y = 1 \mid \hat y = 1, b)|

    The precision is the share of positive labels among the rows that are selected. Groups of which
    no row is selected are left out. :func:`fairness_report` has the interval of this gap.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels. There must be two classes.
    y_pred : array-like of shape (n_samples,)
        The predictions.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups. Rows with equal values in all columns form one group.
    control_features : array-like or DataFrame or None, default=None
        Strata: groups are compared in each of them, and the largest value is returned.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Compare groups with each other, or each group with all rows.
    pos_label : label or None, default=None
        The positive class; None means the second of the sorted classes.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if fewer than two groups have selected rows.

    References
    ----------
    A. Chouldechova, "Fair prediction with disparate impact", Big Data 5 (2017).

    Examples
    --------
    >>> from fairconstrained.metrics import predictive_parity_difference
    >>> y, predictions, groups = [1, 0, 1, 1], [1, 1, 1, 0], ["a", "a", "b", "b"]
    >>> predictive_parity_difference(y, predictions, sensitive_features=groups)
    0.5
    """
    compare = check_option("method", method, COMPARISONS)
    both = with_strata(sensitive_features, control_features)
    rows = Predictions.check(y_true, y_pred, both, sample_weight, pos_label)
    gaps = [0.0]
    for part in by_stratum((rows.labels, rows.predictions, rows.groups, rows.weight)):
        inside = Predictions(*part)
        by_group, sizes = inside.cells("precision")
        precisions = by_group[sizes > 0]
        if len(precisions) > 1:
            gaps.append(float(compare(precisions, inside.together().cells("precision")[0])))
    return max(gaps)


def group_calibration(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    pos_label: object = None,
) -> pd.DataFrame:
    r"""Return the calibration in the large by group: the mean label minus the mean probability.

    .. math:: c_k = E[y \mid k] - E[p \mid k]

    It is zero where probabilities are right on average. The interval is Student's for a mean,
    :math:`c_k \pm t\, s_k / \sqrt{n_k}` with the standard deviation of y - p in the group.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels. There must be two classes.
    y_pred : array-like of shape (n_samples,)
        The probabilities of the positive class.
    sensitive_features, control_features, sample_weight, confidence, pos_label
        See :func:`group_rates`.

    Returns
    -------
    calibration : DataFrame
        A row for each group, and a last row for all rows, with the columns rows, observed,
        predicted, and calibration with its bounds ``_low`` and ``_high``.

    References
    ----------
    Van Calster et al., "A calibration hierarchy for risk models was defined", Journal of Clinical
    Epidemiology 74 (2016).

    Examples
    --------
    >>> from fairconstrained.metrics import group_calibration
    >>> y, probabilities = [0, 1, 0, 1], [0.2, 0.6, 0.4, 0.4]
    >>> table = group_calibration(y, probabilities, sensitive_features=["a", "a", "b", "b"])
    >>> table[["observed", "predicted", "calibration"]].round(2)
              observed  predicted  calibration
    group
    a              0.5        0.4          0.1
    b              0.5        0.4          0.1
    all rows       0.5        0.4          0.1
    """
    both = with_strata(sensitive_features, control_features)
    labels, scores, groups, weight = check_score_rows(y_true, y_pred, both, sample_weight)
    labels = labels == positive_class(labels, pos_label)
    if not (scores.min() >= 0.0 and scores.max() <= 1.0):
        raise ValueError(
            "y_pred must hold the probabilities of the positive class, between 0 and 1; got values "
            f"from {scores.min():g} to {scores.max():g}."
        )
    rows = Calibrated(labels, scores, groups, weight)
    return rows.table(check_confidence(confidence))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Labels (bool) and probabilities of rows, by group, with weights > 0."""

    labels: Array
    probabilities: Array
    groups: Groups
    weight: Array

    def table(self, confidence: float) -> pd.DataFrame:
        """Return the calibration of each group and, in the last row, of all rows."""
        every = replace(self, groups=all_rows(self.groups))
        return pd.concat([part._table(confidence) for part in (self, every)])

    def gap(self, confidence: float) -> dict[str, Any]:
        """Return the largest difference of two groups; its interval holds for all pairs at once."""
        n = len(self.groups)
        if n < 2:
            return {"gap": np.nan, "low": 0.0, "high": 2.0, "highest": "", "lowest": ""}
        table = self._table(1.0 - (1.0 - confidence) / (n * (n - 1) // 2))
        each = Interval(*(table[f"calibration{end}"].to_numpy() for end in ("", "_low", "_high")))
        gap, low, high = map(float, largest_of(differences(each)))
        highest, lowest = table.index[[int(each.value.argmax()), int(each.value.argmin())]]
        return {"gap": gap, "low": low, "high": high, "highest": highest, "lowest": lowest}

    def _table(self, confidence: float) -> pd.DataFrame:
        known = self.groups.known
        codes, weight, n = self.groups.codes[known], self.weight[known], len(self.groups)
        total, squares = (np.bincount(codes, weight**power, n) for power in (1, 2))
        size = total**2 / squares

        def mean(values: Array) -> Array:
            return np.bincount(codes, weight * values[known], n) / total

        value = mean(self.labels - self.probabilities)
        variance = mean((self.labels - self.probabilities) ** 2) - value**2
        freedom = np.maximum(size - 1.0, 1e-9)
        half = t.ppf(0.5 + 0.5 * confidence, np.maximum(freedom, 1.0)) * np.sqrt(variance / freedom)
        columns = {
            "rows": np.bincount(codes, minlength=n),
            "observed": mean(self.labels),
            "predicted": mean(self.probabilities),
            "calibration": value,
            "calibration_low": np.maximum(value - half, -1.0),
            "calibration_high": np.minimum(value + half, 1.0),
        }
        return pd.DataFrame(columns, index=pd.Index(group_labels(self.groups), name="group"))
