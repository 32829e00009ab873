"""3S-Econ: what is special to it; that it solves the problems is in the grid of test_solvers."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, rate_between, reference
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.solvers import ThreeSEcon
from fairconstrained.solvers.result import Status

SHORT = ThreeSEcon.stochastic(max_iter=300)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", [*NON_SMOOTH, "box", "infeasible start"])
def test_stochastic_version_ends_feasible_and_near_the_deterministic_one(name: str) -> None:
    make = {**PROBLEMS, **NON_SMOOTH}[name]
    exact = ThreeSEcon().minimize(make())
    result = SHORT.minimize(make(), random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(exact.objective, rel=1e-2)


def test_stochastic_version_is_reproducible() -> None:
    solver = ThreeSEcon.stochastic(max_iter=100, polish=False)
    first, again, other = (
        solver.minimize(PROBLEMS["demographic parity"](), random_state=seed).w for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_stochastic_passes_are_counted_in_fractions() -> None:
    problem = PROBLEMS["demographic parity"]()
    solver = ThreeSEcon.paper(stochastic=True, max_iter=20, batch_size=20, q=20)
    # One period: 400 rows at either end, then 19 steps of 2 batches of 20 rows, one of them twice.
    assert solver.minimize(problem, random_state=0).data_passes == pytest.approx(
        2 + 19 * 3 * 20 / 400, rel=0.05
    )


def test_checkpoints_may_be_batches() -> None:
    solver = SHORT.with_options(checkpoint_size=200)
    result = solver.minimize(PROBLEMS["demographic parity"](), random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(PROBLEMS["demographic parity"]()), rel=2e-2)


def test_paper_presets_have_the_settings_of_section_four() -> None:
    exact, sampled = ThreeSEcon.paper(), ThreeSEcon.paper(stochastic=True, max_iter=50)
    assert (exact.beta, exact.nu, exact.q, exact.batch_size) == (10.0, 1e-5, 1, None)
    assert (sampled.nu, sampled.q, sampled.batch_size) == (1e-5, "sqrt", "sqrt")
    assert exact.alpha == sampled.alpha == 0.01
    assert not (exact.polish or sampled.polish)
    assert exact.with_options(max_iter=7).max_iter == 7


def test_paper_preset_descends_and_slides_along_the_constraint() -> None:
    problem = PROBLEMS["demographic parity"]()
    result = ThreeSEcon.paper(check_every=1).minimize(problem)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(problem), rel=2e-2)


def test_beta_reaches_the_solver_and_is_cloned() -> None:
    assert clone(SHORT).set_params(beta=3.0).beta == 3.0
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
