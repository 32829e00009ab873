"""Sorted scores, and ties among them."""

import numpy as np

from fairconstrained.functions.elementary import Indicator
from fairconstrained.terms._ranked import Ranked
from fairconstrained.terms._ranked_sums import pair_sum


def test_scores_that_differ_by_rounding_errors_are_equal(rng):
    scores = np.repeat(rng.standard_normal(5) - 3.0, 4)
    rounded = scores + 4e-15 * rng.standard_normal(20)
    first, second = np.arange(20) % 2 == 0, np.arange(20) % 2 == 1
    sums = [
        pair_sum(Indicator(), Ranked(s[first], np.ones(10)), Ranked(s[second], np.ones(10)))[0]
        for s in (scores, rounded)
    ]
    assert sums[0] == sums[1] == 50.0
