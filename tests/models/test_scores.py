"""Scores as parameters: gradients with respect to scores come from an ordinary problem."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.scores import ScoreModel, ScoreSpace
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.cell_means import average


def test_the_gradient_of_a_problem_is_that_of_the_scores():
    X, y, groups = make_biased_classification(200, 3, random_state=0)
    signs, weight = 2.0 * y - 1.0, np.random.default_rng(0).uniform(0.5, 2.0, 200)
    model = ScoreModel(ScoreSpace([X]), np.arange(200))
    parity = DemographicParity(0.02).bind(signs, groups, weight)
    loss = average(Logistic(), signs, weight)
    problem = Problem(CompositeFunction(model, loss), (CompositeFunction(model, parity),))
    scores = np.random.default_rng(1).normal(size=200)
    gradient = problem.at(scores).gradient(np.array([0.7, 0.0]))
    slope = expit(scores) * expit(-scores)
    first, second = groups == 0, groups == 1
    share = weight * (first / weight[first].sum() - second / weight[second].sum())
    expected = weight / weight.sum() * (expit(scores) - y) + 0.7 * share * slope
    assert_allclose(gradient, expected, rtol=1e-12, atol=1e-16)


def test_rows_that_are_added_have_scores_of_their_own():
    space = ScoreSpace([np.zeros((4, 2))])
    model = ScoreModel(space, np.arange(4))
    other = model.on(space.add(np.ones((3, 2))))
    assert model.n_parameters == other.n_parameters == 7
    scores, pullback = other.forward(np.arange(7.0))
    assert_array_equal(scores, [4.0, 5.0, 6.0])
    assert_array_equal(pullback(np.array([1.0, 2.0, 3.0])), [0, 0, 0, 0, 1, 2, 3])
    assert model.n_rows == 4 and other.n_rows == 3


def test_repeated_rows_add_up_in_the_pullback():
    model = ScoreModel(ScoreSpace([np.zeros((3, 1))]), np.arange(3)).batch(np.array([2, 2, 0]))
    scores, pullback = model.forward(np.array([1.0, 2.0, 3.0]))
    assert_array_equal(scores, [3.0, 3.0, 1.0])
    assert_array_equal(pullback(np.array([1.0, 1.0, 1.0])), [1.0, 0.0, 2.0])


def test_one_more_on_every_score_is_the_offset():
    model = ScoreModel(ScoreSpace([np.zeros((3, 1))]), np.array([1, 2]))
    start = model.start(np.random.RandomState(0))
    moved = model.forward(start + model.offset())[0] - model.forward(start)[0]
    assert_array_equal(moved, np.ones(2))
    assert_array_equal(model.preconditioner(), np.ones(3))
