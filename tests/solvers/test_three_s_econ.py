"""3S-Econ: what is special to it; that it solves the problems is in the grid of test_solvers."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, rate_between, reference
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from fairconstrained import DemographicParity, FairLogisticClassifier, make_biased_classification
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers._tools.sampling import StratifiedSampler
from fairconstrained.solvers._tools.scales import Scales
from fairconstrained.solvers._tools.step_sizes import ConstantSteps, CurvatureSteps, RootSteps, Run
from fairconstrained.solvers.result import Status
from fairconstrained.solvers.three_s_econ import ThreeSEcon, _Penalty, _Spider

SHORT = ThreeSEcon.stochastic(max_iter=1000)


def test_deterministic_version_converges_with_the_right_multipliers() -> None:
    problem = PROBLEMS["demographic parity"]()
    result = ThreeSEcon().minimize(problem)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(reference(problem), rel=1e-4)
    assert result.multipliers == pytest.approx([0.0, 0.98], abs=0.01)


@pytest.mark.parametrize("name", [*NON_SMOOTH, "box", "infeasible start"])
def test_stochastic_version_ends_feasible_and_near_the_deterministic_one(name: str) -> None:
    make = {**PROBLEMS, **NON_SMOOTH}[name]
    exact = ThreeSEcon().minimize(make())
    result = SHORT.minimize(make(), random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(exact.objective, rel=1e-2)


def test_stochastic_version_is_reproducible() -> None:
    first, again, other = (
        SHORT.minimize(PROBLEMS["demographic parity"](), random_state=seed).w for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_deterministic_passes_are_steps_measurements_and_the_probe() -> None:
    problem = PROBLEMS["demographic parity"]()
    solver = ThreeSEcon(
        max_iter=40,
        check_every=40,
        nu=0.1,
        steps=ConstantSteps(0.1),
        repair=False,
        polish=False,
    )
    assert solver.minimize(problem).data_passes == 41  # the last one is at the point returned


def test_stochastic_passes_are_counted_in_fractions() -> None:
    problem = PROBLEMS["demographic parity"]()
    solver = ThreeSEcon.paper(stochastic=True, max_iter=20, batch_size=20, q=20)
    # One period: 400 rows at either end, then 19 steps of 2 batches of 20 rows, one of them twice.
    assert solver.minimize(problem, random_state=0).data_passes == pytest.approx(
        2 + 19 * 3 * 20 / 400, rel=0.05
    )


def test_estimate_of_the_constraints_stays_close_between_big_batches() -> None:
    """SPIDER's estimate after 20 short steps is far nearer than what a small batch says."""
    problem, rng = PROBLEMS["demographic parity"](), np.random.RandomState(0)
    sampler, w = StratifiedSampler(problem, 20, rng), problem.start()
    errors, own = [], []
    estimate = _Spider()
    for _ in range(30):
        estimate.reset(problem.at(w))
        for _ in range(20):
            w = w + 0.02 * rng.standard_normal(w.size)
            batch = sampler.draw().at(w)
            estimate.follow(batch)
        errors.append(estimate.values - problem.at(w).constraints)
        own.append(batch.constraints - problem.at(w).constraints)
    assert np.std(errors) < 0.4 * np.std(own)
    assert np.mean(errors, axis=0) == pytest.approx(np.zeros(2), abs=3 * np.std(errors) / 30**0.5)


def test_checkpoints_may_be_batches() -> None:
    solver = SHORT.with_options(checkpoint_size=200)
    result = solver.minimize(PROBLEMS["demographic parity"](), random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(PROBLEMS["demographic parity"]()), rel=2e-2)


def test_penalty_is_the_gradient_of_the_smoothed_one() -> None:
    """beta clip(u / nu, 0, 1) is the derivative of beta H_nu(u) (3S-Econ, equation 8)."""
    penalty, u = _Penalty(10.0, 0.5, 0.0, np.zeros(1)), np.linspace(-1.0, 1.0, 41)
    huber = 10.0 * np.where(u > 0.5, u - 0.25, np.maximum(u, 0.0) ** 2)
    slopes = np.gradient(huber, u)[1:-1]
    assert penalty.multipliers(u)[1:-1] == pytest.approx(slopes, abs=0.26)
    penalty.move_margins(u)
    assert np.array_equal(penalty.margins, np.zeros_like(u))


def test_beta_bounds_the_multipliers() -> None:
    result = ThreeSEcon(beta=0.2, max_iter=300, polish=False).minimize(
        PROBLEMS["demographic parity"]()
    )
    assert result.multipliers.max() <= 0.2


