"""The fuzzer's checks find defects that are planted, and nothing in a fit that is right."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from _support.fuzz_cases import SPEC, case_of, kinds, tampered
from sklearn.linear_model import LogisticRegression

from benchmarks.__main__ import main
from benchmarks.fuzz import checks, command, descent, relations
from benchmarks.fuzz.command import Verdict, describe, examine, failures_of, table, verdicts
from benchmarks.fuzz.fitting import Case, measure, run
from benchmarks.harness.processes import OverBudget
from fairconstrained import ConvergenceWarning, InfeasibleConstraintWarning
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, ROCParity
from fairconstrained.domains import Box, L1Ball, L2Ball
from fairconstrained.solvers import Status

OF_THEIR_OWN = {
    "roc_parity": ROCParity(thresholds=[-1.0, 0.0, 1.0]),
    "bounded_group_loss": CLASSIFIER_CONSTRAINTS["bounded_group_loss"](0.69),
    "partial_dp": CLASSIFIER_CONSTRAINTS["partial_dp"](ranks=(0.2, 0.7)),
    "weak_partial_dp": CLASSIFIER_CONSTRAINTS["weak_partial_dp"](ranks=(0.2, 0.7)),
}
THREE = replace(SPEC, n_classes=3)
NEYMAN_PEARSON, DASK = "NeymanPearsonClassifier", "dask.FairLogisticClassifier"


@pytest.fixture(scope="module")
def fair():
    return run(case_of())


@pytest.fixture(scope="module")
def unfair():
    """What looks like a fit with kappa 0.05, and is one without a bound."""
    return tampered(run(case_of(kappa=1.0)), kappa=0.05)


def warned(outcome, category):
    """Return the outcome with one more warning."""
    message = warnings.WarningMessage("it is violated", category, __file__, 1)
    return replace(outcome, caught=(message,))


@pytest.mark.parametrize("name", [name for name in CLASSIFIER_CONSTRAINTS if name != "churn"])
def test_figures_of_every_constraint_agree_with_the_formulas(name):
    outcome = run(case_of(constraint=OF_THEIR_OWN.get(name, name), kappa=0.1))
    assert measure(outcome) is not None and measure(outcome, decisions=True) is not None
    assert not list(checks.check_figures(outcome))
    assert not list(checks.check_objective(outcome))


PLANTED = [  # a case, what is changed in its fit, and a class of failure that must be found
    (case_of(), {"coef_": np.nan}, "not finite"),
    (case_of(), {"objective_": np.nan}, "not finite"),
    (case_of(), {"objective_": 2.0}, "worse than a constant"),
    (case_of(), {"objective_": 0.9}, "wrong figure"),
    (case_of(), {"violation_": 0.9}, "wrong figure"),
    (case_of(), {"gap_": 0.9}, "wrong figure"),
    (case_of(), {"decision_gap_": 0.9}, "wrong figure"),
    (case_of(), {"feature_scale_": np.ones(3)}, "wrong figure"),
    (case_of(), {"data_passes": 1e6}, "over budget"),
    (case_of(NEYMAN_PEARSON, THREE), {"kappa_": [1e-3, 1e-3, np.inf]}, "silent violation"),
    (case_of(NEYMAN_PEARSON, THREE), {"objective_": 9.0}, "worse than a constant"),
    *(
        (case_of(*of, constraint=constraint, kappa=kappa), change, kind)
        for *of, constraint in (
            ("FairLogisticClassifier", THREE, "demographic_parity"),
            ("FairRanker", SPEC, "query_parity"),
            (DASK, SPEC, "demographic_parity"),
        )
        for kappa, change, kind in (
            (0.02, {"objective_": 0.1}, "wrong figure"),
            (0.02, {"violation_": 0.5}, "wrong figure"),
            (1.0, {"kappa": 1e-3}, "silent violation"),
        )
    ),
]


@pytest.mark.parametrize(("case", "change", "kind"), PLANTED)
def test_wrong_attributes_are_found_and_nothing_in_a_fit_that_is_right(case, change, kind):
    if case.estimator == DASK:
        pytest.importorskip("dask")
    outcome = run(case)
    assert not list(failures_of(outcome)), outcome.trace
    assert any(failure.kind == kind for failure in failures_of(tampered(outcome, **change)))


def test_wrong_outputs_are_found(fair):
    nan = np.full_like(fair.probabilities, np.nan)
    assert kinds(checks.check_finite(replace(fair, probabilities=nan))) == {"not finite"}
    moved = replace(fair, scores=fair.scores + 1e-6)
    assert kinds(checks.check_scores(moved)) == {"wrong figure"}
    turned = replace(tampered(fair), scores=-3.0 * fair.scores)
    del turned.estimator.coef_  # as other models: the loss of the scores is compared
    assert kinds(checks.check_constant(turned)) == {"worse than a constant"}
    assert kinds(checks.check_warnings(warned(fair, RuntimeWarning))) == {"foreign warning"}
    errors = {"crash": AssertionError(), "error for valid input": ValueError("no")}
    for kind, error in {**errors, "over budget": OverBudget("61")}.items():
        assert kinds(checks.check_returns(replace(fair, error=error))) == {kind}


def test_violations_are_found_unless_a_warning_says_them(unfair):
    decisions = tampered(unfair, enforce="decision")
    assert kinds(checks.check_violation(unfair)) == {"silent violation"}
    assert kinds(checks.check_violation(decisions)) == {"silent violation of decisions"}
    for category in (ConvergenceWarning, InfeasibleConstraintWarning):
        said = warned(tampered(unfair, status=Status.ITERATION_LIMIT), category)
        assert not list(checks.check_violation(said))


def test_false_certificates_and_statuses_are_found(fair, unfair):
    half = tampered(fair, coef_=0.5 * fair.estimator.coef_)
    assert kinds(descent.check_certificate(half)) == {"false certificate"}
    infeasible = tampered(unfair, status=Status.INFEASIBLE, violation=0.1)
    for check in (descent.check_infeasible, checks.check_constant):
        assert kinds(check(infeasible)) == {"misleading status"}


EXACT = ("again", "units", "groups", "classes")  # scores must agree; else objectives


@pytest.mark.parametrize("name", [*EXACT, "order", "weights", "container", "solver"])
def test_fits_that_change_are_found(fair, monkeypatch, name):
    rng = np.random.default_rng(0)
    assert not list(relations.check_relation(name, fair, rng))
    other = tampered(fair, objective=1.1 * fair.result.objective)
    other = replace(fair, scores=fair.scores + 1e-3) if name in EXACT else other
    monkeypatch.setattr(relations, "run", lambda *_: other)
    found = relations.check_relation(name, fair, rng)
    assert kinds(found) == {relations.RELATIONS[name].kind}


def test_paths_are_checked():
    outcome = run(case_of("fairness_path"))
    assert not list(checks.check_path(outcome))
    points = outcome.estimator.estimators
    models = [copy.copy(point).set_params(kappa=point.kappa / 2) for point in points]
    path = replace(outcome.estimator, estimators=models)
    assert "silent violation" in kinds(checks.check_path(replace(outcome, estimator=path)))


@pytest.mark.parametrize("per_group", [False, True])
def test_thresholds_that_violate_or_are_not_the_most_accurate_are_found(per_group):
    settings = {"constraint": "demographic_parity", "cv": "prefit", "kappa": 0.1}
    settings |= {"estimator": LogisticRegression(), "per_group": per_group}
    outcome = run(Case("FairThresholds", settings, SPEC))
    assert not list(failures_of(outcome))
    nobody = replace(outcome, scores=-np.ones_like(outcome.scores))
    assert kinds(failures_of(nobody)) == {"worse than a threshold"}
    first = np.where(outcome.data.codes[:, 0] == 0, 1.0, -1.0)
    assert "silent violation of decisions" in kinds(failures_of(replace(outcome, scores=first)))


def test_every_kind_of_estimator_is_drawn():
    drawn = [Case.of(11, k) for k in (8, 20, 32, 44, 11, 23)]
    assert {case.kind for case in drawn} == {
        "several classes", "FairThresholds", "FairRanker", DASK, "FairNetworkClassifier",
        "FairBoostingClassifier",
    }  # fmt: skip


def test_a_process_that_hangs_is_counted_and_the_next_case_begins():
    found = list(verdicts(0, 60.0, count=2, wall=0.0))
    assert [verdict.case.index for verdict in found] == [0, 1]
    assert all(kinds(verdict.failures) == {"hang"} for verdict in found)


def test_the_command_counts_reproduces_and_prints_a_table_when_interrupted(capsys, monkeypatch):
    right = examine(case_of())
    wrong = Verdict(right.case, 1.0, (("returns", (checks.Failure("crash", "it broke"),)),), 1)
    text = table([right, wrong])
    assert not right.failures and "1 cases with failures" in text and "  crash  " in text
    assert "DemographicParity" in text and "it broke" in describe(wrong)
    made = dict(right.checked)
    assert {"returns", "violation", "figures", "constant"} < set(made) and not any(made.values())

    def interrupted(seed, seconds, **options):
        yield right
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "verdicts", interrupted)
    main(["fuzz", "--seed", "0"])
    printed = capsys.readouterr().out
    assert "interrupted" in printed and "1 cases" in printed
    assert main(["fuzz", "--reproduce", "0:4"]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    monkeypatch.setattr(command, "examine", lambda case, changed: wrong)
    with pytest.raises(SystemExit) as ended:
        main(["fuzz", "--reproduce", "0:4"])
    assert ended.value.code == 1 and "it broke" in capsys.readouterr().out


def test_two_local_solutions_are_counted_apart(monkeypatch):
    """They are no failure, unless the default solver has the worse one and the loss is of rows."""
    outcome = run(case_of(NEYMAN_PEARSON, replace(SPEC, n_rows=60), kappa=0.45))
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
        {"spec": IN_X, "use_sensitive": False},
        {"domain": L1Ball(0.5)},
        {"domain": Box(-0.3, 0.3)},
        {"goal": "fairness", "max_loss_increase": 0.01, "domain": L2Ball(0.5)},
        {"estimator": NEYMAN_PEARSON, **CLASSES},
        {"estimator": NEYMAN_PEARSON, "radius": 1.0, **CLASSES},
    ],
)
def test_nothing_better_is_found_near_a_solution_and_something_near_another_point(settings):
    fair = run(case_of(**settings))
    assert fair.status == "converged"
    assert descent.is_local_solution(fair)
    scaled = tampered(fair, coef_=0.5 * fair.estimator.coef_)
    problem = descent.covered(scaled)
    moved = tampered(scaled, objective=problem.objective(problem.answer))
    assert not descent.is_local_solution(moved)
