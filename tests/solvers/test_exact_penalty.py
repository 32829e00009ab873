"""What is special to the exact penalty method."""

from functools import cache

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification, rate_between, reference

from fairconstrained import DemographicParity, EqualizedOdds, IncompatibleSolverError
from fairconstrained.domains import L2Ball
from fairconstrained.functions.losses import Hinge
from fairconstrained.solvers import Status
from fairconstrained.solvers._tools.capped_simplex import CappedSimplex
from fairconstrained.solvers._tools.linearised import Curvature, Model
from fairconstrained.solvers.exact_penalty import ExactPenalty


@cache
def solution(name):
    return reference(PROBLEMS[name]())


def fair():
    return classification(DemographicParity(0.05))


@pytest.mark.parametrize("memory", [0, 1, 30])
def test_every_memory_finds_the_solution(memory):
    result = ExactPenalty(memory=memory).minimize(fair())
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(solution("demographic parity"), rel=1e-4)


def test_curvature_saves_evaluations():
    quick, plain = (solver.minimize(fair()) for solver in (ExactPenalty(), ExactPenalty.paper()))
    assert plain.converged
    assert quick.data_passes < 0.2 * plain.data_passes


def test_one_evaluation_per_step():
    problem = classification(EqualizedOdds(0.02), n_groups=3)
    result = ExactPenalty().minimize(problem)
    assert result.data_passes == result.n_iter + 1


def test_rho_grows_until_the_penalty_is_exact():
    result = ExactPenalty(rho=0.01).minimize(fair())
    assert result.converged
    assert result.state.rho >= result.multipliers.sum() > 0.1


def test_rho_stays_where_it_suffices():
    result = ExactPenalty(rho=20.0).minimize(fair())
    assert result.converged
    assert result.state.rho == 20.0


def test_rho_stays_bounded_and_the_violation_is_least_without_a_solution():
    result = ExactPenalty().minimize(rate_between(0.6, 0.2))
    assert result.status is Status.INFEASIBLE
    assert result.violation == pytest.approx(0.2, abs=1e-6)
    assert np.linalg.norm(result.w) < 100.0


def test_start_that_violates_is_left_in_a_few_steps():
    result = ExactPenalty().minimize(rate_between(0.8, 0.9))
    assert result.converged
    assert result.n_iter <= 20


def test_small_radius_is_outgrown():
    result = ExactPenalty(radius=1e-4).minimize(fair())
    assert result.converged


def test_two_runs_are_the_same():
    first, second = (ExactPenalty().minimize(fair()) for _ in range(2))
    assert np.array_equal(first.w, second.w)


def test_warm_multipliers_and_rho_are_taken_over():
    cold = ExactPenalty(rho=0.01).minimize(fair())
    warm = ExactPenalty(rho=0.01).minimize(fair(), warm=cold)
    assert warm.converged
    assert warm.state.rho == cold.state.rho
    assert warm.n_iter <= 2


def test_non_smooth_problem_is_refused():
    with pytest.raises(IncompatibleSolverError, match="smooth"):
        ExactPenalty().minimize(classification(DemographicParity(0.05), loss=Hinge()))


@pytest.mark.parametrize("name", ["whole space", "ball"])
@pytest.mark.parametrize("radius", [0.05, 10.0])
@pytest.mark.parametrize("memory", [0, 5])
def test_step_solves_the_model_within_the_trust_region(name, radius, memory, rng):
    problem = classification(
        EqualizedOdds(0.01), domain=L2Ball(0.4) if name == "ball" else None, n_groups=3
    )
    at = problem.at(problem.domain.project(0.3 * rng.normal(size=problem.n_variables)))
    model = Model(at, Curvature(problem, memory), np.inf, None)
    step = model.solve(2.0, radius)
    assert step.size <= 1.2 * radius + 1e-12
    assert np.allclose(problem.domain.project(at.w + step.s), at.w + step.s, atol=1e-12)

    def value(s):
        bend = 0.5 * step.stretch * float(s @ (s / model.curvature.diagonal))
        worst = max(float((model.values + model.rows @ s).max()), 0.0)
        return float(model.gradient @ s) + bend + 2.0 * worst

    for _ in range(200):
        other = problem.domain.project(at.w + step.s + 0.05 * rng.normal(size=at.w.size)) - at.w
        assert value(step.s) <= value(other) + 1e-7
    fall = 2.0 * (model.violation - step.violation) - float(model.gradient @ step.s)
    assert step.promise <= fall + 1e-12


def test_curvature_satisfies_the_secant_equation(rng):
    problem = fair()
    curvature = Curvature(problem, 3)
    model = Model(problem.at(problem.start()), curvature, np.inf, None)
    for _ in range(5):
        step = model.solve(1.0, 1.0)
        step.s = rng.normal(size=step.s.size)
        step.size = float(np.linalg.norm(step.s))
        turned = step.s * np.linspace(1.0, 2.0, step.s.size)
        curvature.update(step, turned)
    assert curvature.apply(turned[:, None])[:, 0] == pytest.approx(step.s)
    columns = np.eye(problem.n_variables)
    inverse = curvature.apply(columns)
    assert inverse == pytest.approx(inverse.T)
    assert np.linalg.eigvalsh(inverse).min() > 0.0


def test_capped_simplex_projects_to_the_nearest_point(rng):
    simplex = CappedSimplex(1.5)
    for _ in range(50):
        w = 2.0 * rng.normal(size=4)
        nearest = simplex.project(w)
        assert nearest.min() >= 0.0
        assert nearest.sum() <= 1.5 + 1e-12
        for _ in range(20):
            other = rng.dirichlet(np.ones(5))[:4] * 1.5
            assert (w - nearest) @ (other - nearest) <= 1e-12


@pytest.mark.parametrize("name", PROBLEMS)
def test_paper_setting_ends_near_the_solution(name):
    problem = PROBLEMS[name]()
    result = ExactPenalty.paper(max_iter=1000).minimize(problem)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(solution(name), rel=1e-2)


def test_few_constraints_are_linearised_where_many_have_multipliers():
    """A start with thousands of multipliers must not lead to a dense matrix of that size."""
    model = Model.__new__(Model)
    model.guess = np.linspace(0.0, 1.0, 4000)
    near = model._nearly_active(np.linspace(1.0, 0.0, 4000), 0.999)
    assert len(near) < 200
    assert np.isin([3999, 0], near).all()  # the largest multiplier, and the largest value
