"""Minima and maxima of columns, for all numbers of rows and orders in memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairconstrained.utils.columns import column_extremes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 128, 1000])
def test_they_are_those_of_numpy(n_rows: int, order: str, dtype: type) -> None:
    X = np.random.default_rng(n_rows).normal(size=(n_rows, 5)).astype(dtype).copy(order)
    for rows in (X, X[::2]):
        assert_array_equal(column_extremes(np.maximum, rows), rows.max(axis=0))
        assert_array_equal(column_extremes(np.minimum, rows), rows.min(axis=0))
        assert column_extremes(np.maximum, rows).dtype == dtype
