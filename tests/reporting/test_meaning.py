"""What a report says of labels, of the unit of gaps, and of columns that give groups away."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, fairness_report, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(300, gap=0.4, random_state=0)
    frame = pd.DataFrame(np.asarray(X)[:, :3], columns=["a", "b", "c"])
    return frame, pd.Series(1 - np.asarray(y), name="default"), np.array(["x", "y"])[groups]


@pytest.mark.parametrize("pos_label", [0, 1])
def test_target_and_favourable_label_are_named(data, pos_label):
    X, y, groups = data
    model = FairLogisticClassifier(pos_label=pos_label).fit(X, y, sensitive_features=groups)
    report = fairness_report(model, X, y, groups)
    assert report.title.endswith(f"the positive class is default = {pos_label}")
    meaning = (
        f"The favourable label is default = {pos_label}: rows that are predicted so are selected, "
        f"and rows that have it are positive. The other label is {1 - pos_label}."
    )
    for text in (str(report), report.to_markdown(), report.to_html()):
        assert meaning in text
    content = json.loads(report.to_json())
    assert (content["target"], content["positive_class"]) == ("default", pos_label)
    selected = np.mean(model.predict(X) == pos_label)
    assert report.groups["selection_rate"].iloc[-1] == pytest.approx(selected)


def test_a_target_without_a_name(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    report = fairness_report(model, X, y.to_numpy(), groups)
    assert report.title.endswith("the positive class is 1")
    assert json.loads(report.to_json())["target"] is None


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.InfeasibleConstraintWarning")
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_gaps_are_those_of_the_fit_and_have_their_title(data, name):
    X, y, groups = data
    model = FairLogisticClassifier(name).fit(X, y, sensitive_features=groups)
    report = fairness_report(model, X, y, groups)
    (row,) = report.constraints.to_dict("records")
    assert row["decisions"] == pytest.approx(model.decision_gap_, abs=1e-9)
    free_thresholds = name == "partial_dp"  # they are fitted with the model, or to its scores
    assert row["scores"] == pytest.approx(model.gap_, abs=1e-4 if free_thresholds else 1e-9)
    assert CLASSIFIER_CONSTRAINTS[name]().gap_title in report.to_html().replace("&#39;", "'")


def note_on_columns(report):
    return [note for note in report.notes if note.startswith("The group can be guessed")]


def test_columns_that_give_the_group_away_are_named(data):
    X, y, groups = data
    X = X.assign(code=np.where(groups == "x", 3.0, 5.0), size=np.arange(300.0))
    X["mostly"] = np.where(np.arange(300) % 50 == 0, 4.0, X["code"])
    model = LogisticRegression(max_iter=10000).fit(X, y)
    report = fairness_report(model, X, y, groups)
    (note,) = note_on_columns(report)
    assert "accuracy above 0.95 from each of these columns of X alone: code (1.000), mostl" in note
    assert list(report.to_dict()["proxies"]) == ["code", "mostly"]
    assert note in report.to_html()
    for table, names in ((X.to_numpy(), ["column 3", "column 5"]), (sp.csr_array(X), None)):
        fitted = LogisticRegression(max_iter=10000).fit(table, y)
        found = fairness_report(fitted, table, y, groups).to_dict()["proxies"]
        assert list(found) == (names or ["column 3", "column 5"])


def test_a_column_that_no_model_sees_gives_nothing_away(data):
    X, y, groups = data
    X = X.assign(group=groups, same=np.where(groups == "x", "u", "v"))
    hidden = FairLogisticClassifier(sensitive_columns=["group", "same"]).fit(X, y)
    assert note_on_columns(fairness_report(hidden, X, y)) == []
    X = X.assign(group=(groups == "x").astype(float), same=1.0)
    both = {"free": LogisticRegression().fit(X, y), "fair": hidden.fit(X, y)}
    (note,) = note_on_columns(fairness_report(both, X, y))
    assert "alone: group (1.000)." in note


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_a_guess_is_more_than_the_largest_group(data, share):
    X, y, _ = data
    groups = np.where(np.arange(300) < 300 * share, "x", "y")
    groups = np.random.default_rng(0).permutation(groups)
    model = LogisticRegression().fit(X, y)
    assert note_on_columns(fairness_report(model, X, y, groups)) == []
