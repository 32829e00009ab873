"""Bounds on the losses of classes, and domains in other units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_iris, make_blobs

import fairconstrained as fc
from fairconstrained.domains import Box, Domain, L1Ball, L2Ball


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def losses(scores, labels, k, phi):
    """Return the loss of class k, row by row and pair by pair."""
    others = [m for m in range(scores.shape[1]) if m != k]
    return np.mean([sum(phi(s[k] - s[m]) for m in others) for s in scores[labels == k]])


def test_the_classes_losses_are_the_formula(iris):
    X, y = iris
    fit = fc.NeymanPearsonClassifier("versicolor", {"setosa": 0.1, "virginica": 0.3}).fit(X, y)
    scores, labels = fit.decision_function(X), np.searchsorted(fit.classes_, y)
    expected = [losses(scores, labels, k, lambda t: expit(-t)) for k in range(3)]
    assert_allclose(fit.class_losses_, expected, rtol=1e-10)
    wrong = fit.predict(X) != y
    assert_allclose(fit.class_errors_, [wrong[labels == k].mean() for k in range(3)])
    assert fit.result_.converged and fit.violation_ <= 1e-4
    assert fit.class_losses_[2] == pytest.approx(0.3, abs=1e-3), "the bound is active"
    assert_array_equal(fit.kappa_, [0.1, np.inf, 0.3])
    assert fit.priority_ == "versicolor"


def test_scipy_finds_no_better_point():
    """The convex case: logistic losses, written out here, minimised by SLSQP."""
    X, y = make_blobs(90, centers=3, n_features=2, cluster_std=4.0, random_state=3)
    fit = fc.NeymanPearsonClassifier(kappa=1.3, surrogate="logistic", alpha=0.01, tol=1e-5)
    fit.set_params(radius=5.0).fit(X, y)

    def loss(v, k):
        scores = X @ v[:6].reshape(3, 2).T + v[6:]
        return losses(scores, y, k, lambda t: np.logaddexp(0.0, -t))

    found = minimize(
        lambda v: loss(v, 0) + 0.005 * v[:6] @ v[:6],
        np.zeros(9),
        constraints=[{"type": "ineq", "fun": lambda v, k=k: 1.3 - loss(v, k)} for k in (1, 2)],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    assert np.abs(found.x[:6]).max() < 2.0, "the balls do not matter here"
    assert max(fit.class_losses_[1:]) == pytest.approx(1.3, abs=1e-3)
    assert_allclose(fit.objective_, found.fun, rtol=1e-4)


def test_warm_start(iris):
    fit = fc.NeymanPearsonClassifier("versicolor", 0.3, warm_start=True).fit(*iris)
    cold = fit.result_.data_passes
    assert fit.fit(*iris).result_.data_passes < 0.5 * cold


def test_contradictory_bounds_are_reported():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.tile([0, 1, 2], 14)[:40]
    with pytest.warns(fc.InfeasibleConstraintWarning, match="No model that meets"):
        fc.NeymanPearsonClassifier(kappa=0.3).fit(X, y)


def test_bounds_of_unknown_classes_are_reported(iris):
    with pytest.raises(ValueError, match=r"kappa names the class 'rose', which y does not have"):
        fc.NeymanPearsonClassifier(kappa={"rose": 1.0}).fit(*iris)


DOMAINS = {"box": lambda b: Box(-0.3 * b, 0.3 * b), "L1": L1Ball, "L2": lambda b: L2Ball(0.5 * b)}


CONSTRAINTS = ["demographic_parity", fc.constraints.ROCParity(thresholds=[-1.0, 0.0, 1.0])]


class HalfSpace(Domain):
    """The coefficients whose sum is at most a bound: a set that the package does not know."""

    def __init__(self, bound):
        self.bound = bound

    def project(self, w):
        return w - max(w.sum() - self.bound, 0.0) / w.size

    def normal_cone_residual(self, w, gradient):
        if w.sum() < self.bound * (1.0 - 1e-9):
            return gradient
        return gradient + max(-gradient.mean(), 0.0)


def fitted(X, y, groups, **options):
    return fc.FairLogisticClassifier(kappa=0.05, **options).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("name", [*DOMAINS, "half space"])
def test_a_scale_of_all_features_with_the_inverse_radius_changes_nothing(name, constraint, scale):
    make = {**DOMAINS, "half space": lambda b: HalfSpace(0.3 * b)}[name]
    X, y, groups = fc.make_biased_classification(300, 5, gap=0.4, class_sep=1.0, random_state=3)
    one = fitted(X, y, groups, constraint=constraint, domain=make(0.3), alpha=1e-3)
    options = {"domain": make(0.3 / scale), "alpha": 1e-3 * scale**2}
    other = fitted(X * scale, y, groups, constraint=constraint, **options)
    assert one.result_.converged and other.result_.converged
    np.testing.assert_allclose(scale * other.coef_, one.coef_, rtol=1e-6, atol=1e-9)
    assert other.result_.data_passes == one.result_.data_passes
    assert make(0.29).project(one.coef_[0]) != pytest.approx(one.coef_[0])  # the set is active
