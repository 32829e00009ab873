"""Demographic parity of scores: at all thresholds, at one, or within a range of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairconstrained.data.groups import Groups
from fairconstrained.metrics.inputs import METHODS, cell_of, checked
from fairconstrained.terms._ranked_sums import Ranked
from fairconstrained.terms.rank_gaps import within_ranks
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_ranks


def _rows(groups: Groups) -> list[Array]:
    """Return the rows of every group, and last all rows."""
    by_group = [np.flatnonzero(groups.codes == k) for k in range(len(groups))]
    return [*by_group, np.arange(len(groups.codes))]


def roc_parity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    method: str = "between_groups",
) -> float:
    r"""Return the largest gap of the rates of positive decisions over all thresholds.

    .. math::
        \max_{a, b} \sup_\theta \left|\Pr(s > \theta \mid a) - \Pr(s > \theta \mid b)\right|,

    strong demographic parity: the Kolmogorov-Smirnov distance of the groups' scores.

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
    method : {"between_groups", "to_overall"}, default="between_groups"
        Whether groups are compared with each other or with all rows.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if there is one group only.

    References
    ----------
    3S-Econ, equation (5); IDCA, equation (2).

    Examples
    --------
    >>> from fairconstrained.metrics import roc_parity_difference
    >>> y, scores = [0, 1, 0, 1], [0.1, 0.4, 0.3, 0.9]
    >>> roc_parity_difference(y, scores, sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    return partial_demographic_parity_difference(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        ranks=(0.0, 1.0),
        method=method,
    )


def partial_demographic_parity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    ranks: tuple[float, float] = (0.0, 1.0),
    method: str = "between_groups",
) -> float:
    r"""Return how far the groups' scores within a range of ranks differ in distribution.

    .. math::
        \mathrm{DP}^I = \max_{a, b} \sup_\theta \left|\Pr(s > \theta \mid a, \bar F_a(s) \in I)
        - \Pr(s > \theta \mid b, \bar F_b(s) \in I)\right|

    with :math:`I = [\alpha, \beta)` and :math:`\bar F_a(\theta) = \Pr(s > \theta \mid a)`: the rank
    of a score is the share of its group above it, and equal scores have the rank of the first of
    them. Where no rank of a group lies in the range, because equal scores bridge it, all of the
    range is at their value. This is what `decision_gap_` says of "partial_dp".

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
    ranks : tuple of two floats, default=(0.0, 1.0)
        alpha and beta, shares of each group counted from its highest score.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Whether groups are compared with each other or with all rows.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if there is one group only.

    References
    ----------
    IDCA, equation (6).

    Examples
    --------
    >>> from fairconstrained.metrics import partial_demographic_parity_difference
    >>> y, groups = [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> scores = [0.1, 0.9, 0.3, 0.9]
    >>> partial_demographic_parity_difference(
    ...     y, scores, sensitive_features=groups, ranks=(0.0, 0.5)
    ... )
    0.0
    >>> partial_demographic_parity_difference(y, scores, sensitive_features=groups)
    0.5
    """
    low, high = check_ranks(ranks)
    compare = check_option("method", method, METHODS)
    _, scores, groups, weight = checked(y_true, y_pred, sensitive_features, sample_weight)
    parts = [
        Ranked(*within_ranks(scores[rows], weight[rows], (low, high))) for rows in _rows(groups)
    ]
    thresholds = np.unique(scores)
    *by_group, overall = (part.share_above(thresholds) for part in parts)
    return float(compare(np.array(by_group), overall).max())


def weak_partial_demographic_parity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    ranks: tuple[float, float] = (0.0, 1.0),
    threshold: float = 0.0,
    method: str = "between_groups",
) -> float:
    r"""Return the gap of the rates of positive decisions within a range of ranks.

    .. math::
        \mathrm{WDP}^I = \max_{a, b} \frac{\left|\mathrm{clip}(\bar F_a(\theta), \alpha, \beta)
        - \mathrm{clip}(\bar F_b(\theta), \alpha, \beta)\right|}{\beta - \alpha}

    at the decision threshold: :func:`partial_demographic_parity_difference` for one
    :math:`\theta`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Not used; it is there for the calling convention.
    y_pred : array-like of shape (n_samples,)
        Scores, or decisions 0 and 1 or -1 and 1.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups; rows that agree in all columns are one group.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    ranks : tuple of two floats, default=(0.0, 1.0)
        alpha and beta, shares of each group counted from its highest score.
    threshold : float, default=0.0
        A decision is positive where `y_pred` exceeds it; take 0.5 for probabilities.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Whether groups are compared with each other or with all rows.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if there is one group only.

    References
    ----------
    IDCA, equation (9).

    Examples
    --------
    >>> from fairconstrained.metrics import weak_partial_demographic_parity_difference
    >>> y, groups = [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> weak_partial_demographic_parity_difference(
    ...     y, [0, 1, 1, 1], sensitive_features=groups, ranks=(0.25, 0.75)
    ... )
    0.5
    """
    low, high = check_ranks(ranks)
    compare = check_option("method", method, METHODS)
    _, scores, groups, weight = checked(y_true, y_pred, sensitive_features, sample_weight)
    cells = [cell_of(scores, weight, rows) for rows in _rows(groups)]
    rates = np.array([cell.share_above(np.array(float(threshold))) for cell in cells])
    inside = np.clip(rates, low, high) / (high - low)
    return float(compare(inside[:-1], inside[-1]))
