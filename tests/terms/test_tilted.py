"""A term with affine functions of the variables added."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

from fairconstrained.constraints import DemographicParity
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.cell_means import average
from fairconstrained.terms.tilted import Tilted

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 3)), RNG.choice([-1.0, 1.0], 60)
PARITY = DemographicParity(0.01).bind(Y, RNG.integers(0, 2, 60), np.ones(60))
SLOPES, LEVEL = RNG.standard_normal((2, 4)), np.array([0.3, -0.2])


def problem(term):
    model = LinearModel(X)
    loss = CompositeFunction(model, average(Logistic(), Y, np.ones(60)))
    own = slice(0, 4) if isinstance(term, Tilted) else slice(0, 0)
    return Problem(loss, (CompositeFunction(model, term, auxiliary=own),))


def test_values_are_those_of_the_term_plus_the_affine_functions():
    w = RNG.standard_normal(4)
    tilted, plain = problem(Tilted(PARITY, SLOPES, LEVEL)), problem(PARITY)
    assert_allclose(tilted.at(w).constraints, plain.at(w).constraints + SLOPES @ w + LEVEL)


def test_gradients_are_those_of_the_values():
    w, multipliers = RNG.standard_normal(4), np.array([0.7, 1.3])
    tilted = problem(Tilted(PARITY, SLOPES, LEVEL))

    def lagrangian(w):
        at = tilted.at(w)
        return at.objective + multipliers @ at.constraints

    assert_allclose(
        tilted.at(w).gradient(multipliers), approx_fprime(w, lagrangian, 1e-7), atol=1e-5
    )
    jacobian = tilted.at(w).constraint_gradients(np.arange(2))
    expected = problem(PARITY).at(w).constraint_gradients(np.arange(2)) + SLOPES
    assert_allclose(jacobian, expected)


def test_the_zero_one_version_has_the_same_affine_functions():
    tilted = Tilted(PARITY, SLOPES, LEVEL)
    scores, w = RNG.standard_normal(60), RNG.standard_normal(4)
    expected = PARITY.zero_one().value(scores) + SLOPES @ w + LEVEL
    assert_allclose(tilted.zero_one().value(scores, w), expected)
    assert tilted.zero_one() is tilted.zero_one()
