"""Models of other libraries, and stored predictions, at every door that measures models."""

import warnings
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from _support.gaps import rate_gap
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairconstrained as fc
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay

matplotlib.use("Agg")
X, Y, Z = fc.make_biased_classification(400, 4, gap=0.4, random_state=0)
MODEL = LogisticRegression().fit(X, Y)
PROBABILITY, SCORES = MODEL.predict_proba(X)[:, 1], MODEL.decision_function(X)


def thresholds(model, X, y, groups):
    return fc.FairThresholds(model, cv="prefit").fit(X, y, sensitive_features=groups)


OF_LABELS = {
    "fairness_report": lambda m, *rows: fc.fairness_report(m, *rows).groups,
    "compare": lambda m, *rows: fc.compare({"m": m}, *rows),
    "GroupMetricsDisplay": lambda m, X, y, z: GroupMetricsDisplay.from_estimator(
        m, X, y, sensitive_features=z
    ).tables[""],
    "scorer": lambda m, X, y, z: fc.make_fairness_scorer(rate_gap, greater_is_better=False)(
        m, X, y, sensitive_features=z
    ),
}
OF_SCORES = {
    "ScoreDensityDisplay": lambda m, X, y, z: (
        ScoreDensityDisplay.from_estimator(m, X, sensitive_features=z).threshold
    ),
    "GroupRateDisplay": lambda m, X, y, z: (
        GroupRateDisplay.from_estimator(m, X, y, sensitive_features=z).curves["1"].at_threshold
    ),
    "FairThresholds": lambda m, X, y, z: thresholds(m, X, y, z).threshold_,
}


def plain(labels=None, **methods):
    """Return a model of no library, which returns given values."""
    methods = {name: (lambda X, values=values: values) for name, values in methods.items()}
    known = {} if labels is None else {"predict": lambda X: labels}
    return SimpleNamespace(classes_=[0, 1], fit=lambda X, y: None, **known, **methods)


NO_LABELS = {
    "probabilities": PROBABILITY,
    "missing": np.where(np.arange(len(Y)) == 3, np.nan, Y),
    "third": np.where(np.arange(len(Y)) == 3, 2, Y),
    "text": Y.astype(str),
}


@pytest.mark.parametrize("door", OF_LABELS)
@pytest.mark.parametrize("values", NO_LABELS)
def test_predictions_that_are_no_labels_are_refused_in_the_words_of_group_rates(door, values):
    with pytest.raises(ValueError, match=r".") as of_metric:
        fc.metrics.group_rates(Y, NO_LABELS[values], sensitive_features=Z)
    with pytest.raises(ValueError, match=r"predictions of SimpleNamespace") as of_door:
        OF_LABELS[door](plain(NO_LABELS[values]), X, Y, Z)
    assert str(of_metric.value) in str(of_door.value)


