"""Scores above which a given share of the weight lies."""

from __future__ import annotations

import numpy as np

from fairconstrained.utils.typing import Array


def score_below_share(scores: Array, weight: Array, share: float) -> float:
    """Return the score above which a share of the weight lies.

    It is half-way between two scores, as near to the share as weights and equal scores allow.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The scores.
    weight : ndarray of shape (n_rows,)
        The weights of the rows, > 0.
    share : float
        In (0, 1).
    """
    values, codes = np.unique(scores, return_inverse=True)
    totals = np.bincount(codes, weight)
    return middle_of_gap(values, totals, 0.0, float(totals.sum()), share)


def middle_of_gap(values: Array, totals: Array, above: float, total: float, share: float) -> float:
    """Return the middle of the gap between scores above which a share of the weight lies.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Some of the scores: different ones, without others between them, in increasing order.
    totals : ndarray of shape (n_values,)
        The total weight of the rows with each of them.
    above : float
        The weight of the rows with larger scores.
    total : float
        The weight of all rows.
    share : float
        In (0, 1).
    """
    if len(values) == 1:
        return float(values[0])
    shares = (above + np.cumsum(totals[::-1])[::-1][1:]) / total
    k = int(np.argmin(np.abs(shares - share)))
    return float(0.5 * (values[k] + values[k + 1]))
