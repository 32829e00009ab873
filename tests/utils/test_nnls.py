"""Non-negative least squares, in every version of SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairconstrained.utils._nnls import lawson_hanson
from fairconstrained.utils.compat import nnls


def problem(seed):
    """Return a random problem; in a third of them columns are equal, rows have unequal scales."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 12), rng.integers(1, 30)
    A = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-6.0, 1.0)
    if seed % 3 == 0:
        A[:, n // 2 :] = A[:, : n - n // 2]
    A[-1] *= 10.0 ** rng.uniform(0.0, 3.0)
    return A, rng.normal(size=m)


@pytest.mark.parametrize("solve", [lawson_hanson, nnls])
@given(seed=st.integers(0, 10_000))
def test_optimality_conditions(solve, seed):
    A, b = problem(seed)
    x, distance = solve(A, b)
    rest = A @ x - b
    slopes, scale = A.T @ rest, np.linalg.norm(A, axis=0).max() * np.linalg.norm(b)
    assert x.min() >= 0.0
    assert slopes.min() >= -1e-9 * scale
    assert abs(slopes @ x) <= 1e-9 * (b @ b)
    assert distance == pytest.approx(np.linalg.norm(rest))


def test_the_limit_of_iterations_raises():
    A, b = problem(1)
    with pytest.raises(RuntimeError, match="Maximum number of iterations"):
        lawson_hanson(np.eye(5), np.ones(5), maxiter=2)
    assert lawson_hanson(A, b, maxiter=100)[0].shape == (A.shape[1],)
