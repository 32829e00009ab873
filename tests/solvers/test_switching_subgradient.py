"""What is special to the switching subgradient methods: step rules and mini-batches."""

from functools import cache

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, rate_between, reference

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.domains import Box
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties.base import L2
from fairconstrained.penalties.separable import L1, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import PolyakSteps, Status, StronglyConvexSteps, SwitchingSubgradient
from fairconstrained.solvers._tools.sampling import StratifiedSampler
from fairconstrained.solvers._tools.subgradient_steps import Bend, Best, worst_constraint
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.rows import rows_of
from fairconstrained.solvers.start import Start
from fairconstrained.solvers.stochastic_switching import StochasticSwitchingSubgradient
from fairconstrained.solvers.switching_subgradient import (
    DiminishingTolerance,
    StaticTolerance,
    metric_of,
)
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


def test_polyak_steps_keep_to_curvature_tolerance_and_reach():
    rule = PolyakSteps(first=0.1, margin=0.03, reach=10.0)
    assert rule.tolerance(5, 1e-4) == 1e-4
    assert rule.descent(0, 1e-4, 4.0, 0.0) == pytest.approx(0.025)
    assert rule.descent(0, 1e-4, 4.0, 100.0) == pytest.approx(0.01)
    assert rule.descent(0, 1e-4, 4.0, 1e9) == pytest.approx(2.5e-5)
    assert rule.restoration(0, 0.5, 4.0) == pytest.approx(0.53 / 4.0)
    assert rule.restoration(0, 0.5, 1e-6) == pytest.approx(10.0 / 1e-3)


def test_strongly_convex_steps_are_algorithm_two_of_ipc():
    rule = StronglyConvexSteps(2.0)
    assert rule.descent(3, 1e-4, 1.0, 0.0) == rule.restoration(3, 1.0, 1.0) == 0.2


@pytest.mark.parametrize(
    ("rule", "violation"),
    [(StaticTolerance(1e-3), 1e-3), (DiminishingTolerance(0.2), 2e-4)],
    ids=["static", "diminishing"],
)
def test_rules_of_the_paper_end_within_their_last_tolerance(rule, violation):
    result = SwitchingSubgradient(rule, max_iter=1000).minimize(fair())
    assert result.violation <= violation
    assert result.objective == pytest.approx(solution("demographic parity"), rel=2e-2)


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


def test_curvature_of_a_parabola_is_measured():
    problem = Problem(CompositeFunction(None, None, L2(3.0)), n_variables=2)
    bend, at = Bend(problem.objective), problem.at(np.array([1.0, 2.0]))
    gradient = at.gradient()
    bend.observe(at)
    assert bend.curvature == 0.0
    bend.remember(at, 0.1, float(gradient @ gradient))
    bend.observe(problem.at(at.w - 0.1 * gradient))
    assert bend.curvature == pytest.approx(3.0)


def test_kinks_do_not_shorten_the_steps():
    problem = Problem(CompositeFunction(None, None, L1(3.0)), n_variables=2)
    bend = Bend(problem.objective)
    bend.remember(problem.at(np.array([0.1, 2.0])), 0.1, 18.0)
    bend.observe(problem.at(np.array([-0.2, 1.7])))
    assert bend.curvature == 0.0


def test_a_best_point_that_is_offered_again_costs_nothing():
    problem = PROBLEMS["demographic parity"]()
    result = SwitchingSubgradient(max_iter=400, check_every=1).minimize(problem)
    assert 400 <= result.data_passes < 600


def test_best_prefers_feasible_points_then_the_objective():
    problem = rate_between(0.4, 0.6)
    best = Best()
    for intercept in (-3.0, 2.0, 3.0, 0.0):  # rates rise with the intercept
        best.add(problem.at(np.append(np.zeros(4), intercept)), 0, 1e-4)
    assert best.best.w[-1] == 0.0
    far = Best()
    for intercept in (3.0, 1.0, -2.0):
        far.add(problem.at(np.append(np.zeros(4), intercept)), 0, 1e-4)
    assert far.best.w[-1] == 1.0


