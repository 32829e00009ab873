"""Confidence intervals for rates, their differences and the largest one, and for calibration."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import beta, norm

from fairconstrained.data.groups import Groups
from fairconstrained.metrics.inputs import GroupedRows, group_labels, weighted_means
from fairconstrained.utils.arguments import check_confidence
from fairconstrained.utils.arrays import Array


class Interval(NamedTuple):
    """Estimates with lower and upper confidence bounds."""

    value: Array
    low: Array
    high: Array

    def named(self, name: str) -> dict[str, Array]:
        """Return the columns of tables: the name, and the name with ``_low`` and ``_high``."""
        return dict(zip((name, f"{name}_low", f"{name}_high"), self, strict=True))


NO_GAP = Interval(np.array(np.nan), np.array(0.0), np.array(1.0))
"""The gap of fewer than two groups."""


def clopper_pearson(rates: Array, sizes: Array, confidence: float) -> Interval:
    r"""Return exact confidence intervals for rates.

    For a rate k / n the bounds are the :math:`\alpha / 2` quantile of Beta(k, n - k + 1) and the
    :math:`1 - \alpha / 2` quantile of Beta(k + 1, n - k). The coverage is at least the confidence
    for every rate and every n. For n = 0 the interval is [0, 1].

    The rate is nan where n = 0; of weighted rows n is the effective sample size, which need not be
    an integer.

    References
    ----------
    Clopper, Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
    binomial.
    """
    rates, sizes = np.asarray(rates, dtype=float), np.asarray(sizes, dtype=float)
    known = sizes > 0
    n = np.where(known, sizes, 1.0)
    k = np.clip(np.where(known, rates, 0.5), 0.0, 1.0) * n
    tail = 0.5 * (1.0 - confidence)
    inside = np.maximum(k, 1e-9), np.maximum(n - k, 1e-9)  # quantiles of Beta(0, .) are not defined
    low = np.where(k > 1e-9, beta.ppf(tail, inside[0], n - k + 1.0), 0.0)
    high = np.where(n - k > 1e-9, beta.ppf(1.0 - tail, k + 1.0, inside[1]), 1.0)
    return Interval(rates, np.where(known, low, 0.0), np.where(known, high, 1.0))


def weighted_share(counted: Array, weight: Array, confidence: float) -> Interval:
    """Return the share of the weight of rows that count; exact intervals if weights are equal."""
    return clopper_pearson(*weighted_means(counted, weight, weight**2), confidence)


def mean_of_differences(
    differences: Array, means: Callable[[Array], tuple[Array, Array]], confidence: float
) -> Interval:
    r"""Return the confidence intervals of means of differences between -1 and 1.

    Half a row with the difference 1, half a row with -1 and a row with 0 are added, as Agresti and
    Min do for matched proportions. With the mean d of n rows, the mean q of the squares and
    :math:`N = n + 2`,

    .. math::
        c = n d / N, \qquad c \pm z \sqrt{\left(n q + 1 - N c^2\right)} / N.

    `means` returns the means of values of the rows, and n; with weights n is the effective number
    of rows, see :func:`weighted_means`.

    References
    ----------
    Agresti, Min (2005), Simple improved confidence intervals for comparing matched proportions.
    """
    (value, size), (square, _) = means(differences), means(differences**2)
    total = size + 2.0
    centre = size * value / total
    spread = np.maximum(size * square + 1.0 - total * centre**2, 0.0)
    half = norm.ppf(0.5 + 0.5 * confidence) * np.sqrt(spread) / total
    low, high = np.minimum(centre - half, value), np.maximum(centre + half, value)
    return Interval(np.asarray(value), np.maximum(low, -1.0), np.minimum(high, 1.0))


def accuracy_change(before: Array, after: Array, weight: Array, confidence: float) -> Interval:
    """Return the difference of two accuracies on the same rows, with its confidence interval.

    `before` and `after`, (n_rows,), say which predictions of the two models are correct; for the
    interval see :func:`mean_of_differences`.
    """
    means = partial(weighted_means, weight=weight, square=weight**2)
    return mean_of_differences(after.astype(float) - before, means, confidence)


def wilson(rates: Array, sizes: Array, z: float) -> tuple[Array, Array]:
    """Return Wilson's score intervals for rates; (0, 1) where there are no rows."""
    known = sizes > 0
    n, p = np.where(known, sizes, 1.0), np.where(known, rates, 0.5)
    centre = p + z**2 / (2.0 * n)
    half_width = z * np.sqrt(p * (1.0 - p) / n + z**2 / (4.0 * n**2))
    low, high = ((centre + side * half_width) / (1.0 + z**2 / n) for side in (-1.0, 1.0))
    return np.where(known, np.maximum(low, 0.0), 0.0), np.where(known, np.minimum(high, 1.0), 1.0)


def newcombe(rates: Array, sizes: Array, confidence: float) -> Interval:
    r"""Return confidence intervals for the differences of all pairs of rates.

    With Wilson's score intervals :math:`(l_a, u_a)` and :math:`(l_b, u_b)` of the two rates, the
    bounds are

    .. math::
        p_a - p_b - \sqrt{(p_a - l_a)^2 + (u_b - p_b)^2}, \qquad
        p_a - p_b + \sqrt{(u_a - p_a)^2 + (p_b - l_b)^2}.

    This is method 10 of Newcombe. The coverage is close to the confidence, and on average slightly
    above it, also for small groups. For a confidence of 0.95 its minimum over all rates is 0.88 for
    two groups of 10 rows, 0.90 of 30 and 0.92 of 100, where one rate is near 0 and the other near
    1. Differences are ``rates[a] - rates[b]`` with a < b, in the order of ``numpy.triu_indices``.

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions.
    """
    rates, sizes = np.asarray(rates, dtype=float), np.asarray(sizes, dtype=float)
    limits = wilson(rates, sizes, float(norm.ppf(0.5 + 0.5 * confidence)))
    return differences(Interval(rates, *limits))


