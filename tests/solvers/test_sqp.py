"""Sequential quadratic programming: solutions, models of second order, warm starts, limits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification, reference
from numpy.testing import assert_allclose

from fairconstrained import DemographicParity, FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import PartialDemographicParity, ROCParity
from fairconstrained.constraints.base import Constraint
from fairconstrained.domains import L2Ball
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SQP, AugmentedLagrangian
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.curvature import QuasiNewton
from fairconstrained.solvers.sqp import next_step
from fairconstrained.utils.numerics import capped_dual

ITS_OWN = [name for name, make in PROBLEMS.items() if make().twice_differentiable]


def fitted(constraint: str, kappa: float, **options: object) -> FairLogisticClassifier:
    X, y, groups = make_biased_classification(1000, n_features=20, gap=0.3, random_state=0)
    return FairLogisticClassifier(constraint, kappa, **options).fit(X, y, sensitive_features=groups)


def parity(kappa: float) -> Problem:
    return classification(DemographicParity(kappa))


@cache
def best(name: str) -> float:
    return reference(PROBLEMS[name]())


@pytest.mark.parametrize("kappa", [0.1, 0.02, 0.0])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_it_takes_a_few_data_passes_where_first_order_methods_take_twenty(
    constraint: str, kappa: float
) -> None:
    found = fitted(constraint, kappa, solver="sqp")
    other = fitted(constraint, kappa, solver="augmented-lagrangian")
    assert isinstance(found.result_.solver, SQP)
    assert found.result_.converged
    assert found.multipliers_.max() > 0.1
    assert found.objective_ == pytest.approx(other.objective_, abs=1e-4)
    assert found.result_.data_passes <= 15
    assert found.result_.data_passes < 0.75 * other.result_.data_passes


def at_thresholds(constraint: Constraint) -> Problem:
    X, y, groups = make_biased_classification(400, 4, gap=0.4, random_state=0)
    return FairLogisticClassifier(constraint).bind(X, y, None, groups).problem


TWICE_DIFFERENTIABLE = {
    **{name: PROBLEMS[name] for name in ITS_OWN},
    "few thresholds": lambda: at_thresholds(ROCParity(thresholds=[-1.0, 0.5])),
    "many thresholds": lambda: at_thresholds(ROCParity(thresholds=np.linspace(-2.0, 2.0, 60))),
    "few free thresholds": lambda: at_thresholds(PartialDemographicParity(n_ranks=4)),
    "many free thresholds": lambda: at_thresholds(PartialDemographicParity(n_ranks=60)),
}


@pytest.mark.parametrize("name", TWICE_DIFFERENTIABLE)
def test_hessian_is_the_derivative_of_the_gradient(name: str) -> None:
    problem, rng = TWICE_DIFFERENTIABLE[name](), np.random.default_rng(0)
    assert problem.twice_differentiable
    w = rng.standard_normal(problem.n_variables)
    multipliers = rng.random(problem.n_constraints)
    found = problem.at(w).hessian(multipliers)
    h = 1e-5
    for k, unit in enumerate(np.eye(problem.n_variables)):
        ahead, behind = (problem.at(w + s * h * unit).gradient(multipliers) for s in (1, -1))
        assert_allclose(found[k], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)


def test_an_indefinite_hessian_does_not_stop_a_run() -> None:
    problem = parity(0.05)
    far = np.full(problem.n_variables, 30.0)
    strong = np.array([0.0, 1e3])
    assert np.linalg.eigvalsh(problem.at(far).hessian(strong))[0] < 0.0
    result = SQP().minimize(parity(0.05), warm=Start(far, strong))
    assert result.converged
    assert result.objective == pytest.approx(best("demographic parity"), abs=1e-4)


@pytest.mark.parametrize("cap", [1e6, 0.5])
@pytest.mark.parametrize("seed", range(10))
def test_dual_problem_meets_its_optimality_conditions(seed: int, cap: float) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((6, 3))  # gradients that depend on each other
    quadratic, linear = rows @ rows.T, rows @ rng.standard_normal(3)
    found = capped_dual(quadratic, linear, cap, np.maximum(rng.standard_normal(6), 0.0))
    slope = linear - quadratic @ found
    level = 0.0 if found.sum() < cap * (1.0 - 1e-9) else max(slope.max(), 0.0)
    assert found.min() >= 0.0
    assert found.sum() <= cap * (1.0 + 1e-9)
    assert slope.max() <= level + 1e-7
    assert abs((slope - level) @ found) <= 1e-6 * (1.0 + found.max())


@pytest.mark.parametrize("name", ITS_OWN)
def test_the_step_after_a_solution_makes_it_more_accurate_without_a_data_pass(name: str) -> None:
    problem = PROBLEMS[name]()
    result, at = SQP(tol=1e-3).solve(problem)
    passes = problem.passes
    assert result.state is not None
    step = next_step(at, result)
    assert step is not None
    assert problem.passes == passes
    after = KKT.of(problem.at(at.w + step[0]), step[1])
    assert after.error <= max(0.5 * KKT.of(at, result.multipliers).error, 1e-9)


def test_inside_of_a_ball_steps_are_those_of_the_whole_space() -> None:
    problem, solver = classification(DemographicParity(0.05)), SQP(memory=30)
    free = solver.minimize(problem)
    norm = float(np.linalg.norm(free.w))
    wide = solver.minimize(replace(problem, domain=L2Ball(2.0 * norm)))
    assert wide.converged and wide.data_passes == free.data_passes
    assert_allclose(wide.w, free.w)
    narrow = solver.minimize(replace(problem, domain=L2Ball(0.5 * norm)))
    assert narrow.converged and narrow.objective > free.objective
    assert np.linalg.norm(narrow.w) == pytest.approx(0.5 * norm, rel=1e-6)


def test_other_solvers_have_no_such_step() -> None:
    problem = parity(0.05)
    result, at = AugmentedLagrangian().solve(problem)
    assert result.state is not None
    assert next_step(at, result) is None


def bfgs_matrix(steps: np.ndarray, changes: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return H by the dense BFGS update, Nocedal and Wright equation 6.17."""
    s, y = steps[-1], changes[-1]
    H = (s @ y) / (y @ (diagonal * y)) * np.diag(diagonal)
    for s, y in zip(steps, changes, strict=True):
        V = np.eye(s.size) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("n_pairs", [1, 4, 9])
