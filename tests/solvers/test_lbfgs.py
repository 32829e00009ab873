"""L-BFGS: against the textbook's update formula, and on functions with a known minimum."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.solvers._tools.lbfgs import CurvaturePairs, InverseHessian, minimize_lbfgs


def bfgs_matrix(pairs: CurvaturePairs, diagonal: np.ndarray) -> np.ndarray:
    """Return H by the dense BFGS update, Nocedal and Wright equation 6.17."""
    s, y = pairs.steps[-1], pairs.changes[-1]
    H = (s @ y) / (y @ (diagonal * y)) * np.diag(diagonal)
    for s, y in zip(pairs.steps, pairs.changes, strict=True):
        V = np.eye(s.size) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("n_pairs", [1, 4, 9])
def test_inverse_hessian_is_that_of_the_dense_update(rng, n_pairs) -> None:
    n, size = 6, 5
    root = rng.normal(size=(n, n))
    hessian = root @ root.T + np.eye(n)
    steps = rng.normal(size=(n_pairs, n))
    approximation, diagonal = InverseHessian(size=size), rng.uniform(0.5, 2.0, n)
    for step in steps:
        assert approximation.add(step, hessian @ step)
    assert len(approximation) == min(n_pairs, size)
    assert_array_equal(approximation.pairs.steps, steps[-size:])
    expected = bfgs_matrix(approximation.pairs, diagonal)
    assert_allclose(approximation.apply(np.eye(n), diagonal), expected, rtol=1e-9, atol=1e-12)
    vector = rng.normal(size=n)
    assert_allclose(approximation.apply(vector, diagonal), expected @ vector, rtol=1e-9)
    latest = hessian @ steps[-1]
    assert_allclose(approximation.apply(latest, diagonal), steps[-1], rtol=1e-9, atol=1e-12)


def test_without_pairs_the_inverse_hessian_is_the_diagonal() -> None:
    diagonal = np.array([1.0, 2.0])
    assert_array_equal(InverseHessian().apply(np.ones(2), diagonal), diagonal)
    assert InverseHessian().pairs is None


def test_pairs_without_positive_curvature_are_not_stored() -> None:
    approximation = InverseHessian()
    assert not approximation.add(np.ones(2), -np.ones(2))
    assert not approximation.add(np.ones(2), np.zeros(2))
    assert len(approximation) == 0


def test_pairs_of_another_number_of_variables_are_ignored() -> None:
    pairs = CurvaturePairs(*np.eye(5)[None, :3].repeat(2, axis=0))
    assert len(InverseHessian.for_variables(5, pairs)) == 3
    assert len(InverseHessian.for_variables(4, pairs)) == 0
    assert len(InverseHessian.for_variables(4, None)) == 0


class Quadratic:
    """f(w) = sum_i c_i (w_i - 1)^2 / 2, which counts its evaluations."""

    def __init__(self, condition: float = 100.0, n: int = 12) -> None:
        self.curvatures = np.geomspace(1.0, condition, n)
        self.n_calls = 0

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self.n_calls += 1
        gradient = self.curvatures * (w - 1.0)
        return 0.5 * float(gradient @ (w - 1.0)), gradient


def minimum(function, w, approximation=None, **options) -> np.ndarray:
    given = {"tol": 1e-8, "max_iter": 500, "preconditioner": np.ones(w.size), **options}
    approximation = InverseHessian() if approximation is None else approximation
    return minimize_lbfgs(function, w, inverse_hessian=approximation, **given)


def test_minimum_of_a_quadratic_is_found() -> None:
    assert_allclose(minimum(Quadratic(), np.zeros(12)), 1.0, atol=1e-7)


def test_pairs_of_an_earlier_run_save_evaluations() -> None:
    function, approximation = Quadratic(), InverseHessian()
    minimum(function, np.zeros(12), approximation, tol=1e-6)
    first = function.n_calls
    warm = InverseHessian.for_variables(12, approximation.pairs)
    minimum(function, np.full(12, 1.1), warm, tol=1e-6)
    assert function.n_calls - first < 0.6 * first


def test_pairs_of_another_function_do_not_prevent_convergence() -> None:
    wrong, rng = InverseHessian(), np.random.default_rng(0)
    for _ in range(30):
        step = rng.normal(size=12)
        wrong.add(step, 1e-6 * step)
    assert_allclose(minimum(Quadratic(), np.zeros(12), wrong), 1.0, atol=1e-7)


def test_run_ends_at_its_start_if_no_lower_point_is_found() -> None:
    w = np.ones(3)
    assert_array_equal(minimum(lambda w: (float(w @ w), -2.0 * w), w, max_iter=50), w)


def test_barrier_is_minimised_from_inside_its_domain() -> None:
    def barrier(w: np.ndarray) -> tuple[float, np.ndarray]:
        if w.min() <= 0.0:
            return np.inf, np.zeros_like(w)
        return float((w - 0.01 * np.log(w)).sum()), 1.0 - 0.01 / w

    assert_allclose(minimum(barrier, np.array([1.0, 0.5, 2.0])), 0.01, rtol=1e-6)
