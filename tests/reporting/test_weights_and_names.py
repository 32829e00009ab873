"""Reports with weights, with two constraints of one name, and with unknown attributes."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight

from fairconstrained import (
    DemographicParity,
    FairLogisticClassifier,
    fairness_report,
    make_biased_classification,
)
from fairconstrained.metrics import group_rates

X, Y, CODES = make_biased_classification(400, 4, gap=0.3, random_state=0)
WEIGHT = np.where(np.arange(400) % 3 == 0, 10.0, 1.0)


@pytest.fixture(scope="module")
def model():
    return FairLogisticClassifier(kappa=0.05).fit(
        X, Y, sensitive_features=CODES, sample_weight=WEIGHT
    )


def pages(report):
    """Return what a report shows, in both forms."""
    return report.to_markdown(), report.to_html()


def test_constraints_of_one_name_are_all_shown():
    both = [DemographicParity(0.02), DemographicParity(0.2, against="overall")]
    clf = FairLogisticClassifier(both).fit(X, Y, sensitive_features=CODES)
    report = fairness_report(clf, X, Y, CODES)
    names = ["demographic_parity", "demographic_parity (2)"]
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert table["tolerance"].tolist() == [0.02, 0.2]
    gaps = report.summary.loc[[f"gap: {name}" for name in names]].to_numpy().ravel()
    assert gaps == pytest.approx(table["decisions"].to_numpy())
    assert "<caption>demographic parity (2)" in report.to_html()


def test_constraints_that_the_last_model_lacks_are_shown():
    models = {
        name: FairLogisticClassifier(name, kappa=0.2).fit(X, Y, sensitive_features=CODES)
        for name in ("equal_opportunity", "demographic_parity")
    }
    page = fairness_report(models, X, Y, CODES).to_html()
    for name in ("equal opportunity", "demographic parity"):
        assert f"<caption>{name}<" in page


def test_unknown_values_of_one_attribute_are_said_of_it():
    groups = pd.DataFrame({"a": CODES.astype(str), "b": np.arange(400) % 2})
    groups.loc[::4, "a"] = None
    options = {"combine": "marginal", "groups_missing": "ignore_in_constraint"}
    clf = FairLogisticClassifier(kappa=0.1, **options).fit(X, Y, sensitive_features=groups)
    notes = fairness_report(clf, X, Y, groups).notes
    assert "a is unknown for 100 rows. They are in none of its groups." in notes
    assert not any("rates of all rows" in note for note in notes)


def test_sentences_use_the_effective_sample_size(model):
    report = fairness_report(model, X, Y, CODES, sample_weight=WEIGHT)
    table = group_rates(Y, model.predict(X), sensitive_features=CODES, sample_weight=WEIGHT)
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


def test_equal_weights_change_no_sentence(model):
    plain = fairness_report(model, X, Y, CODES)
    twice = fairness_report(model, X, Y, CODES, sample_weight=np.full(400, 2.0))
    assert plain.to_markdown().split("### How")[0] == twice.to_markdown().split("### How")[0]
    assert "would have to change" in plain.to_markdown()


def test_alternative_texts_of_histograms_are_weighted(model):
    page = fairness_report(model, X, Y, CODES, sample_weight=WEIGHT).to_html()
    decided = model.predict(X) == 1
    for k in (0, 1):
        rate = np.average(decided[k == CODES], weights=WEIGHT[k == CODES])
        assert re.search(rf"{k}, 200 rows: median [^<]* {rate:.3f} selected", page)


def test_intervals_of_the_calibration_have_the_level_of_the_page(model):
    def calibration(level):
        page = fairness_report(model, X, Y, CODES, confidence=level).to_html()
        return page[page.index("Calibration</h3>") :].split("<h2>")[0]

    assert calibration(0.5) != calibration(0.99)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
def test_the_accuracy_of_the_search_has_the_weights_of_the_loss(class_weight):
    keep = (Y == 0) | (np.arange(400) % 3 == 0)
    clf = FairLogisticClassifier(kappa=0.1, enforce="decision", class_weight=class_weight)
    clf.fit(X[keep], Y[keep], sensitive_features=CODES[keep])
    weight = np.ones(keep.sum())
    if class_weight is not None:
        weight = compute_sample_weight(class_weight, Y[keep])
    expected = accuracy_score(Y[keep], clf.predict(X[keep]), sample_weight=weight)
    assert clf.decision_search_.accuracy == pytest.approx(expected)
    shown = fairness_report(clf, X[keep], Y[keep], CODES[keep]).model["value"]
    name = "accuracy, training rows" + (" times class_weight" if class_weight else "")
    assert f"{expected:.4f}" in shown[name]
