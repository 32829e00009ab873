"""The fuzzer verifies local solutions and counts them apart."""

from dataclasses import replace

from _support.fuzz_cases import SPEC, case_of, kinds, tampered

from benchmarks.fuzz import descent, relations
from benchmarks.fuzz.fitting import run


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


def test_nothing_better_is_found_near_a_solution_and_something_near_another_point():
    fair = run(case_of())
    assert descent.is_local_solution(fair)
    scaled = tampered(fair, coef_=0.5 * fair.estimator.coef_)
    moved = tampered(
        scaled, objective=descent.local(scaled).objective(descent.local(scaled).answer)
    )
    assert not descent.is_local_solution(moved)


def test_nothing_better_is_found_near_a_solution_of_a_problem_of_classes():
    case = case_of("NeymanPearsonClassifier", replace(SPEC, n_rows=60), surrogate="logistic")
    outcome = run(case)
    assert outcome.status == "converged"
    assert descent.is_local_solution(outcome)
    scaled = tampered(outcome, coef_=0.5 * outcome.estimator.coef_)
    problem = descent.local_of_classes(scaled)
    moved = tampered(scaled, objective=problem.objective(problem.answer))
    assert not descent.is_local_solution(moved)