def test_inverse_hessian_is_that_of_the_dense_update(rng, n_pairs) -> None:
    n, size = 6, 5
    root = rng.normal(size=(n, n))
    hessian = root @ root.T + np.eye(n)
    steps = rng.normal(size=(n_pairs, n))
    diagonal = rng.uniform(0.5, 2.0, n)
    approximation = QuasiNewton(diagonal, size)
    for step in steps:
        approximation.update(step, hessian @ step, step)
    assert approximation.n_stored == min(n_pairs, size)
    expected = bfgs_matrix(steps[-size:], steps[-size:] @ hessian, diagonal)
    assert_allclose(approximation.inverse(np.eye(n)), expected, rtol=1e-9, atol=1e-12)
    vector = rng.normal(size=n)
    assert_allclose(approximation.inverse(vector), expected @ vector, rtol=1e-9)
    latest = hessian @ steps[-1]
    assert_allclose(approximation.inverse(latest), steps[-1], rtol=1e-9, atol=1e-12)


def test_pairs_without_positive_curvature_are_damped() -> None:
    approximation = QuasiNewton(np.ones(2))
    approximation.update(np.ones(2), -np.ones(2), np.ones(2))
    assert_allclose(approximation.inverse(np.full(2, 0.2)), np.ones(2))
    approximation.update(np.ones(2), np.zeros(2), np.zeros(2))
    assert approximation.n_stored == 1
