"""Problems bound once and shifted are those bound with every kappa."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fairconstrained import FairLogisticClassifier, constraints, make_biased_classification

X, Y, GROUPS = make_biased_classification(300, n_features=4, gap=0.3, random_state=1)


class Squared(constraints.DemographicParity):
    """A constraint that declares nothing, and is bound anew."""

    subtracts_kappa = False

    def bind(self, y, groups, sample_weight):
        term = super().bind(y, groups, sample_weight)
        return replace(term, offset=term.offset**2)


FOLLOW = {
    name: (name, True) for name in constraints.CLASSIFIER_CONSTRAINTS if name != "disparate_impact"
}
OF_ITS_OWN = {  # constraints, and which outputs follow the kappa of the estimator
    "disparate_impact": ("disparate_impact", False),
    "declares nothing": (Squared(), True),
    "kappa": (constraints.DemographicParity(kappa=0.1), False),
    "ratio": (constraints.DemographicParity(ratio=0.8), False),
    "r": (constraints.BalancedRate(r=1.1), False),
    "bound": (constraints.BoundedGroupLoss(bound=0.6), False),
    "kappa of ranks": (constraints.PartialDemographicParity(kappa=0.1), False),
    "some": (
        [constraints.DemographicParity(), constraints.EqualizedOdds(kappa=0.3)],
        [True] * 2 + [False] * 4,
    ),
}
CONSTRAINTS = FOLLOW | OF_ITS_OWN


@pytest.mark.cases(len(CONSTRAINTS))
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_problem_is_the_one_bound_with_this_kappa(name):
    constraint, follows = CONSTRAINTS[name]
    base = FairLogisticClassifier(constraint, kappa=0.0)
    strict = base.bind(X, Y, None, GROUPS)
    if name in OF_ITS_OWN:
        assert np.all((strict.tolerance_slopes != 0.0) == follows)
    for kappa in (0.0, 0.07, 0.4):
        bound = clone(base).set_params(kappa=kappa).bind(X, Y, None, GROUPS).problem
        w = bound.start()
        w[:5] = np.random.default_rng(1).normal(size=5)
        here, there = strict.with_kappa(kappa).problem.at(w), bound.at(w)
        assert_allclose(here.constraints, there.constraints, atol=1e-12)
        assert_allclose(here.gap, there.gap, atol=1e-12)
        weights = np.arange(1.0, 1.0 + bound.n_constraints)
        assert_allclose(here.gradient(weights), there.gradient(weights), atol=1e-12)
