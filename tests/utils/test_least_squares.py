"""Non-negative least squares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairconstrained.utils import least_squares
from fairconstrained.utils.least_squares import nonnegative_least_squares


def limited(A, b):
    raise RuntimeError("Maximum number of iterations reached.")


@pytest.mark.parametrize("fails", [False, True])
def test_the_optimality_conditions_hold_also_after_the_limit_of_iterations(fails, monkeypatch, rng):
    if fails:
        monkeypatch.setattr(least_squares, "nnls", limited)
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    A[:, 5] = A[:, 0] + 1e-9 * A[:, 1]
    x = nonnegative_least_squares(A, b)
    slope = A.T @ (A @ x - b)
    assert x.min() >= 0.0 and x.max() > 0.0
    assert slope.min() >= -1e-6
    assert_allclose(x * slope, 0.0, atol=1e-6)


def test_a_matrix_without_columns_has_the_empty_solution():
    assert nonnegative_least_squares(np.ones((3, 0)), np.ones(3)).shape == (0,)
