"""Tests of the fairness report: its values, its verdicts, what it says and its HTML page."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained.metrics import group_rates, impact_ratios, score_impact_ratios

HOSTILE = '<script>alert("x")</script> & co'
VOID = {"meta", "img", "link", "br", "hr", "input"}


X, Y, CODES = fc.make_biased_classification(600, 4, gap=0.3, random_state=0)
GROUPS = np.where(CODES == 0, "a", HOSTILE)


@pytest.fixture(scope="module")
def model():
    return fc.FairLogisticClassifier(kappa=0.05).fit(X, Y, sensitive_features=GROUPS)


class Page(HTMLParser):
    """Parse a page: check that tags are nested, and collect tags, links and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.links = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_values_on_the_training_rows_equal_those_of_the_fit(model):
    report = fc.fairness_report(model, X, Y, GROUPS)
    row = report.to_frame("constraints").loc["demographic_parity"]
    assert row["tolerance"] == pytest.approx(0.05)
    assert row["scores"] == pytest.approx(model.gap_)
    assert row["decisions"] == pytest.approx(model.decision_gap_)
    assert row["low"] <= row["decisions"] <= row["high"]
    rates = group_rates(Y, model.predict(X), sensitive_features=GROUPS)
    pd.testing.assert_frame_equal(report.to_frame()[rates.columns], rates)
    asked = report.to_frame("model")["value"]
    assert "DemographicParity(kappa=0.05" in asked["constraint"]
    assert asked["status"] == model.result_.message
    assert asked["enforce"] == model.enforce


def test_several_constraints_some_of_them_not_measurable():
    reference = fc.MinorityRate(0.5, minority="a", reference=X[:100], reference_groups=GROUPS[:100])
    several = ["demographic_parity", "partial_dp", "roc_parity", reference]
    names = ["demographic_parity", "partial_dp", "roc_parity", "minority_rate"]
    clf = fc.FairLogisticClassifier(several, kappa=0.2).fit(X, Y, sensitive_features=GROUPS)
    report = fc.fairness_report(clf, X, Y, GROUPS)
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert (table["verdict"] == "not measured").tolist() == [False, False, False, True]
    assert "own reference rows" in "\n".join(report.notes)
    assert "; 1 of 4 could not be measured." in report.verdict.sentence

    other = LogisticRegression().fit(X, Y)  # it has chosen no ranks and no thresholds
    report = fc.fairness_report(other, X, Y, GROUPS, constraint=several)
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert (table["verdict"].iloc[1:] == "not measured").all()
    notes = "\n".join(report.notes)
    for reason in ("ranks='auto'", "give thresholds", "own reference rows"):
        assert reason in notes


def test_constraints_without_a_bound_are_not_called_met():
    two = ["demographic_parity", "equal_opportunity"]
    clf = fc.FairLogisticClassifier(two, goal="fairness").fit(X, Y, sensitive_features=GROUPS)
    found = fc.fairness_report(clf, X, Y, GROUPS).verdict
    assert (found.state, found.sentence) == ("no bound", "No bound is set for the 2 constraints.")
    given = LogisticRegression().fit(X, Y), X, Y, GROUPS
    verdict = fc.fairness_report(*given, constraint=["partial_dp", "roc_parity"]).verdict
    assert verdict.sentence == "None of the 2 constraints could be measured on these rows."
    found = fc.fairness_report(*given, constraint="group_auc", control_features=GROUPS)
    assert "no two groups that are compared have rows" in found.verdict.sentence


VERDICTS = [
    (0.00, 4000, "holds (95% confidence)"),
    (0.20, 4000, "does not hold (95% confidence)"),
    (0.06, 100, "not met on these rows (inconclusive at 95%)"),
    (0.04, 100, "met on these rows (inconclusive at 95%)"),
]


