"""Rows, numbers and measures that the tests of pairs share."""

import numpy as np
from hypothesis import strategies as st

from fairconstrained.constraints import GroupAUCParity, InterGroupAUCParity, IntraGroupAUCParity
from fairconstrained.metrics import (
    group_auc_difference,
    inter_group_auc_difference,
    intra_group_auc_difference,
)

METRICS = {
    GroupAUCParity: group_auc_difference,
    InterGroupAUCParity: inter_group_auc_difference,
    IntraGroupAUCParity: intra_group_auc_difference,
}
numbers = st.integers(-6, 6).map(lambda k: k / 2)  # ties, and differences of exactly one


def data(seed, n_groups=3, n_rows=36):
    """Return labels, groups, weights and scores with ties; every group has both labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_rows)
    y = np.where(np.arange(n_rows) % 2, 1, -1)[order]
    groups = np.array(list("fbdace"))[:n_groups][np.arange(n_rows) // 2 % n_groups][order]
    return y, groups, rng.uniform(0.5, 2.0, size=n_rows), rng.normal(size=n_rows).round(1)
