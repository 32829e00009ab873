"""The search for the least level: steps within the interval, and the solver near the solution."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairconstrained import (
    FairHingeClassifier,
    FairLogisticClassifier,
    make_biased_classification,
)
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.solvers import (
    PLADA,
    ExactPenalty,
    LevelSearch,
    Smoothing,
    Status,
    level_search,
)
from fairconstrained.solvers.level_search import _Search


def test_the_interval_is_halved_where_newton_steps_are_short():
    """Where the lower level is that of a wall, Newton's method goes along it in tiny steps."""
    search = _Search(target=0.135, level=0.06, high=0.09)
    for _ in range(20):
        level, wall = search.level, search.level < 3e-5
        objective = 0.0286 if wall else 0.017 * (1.0 - level / 0.1)
        price = 2e4 if wall else 0.17
        search.learn(SimpleNamespace(objective=objective, violation=0.0), 0.0, price, 1e-4, level)
    assert 3e-5 <= search.high <= 1e-4 and search.low < 3e-5


def test_a_newton_step_is_exact_where_the_frontier_is_a_parabola():
    search = _Search(target=0.1, level=0.25, high=0.3)
    answer = SimpleNamespace(objective=0.05**2, violation=0.0)  # (0.3 - level)**2
    search.learn(answer, 0.0, 2.0 * 0.05, 1e-4, search.level)
    assert search.level == pytest.approx(0.2, abs=1e-12)


@pytest.mark.parametrize("stalls", [False, True])
def test_the_solver_of_the_levels_is_exchanged_if_it_stalls_near_the_solution(stalls, monkeypatch):
    class Far(Smoothing):
        """The solver far from the solution; its answers may be reported as stalled."""

        def solve(self, *args, **kwargs):
            result, at = super().solve(*args, **kwargs)
            return (replace(result, status=Status.STALLED) if stalls else result), at

    exchanged = []

    def solver_for(self, problem, *, near=False):
        exchanged.append(near)
        return Smoothing() if near else Far(ExactPenalty())

    X, y, groups = make_biased_classification(600, gap=0.3, random_state=0)
    clf = FairHingeClassifier("roc_parity", goal="fairness", max_loss_increase=0.003)
    usual = clf.fit(X, y, sensitive_features=groups).result_
    monkeypatch.setattr(LevelSearch, "_solver_for", solver_for)
    monkeypatch.setattr(level_search, "_NEAR", 0.5)
    result = clf.fit(X, y, sensitive_features=groups).result_
    assert usual.converged and result.converged
    assert result.objective == pytest.approx(usual.objective, rel=1e-3)
    assert any(exchanged) == stalls


@pytest.mark.parametrize("estimator", [FairLogisticClassifier, FairHingeClassifier])
@pytest.mark.parametrize("constraint", sorted(set(CONSTRAINTS) - {"query_parity"}))
def test_the_solver_of_the_levels_does_not_matter(constraint, estimator):
    X, y, groups = make_biased_classification(600, 5, gap=0.4, random_state=0)
    clf = estimator(constraint, goal="fairness", max_loss_increase=0.003)
    objectives = []
    for solver in (LevelSearch(), LevelSearch(Smoothing())):
        result = clf.set_params(solver=solver).fit(X, y, sensitive_features=groups).result_
        assert result.converged and result.violation <= 1e-4
        objectives.append(result.objective)
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-3, abs=1e-4)


def test_all_parts_of_a_run_have_its_random_state():
    X, y, groups = make_biased_classification(300, 4, gap=0.4, random_state=0)
    bound = FairLogisticClassifier().bind(X, y, None, groups).problem
    problem = bound.epigraph(0.6)
    solver = LevelSearch(PLADA.stochastic(max_iter=20, polish=False), max_iter=2)
    found = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002 the global generator plays no part
        found.append(solver.minimize(problem, random_state=0).w)
    assert_array_equal(*found)
