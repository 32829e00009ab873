"""Tests of fairconstrained.solvers._tools.projected."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from fairconstrained.domains import Ellipsoid, L1Ball, L2Ball, WeightedL1Ball
from fairconstrained.solvers._tools.lbfgs import InverseHessian
from fairconstrained.solvers._tools.minimize import minimize_smooth
from fairconstrained.solvers._tools.projected import Hessian


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


def test_the_hessian_is_the_inverse_of_the_inverse():
    rng = np.random.default_rng(1)
    bend = np.diag(np.geomspace(1.0, 100.0, 8))
    diagonal, inverse = rng.uniform(0.5, 2.0, 8), InverseHessian(size=5)
    for _ in range(9):
        step = rng.standard_normal(8)
        assert inverse.add(step, bend @ step)
    vector = rng.standard_normal(8)
    hessian = Hessian(inverse.pairs, diagonal)
    assert_allclose(hessian.apply(inverse.apply(vector, diagonal)), vector, rtol=1e-8)


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
    found = minimize_smooth(function, np.zeros(12), domain, tol=1e-7 * condition, max_iter=500)
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

    found = minimize_smooth(function, np.zeros(2), L2Ball(0.8), tol=1e-8, max_iter=500)
    ball = {"type": "ineq", "fun": lambda w: 0.64 - w @ w}
    expected = minimize(lambda w: function(w)[0], [0.5, 0.3], method="SLSQP", constraints=ball)
    assert_allclose(found, expected.x, atol=1e-4)
    assert np.linalg.norm(found) == pytest.approx(0.8)
