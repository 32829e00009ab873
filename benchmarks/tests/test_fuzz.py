"""The fuzzer's checks find defects that are planted, and nothing in a fit that is right."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from _support.fuzz_cases import SPEC, case_of, kinds, tampered
from sklearn.linear_model import LogisticRegression

from benchmarks.__main__ import main
from benchmarks.fuzz import checks, classes, command, descent, oracle, relations
from benchmarks.fuzz.data import make
from benchmarks.fuzz.drawing import Chosen
from benchmarks.fuzz.fitting import Case, OverBudget, limited, measure, run
from benchmarks.fuzz.oracle import examine, failures_of
from benchmarks.fuzz.report import Tally, describe
from benchmarks.fuzz.runner import verdicts
from fairconstrained import ConvergenceWarning, InfeasibleConstraintWarning
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, ROCParity
from fairconstrained.solvers import Status

OWN_GRID = {"roc_parity": ROCParity(thresholds=[-1.0, 0.0, 1.0])}
RANGES = {
    name: CLASSIFIER_CONSTRAINTS[name](ranks=(0.2, 0.7))
    for name in ("partial_dp", "weak_partial_dp")
}
BOUNDS = {"bounded_group_loss": CLASSIFIER_CONSTRAINTS["bounded_group_loss"](0.69)}


@pytest.fixture(scope="module")
def fair():
    return run(case_of())


@pytest.fixture(scope="module")
def unfair():
    """What looks like a fit with kappa 0.05, and is one without a bound."""
    outcome = run(case_of(kappa=1.0))
    return tampered(outcome, kappa=0.05)


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_figures_of_every_constraint_agree_with_the_formulas(name):
    given = {**OWN_GRID, **RANGES, **BOUNDS}.get(name, name)
    case = case_of(constraint=given, kappa=0.1)
    outcome = run(case)
    assert measure(outcome) is not None and measure(outcome, decisions=True) is not None
    assert not list(checks.check_figures(case, outcome))
    assert not list(checks.check_objective(case, outcome))


@pytest.mark.parametrize("index", [11, 23])
def test_some_cases_are_networks_and_boosted_trees(index):
    name, module = {
        11: ("FairNetworkClassifier", "torch"),
        23: ("FairBoostingClassifier", "lightgbm"),
    }[index]
    pytest.importorskip(module)
    case = Case.of(11, index)
    assert case.chosen.estimator == name
    assert not examine(case, changed=1).failures


def test_a_fit_that_is_right_has_no_failures(fair):
    assert not list(failures_of(case_of(), fair))


def test_a_silent_violation_is_found(unfair):
    assert kinds(checks.check_violation(case_of(), unfair)) == {"silent violation"}


def test_a_silent_violation_of_decisions_is_found(unfair):
    outcome = tampered(unfair, enforce="decision")
    found = checks.check_violation(case_of(), outcome)
    assert kinds(found) == {"silent violation of decisions"}


@pytest.mark.parametrize("category", [ConvergenceWarning, InfeasibleConstraintWarning])
def test_a_violation_with_a_warning_is_not_a_failure(unfair, category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("the bound is violated", category, stacklevel=1)
    outcome = replace(tampered(unfair, status=Status.ITERATION_LIMIT), caught=tuple(caught))
    assert not list(checks.check_violation(case_of(), outcome))


@pytest.mark.parametrize("attribute", ["coef_", "objective_", "multipliers_"])
def test_nan_is_found(fair, attribute):
    outcome = tampered(fair, **{attribute: np.nan * getattr(fair.estimator, attribute)})
    assert kinds(checks.check_finite(case_of(), outcome)) == {"not finite"}


def test_probabilities_that_are_nan_are_found(fair):
    outcome = replace(fair, probabilities=np.full_like(fair.probabilities, np.nan))
    assert kinds(checks.check_finite(case_of(), outcome)) == {"not finite"}


def test_a_false_certificate_is_found():
    case = case_of(kappa=1.0)
    outcome = run(case)
    assert not list(descent.check_certificate(case, outcome))
    half = tampered(outcome, coef_=0.5 * outcome.estimator.coef_)
    assert kinds(descent.check_certificate(case, half)) == {"false certificate"}


def test_a_feasible_problem_that_is_called_infeasible_is_found(unfair):
    outcome = tampered(unfair, status=Status.INFEASIBLE, violation=0.1)
    assert kinds(descent.check_infeasible(case_of(), outcome)) == {"misleading status"}
    assert kinds(checks.check_constant(case_of(), outcome)) == {"misleading status"}


def test_a_model_that_is_worse_than_a_constant_is_found(fair):
    outcome = tampered(fair, objective_=2.0)
    assert kinds(checks.check_constant(case_of(), outcome)) == {"worse than a constant"}


def test_a_loss_above_that_of_a_constant_is_found(fair):
    outcome = replace(fair, scores=-3.0 * fair.scores)
    found = checks.check_constant_loss(case_of(), outcome)
    assert kinds(found) == {"worse than a constant"}
    assert not list(checks.check_constant_loss(case_of(), fair))


def test_a_wrong_objective_is_found(fair):
    outcome = tampered(fair, objective_=fair.estimator.objective_ + 0.01)
    assert kinds(checks.check_objective(case_of(), outcome)) == {"wrong figure"}


@pytest.mark.parametrize("attribute", ["violation_", "gap_", "decision_gap_"])
def test_a_wrong_figure_is_found(fair, attribute):
    outcome = tampered(fair, **{attribute: getattr(fair.estimator, attribute) + 0.01})
    assert kinds(checks.check_figures(case_of(), outcome)) == {"wrong figure"}


def test_scores_that_are_not_those_of_the_coefficients_are_found(fair):
    outcome = replace(fair, scores=fair.scores + 1e-6)
    assert kinds(checks.check_scores(case_of(), outcome)) == {"wrong figure"}


def test_warnings_of_others_are_found(fair):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    outcome = replace(fair, caught=tuple(caught))
    assert kinds(checks.check_warnings(case_of(), outcome)) == {"foreign warning"}


@pytest.mark.parametrize(
    "error, kind",
    [
        (AssertionError(), "crash"),
        (ValueError("no"), "error for valid input"),
        (OverBudget("61"), "over budget"),
    ],
)
def test_errors_are_found(fair, error, kind):
    outcome = replace(fair, error=error, trace='  File "x.py", line 1, in f\n    raise')
    assert kinds(checks.check_returns(case_of(), outcome)) == {kind}


def test_many_data_passes_are_found(fair):
    outcome = tampered(fair, data_passes=1e6)
    assert kinds(checks.check_returns(case_of(), outcome)) == {"over budget"}


def test_cpu_seconds_are_limited():
    def forever():
        while True:
            pass

    with pytest.raises(OverBudget), limited(0.05):
        forever()


@pytest.mark.parametrize("name", ["again", "units", "groups", "classes"])
def test_scores_that_change_are_found(fair, monkeypatch, name):
    rng = np.random.default_rng(0)
    case = case_of()
    assert not list(relations.check_relation(name, case, fair, rng))
    monkeypatch.setattr(relations, "run", lambda *_: replace(fair, scores=fair.scores + 1e-3))
    found = relations.check_relation(name, case, fair, rng)
    assert kinds(found) == {relations.RELATIONS[name].kind}


@pytest.mark.parametrize("name", ["order", "weights", "container", "solver"])
def test_objectives_that_change_are_found(fair, monkeypatch, name):
    rng = np.random.default_rng(0)
    case = case_of()
    assert not list(relations.check_relation(name, case, fair, rng))
    other = tampered(fair, objective=1.1 * fair.result.objective)
    monkeypatch.setattr(relations, "run", lambda *_: other)
    found = relations.check_relation(name, case, fair, rng)
    assert kinds(found) == {relations.RELATIONS[name].kind}


def test_copies_and_weights_agree():
    case = case_of(spec=replace(SPEC, weights="integers"))
    outcome = run(case)
    changed, data, rows = relations.RELATIONS["copies"].change(case, outcome.data, None)
    assert changed is case and data.weight is None
    assert len(rows) == len(data.positions) == int(outcome.data.weights.sum())
    assert not list(relations.check_relation("copies", case, outcome, None))


def test_bounds_on_classes_are_checked():
    case = case_of("NeymanPearsonClassifier", replace(SPEC, n_classes=3))
    outcome = run(case)
    assert not list(classes.check_neyman_pearson(case, outcome))
    tight = np.where(np.isinf(outcome.estimator.kappa_), np.inf, 1e-3)
    found = classes.check_neyman_pearson(case, tampered(outcome, kappa_=tight))
    assert kinds(found) == {"silent violation"}
    found = classes.check_neyman_pearson(case, tampered(outcome, objective_=9.0))
    assert kinds(found) == {"worse than a constant"}


def test_paths_are_checked():
    case = case_of("fairness_path")
    outcome = run(case)
    assert not list(classes.check_path(case, outcome))
    models = [
        copy.copy(one).set_params(kappa=one.kappa / 2.0) for one in outcome.estimator.estimators
    ]
    path = replace(outcome.estimator, estimators=models)
    found = classes.check_path(case, replace(outcome, estimator=path))
    assert "silent violation" in kinds(found)


def test_cases_are_the_same_for_the_same_seed():
    for index in range(50):
        one, other = Case.of(7, index), Case.of(7, index)
        assert one.snippet() == other.snippet()
        first, second = make(one.chosen.data), make(other.chosen.data)
        np.testing.assert_array_equal(first.dense, second.dense)
        np.testing.assert_array_equal(first.positions, second.positions)


def test_a_worker_that_hangs_is_counted_and_replaced():
    found = list(verdicts(0, 60.0, count=2, wall=0.0))
    assert [one.index for one in found] == [0, 1]
    assert all(kinds(one.failures) == {"hang"} for one in found)


def test_the_table_counts_failures_by_class():
    case = case_of()
    right = examine(case)
    wrong = replace(right, failures=(checks.Failure("crash", "it broke"),))
    tally = Tally()
    for one in (right, wrong):
        tally.add(one)
    assert not right.failures and tally.failed == [wrong]
    assert tally.by_class() == {"crash": 1}
    assert "DemographicParity" in tally.table() and "it broke" in describe(wrong)
    made = dict(right.checked)
    assert {"returns", "violation", "figures", "constant"} < set(made) and not any(made.values())
    relations_made = {one.kind for one in relations.RELATIONS.values()}
    assert right.fits == 1 + sum(name in relations_made for name, _ in right.checked)


def test_an_interrupted_run_prints_its_table(capsys, monkeypatch):
    def interrupted(seed, seconds, **options):
        yield examine(case_of())
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "verdicts", interrupted)
    main(["fuzz", "--seed", "0"])
    printed = capsys.readouterr().out
    assert "interrupted" in printed and "1 cases" in printed


def test_slow_fits_are_repeated_less_often():
    case, outcome = case_of(), run(case_of())
    counts = [
        len(oracle._relations(case, replace(outcome, seconds=seconds), None))
        for seconds in (0.1, 0.5, 2.0)
    ]
    assert counts == [3, 2, 1]


def test_the_command_reproduces_a_case(capsys, monkeypatch):
    assert main(["fuzz", "--reproduce", "0:4"]) == 0
    printed = capsys.readouterr().out
    assert "--reproduce 0:4" in printed and "nothing is wrong" in printed
    wrong = replace(examine(case_of()), failures=(checks.Failure("crash", "it broke"),))
    monkeypatch.setattr(command, "examine", lambda case, changed: wrong)
    with pytest.raises(SystemExit) as ended:
        main(["fuzz", "--reproduce", "0:4"])
    assert ended.value.code == 1
    assert "it broke" in capsys.readouterr().out


def further(kind, spec, **settings):
    case = Case(0, 0, Chosen(kind, settings, spec))
    outcome = run(case)
    assert outcome.error is None, outcome.trace
    assert not list(failures_of(case, outcome))
    return case, outcome


CLOSE = {"kappa": 0.02, "alpha": 1e-2}
ASSERTED = {
    "several classes": (
        ("FairLogisticClassifier", replace(SPEC, n_classes=3)),
        {"constraint": "demographic_parity", **CLOSE},
        {"objective_": 0.1, "violation_": 0.5},
    ),
    "ranker": (
        ("FairRanker", SPEC),
        {"constraint": "query_parity", **CLOSE},
        {"objective_": 0.1, "violation_": 0.5},
    ),
    "collections": (
        ("dask.FairLogisticClassifier", SPEC),
        {"constraint": "demographic_parity", **CLOSE},
        {"objective_": 0.1, "violation_": 0.5, "gap_": 0.5},
    ),
}


@pytest.mark.parametrize("name", ASSERTED)
def test_wrong_figures_of_estimators_of_another_kind_are_found(name):
    if name == "collections":
        pytest.importorskip("dask")
    (estimator, spec), settings, wrong = ASSERTED[name]
    case, outcome = further(estimator, spec, **settings)
    for attribute, value in wrong.items():
        found = list(failures_of(case, tampered(outcome, **{attribute: value})))
        assert kinds(found) >= {"wrong figure"}, attribute


@pytest.mark.parametrize("name", ASSERTED)
def test_violations_of_estimators_of_another_kind_are_found(name):
    if name == "collections":
        pytest.importorskip("dask")
    (estimator, spec), settings, _ = ASSERTED[name]
    case, outcome = further(estimator, spec, **{**settings, "kappa": 1.0})
    unfair = tampered(outcome, kappa=1e-3)
    assert "silent violation" in kinds(failures_of(case, unfair))


def test_thresholds_that_violate_or_are_not_the_most_accurate_are_found():
    settings = {"constraint": "demographic_parity", "cv": "prefit", "kappa": 0.1}
    for per_group in (False, True):
        case, outcome = further(
            "FairThresholds", SPEC, estimator=LogisticRegression(), per_group=per_group, **settings
        )
        nobody = replace(outcome, scores=-np.ones_like(outcome.scores))
        assert kinds(failures_of(case, nobody)) == {"worse than a threshold"}
        first = np.where(outcome.data.codes[:, 0] == 0, 1.0, -1.0)
        unfair = replace(outcome, scores=first)
        assert "silent violation of decisions" in kinds(failures_of(case, unfair))


def test_a_mean_gap_may_be_undefined_only_where_a_warning_says_so():
    """One group has no positive labels, so that no fold has a gap of equal opportunity."""
    spec = replace(SPEC, seed=80666031, n_features=2, design="separable", signal=0.0)
    settings = {"constraint": "equal_opportunity", "n_kappas": 2, "cv": 3, "alphas": (1e-3,)}
    case, outcome = further("FairLogisticClassifierCV", spec, **settings)
    assert np.isnan(outcome.estimator.cv_results_["mean_test_gap"]).all()
    silent = replace(outcome, caught=())
    assert kinds(classes.check_cross_validated(case, silent)) == {"not finite"}


def test_every_kind_of_estimator_is_drawn():
    drawn = {Case.of(3, 8 + 12 * k).chosen.estimator for k in range(4)}
    assert drawn == {
        "FairLogisticClassifier", "FairThresholds", "FairRanker", "dask.FairLogisticClassifier"
    }  # fmt: skip
    assert Case.of(3, 8).chosen.data.n_classes > 2