def test_steps_of_the_paper() -> None:
    run = Run(max_iter=1000, period=20, curvature=4.0, exact=True)
    assert [ConstantSteps().length(k, run) for k in (0, 999)] == [0.01, 0.01]
    assert [RootSteps().length(k, run) for k in (0, 19, 20, 79, 80)] == pytest.approx(
        [0.01, 0.01, 0.005, 0.005, 0.01 / 3]
    )
    assert CurvatureSteps().length(500, run) == 0.25
    noisy = Run(max_iter=1000, period=20, curvature=4.0, exact=False)
    assert CurvatureSteps().length(500, noisy) == 0.125


def test_paper_presets_have_the_settings_of_section_four() -> None:
    exact, sampled = ThreeSEcon.paper(), ThreeSEcon.paper(stochastic=True, max_iter=50)
    assert (exact.beta, exact.nu, exact.q, exact.batch_size) == (10.0, 1e-5, 1, None)
    assert (sampled.nu, sampled.q, sampled.batch_size) == (1e-5, "sqrt", "sqrt")
    assert exact.steps.size == sampled.steps.size == 0.01
    assert isinstance(sampled.steps, RootSteps)
    assert exact.with_options(max_iter=7).max_iter == 7


def test_paper_preset_descends_and_slides_along_the_constraint() -> None:
    problem = PROBLEMS["demographic parity"]()
    result = ThreeSEcon.paper(check_every=1).minimize(problem)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(problem), rel=2e-2)


def test_beta_reaches_the_solver_and_is_cloned() -> None:
    solver = clone(SHORT).set_params(beta=3.0, steps__factor=0.7)
    assert (solver.beta, solver.steps.factor) == (3.0, 0.7)
    X, y, groups = make_biased_classification(random_state=0)
    fair = FairLogisticClassifier(kappa=0.05, solver=ThreeSEcon()).set_params(solver__beta=5.0)
    assert fair.fit(X, y, sensitive_features=groups).result_.solver.beta == 5.0


def test_grid_search_reaches_beta_of_a_solver_object() -> None:
    X, y, groups = make_biased_classification(300, random_state=0)
    X = np.column_stack([X, groups])
    solver = ThreeSEcon(max_iter=50, tol=1.0)
    fair = FairLogisticClassifier(solver=solver, sensitive_columns=[-1])
    search = GridSearchCV(fair, {"solver__beta": [2.0, 20.0], "kappa": [0.1]}, cv=2).fit(X, y)
    assert list(search.cv_results_["param_solver__beta"]) == [2.0, 20.0]
    assert search.best_estimator_.result_.solver.beta == search.best_params_["solver__beta"]
    assert solver.beta == 10.0


def test_infeasible_problem_ends_near_the_smallest_violation() -> None:
    for solver in (ThreeSEcon(max_iter=300), SHORT):
        result = solver.minimize(rate_between(0.6, 0.2), random_state=0)
        assert result.status is Status.INFEASIBLE
        assert result.violation == pytest.approx(0.2, abs=0.01)


def test_warm_start_takes_fewer_passes() -> None:
    problem = classification(DemographicParity(0.05))
    cold = ThreeSEcon().minimize(problem)
    warm = ThreeSEcon().minimize(problem, warm=cold)
    assert warm.converged
    assert warm.data_passes < cold.data_passes


def test_restored_point_is_feasible_and_near() -> None:
    problem = rate_between(0.8, 0.9)
    at = problem.at(problem.start())
    found = restore(at, 1e-4)
    assert at.violation > 0.2
    assert found.violation <= 1e-4
    feasible = restore(found, 1e-4)
    assert feasible is found


def test_restoration_respects_the_domain_and_never_raises_the_violation() -> None:
    problem = PROBLEMS["box"]()
    at = problem.at(problem.domain.project(np.full(problem.n_variables, 1.0)))
    found = restore(at, 1e-4)
    assert found.violation <= at.violation
    assert np.array_equal(problem.domain.project(found.w), found.w)


def test_scales_are_those_of_the_hessian_and_the_jacobian() -> None:
    problem = PROBLEMS["demographic parity"]()
    at = problem.at(problem.start())
    scales = Scales.near(at, np.random.RandomState(0), n_iter=50)
    X = np.column_stack([problem.objective.model.X, np.ones(400)])
    hessian = X.T @ X / 1600 + np.diag([1e-2] * 4 + [0.0])
    jacobian = np.array([at.gradient(unit, objective=0.0) for unit in np.eye(2)])
    largest = np.linalg.eigvalsh(hessian)[-1]  # at 0 the loss is most bent: less on the way
    assert 0.8 * largest < scales.curvature < 1.1 * largest
    assert scales.slope**2 == pytest.approx(1.1 * np.linalg.norm(jacobian, 2) ** 2, rel=0.05)
