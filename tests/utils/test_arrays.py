"""Computations on arrays: columns, codes, positions of groups, non-negative least squares."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.utils import arrays


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 128, 1000])
def test_they_are_those_of_numpy(n_rows: int, order: str, dtype: type) -> None:
    X = np.random.default_rng(n_rows).normal(size=(n_rows, 5)).astype(dtype).copy(order)
    for rows in (X, X[::2]):
        assert_array_equal(arrays.column_extremes(np.maximum, rows), rows.max(axis=0))
        assert_array_equal(arrays.column_extremes(np.minimum, rows), rows.min(axis=0))
        assert arrays.column_extremes(np.maximum, rows).dtype == dtype


VALUES = [
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
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.dtype))
def test_codes_are_those_of_numpy(values):
    distinct, codes = arrays.unique_codes(values)
    expected = np.unique(values, return_inverse=True)
    assert distinct.dtype == values.dtype
    assert_array_equal(distinct, expected[0])
    assert_array_equal(codes, expected[1])


def test_values_that_do_not_compare_are_sorted_by_type():
    distinct, codes = arrays.unique_codes(np.array(["a", 1, "a"], dtype=object))
    assert distinct.tolist() == [1, "a"] and codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize("n_codes", [1, 2, 7])
def test_codes_by_first_row_do_not_depend_on_the_codes(n_codes, rng):
    codes = rng.integers(0, n_codes, size=50)
    renumbered = arrays.by_first_row(codes)
    assert_array_equal(arrays.by_first_row((3 * rng.permutation(n_codes) + 1)[codes]), renumbered)
    assert len(set(zip(codes, renumbered, strict=True))) == len(set(codes)) == len(set(renumbered))
    firsts = [np.argmax(renumbered == one) for one in range(len(set(codes)))]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("n_groups", [1, 3, 1 << 16, (1 << 16) + 5])
def test_positions_are_sorted_by_group_and_in_their_order_within_one(n_groups):
    codes = np.random.default_rng(0).integers(0, n_groups, 5000)
    codes[0] = n_groups - 1
    order, starts = arrays.grouped(codes)
    assert_array_equal(order, np.lexsort((np.arange(5000), codes)))
    for k in codes[:20]:
        assert_array_equal(order[starts[k] : starts[k + 1]], np.flatnonzero(codes == k))


def problem(seed):
    """Return a random problem; in a third of them columns are equal, rows have unequal scales."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 12), rng.integers(1, 30)
    A = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-6.0, 1.0)
    if seed % 3 == 0:
        A[:, n // 2 :] = A[:, : n - n // 2]
    A[-1] *= 10.0 ** rng.uniform(0.0, 3.0)
    return A, rng.normal(size=m)


@pytest.mark.parametrize("accurate", sorted({arrays._ACCURATE, False}))
@given(seed=st.integers(0, 10_000))
def test_optimality_conditions_in_every_version_of_scipy(accurate, seed):
    A, b = problem(seed)
    with mock.patch.object(arrays, "_ACCURATE", accurate):
        x = arrays.nonnegative_least_squares(A, b)
    rest = A @ x - b
    slopes, scale = A.T @ rest, np.linalg.norm(A, axis=0).max() * np.linalg.norm(b)
    assert x.min() >= 0.0
    assert slopes.min() >= -1e-9 * scale
    assert abs(slopes @ x) <= 1e-9 * (b @ b)


def test_the_optimality_conditions_hold_also_after_the_limit_of_iterations(monkeypatch):
    def limited(A, b):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(arrays, "nnls", limited)
    A, b = problem(3)
    x = arrays.nonnegative_least_squares(A, b)
    slope = A.T @ (A @ x - b)
    assert x.min() >= 0.0 and x.max() > 0.0
    assert slope.min() >= -1e-6 * np.abs(A.T @ b).max()
    assert_allclose(x * slope, 0.0, atol=1e-6)
