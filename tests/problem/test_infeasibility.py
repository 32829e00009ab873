"""Tests of fairconstrained.problem.kkt, and of solvers where no point is feasible."""

import numpy as np
import pytest
import scipy.sparse as sp
from _support.certificates import slope_of_violation
from _support.toy_terms import Identity
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from fairconstrained import NeymanPearsonClassifier
from fairconstrained.domains import Box, L1Ball, L2Ball, WholeSpace
from fairconstrained.exceptions import InfeasibleConstraintWarning
from fairconstrained.functions.losses import Quadratic
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.kkt import (
    combined_violation,
    is_stuck,
    shows_infeasible,
    stationary_weights,
)
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, ExactPenalty, Status
from fairconstrained.terms.cell_means import CellMeans, average

ROWS, BOUNDS = ((-1.0, 0.0), (0.0, -1.0)), (-2.0, -1.5)


def problem_of(domain, rows=ROWS, bounds=BOUNDS):
    """Return a problem with the constraints <row, w> <= bound: w_1 >= 2 and w_2 >= 1.5."""
    model = LinearModel(np.eye(2), fit_intercept=False)
    head = {"combination": np.array(rows), "offset": np.array(bounds)}
    affine = CellMeans(sp.csr_array(np.eye(2)), Identity(), **head)
    loss = average(Quadratic(), np.ones(2), np.ones(2))
    parts = CompositeFunction(model, loss), CompositeFunction(model, affine)
    return Problem(parts[0], parts[1:], domain)


@pytest.mark.parametrize(
    "domain", [L2Ball(1.0), L1Ball(1.0), Box(-1.0, 0.5), WholeSpace()], ids=str
)
@pytest.mark.parametrize("point", [(0.8, 0.6), (0.5, 0.5), (1.0, 0.0)])
def test_the_violation_is_least_stationary_with_the_best_weights(domain, point):
    at = problem_of(domain, bounds=(-2.0, -2.0)).at(domain.project(np.array(point)))
    least = np.inf
    for share in np.linspace(0.0, 1.0, 1001):
        weights = np.array([share, 1.0 - share])
        if np.all(weights[at.constraints < 0.9 * at.violation] == 0.0):
            least = min(least, combined_violation(at, weights)[1])
    assert slope_of_violation(at) == pytest.approx(least, abs=2e-3)
    weights = stationary_weights(at).dense()
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)


def test_a_point_in_a_ball_nearest_to_a_half_space_is_stuck():
    """The gradient does not vanish there, but leads out of the ball."""
    at = problem_of(L2Ball(1.0), rows=((-1.0, 0.0), (0.0, -1.0)), bounds=(-2.0, 1.0)).at(
        np.array([1.0, 0.0])
    )
    assert slope_of_violation(at) < 1e-8
    assert is_stuck(at, 1e-4)


def test_where_nothing_is_violated_no_weights_are_stationary():
    at = problem_of(WholeSpace()).at(np.array([3.0, 3.0]))
    assert_allclose(stationary_weights(at).dense(), 0.0)
    assert slope_of_violation(at) == np.inf
    assert not is_stuck(at, 1e-4, np.ones(2))


def test_a_mean_of_convex_constraints_shows_that_none_can_be_met():
    """The sum of squared violations is least where the largest violation could still fall."""
    problem = problem_of(L2Ball(1.0))
    at = problem.at(np.array([0.8, 0.6]))
    violations = at.constraints
    assert_allclose(violations, [1.2, 0.9])
    mean, slope = combined_violation(at, 7.0 * violations)
    assert mean == pytest.approx(violations @ violations / violations.sum())
    assert slope < 1e-12
    assert shows_infeasible(at, violations, 1e-4)
    assert not shows_infeasible(at, np.array([1.0, 0.0]), 1e-4)
    assert slope_of_violation(at) > 0.1
    assert is_stuck(at, 1e-4, violations)
    assert not is_stuck(at, 1e-4)


def test_the_least_violation_of_an_infeasible_problem_in_few_passes():
    result = AugmentedLagrangian().minimize(problem_of(L2Ball(1.0)))
    second = 0.5 * (np.sqrt(2.0 - 0.25) - 0.5)  # the violations are equal: w_1 = w_2 + 1/2
    assert result.status is Status.INFEASIBLE
    assert_allclose(result.w, [second + 0.5, second], atol=1e-3)
    assert result.violation == pytest.approx(1.5 - second, abs=1e-4)
    assert result.data_passes <= 150


def test_a_hinge_loss_that_a_radius_does_not_allow_is_recognised_at_the_first_width():
    X, y = load_iris(return_X_y=True)
    clf = NeymanPearsonClassifier(0, 0.05, surrogate="hinge", radius=0.2)
    with pytest.warns(InfeasibleConstraintWarning, match="the least violation is"):
        result = clf.fit(X, y).result_
    assert result.status is Status.INFEASIBLE
    assert result.violation > 0.1
    assert result.data_passes <= 600


def test_a_flat_loss_that_cannot_be_small_is_recognised_before_penalties_are_large():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(InfeasibleConstraintWarning):
        result = NeymanPearsonClassifier(0, 0.05, radius=0.1).fit(X, y).result_
    assert result.status is Status.INFEASIBLE
    assert result.data_passes <= 1200


def test_exact_penalty_ends_where_its_merit_no_longer_falls():
    result = ExactPenalty().minimize(problem_of(L1Ball(1.0), bounds=(-0.3, -0.7)))
    assert result.n_iter < 200
    assert result.violation <= 1e-4
