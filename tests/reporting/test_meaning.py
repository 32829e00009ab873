"""What a report says of labels, gaps, weights, names, and columns that give groups away."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    DemographicParity,
    FairLogisticClassifier,
    fairness_report,
    make_biased_classification,
)
from fairconstrained.metrics import group_rates

X, Y, GROUPS = make_biased_classification(300, gap=0.4, random_state=0)
frame = pd.DataFrame(np.asarray(X)[:, :3], columns=["a", "b", "c"])
DATA = X, Y, GROUPS = (
    frame,
    pd.Series(1 - np.asarray(Y), name="default"),
    np.array(["x", "y"])[GROUPS],
)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_target_and_favourable_label_are_named(pos_label):
    model = FairLogisticClassifier(pos_label=pos_label).fit(X, Y, sensitive_features=GROUPS)
    report = fairness_report(model, X, Y, GROUPS)
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


def note_on_columns(report):
    return [note for note in report.notes if note.startswith("The group can be guessed")]


def test_columns_that_give_the_group_away_are_named():
    X, y, groups = DATA
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


ROWS, LABELS, CODES = make_biased_classification(400, 4, gap=0.3, random_state=0)
WEIGHT = np.where(np.arange(400) % 3 == 0, 10.0, 1.0)


@pytest.fixture(scope="module")
def weighted_model():
    return FairLogisticClassifier(kappa=0.05).fit(
        ROWS, LABELS, sensitive_features=CODES, sample_weight=WEIGHT
    )


def pages(report):
    """Return what a report shows, in both forms."""
    return report.to_markdown(), report.to_html()


def test_constraints_of_one_name_are_all_shown():
    both = [DemographicParity(0.02), DemographicParity(0.2, against="overall")]
    clf = FairLogisticClassifier(both).fit(ROWS, LABELS, sensitive_features=CODES)
    report = fairness_report(clf, ROWS, LABELS, CODES)
    names = ["demographic_parity", "demographic_parity (2)"]
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert table["tolerance"].tolist() == [0.02, 0.2]
    gaps = report.summary.loc[[f"gap: {name}" for name in names]].to_numpy().ravel()
    assert gaps == pytest.approx(table["decisions"].to_numpy())
    assert "<caption>demographic parity (2)" in report.to_html()


def test_unknown_values_of_one_attribute_are_said_of_it():
    groups = pd.DataFrame({"a": CODES.astype(str), "b": np.arange(400) % 2})
    groups.loc[::4, "a"] = None
    options = {"combine": "marginal", "groups_missing": "ignore_in_constraint"}
    clf = FairLogisticClassifier(kappa=0.1, **options).fit(ROWS, LABELS, sensitive_features=groups)
    notes = fairness_report(clf, ROWS, LABELS, groups).notes
    assert "a is unknown for 100 rows. They are in none of its groups." in notes
    assert not any("rates of all rows" in note for note in notes)


def test_sentences_use_the_effective_sample_size(weighted_model):
    report = fairness_report(weighted_model, ROWS, LABELS, CODES, sample_weight=WEIGHT)
    table = group_rates(
        LABELS, weighted_model.predict(ROWS), sensitive_features=CODES, sample_weight=WEIGHT
    )
    for text in pages(report):
        assert "rows of tolerance" not in text and "would have to change" not in text
        size = re.search(r"an effective sample size of ([\d.]+)", text)
        low = re.search(r"anywhere between ([\d.]+)%", text)
        smallest = min(
            WEIGHT[k == CODES].sum() ** 2 / (WEIGHT[k == CODES] ** 2).sum() for k in (0, 1)
        )
        assert size is not None and float(size[1]) == pytest.approx(smallest, abs=0.05)
        assert low is not None
        lows = 100.0 * table["selection_rate_low"].to_numpy()
        assert np.abs(lows - float(low[1])).min() < 0.06
