"""What metrics take, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from fairconstrained.data.groups import Groups
from fairconstrained.terms._ranked_sums import Ranked
from fairconstrained.utils.typing import Array

METHODS: Mapping[str, Callable[[Array, Array], Array]] = {
    "between_groups": lambda groups, overall: groups.max(axis=0) - groups.min(axis=0),
    "to_overall": lambda groups, overall: np.abs(groups - overall).max(axis=0),
}


def checked(
    y_true: Any, scores: Any, sensitive_features: Any, sample_weight: Any
) -> tuple[Array, Array, Groups, Array]:
    """Return checked labels, scores, groups and weights, without the rows of weight zero.

    Raises
    ------
    ValueError
        If lengths differ, a score or a group is missing, or no row has weight.
    """
    labels = column_or_1d(y_true)
    scores = np.asarray(column_or_1d(scores), dtype=float)
    groups = Groups.encode(sensitive_features)
    check_consistent_length(labels, scores, groups.codes)
    if np.isnan(scores).any():
        raise ValueError(
            f"y_pred has {int(np.isnan(scores).sum())} missing values (nan): every row needs a "
            "score."
        )
    weight = _check_sample_weight(
        sample_weight, scores[:, None], dtype=np.float64, ensure_non_negative=True
    )
    counted = np.flatnonzero(weight)
    return labels[counted], scores[counted], groups.take(counted), weight[counted]


def cell_of(scores: Array, weight: Array, rows: Array) -> Ranked:
    """Return the scores of some rows, with weights that sum to one."""
    return Ranked(scores[rows], weight[rows] / weight[rows].sum())