def test_metric_is_that_of_the_units_on_the_whole_space_only():
    rule = PolyakSteps()
    bounded = classification(DemographicParity(0.05), domain=Box(-1.0, 1.0))
    assert np.array_equal(metric_of(fair(), rule), fair().preconditioner ** 2)
    assert np.array_equal(metric_of(bounded, rule), np.ones(5))
    assert np.array_equal(metric_of(fair(), StaticTolerance()), np.ones(5))


def test_worst_of_no_constraints():
    level, unit = worst_constraint(np.zeros(0))
    assert level == -np.inf
    assert unit.size == 0


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


def test_batches_need_fewer_passes_than_all_rows():
    problem = many_rows()
    best = ExactPenalty().minimize(problem).objective

    def passes(solver):
        def near(measured):
            return measured.violation <= 1e-4 and measured.objective <= 1.01 * best

        result = solver.minimize(many_rows(), random_state=0, callback=near)
        assert result.status is Status.STOPPED
        return result.data_passes

    full = passes(SwitchingSubgradient(check_every=10))
    assert passes(StochasticSwitchingSubgradient()) < 0.5 * full


def test_batches_are_counted_as_fractions_of_a_pass():
    problem = many_rows()
    solver = StochasticSwitchingSubgradient(batch_size=200, epoch=10, max_iter=1, polish=False)
    result = solver.minimize(problem, random_state=0)
    # the start, the average and its restorations; two or three batches in each of ten steps
    assert 2.0 < result.data_passes % 1.0 + 2.0 < 2.31
    assert result.data_passes < 8.0


def test_batches_depend_on_the_random_state_alone():
    runs = [
        StochasticSwitchingSubgradient(max_iter=2).minimize(many_rows(), random_state=seed).w
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_ssg_on_batches_without_additions_is_the_printed_step():
    # the start violates, so that a step with the values of a batch restores the constraint
    problem, rule = fair(), StaticTolerance(0.01)
    start = 3.0 * np.ones(problem.n_variables)
    plain = {"variance_reduction": False, "average": "all", "repair": False, "polish": False}
    solver = StochasticSwitchingSubgradient(rule, batch_size=40, epoch=1, max_iter=30, **plain)
    run = Start(start, random_state=np.random.RandomState(0))
    points = [iterate.at.w for iterate in solver.iterate(problem, run)]
    sampler, w = StratifiedSampler(problem, 40, np.random.RandomState(0)), start
    kinds = set()
    for point in points:
        at = sampler.draw().at(w)
        level, worst = float(at.constraints.max()), int(at.constraints.argmax())
        unit = np.eye(len(at.constraints))[worst]
        restores = level > 0.01
        gradient = at.gradient(unit, objective=0.0) if restores else at.gradient()
        size = (level if restores else 0.01) / float(gradient @ gradient)
        w = w - size * gradient
        np.testing.assert_allclose(point, w, rtol=1e-10)
        kinds.add(restores)
    assert kinds == {True, False}


@pytest.mark.parametrize(
    "addition", [{"variance_reduction": False}, {"average": "all"}, {"repair": False}], ids=repr
)
def test_every_addition_of_ssg_on_batches_changes_the_run(addition):
    plain = StochasticSwitchingSubgradient(batch_size=100, max_iter=3, polish=False)
    runs = [
        solver.minimize(many_rows(2000), random_state=0).w
        for solver in (plain, plain.with_options(**addition))
    ]
    assert not np.array_equal(*runs)


def test_variance_reduction_corrects_the_values_of_a_batch():
    problem = many_rows(2000)
    start = Start(np.ones(problem.n_variables), random_state=np.random.RandomState(0))
    w = start.w + 1e-3
    for reduced in (False, True):
        rows = rows_of(problem, start, 50, 10, variance_reduction=reduced)
        values = rows.draw(w).values
        error = np.abs(values - problem.at(w).constraints).max()
        assert bool(error < 1e-3) is reduced
