"""Tests of the fairness report: its values, its verdicts and its HTML page."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, MinorityRate, make_biased_classification
from fairconstrained.metrics import group_rates
from fairconstrained.reporting.report import fairness_report

HOSTILE = '<script>alert("x")</script> & co'
VOID = {"meta", "img", "link", "br", "hr", "input"}


X, Y, GROUPS = make_biased_classification(600, 4, gap=0.3, random_state=0)
DATA = X, Y, GROUPS = (X, Y, np.where(GROUPS == 0, "a", HOSTILE))


@pytest.fixture(scope="module")
def model():
    return FairLogisticClassifier(kappa=0.05).fit(X, Y, sensitive_features=GROUPS)


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
    report = fairness_report(model, X, Y, GROUPS)
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
    reference = MinorityRate(0.5, minority="a", reference=X[:100], reference_groups=GROUPS[:100])
    several = ["demographic_parity", "partial_dp", "roc_parity", reference]
    names = ["demographic_parity", "partial_dp", "roc_parity", "minority_rate"]
    clf = FairLogisticClassifier(several, kappa=0.2).fit(X, Y, sensitive_features=GROUPS)
    report = fairness_report(clf, X, Y, GROUPS)
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert (table["verdict"] == "not measured").tolist() == [False, False, False, True]
    assert "own reference rows" in "\n".join(report.notes)
    assert "; 1 of 4 could not be measured." in report.verdict.sentence

    other = LogisticRegression().fit(X, Y)  # it has chosen no ranks and no thresholds
    report = fairness_report(other, X, Y, GROUPS, constraint=several)
    table = report.to_frame("constraints")
    assert table.index.tolist() == names
    assert (table["verdict"].iloc[1:] == "not measured").all()
    notes = "\n".join(report.notes)
    for reason in ("ranks='auto'", "thresholds were chosen", "own reference rows"):
        assert reason in notes


def test_constraints_without_a_bound_are_not_called_met():
    two = ["demographic_parity", "equal_opportunity"]
    clf = FairLogisticClassifier(two, goal="fairness").fit(X, Y, sensitive_features=GROUPS)
    verdict = fairness_report(clf, X, Y, GROUPS).verdict
    assert (verdict.state, verdict.sentence) == (
        "no bound", "No bound is set for the 2 constraints.",
    )  # fmt: skip
    two = ["partial_dp", "roc_parity"]
    other = LogisticRegression().fit(X, Y)
    verdict = fairness_report(other, X, Y, GROUPS, constraint=two).verdict
    assert (verdict.state, verdict.sentence) == (
        "not measured", "None of the 2 constraints could be measured on these rows.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gap", "n", "verdict"),
    [
        (0.00, 4000, "holds (95% confidence)"),
        (0.20, 4000, "does not hold (95% confidence)"),
        (0.06, 100, "not met on these rows (inconclusive at 95%)"),
        (0.04, 100, "met on these rows (inconclusive at 95%)"),
    ],
)
def test_verdicts(gap, n, verdict, model):
    class Fixed(FairLogisticClassifier):
        """A classifier whose scores are its only feature."""

        def decision_function(self, X):
            return np.asarray(X)[:, 0] - 0.5

    fixed = Fixed(kappa=0.05)
    fixed.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
    groups = np.repeat([0, 1], n // 2)
    rate = np.where(groups == 0, 0.5, 0.5 + gap)
    place = np.tile(np.arange(n // 2) / (n // 2), 2)
    decided = (place < rate - 1e-9).astype(float)
    report = fairness_report(fixed, decided[:, None], np.arange(n) % 2, groups)
    assert report.constraints["decisions"].iloc[0] == pytest.approx(gap)
    assert report.constraints["verdict"].iloc[0] == verdict


def test_model_without_scores():
    X, y, groups = DATA

    class Yes(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[1])

    page = fairness_report(Yes().fit(X, y), X, y, groups).to_html()
    assert "Score distribution" not in page and "Calibration" not in page
    assert "True positive rate" in page and Page(page).tags.count("svg") > 4


def test_report_shows_the_bounds_on_predictions_and_population():
    clf = FairLogisticClassifier(kappa=0.3, enforce="decision", confidence=0.5, random_state=0)
    clf.fit(X, Y, sensitive_features=GROUPS)
    asked = fairness_report(clf, X, Y, GROUPS).model["value"]
    assert asked["confidence"] == "0.5"
    assert asked["bound"] == "met"
    assert f"{clf.decision_search_.accuracy:.4f}" in asked["accuracy, training rows"]
    assert f"{clf.certificate_.n_held_out} rows held out" in asked["population"]


def test_page_is_self_contained_and_escaped(model, tmp_path):
    report = fairness_report(model, X, Y, GROUPS)
    text = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    page = Page(text)
    assert HOSTILE not in text and page.tags.count("script") == 1
    assert HOSTILE in "".join(page.words)
    assert not page.links and not re.findall(r"https?://", text)


def test_notebooks_show_a_fragment(model):
    text = fairness_report(model, X, Y, GROUPS)._repr_html_()
    assert text.startswith("<div") and "<html" not in text
    assert Page(text).tags.count("svg") > 10
