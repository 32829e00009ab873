"""Sums of trees and of known scores as linear models of the values of their leaves."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.models.trees import LeafFeatures, LeafModel, ScoreModel, ScoreSpace

SIZES = np.array([3, 1, 2])


def leaves_of(X):
    """Return the leaves of three trees that split the first column."""
    x = np.asarray(X)[:, 0]
    zero = np.zeros(len(x), dtype=int)
    return np.column_stack([np.digitize(x, [-0.5, 0.5]), zero, (x > 0).astype(int)])


def model_of(X, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    initial = np.arange(7.0)
    return LeafModel.of(LeafFeatures(leaves_of, SIZES), X, weight, initial)


def test_other_rows_are_given_as_raw_features(rng):
    X, other, values = rng.normal(size=(50, 2)), rng.normal(size=(20, 2)), rng.normal(size=7)
    moved, expected = model_of(X).on(other), model_of(other)
    assert_allclose(moved.forward(values)[0], expected.forward(values)[0], rtol=1e-13)


def test_the_start_is_the_boosted_values_and_a_copy():
    model = model_of(np.zeros((4, 2)))
    start = model.start(np.random.RandomState(0))
    assert_array_equal(start, np.arange(7.0))
    start[:] = 0.0
    assert model.start(np.random.RandomState(0))[1] == 1.0


def test_the_preconditioner_knows_the_weights_of_the_leaves(rng):
    X = rng.normal(size=(50, 2))
    weight = np.where(X[:, 0] > 0.5, 1.0, 3.0)
    shares = model_of(X, weight).mean_squares
    assert_allclose(shares[2], weight[X[:, 0] > 0.5].sum() / weight.sum())
    assert_allclose(shares[3], 1.0)
    assert model_of(X, weight).preconditioner()[3] < model_of(X, weight).preconditioner()[2]


def test_the_preconditioner_is_the_curvature_of_loss_and_penalty(rng):
    X, alpha, curvature = rng.normal(size=(50, 2)), 0.1, 0.2
    initial = np.arange(7.0)
    features = LeafFeatures(leaves_of, SIZES)
    model = LeafModel.of(features, X, np.ones(50), initial, curvature=curvature, alpha=alpha)
    indicators = model.X.toarray()
    second = curvature * np.append((indicators**2).mean(axis=0), 1.0)
    second[:-1] += alpha
    assert_allclose(model.preconditioner(), second**-0.5)
    assert len(model.preconditioner()) == model.n_parameters
    options = {"curvature": curvature, "fit_intercept": False}
    free = LeafModel.of(features, X, np.ones(50), np.zeros(7), **options)
    assert len(free.preconditioner()) == free.n_parameters == 6


def test_the_base_score_follows_from_known_scores(rng):
    X, initial = rng.normal(size=(50, 2)), np.append(1.0, rng.normal(size=7))
    features = LeafFeatures(leaves_of, SIZES, lambda X: 2.0 * np.asarray(X)[:, 1])
    model = LeafModel.of(features, X, np.ones(50), initial)
    scores = model.forward(initial)[0]
    again = LeafModel.of(features, X, np.ones(50), initial, scores)
    assert_allclose(again.X.toarray(), model.X.toarray(), atol=1e-14)


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
