"""Problems whose terms have the required abilities alone."""

from dataclasses import replace

import numpy as np
import pytest
from _support.small_problems import data
from _support.toy_terms import CellMeansAlone

from fairconstrained.constraints import DemographicParity
from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.solvers import SOLVERS, AugmentedLagrangian, available_solvers
from fairconstrained.terms.cell_means import average


@pytest.fixture
def whole():
    X, y, groups, weight = data()
    model = LinearModel(X)
    rates = CellMeansAlone(DemographicParity(0.1).bind(y, groups, weight))
    objective = CompositeFunction(model, average(Logistic(), y, weight))
    return Problem(objective, (CompositeFunction(model, rates),))


def test_required_abilities_alone_make_a_smooth_problem(whole):
    assert whole.smooth
    assert whole.smoothable  # nothing needs rounding
    assert not whole.batchable
    assert not whole.difference_of_convex
    assert not whole.weakly_convex
    assert whole.smoothed(0.1).at(whole.start()).objective == pytest.approx(np.log(2.0))


def test_transforms_that_need_more_name_the_ability(whole):
    with pytest.raises(TypeError, match="CellMeansAlone has no batches of rows"):
        whole.batch(np.arange(3))
    with pytest.raises(TypeError, match="convexify needs a difference of convex functions"):
        whole.convexify(whole.start())


def test_solvers_that_draw_batches_need_batchable_terms(whole):
    names = available_solvers(whole)
    assert {"augmented-lagrangian", "ssg", "3s-econ", "plada"} <= set(names)
    assert not [name for name in names if "stochastic" in name]
    with pytest.raises(IncompatibleSolverError, match="draws batches of rows"):
        SOLVERS["ssg-stochastic"]().minimize(whole)


def test_other_solvers_find_the_same_solution(whole):
    expected = Problem(
        whole.objective, [replace(whole.constraints[0], term=whole.constraints[0].term.term)]
    )
    found = AugmentedLagrangian().minimize(whole)
    assert found.converged
    best = AugmentedLagrangian().minimize(expected)
    assert found.objective == pytest.approx(best.objective, rel=1e-9)
