"""With a domain, the units of X matter to the set and the penalty, not to how they are solved."""

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier, NeymanPearsonClassifier
from fairconstrained.constraints import ROCParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.domains import Box, Domain, L1Ball, L2Ball

DOMAINS = {"box": lambda b: Box(-0.3 * b, 0.3 * b), "L1": L1Ball, "L2": lambda b: L2Ball(0.5 * b)}
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


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
def test_neyman_pearson_with_a_radius(scale):
    X, y, _ = data()
    one = NeymanPearsonClassifier(kappa=0.3, radius=0.3, alpha=0.0).fit(X, y)
    other = NeymanPearsonClassifier(kappa=0.3, radius=0.3 / scale, alpha=0.0).fit(X * scale, y)
    np.testing.assert_allclose(scale * other.coef_, one.coef_, rtol=1e-6, atol=1e-9)
