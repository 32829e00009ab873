"""enforce="decision" with surrogates that users write."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Stretched, Surrogate

RATES = [
    "demographic_parity",
    "equal_opportunity",
    "predictive_equality",
    "equalized_odds",
    "error_rate_parity",
    "disparate_impact",
    "partial_dp",
    "weak_partial_dp",
]


class Slope(Surrogate):
    """The sigmoid with its slope as parameter."""

    def __init__(self, slope=1.0):
        self.slope = slope

    @property
    def curvature(self):
        return Sigmoid(1.0 / self.slope).curvature

    def value(self, t):
        return expit(self.slope * t)

    def derivative(self, t, value):
        return self.slope * value * (1.0 - value)


@pytest.mark.parametrize("constraint", RATES)
def test_a_surrogate_needs_no_scale(constraint):
    X, y, groups = make_biased_classification(400, 4, gap=0.3, random_state=0)
    options = {} if constraint == "disparate_impact" else {"kappa": 0.1}
    found, expected = (
        FairLogisticClassifier(constraint, surrogate=one, enforce="decision", **options)
        .fit(X, y, sensitive_features=groups)
        .decision_search_
        for one in (Slope(), Stretched(Sigmoid(), 1.0))  # neither has a second derivative
    )
    assert found.met and not found.constant
    assert found.accuracy == pytest.approx(expected.accuracy, abs=0.01)


def test_steeper_surrogates():
    t = np.linspace(-3.0, 3.0, 101)
    for one in (Sigmoid(0.5), Ramp(2.0), Slope(2.0)):
        steeper = one.steeper(1.5)
        assert isinstance(steeper, Surrogate)
        assert_allclose(steeper.value(t), one.value(1.5 * t), atol=1e-12)
        assert_allclose(steeper.steeper(2.0).value(t), one.value(3.0 * t), atol=1e-12)
        assert one.get_params() == type(one)(**one.get_params()).get_params()
    assert Ramp(2.0).steeper(4.0).scale == 0.5
    assert isinstance(Slope().steeper(2.0), Stretched)
