"""What is special to the switching subgradient methods: step rules and mini-batches."""

import numpy as np
import pytest
from _support.problems import PROBLEMS

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import StochasticSwitchingSubgradient, SwitchingSubgradient
from fairconstrained.terms.cell_means import average


def many_rows(n=20_000, kappa=0.02):
    X, y, groups = make_biased_classification(n, 6, gap=0.4, random_state=0)
    signs, weight, model = 2.0 * y - 1.0, np.ones(n), LinearModel(X)
    parity = DemographicParity(kappa).bind(signs, groups, weight)
    objective = CompositeFunction(model, average(Logistic(), signs, weight), Leading(L2(1e-3), 6))
    return Problem(objective, (CompositeFunction(model, parity),))


def test_a_best_point_that_is_offered_again_costs_nothing():
    problem = PROBLEMS["demographic parity"]()
    result = SwitchingSubgradient(max_iter=400, check_every=1).minimize(problem)
    assert 400 <= result.data_passes < 600


def test_batches_are_counted_as_fractions_of_a_pass():
    problem = many_rows()
    solver = StochasticSwitchingSubgradient(batch_size=200, max_iter=10, polish=False)
    few, more = (
        one.minimize(problem, random_state=0).data_passes
        for one in (solver, solver.with_options(max_iter=30))
    )
    assert more - few == pytest.approx(20 * 200 / 20_000, rel=0.05)
