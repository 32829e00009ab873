"""Tests of fairconstrained.tolerances: problems bound once are those bound with every kappa."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import CONSTRAINTS, DemographicParity, EqualizedOdds
from fairconstrained.model_selection.problem_family import AnyTolerance

X, Y, GROUPS = make_biased_classification(300, n_features=4, gap=0.3, random_state=1)


def any_tolerance(constraint):
    base = FairLogisticClassifier(constraint, kappa=0.0)
    prepared = base._prepare(X, Y, None, GROUPS)
    w = prepared.problem.start()
    w[:5] = np.random.default_rng(0).normal(size=5)
    return AnyTolerance(prepared, base, w)


@pytest.mark.parametrize("kappa", [0.0, 0.07, 0.4])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_problem_is_the_one_bound_with_this_kappa(name, kappa):
    problems = any_tolerance(name)
    estimator = clone(problems.base).set_params(kappa=kappa)
    bound = estimator._prepare(X, Y, None, GROUPS).problem
    w = bound.start()
    w[:5] = np.random.default_rng(1).normal(size=5)
    here, there = problems.at(kappa).at(w), bound.at(w)
    assert_allclose(here.constraints, there.constraints, atol=1e-12)
    assert_allclose(here.gap, there.gap, atol=1e-12)
    weights = np.arange(1.0, 1.0 + bound.n_constraints)
    assert_allclose(here.gradient(weights), there.gradient(weights), atol=1e-12)
    assert problems.prepared.problem.at(w).constraints.size == problems.follows.size


def test_constraints_with_a_kappa_of_their_own_do_not_follow():
    problems = any_tolerance([DemographicParity(), EqualizedOdds(kappa=0.3)])
    assert_array_equal(problems.follows, [True] * 2 + [False] * 4)


def test_kappa_must_be_valid():
    with pytest.raises(ValueError, match="kappa must be a number between 0 and 1"):
        any_tolerance("demographic_parity").at(1.5)