@pytest.mark.parametrize(("gap", "n", "verdict"), VERDICTS)
def test_verdicts(gap, n, verdict, model):
    class Fixed(fc.FairLogisticClassifier):
        """A classifier whose scores are its only feature."""

        def decision_function(self, X):
            return np.asarray(X)[:, 0] - 0.5

    fixed = Fixed(kappa=0.05)
    fixed.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
    groups = np.repeat([0, 1], n // 2)
    rate = np.where(groups == 0, 0.5, 0.5 + gap)
    place = np.tile(np.arange(n // 2) / (n // 2), 2)
    decided = (place < rate - 1e-9).astype(float)
    report = fc.fairness_report(fixed, decided[:, None], np.arange(n) % 2, groups)
    assert report.constraints["decisions"].iloc[0] == pytest.approx(gap)
    assert report.constraints["verdict"].iloc[0] == verdict


def test_model_without_scores():
    labels_only = VotingClassifier([("one", LogisticRegression())])
    page = fc.fairness_report(labels_only.fit(X, Y), X, Y, GROUPS).to_html()
    assert "Score distribution" not in page and "Calibration" not in page
    assert "True positive rate" in page and Page(page).tags.count("svg") > 4


def test_report_shows_the_bounds_on_predictions_and_population():
    clf = fc.FairLogisticClassifier(kappa=0.3, enforce="decision", confidence=0.5, random_state=0)
    clf.fit(X, Y, sensitive_features=GROUPS)
    asked = fc.fairness_report(clf, X, Y, GROUPS).model["value"]
    assert asked["confidence"] == "0.5"
    assert asked["bound"] == "met"
    assert f"{clf.decision_search_.accuracy:.4f}" in asked["accuracy, training rows"]
    assert f"{clf.certificate_.n_held_out} rows held out" in asked["population"]


def test_page_is_self_contained_and_escaped(model, tmp_path):
    report = fc.fairness_report(model, X, Y, GROUPS)
    text = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    page = Page(text)
    assert HOSTILE not in text and page.tags.count("script") == 1
    assert HOSTILE in "".join(page.words)
    assert not page.links and not re.findall(r"https?://", text)


def test_notebooks_show_a_fragment(model):
    text = fc.fairness_report(model, X, Y, pd.Series([(each,) for each in GROUPS]))._repr_html_()
    assert text.startswith("<div") and "<html" not in text
    assert Page(text).tags.count("svg") > 10


@pytest.mark.parametrize("pos_label", [0, 1])
def test_target_and_favourable_label_are_named(pos_label):
    model, labels = fc.FairLogisticClassifier(pos_label=pos_label), pd.Series(1 - Y, name="default")
    report = fc.fairness_report(model.fit(X, labels, sensitive_features=GROUPS), X, labels, GROUPS)
    assert report.title.endswith(f"the positive class is default = {pos_label}")
    meaning = (
        f"The favourable label is default = {pos_label}: rows with this prediction are selected, "
        f"and rows with this label are positive. The other label is {1 - pos_label}."
    )
    for text in (str(report), report.to_markdown(), report.to_html()):
        assert meaning in text
    content = json.loads(report.to_json())
    assert (content["target"], content["positive_class"]) == ("default", pos_label)
    selected = np.mean(model.predict(X) == pos_label)
    assert report.groups["selection_rate"].iloc[-1] == pytest.approx(selected)


def test_columns_that_give_the_group_away_are_named():
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    table = table.assign(code=np.where(GROUPS == "a", 3.0, 5.0), size=np.arange(600.0))
    table["mostly"] = np.where(np.arange(600) % 50 == 0, 4.0, table["code"])
    model = LogisticRegression(max_iter=10000).fit(table, Y)
    report = fc.fairness_report(model, table, Y, GROUPS)
    (note,) = (one for one in report.notes if one.startswith("The group can be guessed"))
    assert "accuracy above 0.95 from each of these columns of X alone: code (1.000), mostl" in note
    assert list(report.to_dict()["proxies"]) == ["code", "mostly"]
    assert note in report.to_html()
    for rows in (table.to_numpy(">f8"), sp.csr_array(table)):
        fitted = LogisticRegression(max_iter=10000).fit(rows, Y)
        found = fc.fairness_report(fitted, rows, Y, GROUPS).to_dict()["proxies"]
        assert list(found) == ["column 3", "column 5"]


def test_constraints_of_one_name_are_all_shown():
    both = [fc.DemographicParity(0.02), fc.DemographicParity(0.2, against="overall")]
    clf = fc.FairLogisticClassifier(both).fit(X, Y, sensitive_features=GROUPS)
    report = fc.fairness_report(clf, X, Y, GROUPS)
    names = ["demographic_parity", "demographic_parity (2)"]
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert table["tolerance"].tolist() == [0.02, 0.2]
    gaps = report.summary.loc[[f"gap: {name}" for name in names]].to_numpy().ravel()
    assert gaps == pytest.approx(table["decisions"].to_numpy())
    assert "<caption>demographic parity (2)" in report.to_html()


def test_unknown_values_of_one_attribute_are_said_of_it():
    groups = pd.DataFrame({"a": np.where(GROUPS == "a", "0", "1"), "b": np.arange(600) % 2})
    groups.loc[::4, "a"] = None
    options = {"combine": "marginal", "groups_missing": "ignore_in_constraint"}
    clf = fc.FairLogisticClassifier(kappa=0.1, **options).fit(X, Y, sensitive_features=groups)
    notes = fc.fairness_report(clf, X, Y, groups).notes
    said = "They are in none of its groups; impact ratios show them as unknown."
    assert f"a is unknown for 150 rows. {said}" in notes
    assert not any("rates of all rows" in note for note in notes)


def test_sentences_use_the_effective_sample_size():
    weight = np.where(np.arange(600) % 3 == 0, 10.0, 1.0)
    model = fc.FairLogisticClassifier(kappa=0.05).fit(X, Y, weight, sensitive_features=GROUPS)
    report = fc.fairness_report(model, X, Y, GROUPS, sample_weight=weight)
    table = group_rates(Y, model.predict(X), sensitive_features=GROUPS, sample_weight=weight)
    for text in (report.to_markdown(), report.to_html()):
        assert "rows of tolerance" not in text and "would have to change" not in text
        size = re.search(r"an effective sample size of ([\d.]+)", text)
        low = re.search(r"anywhere between ([\d.]+)%", text)
        smallest = min(
            weight[k == GROUPS].sum() ** 2 / (weight[k == GROUPS] ** 2).sum()
            for k in ("a", HOSTILE)
        )
        assert size is not None and float(size[1]) == pytest.approx(smallest, abs=0.05)
        assert low is not None
        lows = 100.0 * table["selection_rate_low"].to_numpy()
        assert np.abs(lows - float(low[1])).min() < 0.06


TABLE, LABELS, SEXES = fc.make_biased_classification(900, 3, gap=0.4, random_state=0)
RACES = np.random.default_rng(0).choice(["r", "s", "t", None], 900, p=[0.6, 0.35, 0.01, 0.04])
ATTRIBUTES = pd.DataFrame({"sex": np.where(SEXES == 0, "f", "m"), "race": RACES})
MODEL = fc.FairLogisticClassifier(None).fit(TABLE, LABELS)
DECIDED, SCORES = MODEL.predict(TABLE), MODEL.predict_proba(TABLE)[:, 1]
NAMED = {"reference": {"sex": "f"}, "least_share": 0.05}


@pytest.fixture(scope="module")
def report():
    missing = {"groups_missing": "ignore_in_constraint"}
    return fc.fairness_report(MODEL, TABLE, LABELS, ATTRIBUTES, **missing, **NAMED)


def test_tables_are_those_of_the_metrics(report):
    given = {"sensitive_features": ATTRIBUTES, **NAMED}
    impact = impact_ratios(LABELS, DECIDED, **given)
    pd.testing.assert_frame_equal(report.to_frame("impact"), impact)
    scores = score_impact_ratios(LABELS, SCORES, **given)
    pd.testing.assert_frame_equal(report.to_frame("score_impact"), scores)


def test_every_form_has_the_figures(report):
    table = report.impact
    lowest = table["ratio"].loc["sex, race"].idxmin()
    shown = "{:.3f} [{:.3f}, {:.3f}]".format(
        *table.loc[("sex, race", lowest), ["ratio", "ratio_low", "ratio_high"]]
    )
    for text in (report.to_html().replace("\u00a0", " "), report.to_markdown(), str(report)):
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
        None, decisions, y_score={"two": 1 - SCORES}, sensitive_features=ATTRIBUTES["sex"]
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


def test_a_wrong_reference_or_bound_is_an_error_before_anything_is_measured():
    for given in ({"reference": "x"}, {"constraint": fc.DemographicParity(5)}):
        with pytest.raises(ValueError, match=r"reference: no row has the group x|kappa .*; got 5"):
            fc.fairness_report(MODEL, TABLE, LABELS, ATTRIBUTES["sex"], **given)
