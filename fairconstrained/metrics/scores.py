"""Measures of scores: demographic parity at thresholds and in ranges of ranks, and AUCs."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from fairconstrained.exceptions import warn
from fairconstrained.metrics.inputs import COMPARISONS, GroupedRows
from fairconstrained.terms.difference_sums import Ranked
from fairconstrained.utils.arguments import check_finite, check_option, check_ranks
from fairconstrained.utils.arrays import Array, blocks

_ROUNDING = 1e-12  # the error of sums of weights


@GroupedRows.metric(scores=True)
def roc_parity_difference(rows: GroupedRows, method: str = "between_groups") -> float:
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
    3S-Econ, equation (4); IDCA, equation (2).

    Examples
    --------
    >>> from fairconstrained.metrics import roc_parity_difference
    >>> y, scores = [0, 1, 0, 1], [0.1, 0.4, 0.3, 0.9]
    >>> roc_parity_difference(y, scores, sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    return _largest_distance(rows, (0.0, 1.0), method)


@GroupedRows.metric(scores=True)
def partial_demographic_parity_difference(
    rows: GroupedRows, ranks: tuple[float, float] = (0.0, 1.0), method: str = "between_groups"
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
    return _largest_distance(rows, ranks, method)


def _largest_distance(rows: GroupedRows, ranks: tuple[float, float], method: str) -> float:
    ranks, compare = check_ranks(ranks), COMPARISONS[check_option("method", method, COMPARISONS)]

    def gap(part: GroupedRows) -> float:
        cells = [part.of_group(k) for k in range(len(part.groups))]
        inside = [
            Ranked(*within_ranks(*each, ranks)) for each in (*cells, (part.values, part.weight))
        ]
        *by_group, overall = (each.share_above(np.unique(part.values)) for each in inside)
        return float(compare(np.array(by_group), overall).max())

    return max(map(gap, rows.strata))


@GroupedRows.metric(scores=True)
def weak_partial_demographic_parity_difference(
    rows: GroupedRows,
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
    compare = COMPARISONS[check_option("method", method, COMPARISONS)]
    theta = check_finite("threshold", threshold)

    def gap(part: GroupedRows) -> float:
        rates = (each.means(each.values > theta)[0] for each in (part, part.together()))
        return float(compare(*(np.clip(rate, low, high) / (high - low) for rate in rates)))

    return max(map(gap, rows.strata))


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
    ranked, gaps = [Ranked(*cell) for cell in cells], []
    points = np.concatenate([each.scores for each in ranked])
    for some in blocks(len(points)):
        above = np.array([each.share_above(points[some]) for each in ranked])
        by_first = [np.abs(above[k + 1 :] - each).max(axis=1) for k, each in enumerate(above)]
        gaps.append(np.concatenate(by_first))
    return np.minimum(np.max(gaps, axis=0), 1.0)


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


@GroupedRows.metric(scores=True)
def group_auc_difference(rows: GroupedRows) -> float:
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
    gaps = [
        abs(Ranked.probability_above(*pair) - 0.5)
        for part in rows.strata
        for pair in combinations([Ranked(*part.of_group(k)) for k in range(len(part.groups))], 2)
    ]
    return max(gaps, default=0.0)


@GroupedRows.metric(scores=True)
def inter_group_auc_difference(rows: GroupedRows, pos_label: object = None) -> float:
    r"""Return the largest gap of the AUC of one group's positives against another's negatives.

    .. math::
        \max_{a, b} \left|\Pr(s_i > s_j \mid i \in a+, j \in b-)
        - \Pr(s_i > s_j \mid i \in b+, j \in a-)\right|

    Here a+ and a- are the positive and the negative rows of group a. Ties count one half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels. There must be two classes.
    y_pred, sensitive_features, control_features, sample_weight
        See :func:`partial_demographic_parity_difference`.
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
    gaps = [
        abs(first[0].probability_above(second[1]) - second[0].probability_above(first[1]))
        for part in rows.against(pos_label).strata
        for first, second in combinations(_halves(part), 2)
    ]
    return max(gaps, default=0.0)


@GroupedRows.metric(scores=True)
def intra_group_auc_difference(
    rows: GroupedRows, pos_label: object = None, method: str = "between_groups"
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
    compare = COMPARISONS[check_option("method", method, COMPARISONS)]
    gaps = [0.0]
    for part in rows.against(pos_label).strata:
        halves = list(_halves(part))
        aucs = np.array([above.probability_above(below) for above, below, _ in halves])
        masses = np.array([mass for *_, mass in halves])
        if len(aucs) > 1:
            others = (masses @ aucs - masses * aucs) / (masses.sum() - masses)
            gaps.append(float(compare(aucs, others)))
    return max(gaps)