FORMS = {
    "predict (n, 1)": plain(MODEL.predict(X)[:, None], predict_proba=MODEL.predict_proba(X)),
    "predict_proba (n,)": plain(MODEL.predict(X), predict_proba=PROBABILITY),
    "predict_proba (n, 1)": plain(MODEL.predict(X), predict_proba=PROBABILITY[:, None]),
    "decision_function (n, 1)": plain(MODEL.predict(X), decision_function=SCORES[:, None]),
    "no classes_": SimpleNamespace(
        fit=lambda X, y: None, predict=MODEL.predict, predict_proba=MODEL.predict_proba
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("door", OF_LABELS | OF_SCORES)
def test_outputs_of_any_form_are_measured_alike(form, door):
    measure, model = (OF_LABELS | OF_SCORES)[door], FORMS[form]
    reference = MODEL
    if form.startswith("decision"):
        reference = plain(MODEL.predict(X), decision_function=SCORES)
    found, expected = (measure(one, X, Y, Z) for one in (model, reference))
    if isinstance(found, pd.DataFrame):
        shared = expected.columns.intersection(found.columns.drop("auc", errors="ignore"))
        assert_frame_equal(found[shared], expected[shared])
    else:
        assert found == pytest.approx(expected)


def test_what_is_missing_is_named():
    for door in OF_LABELS.values():
        with pytest.raises((TypeError, ValueError), match="method predict"):
            door(SimpleNamespace(classes_=[0, 1]), X, Y, Z)
        with pytest.raises((TypeError, ValueError), match="method predict"):
            door(LogisticRegression, X, Y, Z)
    for door in OF_SCORES.values():
        with pytest.raises(ValueError, match="method predict_proba or decision_function"):
            door(plain(MODEL.predict(X)), X, Y, Z)
    with pytest.raises(ValueError, match="lacks the attribute classes_"):
        fc.fairness_report(SimpleNamespace(predict=lambda X: np.full(len(X), 7)), X, None, Z)
    for values in (MODEL.predict_proba(X)[:, [0, 1, 1]], np.full((len(X), 2), np.nan)):
        with pytest.raises(ValueError, match=r"SimpleNamespace\.predict_proba"):
            fc.fairness_report(plain(Y, predict_proba=values), X, Y, Z)
    with pytest.raises(ValueError, match="it returned 397 for 400 rows"):
        fc.fairness_report(plain(Y[:-3]), X, Y, Z)


@pytest.fixture(scope="module")
def of_fairlearn():
    reductions = pytest.importorskip("fairlearn.reductions")
    postprocessing = pytest.importorskip("fairlearn.postprocessing")
    parity = reductions.DemographicParity
    return {
        "gradient": reductions.ExponentiatedGradient(LogisticRegression(), parity(), max_iter=5),
        "grid": reductions.GridSearch(LogisticRegression(), parity(), grid_size=3),
        "thresholds": postprocessing.ThresholdOptimizer(
            estimator=LogisticRegression(), predict_method="predict_proba"
        ),
    }


@pytest.mark.parametrize("kind", ["gradient", "grid", "thresholds"])
@pytest.mark.parametrize("piped", [False, True])
def test_models_of_fairlearn(of_fairlearn, kind, piped):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn uses what pandas deprecates
        model = of_fairlearn[kind].fit(X, Y, sensitive_features=Z)
    given = {} if kind == "grid" else {"random_state": 0}
    given |= {"sensitive_features": Z} if kind == "thresholds" else {}
    expected = fc.metrics.group_rates(Y, model.predict(X, **given), sensitive_features=Z)
    if piped:
        model = make_pipeline(FunctionTransformer(), model)
    groups = fc.fairness_report(model, X, Y, Z).groups[expected.columns]
    assert_frame_equal(groups, expected, check_names=False)
    table = fc.compare({"plain": MODEL, "fair": model}, X, Y, Z)
    assert table.loc["fair", "accuracy"] == pytest.approx(expected.loc["all rows", "accuracy"])
    shown = GroupMetricsDisplay.from_estimator(model, X, Y, sensitive_features=Z)
    assert shown.tables[""]["selection_rate"].tolist() == expected["selection_rate"].tolist()[:2]


def test_stored_predictions_are_reported_as_their_model_is():
    models = {"before": MODEL, "after": Perceptron().fit(X, Y)}
    weight = np.arange(len(Y)) % 3
    given = {"sample_weight": weight, "constraint": "equal_opportunity"}
    of_models = fc.fairness_report(models, X, Y, Z, **given)
    report = fc.FairnessReport.from_predictions(
        Y,
        {name: model.predict(X) for name, model in models.items()},
        y_score={"before": PROBABILITY, "after": models["after"].decision_function(X)},
        sensitive_features=Z,
        sample_weight=weight,
        constraint="equal_opportunity",
    )
    for table in ("groups", "gaps", "constraints", "summary", "cost"):
        assert_frame_equal(report.to_frame(table), of_models.to_frame(table))
    assert "predictions" in report.title and "Calibration" in report.to_html()
    given = {"sensitive_features": Z, "pos_label": MODEL.classes_[0]}
    with pytest.warns(fc.InputWarning, match="Pass the scores of .*, the second of the sorted"):
        fc.FairnessReport.from_predictions(Y, MODEL.predict(X), y_score=1.0 - PROBABILITY, **given)
    with pytest.raises(ValueError, match=r"y_score has names \['a'\], y_pred none: pass"):
        fc.FairnessReport.from_predictions(Y, Y, y_score={"a": PROBABILITY}, sensitive_features=Z)
    with pytest.raises(ValueError, match="Pass predictions, not scores"):
        fc.FairnessReport.from_predictions(Y, PROBABILITY, sensitive_features=Z)


def test_reports_without_labels_are_on_selection_rates():
    clf = fc.FairLogisticClassifier(kappa=0.05).fit(X, Y, sensitive_features=Z)
    with_labels = fc.fairness_report(clf, X, Y, Z)
    report = fc.fairness_report(clf, X, None, Z)
    for table in ("groups", "gaps", "constraints", "summary"):
        found, expected = report.to_frame(table), with_labels.to_frame(table)
        assert_frame_equal(found, expected.loc[found.index, found.columns])
    assert report.gaps.index.tolist() == ["selection_rate"]
    assert report.verdict == with_labels.verdict
    for text in (str(report), report.to_markdown(), report.to_html(), report.to_json()):
        assert "selection" in text and "true positive" not in text
    stored = fc.FairnessReport.from_predictions(None, clf.predict(X), sensitive_features=Z)
    assert_frame_equal(stored.groups, report.groups)
    both = {"all": ["yes"] * len(Y), "fair": np.where(clf.predict(X) == 1, "yes", "no")}
    stored = fc.FairnessReport.from_predictions(None, both, sensitive_features=Z)
    assert stored.groups.loc["all", "selection_rate"].tolist() == [1.0] * 3
    options = {"sensitive_features": Z, "metrics": ["selection_rate"]}
    shown = GroupMetricsDisplay.from_estimator(clf, X, None, **options)
    rates = shown.tables[""]["selection_rate"]
    assert rates.tolist() == report.groups["selection_rate"].tolist()[:2]


def test_y_is_named_where_labels_are_needed():
    clf = fc.FairLogisticClassifier("equal_opportunity", kappa=0.1).fit(X, Y, sensitive_features=Z)
    path = fc.fairness_path(fc.FairLogisticClassifier(), X, Y, sensitive_features=Z, kappas=[0.1])
    doors = [
        lambda: fc.fairness_report(clf, X, None, Z),
        lambda: fc.fairness_report(MODEL, X, None, Z, path=path),
        lambda: fc.compare({"a": MODEL}, X, None, Z),
        lambda: GroupMetricsDisplay.from_estimator(MODEL, X, None, sensitive_features=Z),
        lambda: GroupMetricsDisplay.from_predictions(None, Y, sensitive_features=Z),
    ]
    for door in doors:
        with pytest.raises(ValueError, match=r"^y is None"):
            door()


def test_a_metric_that_returns_no_number_is_named():
    def gaps_of_all(y_true, y_pred, *, sensitive_features):
        return np.array([0.1, 0.2])

    scorer = fc.make_fairness_scorer(gaps_of_all, greater_is_better=False)
    with pytest.raises(TypeError, match=r"gaps_of_all returned .*must return one number"):
        scorer(MODEL, X, Y, sensitive_features=Z)
