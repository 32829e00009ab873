"""Whether predictions mean the same in all groups: precision, and calibration in the large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from fairconstrained.metrics.inputs import COMPARISONS, GroupedRows
from fairconstrained.metrics.intervals import NO_GAP, Interval, differences, largest_of
from fairconstrained.metrics.rates import Predictions, gap_row
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_confidence


class Calibrated(GroupedRows):
    """Labels (bool) and probabilities of rows, by group."""

    def calibration(self, confidence: float) -> pd.DataFrame:
        """Return the calibration of each group and, in the last row, of all rows."""

        def columns(part: Calibrated) -> dict[str, Array]:
            observed, predicted = part.means(part.labels)[0], part.means(part.values)[0]
            shares = {"observed": observed, "predicted": predicted}
            return {
                "rows": part.counts(),
                **shares,
                **part._interval(confidence).named("calibration"),
            }

        return self.table(columns)

    def gap(self, confidence: float) -> dict[str, Any]:
        """Return the largest difference of two groups; its interval holds for all pairs at once."""
        n = len(self.groups)
        if n < 2:
            return gap_row(NO_GAP._replace(high=np.array(2.0)), np.empty(0), self.groups)
        each = self._interval(1.0 - (1.0 - confidence) / (n * (n - 1) // 2))
        return gap_row(largest_of(differences(each)), each.value, self.groups)

    def _interval(self, confidence: float) -> Interval:
        """Return the mean differences of labels and probabilities by group."""
        rest = self.labels - self.values
        value, size = self.means(rest)
        variance, freedom = self.means(rest**2)[0] - value**2, np.maximum(size - 1.0, 1e-9)
        half = t.ppf(0.5 + 0.5 * confidence, np.maximum(freedom, 1.0)) * np.sqrt(variance / freedom)
        return Interval(value, np.maximum(value - half, -1.0), np.minimum(value + half, 1.0))


@Predictions.metric()
def predictive_parity_difference(
    rows: Predictions, method: str = "between_groups", pos_label: object = None
) -> float:
    r"""Return the largest difference of the precisions of the groups.

    .. math::
        \max_{a, b} |\Pr(y = 1 \mid \hat y = 1, a) - \Pr(y = 1 \mid \hat y = 1, b)|

    The precision is the share of positive labels among the rows that are selected. Groups of which
    no row is selected are left out. :func:`fairness_report` has the interval of this gap.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label
        See :func:`group_rates`.
    control_features : array-like or DataFrame or None, default=None
        Strata: groups are compared in each of them, and the largest value is returned.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Compare groups with each other, or each group with all rows.

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
    gaps = [0.0]
    for part in rows.against(pos_label).strata:
        precisions, sizes = part.cells("precision")
        if np.count_nonzero(sizes) > 1:
            overall, _ = part.together().cells("precision")
            gaps.append(float(compare(precisions[sizes > 0], overall)))
    return max(gaps)


@Calibrated.metric(scores=True)
def group_calibration(
    rows: Calibrated, confidence: float = 0.95, pos_label: object = None
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
    if not (rows.values.min() >= 0.0 and rows.values.max() <= 1.0):
        raise ValueError(
            "y_pred must hold the probabilities of the positive class, between 0 and 1; got values "
            f"from {rows.values.min():g} to {rows.values.max():g}."
        )
    return rows.against(pos_label).calibration(check_confidence(confidence))
