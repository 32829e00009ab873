"""Pairwise probabilities: how often the scores of one group rank above those of another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from fairconstrained.exceptions import warn
from fairconstrained.metrics.inputs import COMPARISONS, GroupedRows, check_score_rows
from fairconstrained.terms.difference_sums import Ranked
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import ArrayLike, MatrixLike


def _above(first: Ranked, second: Ranked) -> float:
    """Return the probability that a score of the first cell exceeds one of the second."""
    return float(first.weights @ second.share_below(first.scores))


def _halves(rows: GroupedRows) -> Iterator[tuple[Ranked, Ranked, float]]:
    """Yield the scores of each group's positive and negative rows, and its weight.

    Groups with rows of only one class are left out, with an `UndefinedMetricWarning`.
    """
    for k, name in enumerate(rows.groups.labels):
        positive, negative = (rows.of_group(k, side) for side in (rows.labels, ~rows.labels))
        if len(positive[0]) and len(negative[0]):
            yield Ranked(*positive), Ranked(*negative), rows.weight[rows.groups.codes == k].sum()
            continue
        missing = "negative" if len(positive[0]) else "positive"
        warn(
            f"Group {name} has no {missing} rows; it is left out of the comparison.",
            UndefinedMetricWarning,
        )


def group_auc_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the largest deviation from 1/2 of the AUC between two groups.

    .. math::
        \max_{a \ne b} \Pr(s_i > s_j \mid i \in a, j \in b)
        + \tfrac12 \Pr(s_i = s_j \mid i \in a, j \in b) - \tfrac12

    The metric is zero if the scores of each group are above those of every other group as often as
    below.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, control_features, sample_weight
        See :func:`~fairconstrained.metrics.partial_demographic_parity_difference`.

    Returns
    -------
    difference : float
        In [0, 1/2]; 0 if there is only one group.

    References
    ----------
    IDCA, equation (65).

    Examples
    --------
    >>> from fairconstrained.metrics import group_auc_difference
    >>> group_auc_difference([0, 1, 0], [0.1, 0.9, 0.3], sensitive_features=["a", "b", "b"])
    0.5
    """
    rows = y_true, y_pred, sensitive_features, control_features, sample_weight
    gaps = [
        abs(_above(*pair) - 0.5)
        for part in check_score_rows(*rows).strata
        for pair in combinations([Ranked(*part.of_group(k)) for k in range(len(part.groups))], 2)
    ]
    return max(gaps, default=0.0)


def inter_group_auc_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the largest gap of the AUC of one group's positives against another's negatives.

    .. math::
        \max_{a, b} \left|\Pr(s_i > s_j \mid i \in a+, j \in b-)
        - \Pr(s_i > s_j \mid i \in b+, j \in a-)\right|

    Here a+ and a- are the positive and the negative rows of group a. Ties count one half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels. There must be two classes.
    y_pred : array-like of shape (n_samples,)
        The scores.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups. Rows with equal values in all columns form one group.
    control_features : array-like or DataFrame or None, default=None
        Strata: groups are compared in each of them, and the largest value is returned.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    pos_label : label or None, default=None
        The positive class; None means the second of the sorted classes.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if fewer than two groups have both classes.

    Warns
    -----
    UndefinedMetricWarning
        If a group has rows of only one class; it is left out.

    References
    ----------
    IDCA, equation (68); Kallus and Zhou 2019 (xAUC disparity).

    Examples
    --------
    >>> from fairconstrained.metrics import inter_group_auc_difference
    >>> y, groups = [1, 0, 1, 0], ["a", "a", "b", "b"]
    >>> inter_group_auc_difference(y, [1.0, 0.5, 0.5, 0.0], sensitive_features=groups)
    0.5
    """
    rows = y_true, y_pred, sensitive_features, control_features, sample_weight
    gaps = [
        abs(_above(first[0], second[1]) - _above(second[0], first[1]))
        for part in check_score_rows(*rows).against(pos_label).strata
        for first, second in combinations(_halves(part), 2)
    ]
    return max(gaps, default=0.0)


def intra_group_auc_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    method: str = "between_groups",
) -> float:
    r"""Return the largest gap between the AUCs within groups.

    :math:`\max_{a, b} |\mathrm{AUC}_a - \mathrm{AUC}_b|`, where :math:`\mathrm{AUC}_a` is the area
    under the ROC curve of the rows of group a.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, control_features, sample_weight, pos_label
        See :func:`inter_group_auc_difference`.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Compare groups with each other, or each group with the mean of the others, weighted by
        their sizes, as the constraint does with ``against="overall"``.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if fewer than two groups have both classes.

    Warns
    -----
    UndefinedMetricWarning
        If a group has rows of only one class; it is left out.

    References
    ----------
    IDCA, equation (70); Beutel et al. 2019.

    Examples
    --------
    >>> from fairconstrained.metrics import intra_group_auc_difference
    >>> y, groups = [1, 0, 1, 0], ["a", "a", "b", "b"]
    >>> intra_group_auc_difference(y, [1.0, 0.0, 0.0, 0.0], sensitive_features=groups)
    0.5
    """
    compare = check_option("method", method, COMPARISONS)
    rows, gaps = (y_true, y_pred, sensitive_features, control_features, sample_weight), [0.0]
    for part in check_score_rows(*rows).against(pos_label).strata:
        halves = list(_halves(part))
        aucs = np.array([_above(positive, negative) for positive, negative, _ in halves])
        masses = np.array([mass for *_, mass in halves])
        if len(aucs) > 1:
            others = (masses @ aucs - masses * aucs) / (masses.sum() - masses)
            gaps.append(float(compare(aucs, others)))
    return max(gaps)
