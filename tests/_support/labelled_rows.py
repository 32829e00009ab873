"""Rows with labels, groups, weights and scores, for tests of constraints by their definition."""

import numpy as np
from hypothesis import strategies as st

from benchmarks.fuzz.rates import Rows, measures

SEEDS = st.integers(0, 2**32 - 1)


def data(seed, n_groups=3, n_rows=40):
    """Return labels, groups, weights and scores; every group has both labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_rows)
    y = np.where(np.arange(n_rows) % 2, 1, -1)[order]
    groups = np.array(list("fbdace"))[:n_groups][np.arange(n_rows) // 2 % n_groups][order]
    return y, groups, rng.uniform(0.5, 2.0, size=n_rows), rng.normal(size=n_rows)


def by_formula(constraint, y, members, weight, scores, *, decisions=False):
    """Return what a constraint asks of scores or decisions, by formulas that are not the library's.

    `members` are the groups, or columns of an intersectional constraint.
    """
    codes = members if members.ndim == 2 else np.unique(members, return_inverse=True)[1][:, None]
    return measures([constraint], Rows(y, weight, codes * 1), scores, decisions=decisions)
