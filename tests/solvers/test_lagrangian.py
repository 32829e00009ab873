"""Lagrangian descent-ascent: steps, multiplier models, and the strength of a penalty."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification, rate_between, reference

from fairconstrained import DemographicParity
from fairconstrained.domains import Box
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import LagrangianDescentAscent, Regularization
from fairconstrained.solvers.multiplier_models import DeepNetwork, MultiplierModel, Network
from fairconstrained.solvers.primal_dual import constraint_features

DEEP = DeepNetwork((5, 4, 3))


def test_plain_steps_are_those_of_the_formula() -> None:
    problem = PROBLEMS["two constraints"]()
    steps = {"max_iter": 20, "check_every": 20, "polish": False}
    solver = LagrangianDescentAscent(0.3, 0.5, extrapolation=0.0, **steps)
    result = solver.minimize(problem)
    w, multipliers = problem.start(), np.zeros(problem.n_constraints)
    for _ in range(20):
        w = w - 0.3 * problem.at(w).gradient(multipliers)
        multipliers = np.maximum(multipliers + 0.5 * problem.at(w).constraints, 0.0)
    assert result.w == pytest.approx(w, abs=1e-12)
    assert result.multipliers == pytest.approx(multipliers, abs=1e-12)


def test_extrapolation_ends_the_circles_of_plain_descent_ascent() -> None:
    """Minimise x subject to 1 - x <= 0: the Lagrangian is bilinear, its saddle point (1, 1)."""
    slope = CompositeFunction(slope=np.ones(1))
    falling = CompositeFunction(slope=-np.ones(1), level=1.0)
    problem = Problem(slope, (falling,), Box(-5.0, 5.0), n_variables=1)
    solver = LagrangianDescentAscent(0.5, 0.5, extrapolation=1.0, max_iter=500, polish=False)
    extrapolated = solver.minimize(problem)
    plain = solver.set_params(extrapolation=0.0).minimize(problem)
    assert extrapolated.converged
    assert extrapolated.w == pytest.approx([1.0], abs=1e-4)
    assert extrapolated.multipliers == pytest.approx([1.0], abs=1e-4)
    assert not plain.converged


@pytest.mark.parametrize("model", [Network(hidden=5), DEEP], ids=repr)
def test_gradient_of_a_model_is_that_of_finite_differences(model: MultiplierModel) -> None:
    features = np.random.RandomState(1).standard_normal((4, 3))
    rng = np.random.RandomState(0)
    theta = model.start(features, rng.standard_normal(len(features)), rng)
    v = np.array([1.0, -2.0, 0.5, 3.0])
    v[model.multipliers(theta, features) == 0.0] = 0.0
    numeric = np.array(
        [
            v @ (model.multipliers(theta + d, features) - model.multipliers(theta - d, features))
            / 2e-6
            for d in 1e-6 * np.eye(len(theta))
        ]
    )  # fmt: skip
    assert model.gradient(theta, features, v) == pytest.approx(numeric, abs=1e-5)


def test_features_of_parity_are_the_groups_added_and_subtracted() -> None:
    features = constraint_features(classification(DemographicParity(0.1), n_groups=3))
    assert features.shape == (6, 6)
    assert np.array_equal(features.sum(axis=1), np.full(6, 2.0))
    assert np.array_equal(features[0], [1, 0, 0, 0, 1, 0]), "rate(0) - rate(1)"


def test_strength_above_the_multipliers_solves_the_constrained_problem() -> None:
    problem = PROBLEMS["demographic parity"]()  # its multiplier is 0.985
    weak, strong = (Regularization(s, max_iter=1000).minimize(problem) for s in (0.5, 2.0))
    assert strong.violation <= 1e-4
    assert strong.objective == pytest.approx(reference(problem, starts=1), rel=1e-3)
    assert weak.violation > 1e-2
    assert weak.objective < strong.objective


def test_strength_is_raised_until_the_constraints_hold() -> None:
    problem = rate_between(0.8, 0.9)  # its multiplier is 2.1
    raised = Regularization(max_iter=1500).minimize(problem)
    assert raised.violation <= 1e-4
    assert raised.objective == pytest.approx(reference(problem, starts=1), rel=1e-3)
    assert Regularization(1.0, max_iter=1000).minimize(problem).violation > 1e-2
