"""Impact ratios in reports: the tables of the metrics, in every form and for every model."""

import json

import numpy as np
import pandas as pd
import pytest

import fairconstrained as fc
from fairconstrained.metrics import impact_ratios, score_impact_ratios

X, Y, GROUPS = fc.make_biased_classification(900, 3, gap=0.4, random_state=0)
RACES = np.random.default_rng(0).choice(["r", "s", "t", None], 900, p=[0.6, 0.35, 0.01, 0.04])
ATTRIBUTES = pd.DataFrame({"sex": np.where(GROUPS == 0, "f", "m"), "race": RACES})
MODEL = fc.FairLogisticClassifier(None).fit(X, Y)
DECIDED, SCORES = MODEL.predict(X), MODEL.predict_proba(X)[:, 1]
NAMED = {"reference": {"sex": "f"}, "least_share": 0.05}


@pytest.fixture(scope="module")
def report():
    missing = {"groups_missing": "ignore_in_constraint"}
    return fc.fairness_report(MODEL, X, Y, ATTRIBUTES, **missing, **NAMED)


def test_tables_are_those_of_the_metrics(report):
    given = {"sensitive_features": ATTRIBUTES, **NAMED}
    pd.testing.assert_frame_equal(report.to_frame("impact"), impact_ratios(Y, DECIDED, **given))
    scores = score_impact_ratios(Y, SCORES, **given)
    pd.testing.assert_frame_equal(report.to_frame("score_impact"), scores)


def test_every_form_has_the_figures(report):
    table = report.impact
    lowest = table["ratio"].loc["sex, race"].idxmin()
    shown = "{:.3f} [{:.3f}, {:.3f}]".format(
        *table.loc[("sex, race", lowest), ["ratio", "ratio_low", "ratio_high"]]
    )
    for text in (report.to_html(), report.to_markdown(), str(report)):
        assert shown in text and "fewer than 5% of the rows" in text
    for text in (report.to_html(), report.to_markdown()):
        assert "29 CFR 1607.4(D)" in text and "6 RCNY 5-301" in text and "highest 25%" in text
    records = json.loads(report.to_json())["impact"]
    assert [(line["attribute"], line["group"]) for line in records] == table.index.to_list()
    ratios = [line["ratio"] for line in records]
    assert ratios == pytest.approx(table["ratio"].tolist(), rel=1e-12)


def test_numbers_of_selections_are_whole_also_beside_groups_without_a_reference():
    report = fc.FairnessReport.from_predictions(
        None, DECIDED, sensitive_features=ATTRIBUTES.fillna("t"), least_share=0.4
    )
    assert report.impact["to_parity"].isna().any() and report.impact["to_parity"].max() > 0
    assert ".000\n" not in str(report).split("Impact ratios")[1]


def test_models_and_classes_are_levels_and_scores_are_optional():
    decisions = {"one": DECIDED, "two": 1 - DECIDED}
    found = fc.FairnessReport.from_predictions(
        None, decisions, y_score={"two": SCORES}, sensitive_features=ATTRIBUTES["sex"]
    )
    assert found.impact.index.names == ["model", "attribute", "group"]
    assert found.impact.loc[("two", "sex", "f"), "status"] == "reference"
    assert set(found.score_impact.index.get_level_values("model")) == {"two"}
    labels = np.digitize(SCORES, [0.3, 0.7])
    found = fc.FairnessReport.from_predictions(
        labels, labels, sensitive_features=ATTRIBUTES["sex"], reference="m"
    )
    assert found.impact.index.names == ["class", "attribute", "group"]
    assert found.score_impact.empty and "Scores" not in found.to_markdown()
    low = impact_ratios(None, labels == 0, sensitive_features=ATTRIBUTES["sex"], reference="m")
    pd.testing.assert_frame_equal(found.impact.loc["0"], low)


def test_a_reference_that_is_none_is_an_error_before_anything_is_measured():
    with pytest.raises(ValueError, match="reference: no row has the group x"):
        fc.fairness_report(MODEL, X, Y, ATTRIBUTES["sex"], reference="x")
