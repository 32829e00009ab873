"""Rows, numbers and measures that the tests of pairs share."""

from hypothesis import strategies as st

from _support import labelled_rows
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
    *rows, scores = labelled_rows.data(seed, n_groups, n_rows)
    return *rows, scores.round(1)
