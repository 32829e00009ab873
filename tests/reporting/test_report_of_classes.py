"""Reports of several classes: each class against all others, and all of them together."""

import json

import numpy as np
import pytest
from _support.labelled_rows import by_formula
from _support.three_classes import three_classes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss

from fairconstrained import DemographicParity, FairLogisticClassifier, fairness_report
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.metrics.intervals import largest_gap

CLASSES, N = ["cold", "mild", "warm"], 900


X, CODES, GROUPS = three_classes(N, n_groups=3)
Y, Z = np.array(CLASSES)[CODES], np.array(list("abc"))[GROUPS]
TRAIN, TEST = np.arange(450), np.arange(450, N)
BOTH = ["demographic_parity", "equal_opportunity"]


@pytest.fixture(scope="module")
def models():
    fair = FairLogisticClassifier(BOTH, kappa=0.05)
    return {
        "before": LogisticRegression().fit(X[TRAIN], Y[TRAIN]),
        "after": fair.fit(X[TRAIN], Y[TRAIN], sensitive_features=Z[TRAIN]),
    }


def report(models, rows=TEST, **options):
    return fairness_report(models, X[rows], Y[rows], Z[rows], **options)


def test_every_class_and_all_of_them_are_measured(models):
    found, decided = report(models), models["after"].predict(X[TEST])
    assert report(models, TRAIN).provenance["held out"] == "no, training rows"
    table = found.constraints.loc["after", "decisions"]
    for name in BOTH:
        gaps, rule = {}, CONSTRAINTS[name](0.05)
        for label in CLASSES:
            own, chosen = (np.where(each == label, 1, -1) for each in (Y[TEST], decided))
            weight = np.ones(len(TEST))
            gaps[label] = by_formula(rule, own, Z[TEST], weight, chosen, decisions=True).gap
            assert table[label, name] == pytest.approx(gaps[label])
        assert table["all classes", name] == pytest.approx(max(gaps.values()))
        assert found.summary.loc[f"gap: {name}", "after"] == pytest.approx(max(gaps.values()))
    for label in CLASSES:
        shown = found.groups.loc[("after", label), "selection_rate"].iloc[:3]
        assert list(shown) == [np.mean(decided[Z[TEST] == group] == label) for group in "abc"]


def test_the_interval_of_all_classes_holds_for_all_at_once(models):
    found = report(models["after"]).constraints.xs("demographic_parity", level="constraint")
    decided, limits = models["after"].predict(X[TEST]), []
    for label in CLASSES:
        chosen = [decided[Z[TEST] == group] == label for group in "abc"]
        cells = np.array([one.mean() for one in chosen]), np.array([len(one) for one in chosen])
        limits.append(largest_gap([cells], 1.0 - 0.05 / 3.0))
    joint = found.loc["all classes"]
    assert joint["low"] == pytest.approx(max(float(one.low) for one in limits))
    assert joint["high"] == pytest.approx(max(float(one.high) for one in limits))
    assert joint["high"] > found.drop("all classes")["high"].max()


def test_classes_of_one_group_are_not_compared(models):
    found = report(models["after"], TEST[Z[TEST] == "a"], constraint="calibration_parity")
    assert set(found.constraints["verdict"]) == {"not measured"}


@pytest.mark.parametrize(("kappa", "state"), [(0.9, "holds"), (0.001, "not met")])
def test_the_verdict_is_on_all_classes(kappa, state, models):
    found = report(models["after"], constraint=DemographicParity(kappa))
    table = found.constraints["decisions"].droplevel("constraint")
    worst = table.drop("all classes").idxmax()
    assert found.verdict.state == state
    assert f"selection rates of class {worst} differ by" in found.verdict.sentence
    assert ("for all 3 classes" in found.verdict.sentence) == (state == "holds")
    assert "Decided by" in str(found) and f"are predicted as {worst}" in str(found)


def test_measures_of_all_rows_are_those_of_scikit_learn(models):
    found = report(models)
    for name, model in models.items():
        column, decided = found.summary[name], model.predict(X[TEST])
        assert column["accuracy"] == pytest.approx(np.mean(decided == Y[TEST]))
        expected = balanced_accuracy_score(Y[TEST], decided)
        assert column["balanced accuracy"] == pytest.approx(expected)
        expected = log_loss(Y[TEST], model.predict_proba(X[TEST]), labels=CLASSES)
        assert column["log loss"] == pytest.approx(expected)
    before, after = (model.predict(X[TEST]) for model in models.values())
    cost = found.cost.loc["after"]
    assert cost["accuracy"] == pytest.approx(np.mean(after == Y[TEST]) - np.mean(before == Y[TEST]))
    for label in CLASSES:
        assert cost[f"changed to {label}"] == np.sum((before != after) & (after == label))


def test_all_forms(models):
    found = report(models)
    known = json.loads(found.to_json())
    assert known["classes"] == CLASSES and known["positive_class"] is None
    assert {row["class"] for row in known["constraints"]} == {"all classes", *CLASSES}
    assert len(known["groups"]) == 2 * 3 * 4
    page, text = found.to_html(), found.to_markdown()
    for label in CLASSES:
        assert f"<summary>Class {label}</summary>" in page
        assert f"### Groups, class {label}" in text
    assert "the classes are cold, mild, warm" in str(found)
    assert "label cold" in str(found) and "label +1" not in str(found)


def test_beyond_four_classes_only_the_decisive_ones_are_open():
    labels = np.arange(N) % 6
    model = LogisticRegression().fit(np.column_stack([X, labels]), labels)
    rows = np.column_stack([X, labels])
    found = fairness_report(model, rows, labels, Z, constraint="demographic_parity")
    page = found.to_html()
    worst = found.constraints["decisions"].droplevel("constraint").drop("all classes").idxmax()
    assert page.count("<details open><summary>Class") == 1
    assert f"<details open><summary>Class {worst}</summary>" in page
    assert page.count("<summary>Class") == 6
