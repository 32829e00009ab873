"""Rows with labels, groups, weights and scores, for tests of constraints by their definition."""

import numpy as np
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)


def data(seed, n_groups=3, n_rows=40):
    """Return labels, groups, weights and scores; every group has both labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_rows)
    y = np.where(np.arange(n_rows) % 2, 1, -1)[order]
    groups = np.array(list("fbdace"))[:n_groups][np.arange(n_rows) // 2 % n_groups][order]
    return y, groups, rng.uniform(0.5, 2.0, size=n_rows), rng.normal(size=n_rows)


def by_group(of_rows, groups, weight, inside=None):
    """Return the mean of every group and of all rows ("all")."""
    inside = np.ones(len(groups), dtype=bool) if inside is None else inside
    cells = {k: inside & (groups == k) for k in np.unique(groups)} | {"all": inside}
    return {k: np.average(of_rows[rows], weights=weight[rows]) for k, rows in cells.items()}
