"""Positions of the members of groups."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairconstrained.utils.ranges import grouped


@pytest.mark.parametrize("n_groups", [1, 3, 1 << 16, (1 << 16) + 5])
def test_positions_are_sorted_by_group_and_in_their_order_within_one(n_groups):
    codes = np.random.default_rng(0).integers(0, n_groups, 5000)
    codes[0] = n_groups - 1
    order, starts = grouped(codes)
    assert_array_equal(order, np.lexsort((np.arange(5000), codes)))
    for k in codes[:20]:
        assert_array_equal(order[starts[k] : starts[k + 1]], np.flatnonzero(codes == k))
