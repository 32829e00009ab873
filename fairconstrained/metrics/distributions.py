"""Demographic parity of scores: at all thresholds, at one threshold, or in a range of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from fairconstrained.metrics.inputs import COMPARISONS, GroupedRows, check_score_rows
from fairconstrained.terms.difference_sums import Ranked
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike
from fairconstrained.utils.validation import check_between, check_ranks

_ROUNDING = 1e-12  # the error of sums of weights


def roc_parity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    method: str = "between_groups",
) -> float:
    r"""Return the largest gap of the selection rates over all thresholds.

    .. math::
        \max_{a, b} \sup_\theta \left|\Pr(s > \theta \mid a) - \Pr(s > \theta \mid b)\right|,

    This is the Kolmogorov-Smirnov distance between the score distributions of two groups. It is
    zero under strong demographic parity.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, control_features, sample_weight, method
        See :func:`partial_demographic_parity_difference`.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if there is only one group.

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
    rows = y_true, y_pred, sensitive_features, control_features, sample_weight
    return _largest_distance(rows, (0.0, 1.0), method)


def partial_demographic_parity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    ranks: tuple[float, float] = (0.0, 1.0),
    method: str = "between_groups",
) -> float:
    r"""Return the largest distance between the groups' score distributions in a range of ranks.

    .. math::
        \mathrm{DP}^I = \max_{a, b} \sup_\theta \left|\Pr(s > \theta \mid a, \bar F_a(s) \in I)
        - \Pr(s > \theta \mid b, \bar F_b(s) \in I)\right|

    with :math:`I = [\alpha, \beta)` and :math:`\bar F_a(\theta) = \Pr(s > \theta \mid a)`. The rank
    of a score is the share of its group with higher scores; tied scores share the lowest rank. If
    no row of a group has a rank in the range, because ties extend over all of it, the distribution
    is the point mass at the tied score. The attribute `decision_gap_` of a classifier with the
    constraint "partial_dp" is this metric.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Ignored; present for API consistency.
    y_pred : array-like of shape (n_samples,)
        The scores.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups. Rows with equal values in all columns form one group.
    control_features : array-like or DataFrame or None, default=None
        Strata: groups are compared in each of them, and the largest value is returned.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    ranks : tuple of two floats, default=(0.0, 1.0)
        The range of ranks, as shares of each group counted from its highest score.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Compare groups with each other, or each group with all rows.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if there is only one group.

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
    rows = y_true, y_pred, sensitive_features, control_features, sample_weight
    return _largest_distance(rows, ranks, method)


def _largest_distance(rows: Any, ranks: tuple[float, float], method: str) -> float:
    ranks, compare = check_ranks(ranks), check_option("method", method, COMPARISONS)

    def gap(part: GroupedRows) -> float:
        cells = [part.of_group(k) for k in range(len(part.groups))]
        inside = [
            Ranked(*within_ranks(*each, ranks)) for each in (*cells, (part.values, part.weight))
        ]
        *by_group, overall = (each.share_above(np.unique(part.values)) for each in inside)
        return float(compare(np.array(by_group), overall).max())

    return max(map(gap, check_score_rows(*rows).strata))


def weak_partial_demographic_parity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    ranks: tuple[float, float] = (0.0, 1.0),
    threshold: float = 0.0,
    method: str = "between_groups",
) -> float:
    r"""Return the largest gap of the selection rates, clipped to a range of ranks.

    .. math::
        \mathrm{WDP}^I = \max_{a, b} \frac{\left|\mathrm{clip}(\bar F_a(\theta), \alpha, \beta)
        - \mathrm{clip}(\bar F_b(\theta), \alpha, \beta)\right|}{\beta - \alpha}

    at the decision threshold :math:`\theta`. This is a version of
    :func:`partial_demographic_parity_difference` for a single threshold.

    Parameters
    ----------
    y_true, sensitive_features, control_features, sample_weight, ranks, method
        See :func:`partial_demographic_parity_difference`.
    y_pred : array-like of shape (n_samples,)
        Scores, or predictions coded as 0 and 1 or as -1 and 1.
    threshold : float, default=0.0
        A row is selected if `y_pred` exceeds it. Use 0.5 for probabilities.

    Returns
    -------
    difference : float
        In [0, 1]; 0 if there is only one group.

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
    compare = check_option("method", method, COMPARISONS)
    theta = check_between("threshold", threshold, -np.inf, np.inf, "predictions are above it")

    rows = y_true, y_pred, sensitive_features, control_features, sample_weight

    def gap(part: GroupedRows) -> float:
        rates = (each.means(each.values > theta)[0] for each in (part, part.together()))
        return float(compare(*(np.clip(rate, low, high) / (high - low) for rate in rates)))

    return max(map(gap, check_score_rows(*rows).strata))


def within_ranks(scores: Array, weights: Array, ranks: tuple[float, float]) -> tuple[Array, Array]:
    """Return the distinct scores whose rank is in a range, descending, and their shares.

    The rank of a score is the share of weight strictly above it. Where no score has a rank in the
    range, the range lies within equal scores, and the distribution is concentrated at their value.
    """
    return part_within(*distribution(scores, weights), ranks)


def distribution(scores: Array, weights: Array) -> tuple[Array, Array]:
    """Return the distinct scores, descending, and their shares of the weight."""
    values, place = np.unique(-scores, return_inverse=True)
    return -values, np.bincount(place, weights, minlength=len(values)) / weights.sum()


def part_within(values: Array, mass: Array, ranks: tuple[float, float]) -> tuple[Array, Array]:
    """Return the part of a distribution whose rank is in a range, see :func:`within_ranks`."""
    above = np.cumsum(mass) - mass
    low, high = ranks
    inside = (above >= low - _ROUNDING) & (above < high - _ROUNDING)
    if not inside.any():
        inside[np.searchsorted(above, low, side="right") - 1] = True
    share = mass[inside]
    return values[inside], share / share.sum()


def distances(cells: Sequence[tuple[Array, Array]]) -> Array:
    """Return the largest differences of Pr(s > theta) over all theta, of all pairs of cells."""
    gaps = []
    for first, second in combinations(cells, 2):
        points = np.concatenate([first[0], second[0]])
        above = (Ranked(*cell).share_above(points) for cell in (first, second))
        gaps.append(min(float(np.abs(np.subtract(*above)).max(initial=0.0)), 1.0))
    return np.array(gaps, dtype=float)
