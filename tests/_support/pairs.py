"""Rows, numbers and measures that the tests of pairs share."""

import numpy as np
from hypothesis import strategies as st

from _support import labelled_rows
from fairconstrained import metrics
from fairconstrained.constraints import GroupAUCParity, InterGroupAUCParity, IntraGroupAUCParity

METRICS = {
    GroupAUCParity: metrics.group_auc_difference,
    InterGroupAUCParity: metrics.inter_group_auc_difference,
    IntraGroupAUCParity: metrics.intra_group_auc_difference,
}
numbers = st.integers(-6, 6).map(lambda k: k / 2)  # ties, and differences of exactly one


def data(seed, n_groups=3, n_rows=36):
    """Return labels, groups, weights and scores with ties; every group has both labels."""
    *rows, scores = labelled_rows.data(seed, n_groups, n_rows)
    return *rows, scores.round(1)


def mean_over_pairs(phi, scores, weight, first, second):
    """Return the weighted mean of phi(s_i - s_j) over all pairs of two sets of rows."""
    apart = scores[first][:, None] - scores[second]
    return np.average(phi(apart), weights=np.outer(weight[first], weight[second]))
