"""Minimisation of smooth functions over domains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from fairconstrained.domains import Ellipsoid, L1Ball, L2Ball, WeightedL1Ball, WholeSpace
from fairconstrained.solvers.lbfgs import InverseHessian, minimize_smooth


def quadratic(n, condition, seed=0):
    """Return a convex quadratic with its evaluations counted, and its matrix and slope."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = basis * np.geomspace(1.0, condition, n) @ basis.T
    slope, count = rng.standard_normal(n) * condition, [0]

    def function(w):
        count[0] += 1
        return float(0.5 * w @ matrix @ w - slope @ w), matrix @ w - slope

    return function, count


def minimum(function, w, domain=None, hessian=None, tol=1e-8):
    return minimize_smooth(
        function, w, domain or WholeSpace(), tol=tol, max_iter=1000, diagonal=np.ones(w.size),
        hessian=InverseHessian() if hessian is None else hessian, stop=lambda: False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "domain",
    [
        L1Ball(1.0),
        L2Ball(1.0),
        L2Ball(1e3),
        Ellipsoid(np.geomspace(0.01, 10.0, 12)),
        WeightedL1Ball(1.0, np.geomspace(0.01, 10.0, 12)),
    ],
    ids=str,
)
@pytest.mark.parametrize("condition", [10.0, 1e4])
def test_quadratics_are_minimised_in_few_evaluations(domain, condition):
    function, count = quadratic(12, condition)
    found = minimum(function, np.zeros(12), domain, tol=1e-7 * condition)
    assert count[0] < 150
    assert_allclose(domain.project(found), found, atol=1e-9)
    residual = domain.normal_cone_residual(found, function(found)[1])
    assert np.linalg.norm(residual) <= 1e-7 * condition


def test_a_nonconvex_function_in_a_ball():
    """Rosenbrock's function in a ball that does not contain its minimiser."""

    def function(w):
        bend = w[1] - w[0] ** 2
        value = (1.0 - w[0]) ** 2 + 100.0 * bend**2
        return value, np.array([-2.0 * (1.0 - w[0]) - 400.0 * w[0] * bend, 200.0 * bend])

    found = minimum(function, np.zeros(2), L2Ball(0.8))
    ball = {"type": "ineq", "fun": lambda w: 0.64 - w @ w}
    expected = minimize(lambda w: function(w)[0], [0.5, 0.3], method="SLSQP", constraints=ball)
    assert_allclose(found, expected.x, atol=1e-4)
    assert np.linalg.norm(found) == pytest.approx(0.8)


class Quadratic:
    """f(w) = sum_i c_i (w_i - 1)^2 / 2, which counts its evaluations."""

    def __init__(self, condition: float = 100.0, n: int = 12) -> None:
        self.curvatures = np.geomspace(1.0, condition, n)
        self.n_calls = 0

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self.n_calls += 1
        gradient = self.curvatures * (w - 1.0)
        return 0.5 * float(gradient @ (w - 1.0)), gradient


def test_minimum_of_a_quadratic_is_found() -> None:
    assert_allclose(minimum(Quadratic(), np.zeros(12)), 1.0, atol=1e-7)


def test_pairs_of_an_earlier_run_save_evaluations() -> None:
    function, approximation = Quadratic(), InverseHessian()
    minimum(function, np.zeros(12), hessian=approximation, tol=1e-6)
    first = function.n_calls
    minimum(function, np.full(12, 1.1), hessian=approximation, tol=1e-6)
    assert function.n_calls - first < 0.6 * first


def test_pairs_of_another_function_do_not_prevent_convergence() -> None:
    wrong, rng = InverseHessian(), np.random.default_rng(0)
    for _ in range(30):
        step = rng.normal(size=12)
        wrong.add(step, 1e-6 * step)
    assert_allclose(minimum(Quadratic(), np.zeros(12), hessian=wrong), 1.0, atol=1e-7)


def test_run_ends_at_its_start_if_no_lower_point_is_found() -> None:
    w = np.ones(3)
    assert np.array_equal(minimum(lambda w: (float(w @ w), -2.0 * w), w), w)


def test_barrier_is_minimised_from_inside_its_domain() -> None:
    def barrier(w: np.ndarray) -> tuple[float, np.ndarray]:
        if w.min() <= 0.0:
            return np.inf, np.zeros_like(w)
        return float((w - 0.01 * np.log(w)).sum()), 1.0 - 0.01 / w

    assert_allclose(minimum(barrier, np.array([1.0, 0.5, 2.0])), 0.01, rtol=1e-6)
