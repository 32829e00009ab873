"""The multiplier rule: gradients, scales and curvature, against formulas."""

from functools import partial

import numpy as np
import pytest
from _support.boosting import rows, small
from numpy.testing import assert_allclose
from scipy.special import expit

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.constraints import PartialDemographicParity
from fairconstrained.estimators.score_lagrangian import ScoreLagrangian
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.trees import ScoreModel, ScoreSpace
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.cell_means import average

N = 300


def problem_of(constraint):
    X, y, groups = make_biased_classification(N, 3, random_state=0)
    signs, weight = 2.0 * y - 1.0, np.ones(N)
    model = ScoreModel(ScoreSpace([X]), np.arange(N))
    term, end = constraint.bind(signs, groups, weight), N
    part = CompositeFunction(model, term, auxiliary=slice(N, end + term.n_auxiliary))
    loss = CompositeFunction(model, average(Logistic(), signs, weight))
    return Problem(loss, (part,)), groups


def hessian_of(scores):
    return expit(scores) * expit(-scores) / N


def test_the_gradient_is_that_of_the_augmented_lagrangian(rng):
    problem, groups = problem_of(DemographicParity(0.0))
    scores, rate = rng.normal(size=N) + 0.5 * groups, 0.1
    lagrangian = ScoreLagrangian(problem, rate)
    gradient, factor = lagrangian.step(scores, lambda: hessian_of(scores))
    sigma = lagrangian.penalty / (rate * lagrangian._squares * lagrangian._gram)
    values = problem.at(scores).constraints
    slope = expit(scores) * expit(-scores)
    signed = np.where(groups == 0, 1.0, -1.0) / np.bincount(groups)[groups]
    weights = np.maximum(sigma * values, 0.0)  # the multipliers are zero at first
    assert_allclose(gradient, (weights[0] - weights[1]) * signed * slope, rtol=1e-10, atol=1e-14)
    assert factor == 1.0


def test_multipliers_rise_while_a_constraint_is_violated_and_fall_after(rng):
    problem, groups = problem_of(DemographicParity(0.05))
    lagrangian = ScoreLagrangian(problem, 0.1)
    unfair, fair = 2.0 * groups - 1.0, np.zeros(N)
    seen = []
    for scores in (unfair, unfair, unfair, fair, fair):
        lagrangian.step(scores, partial(hessian_of, scores))
        seen.append(lagrangian.multipliers.max())
    assert seen[0] == 0.0 < seen[1] < seen[2]
    assert seen[4] < seen[3] < seen[2]
    assert lagrangian.violation(unfair) == pytest.approx(problem.at(unfair).violation)


def test_multipliers_follow_constraints_on_other_rows(rng):
    problem, groups = problem_of(DemographicParity(0.05))
    lagrangian = ScoreLagrangian(problem, 0.1)
    fair, elsewhere = 0.1 * rng.normal(size=N), np.array([0.3, -0.4])
    for _ in range(3):
        gradient, _ = lagrangian.step(fair, partial(hessian_of, fair), elsewhere)
    assert problem.at(fair).violation == 0.0
    assert lagrangian.multipliers[0] > 0.0 == lagrangian.multipliers[1]
    assert gradient @ (groups == 0) > 0.0 > gradient @ (groups == 1)


def test_zero_one_violations_are_those_of_predictions(rng):
    problem, groups = problem_of(DemographicParity(0.05))
    lagrangian = ScoreLagrangian(problem, 0.1, zero_one=True)
    scores = np.where(groups == 0, 0.01, -0.01)
    assert lagrangian.violation(scores) == pytest.approx(0.95)
    assert lagrangian.violation(np.ones(N)) == 0.0
    assert problem.at(scores).violation == 0.0


def test_variables_of_terms_are_moved(rng):
    problem, groups = problem_of(PartialDemographicParity(0.0, ranks=(0.1, 0.6), n_ranks=3))
    lagrangian = ScoreLagrangian(problem, 0.1, first_score=-1.0)
    start = lagrangian.auxiliary.copy()
    assert_allclose(start, problem.start()[N:] - 1.0)
    scores = rng.normal(size=N) + groups
    lagrangian.step(scores, lambda: hessian_of(scores))
    assert np.any(lagrangian.auxiliary != start)
    assert np.abs(lagrangian.auxiliary - start).max() <= 0.1 + 1e-12


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_grown_trees_nearly_meet_an_active_bound(constraint):
    X, y, groups = rows(4000)
    fit = small(constraint, kappa=0.03, n_estimators=100).bind(X, y, None, groups)
    at = fit.problem.at(fit.model.grown.first.w)
    free = small(None, n_estimators=100).fit(X, y)
    unfair = fit.problem.constraints[0].term.value(free.decision_function(X)).max()
    assert at.violation <= 5e-3 < 0.05 < unfair
    assert at.objective < 0.69
