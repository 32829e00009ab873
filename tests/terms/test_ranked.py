"""Sorted scores, and ties among them."""

import numpy as np

from fairconstrained.functions.base import Indicator
from fairconstrained.terms.difference_sums import Ranked, pair_sum


def test_scores_that_differ_by_rounding_errors_are_equal(rng):
    scores = np.repeat(rng.standard_normal(5) - 3.0, 4)
    rounded = scores + 4e-15 * rng.standard_normal(20)
    first, second = np.arange(20) % 2 == 0, np.arange(20) % 2 == 1
    sums = [
        pair_sum(Indicator(), Ranked(s[first], np.ones(10)), Ranked(s[second], np.ones(10)))[0]
        for s in (scores, rounded)
    ]
    assert sums[0] == sums[1] == 50.0


def test_ties_do_not_depend_on_the_scale_of_the_scores(rng):
    first, second = (Ranked(rng.standard_normal(10), np.ones(10)) for _ in range(2))
    tiny = (Ranked(1e-14 * one.scores, one.weights) for one in (first, second))
    assert pair_sum(Indicator(), first, second)[0] == pair_sum(Indicator(), *tiny)[0]