def differences(each: Interval) -> Interval:
    """Return the intervals of the differences of all pairs, from that of each; see `newcombe`."""
    values, low, high = each
    a, b = np.triu_indices(len(values), 1)
    value = values[a] - values[b]
    down = value - np.hypot(values[a] - low[a], high[b] - values[b])
    up = value + np.hypot(high[a] - values[a], values[b] - low[b])
    return Interval(value, down, up)


def largest_gap(cells: Sequence[tuple[Array, Array]], confidence: float) -> Interval:
    """Return the largest difference between two groups' rates, with a confidence interval.

    The intervals of all pairs (:func:`newcombe`) have a Bonferroni correction, so that they hold
    simultaneously with the given confidence. Each of them bounds the absolute difference of its
    pair from below and from above. The lower bound of the largest gap is the maximum of the lower
    bounds, and its upper bound is the maximum of the upper bounds.

    `cells` are, for each kind of rate, the rates of the groups and their numbers of rows. Groups
    without rows are left out; if fewer than two have rows, the gap is nan, with bounds 0 and 1.
    """
    compared = _compared(cells)
    if not compared:
        return NO_GAP
    n_pairs = sum(len(r) * (len(r) - 1) // 2 for r, _ in compared)
    each = 1.0 - (1.0 - confidence) / n_pairs
    pairs = [newcombe(r, n, each) for r, n in compared]
    gap = largest_of(Interval(*(np.concatenate(parts) for parts in zip(*pairs, strict=True))))
    return gap._replace(high=np.minimum(gap.high, 1.0))


def largest_of(pairs: Interval) -> Interval:
    """Return the largest absolute difference, from simultaneous intervals of all differences."""
    value, low, high = pairs
    least = np.maximum(np.maximum(low, -high), 0.0)
    return Interval(np.abs(value).max(), least.max(), np.maximum(-low, high).max())


def largest_shortfall(cells: Sequence[tuple[Array, Array]], confidence: float) -> Interval:
    """Return the largest shortfall 1 - rate_a / rate_b, with a confidence interval.

    The exact intervals of all rates (:func:`clopper_pearson`) have a Bonferroni correction, so that
    they hold simultaneously with the given confidence. The bounds of a ratio are the ratios of
    opposite bounds of its two rates. The interval is conservative: its coverage is at least the
    confidence. The shortfall of two rates that are both 0 is 0.
    """
    compared = _compared(cells)
    if not compared:
        return NO_GAP
    each = 1.0 - (1.0 - confidence) / sum(len(r) for r, _ in compared)
    limits = [clopper_pearson(rates, sizes, each) for rates, sizes in compared]
    return Interval(
        max(_shortfall(value, value) for value, _, _ in limits),
        max(_shortfall(high, low) for _, low, high in limits),
        max(_shortfall(low, high) for _, low, high in limits),
    )


def _compared(cells: Sequence[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """Return the cells with rows, of kinds of rates that two groups have."""
    nonempty = [(rates[sizes > 0], sizes[sizes > 0]) for rates, sizes in cells]
    return [kind for kind in nonempty if len(kind[0]) > 1]


def _shortfall(first: Array, second: Array) -> Array:
    """Return the largest of 0 and 1 - first[a] / second[b] for all a != b."""
    ratio = np.ones((len(first), len(second)))
    np.divide(first[:, None], second[None, :], out=ratio, where=second[None, :] > 0.0)
    np.fill_diagonal(ratio, 1.0)
    return np.asarray(np.max(1.0 - ratio, initial=0.0))


def gap_row(gap: Interval, values: Array, groups: Groups) -> dict[str, Any]:
    """Return the largest gap of the values of groups, with its interval and the two groups."""
    names = {"highest": "", "lowest": ""}
    if np.isfinite(values).any():
        ends = {"highest": np.nanargmax(values.round(12)), "lowest": np.nanargmin(values.round(12))}
        names = {end: group_labels(groups)[k] for end, k in ends.items()}
    return dict(zip(("gap", "low", "high"), map(float, gap), strict=True)) | names


class Calibrated(GroupedRows):
    """Labels (bool) and probabilities of rows, by group."""

    def calibration(self, confidence: float) -> pd.DataFrame:
        """Return the calibration of each group and, in the last row, of all rows."""

        def columns(part: "Calibrated") -> dict[str, Array]:
            observed, predicted = part.means(part.labels)[0], part.means(part.values)[0]
            shares = {"rows": part.counts(), "observed": observed, "predicted": predicted}
            return shares | part._interval(confidence).named("calibration")

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
        return mean_of_differences(self.labels - self.values, self.means, confidence)


@Calibrated.metric(scores=True)
def group_calibration(
    rows: Calibrated, confidence: float = 0.95, pos_label: object = None
) -> pd.DataFrame:
    r"""Return the calibration in the large by group: the mean label minus the mean probability.

    .. math:: c_k = E[y \mid k] - E[p \mid k]

    It is zero where probabilities are right on average. The interval is that of Agresti and Min for
    means of differences, here y - p; with few rows or rare labels it is wider than Student's.

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
    Epidemiology 74 (2016). Agresti, Min (2005).

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
