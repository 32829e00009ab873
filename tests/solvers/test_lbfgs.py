"""L-BFGS: against the textbook's update formula, and without pairs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.solvers.curvature import QuasiNewtonCurvature


def bfgs_matrix(steps: np.ndarray, changes: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return H by the dense BFGS update, Nocedal and Wright equation 6.17."""
    s, y = steps[-1], changes[-1]
    H = (s @ y) / (y @ (diagonal * y)) * np.diag(diagonal)
    for s, y in zip(steps, changes, strict=True):
        V = np.eye(s.size) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("n_pairs", [1, 4, 9])
def test_inverse_hessian_is_that_of_the_dense_update(rng, n_pairs) -> None:
    n, size = 6, 5
    root = rng.normal(size=(n, n))
    hessian = root @ root.T + np.eye(n)
    steps = rng.normal(size=(n_pairs, n))
    diagonal = rng.uniform(0.5, 2.0, n)
    approximation = QuasiNewtonCurvature(diagonal, size)
    for step in steps:
        approximation.update(step, hessian @ step, step)
    assert approximation.n_stored == min(n_pairs, size)
    expected = bfgs_matrix(steps[-size:], steps[-size:] @ hessian, diagonal)
    assert_allclose(approximation.inverse(np.eye(n)), expected, rtol=1e-9, atol=1e-12)
    vector = rng.normal(size=n)
    assert_allclose(approximation.inverse(vector), expected @ vector, rtol=1e-9)
    latest = hessian @ steps[-1]
    assert_allclose(approximation.inverse(latest), steps[-1], rtol=1e-9, atol=1e-12)


def test_without_pairs_the_inverse_hessian_is_the_diagonal() -> None:
    diagonal = np.array([1.0, 2.0])
    assert_array_equal(QuasiNewtonCurvature(diagonal).inverse(np.ones(2)), diagonal)


def test_pairs_without_positive_curvature_are_damped() -> None:
    approximation = QuasiNewtonCurvature(np.ones(2))
    approximation.update(np.ones(2), -np.ones(2), np.ones(2))
    assert_allclose(approximation.inverse(np.full(2, 0.2)), np.ones(2))
    approximation.update(np.ones(2), np.zeros(2), np.zeros(2))
    assert approximation.n_stored == 1
