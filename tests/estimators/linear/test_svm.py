"""FairHingeClassifier, and how functions with kinks are minimised: rounded, then certified."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairconstrained import FairHingeClassifier, make_biased_classification
from fairconstrained.functions.base import PlusParabola
from fairconstrained.functions.losses import Hinge
from fairconstrained.functions.surrogates import PositivePart, Ramp
from fairconstrained.penalties import L1, L2, SCAD, Leading, Sum

DATA = X, Y, GROUPS = make_biased_classification(600, 5, gap=0.4, random_state=0)


def fitted(data, **options):
    X, y, groups = data
    return FairHingeClassifier(**options).fit(X, y, sensitive_features=groups)


def quadratic_program(X, y, *, alpha):
    """Solve for (w, b) with one slack variable per row: nothing is rounded, SLSQP runs."""
    n, d = X.shape
    signs = 2.0 * y - 1.0

    def objective(v):
        gradient = np.concatenate([alpha * v[:d], [0.0], np.full(n, 1.0 / n)])
        return v[d + 1 :].mean() + 0.5 * alpha * v[:d] @ v[:d], gradient

    rows = np.hstack([signs[:, None] * X, signs[:, None], np.eye(n)])
    margins = {"type": "ineq", "fun": lambda v: rows @ v - 1.0, "jac": lambda v: rows}
    found = minimize(
        objective,
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        jac=True,
        method="SLSQP",
        bounds=[(None, None)] * (d + 1) + [(0.0, None)] * n,
        constraints=[margins],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return float(found.fun)


def test_the_solution_is_the_quadratic_programme():
    X, y, _ = DATA
    X = StandardScaler().fit_transform(X[:120])
    classifier = FairHingeClassifier(None, alpha=0.01, tol=1e-5).fit(X, y[:120])
    expected = quadratic_program(X, y[:120], alpha=0.01)
    assert classifier.result_.converged
    assert_allclose(classifier.objective_, expected, rtol=1e-5)


def test_it_is_linear_svc_without_a_constraint():
    X, y, _ = DATA
    X = StandardScaler().fit_transform(X)
    ours = FairHingeClassifier(None, alpha=0.01, fit_intercept=False, tol=3e-6).fit(X, y)
    svc = LinearSVC(loss="hinge", C=1.0 / (0.01 * len(y)), fit_intercept=False, tol=1e-6)
    theirs = svc.set_params(max_iter=100_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.998


def test_scad_leaves_out_features():
    X, y, groups = make_biased_classification(600, 5, gap=0.4, random_state=0)
    noise = np.random.default_rng(0).standard_normal((600, 5))
    classifier = fitted((np.hstack([X, noise]), y, groups), alpha=SCAD(0.05))
    assert np.abs(classifier.coef_[0, 5:]).max() < 1e-3 < 0.1 < np.abs(classifier.coef_).max()


KINKED = [Hinge(), Ramp(), Ramp(2.5), PositivePart(-0.5, 2.0)]
KINKED += [PlusParabola(PositivePart(0.5), 0.3)]


@pytest.mark.parametrize("function", KINKED, ids=repr)
@given(t=st.floats(-4.0, 4.0))
def test_the_rounded_function_has_a_continuous_derivative(function, t):
    rounded = function.smoothed(0.3)
    points = np.array([t - 1e-6, t, t + 1e-6])
    slopes = rounded.derivative(points, rounded.value(points))
    assert rounded.smooth and rounded.convex == function.convex
    assert_allclose(slopes, slopes[1], atol=1e-4)
    values = rounded.value(points)
    assert_allclose((values[2] - values[0]) / 2e-6, slopes[1], atol=1e-4)
    kinks = [k for k, _ in getattr(function, "first", function).kinks]
    exact = rounded.derivative(np.array(kinks), rounded.value(np.array(kinks)))
    beside = rounded.derivative(np.array(kinks) + 1e-9, rounded.value(np.array(kinks) + 1e-9))
    assert_allclose(exact, beside, atol=1e-6)


@pytest.mark.parametrize("penalty", [L1(0.7), SCAD(0.5), Sum([SCAD(0.5), L2(0.2)])], ids=repr)
def test_penalties_are_rounded_at_zero(penalty):
    rounded = Leading(penalty, 2).smoothed(0.2)
    assert rounded.smooth and not penalty.smooth
    far, near = np.array([0.5, -1.5, 9.0]), np.array([0.03, 0.0, 9.0])
    assert (
        rounded.value(far) == Leading(penalty, 2).value(far)
        and rounded.subgradient_error(far) == 0.0
    )
    assert 0.0 < rounded.subgradient_error(near) < 0.2
    for w in (far, near):
        h = 1e-6
        slopes = [(rounded.value(w + h * e) - rounded.value(w - h * e)) / 2e-6 for e in np.eye(3)]
        assert_allclose(rounded.gradient(w), slopes, atol=1e-6)
