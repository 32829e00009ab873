"""Means over all rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fairconstrained.functions import Logistic, Sigmoid
from fairconstrained.terms import CellMeans


@pytest.mark.parametrize("n_rows", [1, 63, 1000, 40_000])
@pytest.mark.parametrize("function", [Logistic(), Sigmoid(0.5)], ids=repr)
def test_a_mean_over_rows_of_equal_weight_is_that_of_any_weights(function, n_rows):
    """More rows than a block has, and fewer."""
    random = np.random.default_rng(n_rows)
    scores, signs = random.normal(scale=30.0, size=n_rows), random.choice([-1.0, 1.0], n_rows)
    weights = np.full((1, n_rows), 1.0 / n_rows)
    cells, one = sp.csr_array(weights), sp.csr_array(np.ones((1, 1)))
    term = CellMeans(cells, function, one, np.zeros(1), signs)
    value, pullback = term.forward(scores)
    margins = signs * scores
    expected = function.value(margins)
    assert_allclose(value, [expected.mean()], rtol=1e-13, atol=1e-15)  # products are near one
    for u in (1.0, -2.5):
        slopes = u * signs * function.derivative(margins, expected) / n_rows
        assert_allclose(pullback(np.array([u]))[0], slopes, rtol=1e-12)
