"""Hash values of rows: the same for the same values, in whichever container and order they are."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fairconstrained.data.row_hashes import row_hashes


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    values = rng.integers(-3, 4, (500, 6)).astype(float)
    values[:, 0] = rng.standard_normal(500)
    return values


@pytest.mark.parametrize(
    "container",
    [
        sp.csr_array,
        sp.csc_matrix,
        sp.coo_array,
        pd.DataFrame,
        np.asfortranarray,
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        lambda X: pd.DataFrame(X).astype({1: int, 2: "Int64", 3: "float32"}),
    ],
)
def test_containers_and_types_of_numbers_do_not_matter(container, X):
    np.testing.assert_array_equal(row_hashes(container(X)), row_hashes(X))


def test_rows_are_independent_of_each_other(X):
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(row_hashes(X[order]), row_hashes(X)[order])
    np.testing.assert_array_equal(row_hashes(X[:7]), row_hashes(X)[:7])


def test_other_values_have_other_hashes(X):
    hashes = row_hashes(X)
    assert len(np.unique(hashes)) == len(np.unique(X, axis=0))
    for j in range(X.shape[1]):
        changed = X.copy()
        changed[:, j] += 1.0
        assert np.all(row_hashes(changed) != hashes)
    assert np.all(row_hashes(X[:, ::-1])[X[:, 0] != X[:, -1]] != hashes[X[:, 0] != X[:, -1]])


def test_bits_are_as_good_as_random():
    """Rows that differ by one in one column: every bit is set in about half of them."""
    rows = np.arange(20_000, dtype=float)[:, None] * [1.0, 0.0, 1.0]
    bits = (row_hashes(rows)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5.0 * 0.5 / np.sqrt(len(rows))
    correlations = np.corrcoef(bits.T) - np.eye(64)
    assert np.abs(correlations).max() < 6.0 / np.sqrt(len(rows))


def test_texts_missing_values_and_zeros():
    frame = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [0.0, np.nan, np.nan, -0.0]})
    hashes = row_hashes(frame)
    assert hashes[0] == hashes[3]
    assert len(np.unique(hashes)) == 3
    again = row_hashes(frame.astype({"a": "category"}))
    np.testing.assert_array_equal(again, hashes)


def test_texts_in_a_list():
    hashes = row_hashes(["one", "two", "one"])
    assert hashes[0] == hashes[2] != hashes[1]


def test_tables_without_rows_or_columns():
    assert row_hashes(np.zeros((0, 3))).shape == (0,)
    assert row_hashes(np.zeros((4, 0))).tolist() == [0, 0, 0, 0]
