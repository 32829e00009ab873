"""The fuzzer verifies local solutions and counts them apart."""

from dataclasses import replace

import pytest
from _support.fuzz_cases import SPEC, case_of, kinds, tampered

from benchmarks.fuzz import descent, relations
from benchmarks.fuzz.fitting import run
from fairconstrained.domains import Box, L1Ball, L2Ball


def test_two_local_solutions_are_counted_apart(monkeypatch):
    """They are no failure, unless the default solver has the worse one and the loss is of rows."""
    outcome = run(case_of("NeymanPearsonClassifier", replace(SPEC, n_rows=60), kappa=0.45))
    other = tampered(outcome, objective=1.1 * outcome.result.objective)
    monkeypatch.setattr(relations, "is_local_solution", lambda _: True)
    found = relations.same_objective("changed by row order", outcome, other)
    assert kinds(found) == {relations.SEVERAL_SOLUTIONS}
    found = relations.same_objective(relations.OTHER_SOLVER, other, outcome)
    assert kinds(found) == {relations.OTHER_SOLVER}
    of_pairs = run(case_of(loss="auc", constraint="group_auc"))
    better = tampered(of_pairs, objective=0.5 * of_pairs.result.objective)
    found = relations.same_objective(relations.OTHER_SOLVER, of_pairs, better)
    assert kinds(found) == {relations.SEVERAL_SOLUTIONS}


IN_X = replace(SPEC, sensitive_in_X=True, group_kind="integers")
CLASSES = {"spec": replace(SPEC, n_rows=60), "surrogate": "logistic"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spec": IN_X, "use_sensitive": True},
        {"domain": L1Ball(0.5)},
        {"domain": Box(-0.3, 0.3)},
        {"goal": "fairness", "max_loss_increase": 0.01, "domain": L2Ball(0.5)},
        {"estimator": "NeymanPearsonClassifier", **CLASSES},
        {"estimator": "NeymanPearsonClassifier", "radius": 1.0, **CLASSES},
    ],
)
def test_nothing_better_is_found_near_a_solution_and_something_near_another_point(settings):
    fair = run(case_of(**settings))
    assert fair.status == "converged"
    assert descent.is_local_solution(fair)
    scaled = tampered(fair, coef_=0.5 * fair.estimator.coef_)
    problem = descent._covered(scaled)
    moved = tampered(scaled, objective=problem.objective(problem.answer))
    assert not descent.is_local_solution(moved)
