"""Intervals of means over random splits of the same rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import t as student

LEAST_SPLITS = 3  # of an interval that says something: with two it is 12.7 standard errors wide


def half_width(values: np.ndarray, test_to_train: float) -> float:
    """Return half the 95% interval of a mean over splits, infinite for one split.

    The training rows of splits overlap: the variance is that of Nadeau and Bengio (2003),
    with 1 / J + n_test / n_train in place of 1 / J.

    Parameters
    ----------
    values : ndarray of shape (n_splits,)
        The values of the splits.
    test_to_train : float
        The number of test rows divided by that of training rows.
    """
    if len(values) < 2:
        return float("inf")
    variance = (1.0 / len(values) + test_to_train) * np.var(values, ddof=1)
    return float(student.ppf(0.975, len(values) - 1) * np.sqrt(variance))


def jackknife_half_width(
    statistic: Callable[[tuple[int, ...]], float], splits: tuple[int, ...], test_to_train: float
) -> float:
    """Return half the 95% interval of a statistic of several splits, infinite for one split.

    The variance is that of the values without one split each, with the correction of
    :func:`half_width`; for a mean both are equal.

    Parameters
    ----------
    statistic : callable
        Returns the value on some splits.
    splits : tuple of int
        All splits.
    test_to_train : float
        As above.
    """
    n = len(splits)
    if n < 2:
        return float("inf")
    values = [statistic(splits[:k] + splits[k + 1 :]) for k in range(n)]
    return half_width((n - 1.0) * np.array(values), test_to_train)
