"""What is special to the switching subgradient methods: step rules and mini-batches."""

from functools import cache

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, rate_between, reference

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import (
    Status,
    StochasticSwitchingSubgradient,
    StronglyConvexSteps,
    SwitchingSubgradient,
)
from fairconstrained.solvers.switching_subgradient import DiminishingTolerance, StaticTolerance
from fairconstrained.terms.cell_means import average


@cache
def solution(name):
    return reference(PROBLEMS[name]())


def fair():
    return classification(DemographicParity(0.05))


def many_rows(n=20_000, kappa=0.02):
    X, y, groups = make_biased_classification(n, 6, gap=0.4, random_state=0)
    signs, weight, model = 2.0 * y - 1.0, np.ones(n), LinearModel(X)
    parity = DemographicParity(kappa).bind(signs, groups, weight)
    objective = CompositeFunction(model, average(Logistic(), signs, weight), Leading(L2(1e-3), 6))
    return Problem(objective, (CompositeFunction(model, parity),))


def test_static_tolerance_is_algorithm_three():
    rule = StaticTolerance(0.01)
    assert rule.tolerance(0, 1e-4) == rule.tolerance(999, 1e-4) == 0.01
    assert rule.descent(7, 0.01, 4.0, 100.0) == 0.0025
    assert rule.restoration(7, 0.3, 4.0) == 0.075


def test_diminishing_tolerance_is_algorithm_three():
    rule = DiminishingTolerance(0.5)
    assert rule.tolerance(0, 1e-4) == 0.5
    assert rule.tolerance(9, 1e-4) == 0.05


def test_strongly_convex_steps_are_algorithm_two_of_ipc():
    rule = StronglyConvexSteps(2.0)
    assert rule.descent(3, 1e-4, 1.0, 0.0) == rule.restoration(3, 1.0, 1.0) == 0.2


def test_paper_preset():
    solver = SwitchingSubgradient.paper(steps=DiminishingTolerance(2.0))
    assert solver.max_iter == 50_000
    assert solver.steps.c == 2.0
    assert solver.tol == 1e-4
    static = SwitchingSubgradient.paper(max_iter=2000, check_every=100)
    assert static.steps.epsilon == static.tol == 1e-3
    result = static.minimize(fair())  # the best of the points that are nearly feasible
    assert result.violation <= 1e-3
    assert result.objective == min(result.trace.objective)


def test_a_best_point_that_is_offered_again_costs_nothing():
    problem = PROBLEMS["demographic parity"]()
    result = SwitchingSubgradient(max_iter=400, check_every=1).minimize(problem)
    assert 400 <= result.data_passes < 600


@pytest.mark.parametrize(
    "solver", [SwitchingSubgradient(), StochasticSwitchingSubgradient()], ids=["full", "batches"]
)
def test_points_of_an_infeasible_problem_do_not_run_away(solver):
    result = solver.minimize(rate_between(0.6, 0.2), random_state=0)
    assert result.status is Status.INFEASIBLE
    assert result.violation == pytest.approx(0.2, abs=1e-3)
    assert np.linalg.norm(result.w) < 1e4


@pytest.mark.parametrize("name", NON_SMOOTH)
def test_batches_on_non_smooth_problems(name):
    problem = NON_SMOOTH[name]()
    full = SwitchingSubgradient(max_iter=500).minimize(problem)
    solver = StochasticSwitchingSubgradient(batch_size=100, max_iter=20)
    result = solver.minimize(problem, random_state=0)
    assert result.violation <= 1e-4
    assert result.objective <= 1.02 * full.objective


@pytest.mark.parametrize("name", PROBLEMS)
def test_batches_end_near_the_solution(name):
    problem = PROBLEMS[name]()
    solver = StochasticSwitchingSubgradient(batch_size=100, max_iter=15)
    result = solver.minimize(problem, random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(solution(name), rel=2e-2)


def test_batches_are_counted_as_fractions_of_a_pass():
    problem = many_rows()
    solver = StochasticSwitchingSubgradient(batch_size=200, max_iter=10, polish=False)
    few, more = (
        one.minimize(problem, random_state=0).data_passes
        for one in (solver, solver.with_options(max_iter=30))
    )
    assert more - few == pytest.approx(20 * 200 / 20_000, rel=0.05)


def test_batches_depend_on_the_random_state_alone():
    runs = [
        StochasticSwitchingSubgradient(max_iter=2).minimize(many_rows(), random_state=seed).w
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
