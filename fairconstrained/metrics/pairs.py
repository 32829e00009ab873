"""Pairwise probabilities: whom the scores rank above whom."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from fairconstrained.functions.elementary import Indicator
from fairconstrained.metrics.inputs import METHODS, cell_of, checked
from fairconstrained.terms._ranked_sums import Ranked, pair_sum
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array


def _positive(labels: Array, pos_label: Any) -> Array:
    """Return which rows are positive.

    Raises
    ------
    ValueError
        If there are more than two classes, or `pos_label` is not one of them.
    """
    classes = np.unique(labels)
    if pos_label is None:
        if len(classes) > 2:
            raise ValueError(
                f"y_true must have two classes, it has {len(classes)}; binarise it, or say by "
                "pos_label which one is positive."
            )
        pos_label = classes[-1]
        if len(classes) == 1 and pos_label not in (1, True):
            return np.zeros(len(labels), dtype=bool)
    elif pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not in y_true, which has {classes.tolist()}.")
    return np.asarray(labels == pos_label)


def _above(first: Ranked, second: Ranked) -> float:
    """Return the probability that a score of the first cell is above one of the second."""
    return pair_sum(Indicator(), first, second)[0]


def _by_label(
    y_true: Any, y_pred: Any, sensitive_features: Any, sample_weight: Any, pos_label: Any
) -> tuple[list[Ranked], list[Ranked], Array]:
    """Return the positives and the negatives of every group that has both, and group weights.

    Warns
    -----
    UndefinedMetricWarning
        If a group has rows of one class only; it is left out.
    """
    labels, scores, groups, weight = checked(y_true, y_pred, sensitive_features, sample_weight)
    positive = _positive(labels, pos_label)
    positives, negatives, masses = [], [], []
    for k, name in enumerate(groups.names):
        member = groups.codes == k
        rows = [np.flatnonzero(member & positive), np.flatnonzero(member & ~positive)]
        if not all(len(one) for one in rows):
            lacks = "positive" if not len(rows[0]) else "negative"
            warnings.warn(
                f"Group {name} has no {lacks} rows; it is compared with no other.",
                UndefinedMetricWarning,
                stacklevel=3,
            )
            continue
        positives.append(cell_of(scores, weight, rows[0]))
        negatives.append(cell_of(scores, weight, rows[1]))
        masses.append(weight[member].sum())
    return positives, negatives, np.array(masses)


def group_auc_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None
) -> float:
    r"""Return how far a group's scores are from being as often above as below another's.

    .. math::
        \max_{a \ne b} \Pr(s_i > s_j \mid i \in a, j \in b)
        + \tfrac12 \Pr(s_i = s_j \mid i \in a, j \in b) - \tfrac12

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Not used; it is there for the calling convention.
    y_pred : array-like of shape (n_samples,)
        The scores.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups; rows that agree in all columns are one group.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.

    Returns
    -------
    difference : float
        In [0, 1/2]; 0 if there is one group only.

    References
    ----------
    IDCA, equation (65).

    Examples
    --------
    >>> from fairconstrained.metrics import group_auc_difference
    >>> group_auc_difference([0, 1, 0], [0.1, 0.9, 0.3], sensitive_features=["a", "b", "b"])
    0.5
    """
    _, scores, groups, weight = checked(y_true, y_pred, sensitive_features, sample_weight)
    cells = [cell_of(scores, weight, np.flatnonzero(groups.codes == k)) for k in range(len(groups))]
    above = [abs(_above(a, b) - 0.5) for k, a in enumerate(cells) for b in cells[:k]]
    return max(above, default=0.0)


def inter_group_auc_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    r"""Return how much a group's positives gain over another's when ranked above its negatives.

    .. math::
        \max_{a, b} \left|\Pr(s_i > s_j \mid i \in a+, j \in b-)
        - \Pr(s_i > s_j \mid i \in b+, j \in a-)\right|, \text{ ties counted half.}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels, of two classes.
    y_pred : array-like of shape (n_samples,)
        The scores.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups; rows that agree in all columns are one group.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    pos_label : label or None, default=None
        The positive class; None takes the last one in sorted order.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if fewer than two groups have both classes.

    Warns
    -----
    UndefinedMetricWarning
        If a group has one class only; it is left out.

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
    positives, negatives, _ = _by_label(
        y_true, y_pred, sensitive_features, sample_weight, pos_label
    )
    gaps = [
        abs(_above(positives[a], negatives[b]) - _above(positives[b], negatives[a]))
        for a in range(len(positives))
        for b in range(a)
    ]
    return max(gaps, default=0.0)


def intra_group_auc_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    method: str = "between_groups",
) -> float:
    r"""Return the largest gap of the AUC within groups.

    :math:`\max_{a, b} |\mathrm{AUC}_a - \mathrm{AUC}_b|`, each among the rows of one group.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels, of two classes.
    y_pred : array-like of shape (n_samples,)
        The scores.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups; rows that agree in all columns are one group.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    pos_label : label or None, default=None
        The positive class; None takes the last one in sorted order.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Whether groups are compared with each other or with the mean of all groups, weighted by
        their size.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if fewer than two groups have both classes.

    Warns
    -----
    UndefinedMetricWarning
        If a group has one class only; it is left out.

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
    compare = check_option("method", method, METHODS)
    positives, negatives, masses = _by_label(
        y_true, y_pred, sensitive_features, sample_weight, pos_label
    )
    aucs = np.array([_above(a, b) for a, b in zip(positives, negatives, strict=True)])
    if len(aucs) < 2:
        return 0.0
    return float(compare(aucs, np.average(aucs, weights=masses)))
