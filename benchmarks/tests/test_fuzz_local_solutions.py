"""The fuzzer verifies local solutions and counts them apart."""

from dataclasses import replace

import pytest
from _support.fuzz_cases import SPEC, case_of, kinds, tampered

from benchmarks.fuzz import descent, relations
from benchmarks.fuzz.fitting import run
from fairconstrained.domains import Box, L1Ball, L2Ball


def test_two_local_solutions_are_counted_apart(monkeypatch):
    """They are no failure of the solvers, unless the default solver has the worse one."""
    spec = replace(SPEC, n_rows=60)
    case = case_of("NeymanPearsonClassifier", spec, kappa=0.45)
    outcome = run(case)
    other = tampered(outcome, objective=1.1 * outcome.result.objective)
    monkeypatch.setattr(relations, "is_local_solution", lambda _: True)
    found = relations.same_objective("changed by row order", outcome, other)
    assert kinds(found) == {relations.SEVERAL_SOLUTIONS}
    found = relations.same_objective(relations.OTHER_SOLVER, other, outcome)
    assert kinds(found) == {relations.OTHER_SOLVER}


def test_solvers_may_differ_where_the_loss_does_not_determine_the_intercept(monkeypatch):
    outcome = run(case_of(loss="auc", constraint="group_auc"))
    better = tampered(outcome, objective=0.5 * outcome.result.objective)
    monkeypatch.setattr(relations, "is_local_solution", lambda _: True)
    found = relations.same_objective(relations.OTHER_SOLVER, outcome, better)
    assert kinds(found) == {relations.SEVERAL_SOLUTIONS}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"domain": L1Ball(0.5)},
        {"domain": L2Ball(0.5)},
        {"domain": Box(-0.3, 0.3)},
        {"goal": "fairness", "max_loss_increase": 0.01},
        {"goal": "fairness", "max_loss_increase": 0.01, "domain": L2Ball(0.5)},
    ],
)
def test_nothing_better_is_found_near_a_solution_and_something_near_another_point(settings):
    fair = run(case_of(**settings))
    assert fair.status == "converged"
    assert descent.is_local_solution(fair)
    scaled = tampered(fair, coef_=0.5 * fair.estimator.coef_)
    moved = tampered(
        scaled, objective=descent.local(scaled).objective(descent.local(scaled).answer)
    )
    assert not descent.is_local_solution(moved)


def test_sensitive_columns_that_the_model_may_see_are_features():
    spec = replace(SPEC, sensitive_in_X=True, group_kind="integers")
    outcome = run(case_of(spec=spec, use_sensitive=True))
    assert outcome.estimator.coef_.shape[1] == outcome.data.dense.shape[1] + 1
    assert descent.is_local_solution(outcome)


@pytest.mark.parametrize("radius", [None, 1.0])
def test_nothing_better_is_found_near_a_solution_of_a_problem_of_classes(radius):
    spec, settings = replace(SPEC, n_rows=60), {"surrogate": "logistic", "radius": radius}
    outcome = run(case_of("NeymanPearsonClassifier", spec, **settings))
    assert outcome.status == "converged"
    assert descent.is_local_solution(outcome)
    scaled = tampered(outcome, coef_=0.5 * outcome.estimator.coef_)
    problem = descent.local_of_classes(scaled)
    moved = tampered(scaled, objective=problem.objective(problem.answer))
    assert not descent.is_local_solution(moved)
