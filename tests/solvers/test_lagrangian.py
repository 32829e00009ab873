"""Lagrangian descent-ascent and multiplier models."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from _support.problems import PROBLEMS, classification, reference
from sklearn.base import clone

from fairconstrained import DemographicParity
from fairconstrained.constraints import ROCParity
from fairconstrained.domains import Box
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import LagrangianDescentAscent
from fairconstrained.solvers.multiplier_models import DeepNetwork, Free, MultiplierModel, Network
from fairconstrained.solvers.primal_dual import constraint_features

MODELS = [Free(), Network(hidden=5)]
DEEP = DeepNetwork((5, 4, 3))


def random_parameters(model: MultiplierModel, features: np.ndarray) -> np.ndarray:
    rng = np.random.RandomState(0)
    return model.start(features, rng.standard_normal(len(features)), rng)


def test_plain_steps_are_those_of_the_formula() -> None:
    problem = PROBLEMS["two constraints"]()
    solver = LagrangianDescentAscent(
        0.3, 0.5, extrapolation=0.0, max_iter=20, check_every=20, polish=False
    )
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
    extrapolated, plain = (
        LagrangianDescentAscent(0.5, 0.5, extrapolation=theta, max_iter=500, polish=False).minimize(
            problem
        )
        for theta in (1.0, 0.0)
    )
    assert extrapolated.converged
    assert extrapolated.w == pytest.approx([1.0], abs=1e-4)
    assert extrapolated.multipliers == pytest.approx([1.0], abs=1e-4)
    assert not plain.converged


@pytest.mark.parametrize("model", [Network(hidden=5), DEEP], ids=repr)
def test_gradient_of_a_model_is_that_of_finite_differences(model: MultiplierModel) -> None:
    features = np.random.RandomState(1).standard_normal((4, 3))
    theta = random_parameters(model, features)
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


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_step_gains_what_free_multipliers_gain(model: MultiplierModel) -> None:
    features = np.eye(4)
    theta = model.start(features, np.full(4, 0.5), np.random.RandomState(0))
    v, step = np.array([0.1, -0.2, 0.05, 0.3]), 1e-4
    after = model.ascend(theta, features, v, step)
    change = model.multipliers(after, features) - model.multipliers(theta, features)
    assert v @ change == pytest.approx(step * (v @ v), rel=1e-2)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_multipliers_at_zero_stay_there_unless_their_constraint_is_violated(
    model: MultiplierModel,
) -> None:
    features = np.eye(2)
    theta = model.start(features, np.zeros(2), np.random.RandomState(0))
    assert np.array_equal(model.ascend(theta, features, -np.ones(2), 1.0), theta)
    risen = model.multipliers(model.ascend(theta, features, np.array([1.0, -1.0]), 0.1), features)
    assert risen[0] > 0.0


@pytest.mark.parametrize("model", [*MODELS, DEEP], ids=repr)
def test_models_hold_hyperparameters_only(model: MultiplierModel) -> None:
    solver = clone(LagrangianDescentAscent(multipliers=model))
    before = repr(solver.get_params())
    solver.minimize(PROBLEMS["demographic parity"](), random_state=0)
    assert repr(solver.get_params()) == before


def test_features_of_parity_are_the_groups_added_and_subtracted() -> None:
    features = constraint_features(classification(DemographicParity(0.1), n_groups=3))
    assert features.shape == (6, 6)
    assert np.array_equal(features.sum(axis=1), np.full(6, 2.0))
    assert np.array_equal(features[0], [1, 0, 0, 0, 1, 0]), "rate(0) - rate(1)"


@pytest.mark.parametrize("model", [Network(8), DeepNetwork((8, 8))], ids=repr)
def test_many_features_are_sparse_and_mean_the_same(model) -> None:
    problem = classification(ROCParity(0.1, thresholds=np.linspace(-2.0, 2.0, 50)))
    features = constraint_features(problem)
    assert isinstance(features, sp.csr_array)
    theta = model.start(features, np.ones(100), np.random.RandomState(0))
    v = np.random.RandomState(1).normal(size=100)
    for name, last in [("multipliers", ()), ("gradient", (v,)), ("ascend", (v, 0.1))]:
        sparse = getattr(model, name)(theta, features, *last)
        dense = getattr(model, name)(theta, features.toarray(), *last)
        assert np.allclose(sparse, dense, atol=1e-12)


def test_features_of_several_constraints_do_not_mix() -> None:
    problem = PROBLEMS["two constraints"]()
    features = constraint_features(problem)
    first = problem.constraints[0].n_outputs
    assert np.all(features[:first, 4:] == 0.0)
    assert np.all(features[first:, :4] == 0.0)
    assert constraint_features(PROBLEMS["unconstrained"]()).size == 0


@pytest.mark.parametrize("name", ["unconstrained", "equalized odds, 3 groups", "zero gap", "box"])
def test_network_of_multipliers_finds_the_solution(name: str) -> None:
    solver = LagrangianDescentAscent.multiplier_model()
    result = solver.minimize(PROBLEMS[name](), random_state=0)
    free = LagrangianDescentAscent().minimize(PROBLEMS[name]())
    assert result.converged
    assert result.objective == pytest.approx(reference(PROBLEMS[name](), starts=1), rel=1e-3)
    # those of the certificate are not unique; their effect is
    problem = PROBLEMS[name]()
    effects = [problem.at(r.w).gradient(r.multipliers, objective=0.0) for r in (result, free)]
    assert effects[0] == pytest.approx(effects[1], abs=1e-2)


def test_network_starts_from_the_multipliers_of_a_warm_start() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    solver = LagrangianDescentAscent.multiplier_model()
    cold = solver.minimize(problem, random_state=0)
    warm = solver.minimize(problem, warm=cold, random_state=1)
    assert warm.converged
    assert warm.n_iter < 0.5 * cold.n_iter
