"""Tests of ProblemFamily: problems bound once and shifted are those bound with every kappa."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import (
    CLASSIFIER_CONSTRAINTS,
    BalancedRate,
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    PartialDemographicParity,
)
from fairconstrained.model_selection._family import ProblemFamily

X, Y, GROUPS = make_biased_classification(300, n_features=4, gap=0.3, random_state=1)


def family(constraint):
    base = FairLogisticClassifier(constraint, kappa=0.0)
    return ProblemFamily(base.bind(X, Y, None, GROUPS))


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_the_declared_tolerance_slope_is_the_derivative_of_the_outputs(name):
    slope = CLASSIFIER_CONSTRAINTS[name]().tolerance_slope
    if slope is None:
        assert name == "partial_dp"  # where kappa moves the grid of ranks as well
        return
    rng = np.random.default_rng(2)
    terms = {
        kappa: FairLogisticClassifier(name, kappa=kappa).bind(X, Y, None, GROUPS).problem
        for kappa in (0.0, 0.1, 0.35, 1.0)
    }
    for scale in (0.0, 0.3, 1.0, 5.0):
        w = scale * rng.normal(size=5)
        without = terms[0.0].at(w).constraints
        for kappa, problem in terms.items():
            expected = without + slope * kappa
            assert_allclose(problem.at(w).constraints, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("constraint", "slope"),
    [
        (DemographicParity(), -1.0),
        (DemographicParity(kappa=0.1), 0.0),
        (DemographicParity(ratio=0.8), 0.0),
        (BalancedRate(), -1.0),
        (BalancedRate(r=1.1), 0.0),
        (BoundedGroupLoss(), -1.0),
        (BoundedGroupLoss(bound=0.6), 0.0),
        (PartialDemographicParity(), None),
        (PartialDemographicParity(kappa=0.1), 0.0),
    ],
)
def test_a_tolerance_of_its_own_does_not_follow_the_estimator_s(constraint, slope):
    assert constraint.tolerance_slope == slope


def test_a_constraint_that_declares_nothing_is_bound_anew():
    class Squared(DemographicParity):
        subtracts_kappa = False

        def bind(self, y, groups, sample_weight):
            term = super().bind(y, groups, sample_weight)
            return replace(term, offset=term.offset**2)

    problems = family(Squared())
    assert Squared().tolerance_slope is None
    assert problems.follows.all()
    at = problems.at(0.3).at(np.zeros(5))
    assert_allclose(at.constraints, -(0.3**2), atol=1e-12)


@pytest.mark.parametrize("kappa", [0.0, 0.07, 0.4])
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_the_problem_is_the_one_bound_with_this_kappa(name, kappa):
    problems = family(name)
    estimator = clone(problems.fit.estimator).set_params(kappa=kappa)
    bound = estimator.bind(X, Y, None, GROUPS).problem
    w = bound.start()
    w[:5] = np.random.default_rng(1).normal(size=5)
    here, there = problems.at(kappa).at(w), bound.at(w)
    assert_allclose(here.constraints, there.constraints, atol=1e-12)
    assert_allclose(here.gap, there.gap, atol=1e-12)
    weights = np.arange(1.0, 1.0 + bound.n_constraints)
    assert_allclose(here.gradient(weights), there.gradient(weights), atol=1e-12)
    assert problems.fit.problem.at(w).constraints.size == problems.follows.size


def test_constraints_with_a_kappa_of_their_own_do_not_follow():
    problems = family([DemographicParity(), EqualizedOdds(kappa=0.3)])
    assert_array_equal(problems.follows, [True] * 2 + [False] * 4)


def test_kappa_must_be_valid():
    with pytest.raises(ValueError, match="kappa must be a number between 0 and 1"):
        family("demographic_parity").at(1.5)
