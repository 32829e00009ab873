"""PLADA's proximal step where it has no minimiser, and where constraints have kinks."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import classification
from scipy.optimize import minimize

from fairconstrained.constraints import BoundedGroupLoss, IntersectionalLossParity
from fairconstrained.functions.losses import Hinge
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.proximal_step import proximal_step
from fairconstrained.solvers.plada import PLADA
from fairconstrained.terms.cell_means import average


def network_of_groups() -> Problem:
    """Return the training of a network with ReLU units and bounds on excess hinge losses."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from fairconstrained.models.network import TorchModel

    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(60, 3)), np.ones(60)
    signs = np.where(X[:, 0] + rng.normal(size=60) > 0.0, 1.0, -1.0)
    model = TorchModel.standardized(X, weight, hidden_layer_sizes=(8, 8, 8))
    members = np.column_stack([X[:, 1] > 0.0, X[:, 2] > 0.0])
    excess = IntersectionalLossParity(0.01, membership="columns").bind(signs, members, weight)
    return Problem(
        CompositeFunction(model, average(Hinge(), signs, weight)),
        (CompositeFunction(model, excess),),
    )


@pytest.mark.parametrize("multiplier", [300.0, 1e3])
def test_a_sum_without_minimiser_gives_the_linearised_step(multiplier: float) -> None:
    problem = network_of_groups()
    at, multipliers = problem.at(problem.start(0)), np.full(problem.n_constraints, multiplier)
    gradient = at.gradient(multipliers)

    def value(length: float) -> float:
        move = -length * gradient
        here = problem.at(at.w + move).constraints
        return at.gradient() @ move + multipliers @ here + move @ move / (2.0 * 0.1)

    assert value(1e4) < value(1e2) < value(1.0), "it falls without bound"
    found = proximal_step(at, multipliers, 0.1)
    assert found == pytest.approx(at.w - 0.1 * gradient, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"exact": True, "eta": 1.0}], ids=str)
def test_networks_are_trained_though_steps_have_no_minimiser(options) -> None:
    problem = network_of_groups()
    solver = PLADA.network(max_iter=15, check_every=5, **options)
    result = solver.minimize(problem, random_state=0)
    assert np.all(np.isfinite(result.w))
    assert np.isfinite(result.objective)


def minimiser_by_the_dual(problem: Problem, w, multipliers, eta):
    """Return the step of bounds on hinge losses from its dual, a quadratic program in a box."""
    X = np.column_stack([problem.objective.model.X, np.ones(problem.n_rows)])
    (part,) = problem.constraints
    slope, n = problem.at(w).gradient(), problem.n_rows
    signs, most = part.term.signs, multipliers @ (part.term.combination @ part.term.cells.toarray())

    def point(prices):
        return w - eta * (slope - X.T @ (prices * signs))

    def negative_dual(prices):
        move = point(prices) - w
        margins = 1.0 - signs * (X @ (w + move))
        value = slope @ move + prices @ margins + move @ move / (2.0 * eta)
        return -value, -margins

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 50}
    found = minimize(
        negative_dual, np.zeros(n), jac=True, bounds=[(0.0, c) for c in most],
        method="L-BFGS-B", options=options,
    )  # fmt: skip
    return point(found.x)


@pytest.mark.parametrize(("eta", "error"), [(1e-3, 1e-10), (0.1, 2e-4), (1.0, 2e-4)])
def test_minimisers_on_kinks_are_found(eta: float, error: float) -> None:
    problem = classification(BoundedGroupLoss(0.3, loss=Hinge()), n_groups=3, loss=Hinge())
    rng = np.random.default_rng(0)
    w, multipliers = rng.normal(size=problem.n_variables), 10.0 * rng.random(3)
    at = problem.at(w)
    found = proximal_step(at, multipliers, eta)
    expected = minimiser_by_the_dual(problem, w, multipliers, eta)
    margins = 1.0 - np.abs(problem.at(expected).scores_of(problem.objective))
    assert np.any(np.abs(margins) < 1e-5) == (eta > 1e-2), "the larger steps end on kinks"
    assert found == pytest.approx(expected, abs=error)

    def value(v):
        here = problem.at(v).constraints
        return at.gradient() @ v + multipliers @ here + (v - w) @ (v - w) / (2.0 * eta)

    assert value(found) - value(expected) <= 2e-6
