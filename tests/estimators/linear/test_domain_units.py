"""With a domain, the units of X matter to the set and the penalty, not to how they are solved."""

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier, NeymanPearsonClassifier
from fairconstrained.constraints import ROCParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.domains import Box, Domain, L1Ball, L2Ball
from fairconstrained.penalties import SCAD

DOMAINS = {"box": lambda b: Box(-0.3 * b, 0.3 * b), "L1": L1Ball, "L2": lambda b: L2Ball(0.5 * b)}
each_domain = pytest.mark.parametrize("make", list(DOMAINS.values()), ids=list(DOMAINS))
CONSTRAINTS = ["demographic_parity", ROCParity(thresholds=[-1.0, 0.0, 1.0])]


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


def data():
    return make_biased_classification(300, 5, gap=0.4, class_sep=1.0, random_state=3)


def fitted(X, y, groups, **options):
    return FairLogisticClassifier(kappa=0.05, **options).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("name", [*DOMAINS, "half space"])
def test_a_scale_of_all_features_with_the_inverse_radius_changes_nothing(name, constraint, scale):
    make = {**DOMAINS, "half space": lambda b: HalfSpace(0.3 * b)}[name]
    X, y, groups = data()
    one = fitted(X, y, groups, constraint=constraint, domain=make(0.3), alpha=1e-3)
    options = {"domain": make(0.3 / scale), "alpha": 1e-3 * scale**2}
    other = fitted(X * scale, y, groups, constraint=constraint, **options)
    assert one.result_.converged and other.result_.converged
    np.testing.assert_allclose(scale * other.coef_, one.coef_, rtol=1e-6, atol=1e-9)
    assert other.result_.data_passes == one.result_.data_passes
    assert make(0.29).project(one.coef_[0]) != pytest.approx(one.coef_[0])  # the set is active


@pytest.mark.cases(1)
@each_domain
@pytest.mark.parametrize("alpha", [1e-4, SCAD(1e-3)], ids=str)
def test_features_of_unlike_sizes_converge(make, alpha):
    """The first columns are so large that the set hardly binds them, the others the reverse."""
    X, y, groups = data()
    X = X * [1e5, 1e3, 1.0, 1e-3, 1e-5]
    classifier = fitted(X, y, groups, domain=make(0.3), alpha=alpha)
    assert classifier.result_.converged
    if not isinstance(alpha, SCAD):
        assert classifier.result_.data_passes < 1000
    assert (classifier.feature_scale_ == 1.0).all()
    np.testing.assert_allclose(make(0.3 + 1e-9).project(classifier.coef_[0]), classifier.coef_[0])


@pytest.mark.xfail(strict=True, reason="smoothed kinks in columns of unlike sizes: 1,233 passes")
def test_features_of_unlike_sizes_converge_in_few_passes_with_kinks():
    X, y, groups = data()
    X = X * [1e5, 1e3, 1.0, 1e-3, 1e-5]
    classifier = fitted(X, y, groups, domain=L2Ball(0.15), alpha=SCAD(1e-3))
    assert classifier.result_.data_passes < 1000


def test_many_constraints_in_a_ball_of_large_features_take_few_passes():
    """Six groups at 400 thresholds: 4,800 constraints, in a ball that does not bind."""
    X, y, groups = make_biased_classification(400, 8, n_groups=6, gap=0.5, random_state=0)
    options = {"constraint": "roc_parity", "domain": L2Ball(2.0)}
    classifier = fitted(X * 1e6 * np.r_[6.0, np.ones(7)], y, groups, **options)
    assert classifier.result_.converged
    assert classifier.result_.data_passes < 1000


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
def test_neyman_pearson_with_a_radius(scale):
    X, y, _ = data()
    one = NeymanPearsonClassifier(kappa=0.3, radius=0.3, alpha=0.0).fit(X, y)
    other = NeymanPearsonClassifier(kappa=0.3, radius=0.3 / scale, alpha=0.0).fit(X * scale, y)
    np.testing.assert_allclose(scale * other.coef_, one.coef_, rtol=1e-6, atol=1e-9)
