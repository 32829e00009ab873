"""Comparisons of arrays and of measured rates."""

import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import arrays

from fairconstrained.utils.rounding import same_values


@given(arrays(float, 4), arrays(float, 4))
def test_equal_bits_are_equal_values(first, second):
    if same_values(first, second):
        assert np.array_equal(first, second, equal_nan=True)
    elif np.array_equal(first, second):
        assert np.any(np.signbit(first) != np.signbit(second))  # zeros of either sign


def test_lengths_count():
    assert not same_values(np.ones(2), np.ones(3))
    assert same_values(np.ones(6)[::2], np.ones(3))
