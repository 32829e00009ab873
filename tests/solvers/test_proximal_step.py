"""PLADA's proximal step where it has no minimiser, and where constraints have kinks."""

from __future__ import annotations

import numpy as np
import pytest

from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.functions.losses import Hinge
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import PLADA
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


@pytest.mark.cases(1)
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"exact": True, "eta": 1.0}], ids=str)
def test_networks_are_trained_though_steps_have_no_minimiser(options) -> None:
    problem = network_of_groups()
    solver = PLADA.network(max_iter=15, check_every=5, **options)
    result = solver.minimize(problem, random_state=0)
    assert np.all(np.isfinite(result.w))
    assert np.isfinite(result.objective)
