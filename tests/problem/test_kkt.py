"""Tests of fairconstrained.certificate on problems whose solutions are known by hand.

With X the identity the scores are the two variables. The objective is the mean of
(1 - w_i)^2 / 2, whose gradient is (w - 1) / 2; the first constraint is w_1 + w_2 <= 1.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from _support.certificates import slope_of_violation
from _support.toy_terms import Identity
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

import fairconstrained as fc
from fairconstrained.domains import Box, L1Ball, L2Ball, WholeSpace
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem import kkt
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import CellMeans, average


def problem_of(domain, bounds=(1.0, 2.0), rows=((1.0, 1.0), (1.0, 0.0))):
    """Return the problem with the constraints <row, w> <= bound."""
    model = LinearModel(np.eye(2), fit_intercept=False)
    head = {"combination": np.array(rows), "offset": np.array(bounds)}
    affine = CellMeans(sp.csc_array(np.eye(2)), Identity(), **head)
    objective = CompositeFunction(model, average(fc.functions.Quadratic(), np.ones(2), np.ones(2)))
    return Problem(objective, (CompositeFunction(model, affine),), domain)


SECOND_ASIDE = (1.0, 0.0), (0.0, 1.0)  # w_1 <= bound, w_2 <= 2
SECOND_TWICE = (1.0, 2.0), (1.0, 0.0)  # w_1 + 2 w_2 <= bound, w_1 <= 2

# name: (problem, solution, multipliers)
KNOWN = {
    # Nothing is met: the solution is that without constraints.
    "nothing": (problem_of(WholeSpace(), bounds=(3.0, 2.0)), [1.0, 1.0], [0.0, 0.0]),
    # On w_1 + w_2 = 1: -(w - 1) / 2 = (0.25, 0.25) = t (1, 1).
    "one": (problem_of(WholeSpace()), [0.5, 0.5], [0.25, 0.0]),
    # The same in a box whose bounds are not met.
    "one_inside_a_box": (problem_of(Box(-0.2, 0.8)), [0.5, 0.5], [0.25, 0.0]),
    # The second one is w_1 <= 0.1: -(w - 1) / 2 = (0.45, 0.05) = t (1, 1) + u (1, 0).
    "both": (problem_of(WholeSpace(), bounds=(1.0, 0.1)), [0.1, 0.9], [0.05, 0.4]),
    # The box holds w_1 at 0.2, w_1 + 2 w_2 <= 0.5 then w_2 at 0.15:
    # (0.4, 0.425) = t (1, 2) + s (1, 0).
    "face": (problem_of(Box(-5.0, 0.2), (0.5, 2.0), SECOND_TWICE), [0.2, 0.15], [0.2125, 0.0]),
    # w_1 <= 0.6 on the sphere: (0.2, 0.1) = t (1, 0) + s (0.6, 0.8), s = 0.125.
    "sphere": (problem_of(L2Ball(1.0), (0.6, 2.0), SECOND_ASIDE), [0.6, 0.8], [0.125, 0.0]),
    # w_1 <= 0.3 on |w|_1 = 0.8: (0.35, 0.25) = t (1, 0) + s (1, 1), s = 0.25.
    "l1_sphere": (problem_of(L1Ball(0.8), (0.3, 2.0), SECOND_ASIDE), [0.3, 0.5], [0.1, 0.0]),
}


@pytest.fixture(params=KNOWN)
def known(request):
    problem, w, multipliers = KNOWN[request.param]
    return problem.at(np.array(w)), np.array(multipliers)


def test_the_residual_vanishes_at_the_solution_and_the_multipliers_are_found(known):
    at, multipliers = known
    assert kkt.kkt_residual(at, multipliers) < 1e-9
    assert at.violation < 1e-12
    assert kkt.KKT.of(at, multipliers).holds(1e-6)
    assert_allclose(kkt.estimate_multipliers(at), multipliers, atol=1e-6)


def test_estimated_multipliers_minimise_the_distance_off_the_solution(known, rng):
    """Where no multipliers do, the estimated ones are at least as good as any others."""
    problem = known[0].problem
    for target in rng.normal(scale=0.7, size=(10, 2)):
        at = problem.at(problem.domain.project(target))
        estimated = kkt.estimate_multipliers(at, active=np.inf)
        assert np.all(estimated >= 0.0)
        stationarity = kkt.KKT.of(at, estimated).stationarity
        for other in rng.uniform(0.0, 1.0, size=(30, 2)):
            assert stationarity <= kkt.KKT.of(at, other).stationarity + 1e-6


def test_constraints_that_are_not_met_get_no_multiplier():
    at = problem_of(WholeSpace()).at(np.array([0.4, 0.4]))
    assert_allclose(kkt.estimate_multipliers(at), [0.0, 0.0])
    assert_allclose(kkt.estimate_multipliers(at, active=0.3), [0.3, 0.0])


def test_the_parts_of_the_certificate():
    at = problem_of(WholeSpace()).at(np.array([1.0, 0.5]))
    found = kkt.KKT.of(at, np.array([0.2, 0.1]))
    # grad f = (0, -0.25), grad g = (1, 1) and (1, 0), g = (0.5, -1)
    assert_allclose(found.stationarity, np.hypot(0.3, -0.05))
    assert_allclose(found.complementarity, 0.2 * 0.5 + 0.1 * 1.0)
    assert_allclose(found.violation, 0.5)
    assert found.residual == max(found.stationarity, found.complementarity)
    assert kkt.kkt_residual(at, np.array([0.2, 0.1])) == found.residual


def test_a_violation_that_cannot_fall_is_recognised():
    contradictory = problem_of(WholeSpace(), rows=((1.0, 0.0), (-1.0, 0.0)), bounds=(-1.0, -1.0))
    assert slope_of_violation(contradictory.at(np.zeros(2))) < 1e-3
    assert slope_of_violation(contradictory.at(np.array([2.0, 0.0]))) > 0.9


def contradiction(domain, bounds=(-2.0, -1.5)):
    """Return the problem with w_1 >= 2 and w_2 >= 1.5, or other bounds."""
    return problem_of(domain, bounds, ((-1.0, 0.0), (0.0, -1.0)))


def test_a_point_in_a_ball_nearest_to_a_half_space_is_stuck():
    """The gradient does not vanish there, but leads out of the ball."""
    at = contradiction(L2Ball(1.0), bounds=(-2.0, 1.0)).at(np.array([1.0, 0.0]))
    assert slope_of_violation(at) < 1e-8
    assert kkt.is_stuck(at, 1e-4, kkt.stationary_weights(at))


def test_where_nothing_is_violated_no_weights_are_stationary():
    at = contradiction(WholeSpace()).at(np.array([3.0, 3.0]))
    assert_allclose(kkt.stationary_weights(at).dense(), 0.0)
    assert slope_of_violation(at) == np.inf
    assert not kkt.is_stuck(at, 1e-4, np.ones(2))


def test_a_mean_of_convex_constraints_shows_that_none_can_be_met():
    """The sum of squared violations is least where the largest violation could still fall."""
    problem = contradiction(L2Ball(1.0))
    at = problem.at(np.array([0.8, 0.6]))
    violations = at.constraints
    assert_allclose(violations, [1.2, 0.9])
    mean, slope = kkt.combined_violation(at, 7.0 * violations)
    assert mean == pytest.approx(violations @ violations / violations.sum())
    assert slope < 1e-12
    assert kkt.is_stuck(at, 1e-4, violations, reach=kkt.FAR)
    assert not kkt.is_stuck(at, 1e-4, np.array([1.0, 0.0]), reach=kkt.FAR)
    assert slope_of_violation(at) > 0.1
    assert kkt.is_stuck(at, 1e-4, violations)
    assert not kkt.is_stuck(at, 1e-4, kkt.stationary_weights(at))


def test_the_least_violation_of_an_infeasible_problem_in_few_passes():
    result = fc.solvers.AugmentedLagrangian().minimize(contradiction(L2Ball(1.0)))
    second = 0.5 * (np.sqrt(2.0 - 0.25) - 0.5)  # the violations are equal: w_1 = w_2 + 1/2
    assert result.status is fc.solvers.Status.INFEASIBLE
    assert_allclose(result.w, [second + 0.5, second], atol=1e-3)
    assert result.violation == pytest.approx(1.5 - second, abs=1e-4)
    assert result.data_passes <= 150


def test_a_hinge_loss_that_a_radius_does_not_allow_is_recognised_at_the_first_width():
    X, y = load_iris(return_X_y=True)
    clf = fc.NeymanPearsonClassifier(0, 0.05, surrogate="hinge", radius=0.2)
    with pytest.warns(fc.InfeasibleConstraintWarning, match="the least violation is"):
        result = clf.fit(X, y).result_
    assert result.status is fc.solvers.Status.INFEASIBLE
    assert result.violation > 0.1
    assert result.data_passes <= 600
