"""Tests of distinct values and their positions."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairconstrained.utils.codes import by_first_row, unique_codes


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 1, 3, 2]),
        np.array([True, False, True]),
        np.array([0.5, -1.0, 0.5], dtype=np.float32),
        np.array([2.0, -1.0, 2.0], dtype=np.float16),
        np.array([2, 250], dtype=np.uint8),
        np.array([-128, 127, -128], dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64),
        np.array([-(2**63), 5 - 2**63]),
        np.array([10**6, -(10**6)]),
        np.array(["yes", "no", "yes"]),
        np.array(["yes", "no", "yes"], dtype=object),
        np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]"),
        np.array([], dtype=int),
    ],
    ids=lambda values: str(values.dtype),
)
def test_codes_are_those_of_numpy(values):
    distinct, codes = unique_codes(values)
    expected = np.unique(values, return_inverse=True)
    assert distinct.dtype == values.dtype
    assert_array_equal(distinct, expected[0])
    assert_array_equal(codes, expected[1])


def test_values_that_do_not_compare_raise():
    with pytest.raises(TypeError):
        unique_codes(np.array(["a", 1], dtype=object))


@pytest.mark.parametrize("n_codes", [1, 2, 7])
def test_codes_by_first_row_do_not_depend_on_the_codes(n_codes, rng):
    codes = rng.integers(0, n_codes, size=50)
    renumbered = by_first_row(codes)
    assert_array_equal(by_first_row((3 * rng.permutation(n_codes) + 1)[codes]), renumbered)
    assert len(set(zip(codes, renumbered, strict=True))) == len(set(codes)) == len(set(renumbered))
    firsts = [np.argmax(renumbered == one) for one in range(len(set(codes)))]
    assert firsts == sorted(firsts)


def test_no_codes():
    assert_array_equal(by_first_row(np.array([], dtype=int)), np.array([], dtype=int))
