"""Predictions of thresholds, and how they are used among other tools."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _support.gaps import equal_opportunity_difference
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fairconstrained import (
    FairLogisticClassifier,
    FairThresholds,
    fairness_report,
    make_biased_classification,
)
from fairconstrained.inspection.shown import GroupScores


def frame(data):
    X, y, groups = data
    table = pd.DataFrame(X, columns=list("pqrs"))
    return table.assign(sex=groups, area=np.where(X[:, 0] > 0, "north", "south")), y


def test_missing_arguments(data):
    X, y, groups = data
    with pytest.raises(ValueError, match="needs groups: pass sensitive_features"):
        FairThresholds(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="needs groups: pass sensitive_features"):
        FairThresholds(LogisticRegression(), None, per_group=True).fit(X, y)
    with pytest.raises(NotFittedError, match="estimator is not fitted"):
        FairThresholds(LogisticRegression(), cv="prefit").fit(X, y, sensitive_features=groups)
    with pytest.raises(NotFittedError):
        FairThresholds(LogisticRegression()).predict(X)
    with pytest.raises(ValueError, match="some are in several"):
        twice = [(np.arange(600), np.arange(600, 1200))] * 2
        FairThresholds(LogisticRegression(), cv=twice).fit(X, y, sensitive_features=groups)


def test_no_rows_are_an_error():
    with pytest.raises(ValueError, match="X has no rows"):
        FairThresholds(LogisticRegression(), None).fit(np.empty((0, 3)), [])


X, Y, CODES = make_biased_classification(400, 4, gap=0.3, random_state=0)


SEX = pd.Series(np.where(CODES == 1, "m", "f"))


TABLE = pd.DataFrame(X, columns=list("abcd")).assign(sex=SEX)


def test_columns_that_are_taken_out_of_x_are_named():
    inner = FairLogisticClassifier(None, sensitive_columns=["sex"])
    clf = FairThresholds(inner, sensitive_columns="sex", kappa=0.1)
    with pytest.raises(ValueError, match=r"taken out of X.*use_sensitive=True"):
        clf.fit(TABLE, Y)
    clf.set_params(use_sensitive=True).fit(TABLE, Y)
    assert clf.decision_gap_ <= 0.1


def test_the_threshold_is_on_the_scores_that_decide(data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, cv="prefit", response_method="decision_function")
    clf.fit(X, y, sensitive_features=groups)
    assert clf.score_threshold_ == clf.threshold_
    above = clf.decision_function(X) > clf.score_threshold_
    np.testing.assert_array_equal(clf.predict(X), above * 1)
    clf = FairThresholds(fitted, cv="prefit").fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(clf.predict(X), (clf.predict_proba(X)[:, 1] > clf.threshold_) * 1)
    with pytest.raises(AttributeError, match="predicts by predict_proba"):
        clf.score_threshold_  # noqa: B018
    scores = GroupScores.from_estimator(clf, X, y, groups, response_method="decision_function")
    np.testing.assert_array_equal(clf.predict(X), (scores.values > scores.threshold) * 1)
    clf = FairThresholds(fitted, cv="prefit", per_group=True).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="does not predict by a threshold on predict_proba"):
        GroupScores.from_estimator(clf, X, y, groups, response_method="predict_proba")


def test_a_classifier_with_probabilities_only(data):
    X, y, groups = data
    forest = RandomForestClassifier(n_estimators=3, random_state=0)
    clf = FairThresholds(forest, None, cv=2).fit(X, y, sensitive_features=groups)
    assert not hasattr(clf, "decision_function")
    np.testing.assert_array_equal(clf.predict(X), (clf.decision_margin(X) > 0) * 1)


@pytest.mark.parametrize("per_group", [False, True])
def test_the_favourable_class(per_group, data, fitted):
    """The first class as the favourable one mirrors labels, scores and decisions."""
    X, y, groups = data
    options = {"constraint": "equal_opportunity", "kappa": 0.02, "per_group": per_group}
    first = FairThresholds(fitted, pos_label=0, cv="prefit", **options)
    first.fit(X, y, sensitive_features=groups)
    mirrored = LogisticRegression().fit(X[:600], 1 - y[:600])
    mirrored.coef_, mirrored.intercept_ = -fitted.coef_, -fitted.intercept_
    second = FairThresholds(mirrored, cv="prefit", **options)
    second.fit(X, 1 - y, sensitive_features=groups)
    decisions = first.predict(X, sensitive_features=groups)
    np.testing.assert_array_equal(decisions, 1 - second.predict(X, sensitive_features=groups))
    gap = equal_opportunity_difference(y, decisions, sensitive_features=groups, label=0)
    assert gap <= 0.02 + 1e-9
    np.testing.assert_array_equal(
        decisions, (first.decision_margin(X, sensitive_features=groups) > 0) * 1
    )


def test_groups_are_needed_to_predict(data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, kappa=0.1, per_group=True, cv="prefit")
    clf.fit(X, y, sensitive_features=groups)
    assert clf.groups_at_prediction
    with pytest.raises(ValueError, match="needed to predict"):
        clf.predict(X)
    with pytest.raises(ValueError, match="group 'c', which no row had in fit"):
        clf.predict(X[:2], sensitive_features=["a", "c"])
    with pytest.raises(ValueError, match="one group per row"):
        clf.predict(X, sensitive_features=groups[:5])


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_reports_and_displays_show_the_decisions(per_group, response, data, fitted):
    X, y, groups = data
    clf = FairThresholds(
        fitted, kappa=0.1, per_group=per_group, response_method=response, cv="prefit"
    ).fit(X, y, sensitive_features=groups)
    decisions = clf.predict(X, sensitive_features=groups)
    scores = GroupScores.from_estimator(clf, X, y, groups)
    np.testing.assert_array_equal(scores.values > scores.threshold, decisions == 1)
    table = fairness_report(clf, X, y, groups).to_frame("constraints")
    assert table.loc["demographic_parity", "decisions"] == pytest.approx(clf.decision_gap_)
    both = fairness_report({"before": fitted, "after": clf}, X, y, groups)
    assert both.to_frame("summary").loc["accuracy", "after"] == pytest.approx(
        np.mean(decisions == y)
    )
    rates = both.to_frame("groups")
    assert len(rates) and "after" in both.to_html()
    piped = make_pipeline(FunctionTransformer(), clf).fit(
        X, y, fairthresholds__sensitive_features=groups
    )
    scores = GroupScores.from_estimator(piped, X, y, groups)
    np.testing.assert_array_equal(scores.values > scores.threshold, decisions == 1)


def test_a_refit_keeps_nothing_of_the_thresholds_by_group(data, fitted):
    X, y, groups = (one[600:] for one in data)
    clf = FairThresholds(fitted, kappa=0.04, per_group=True, cv="prefit")
    clf.fit(X, y, sensitive_features=groups)
    assert len(clf.thresholds_) == len(np.unique(groups))
    clf.set_params(per_group=False).fit(X, y, sensitive_features=groups)
    assert not hasattr(clf, "thresholds_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_groups_are_matched_by_name(frame, data):
    """Two columns of the same values: in another order each would have the other's thresholds."""
    X, y, groups = data
    table = pd.DataFrame({"sex": groups == "a", "old": X[:, 0] > 0.0})
    clf = FairThresholds(LogisticRegression(), kappa=0.1, per_group=True)
    clf.fit(X, y, sensitive_features=frame(table))
    assert clf.sensitive_names_in_.tolist() == ["sex", "old"]
    expected = clf.predict(X, sensitive_features=frame(table))
    other_order = frame(table[["old", "sex"]])
    np.testing.assert_array_equal(clf.predict(X, sensitive_features=other_order), expected)
    by_position = clf.predict(X, sensitive_features=table.to_numpy())
    np.testing.assert_array_equal(by_position, expected)
    swapped = clf.predict(X, sensitive_features=table.to_numpy()[:, ::-1])
    assert np.any(swapped != expected)
    with pytest.raises(ValueError, match=r"sensitive_features has the columns \['sex', 'age'\]"):
        clf.predict(X, sensitive_features=frame(table.rename(columns={"old": "age"})))
    clf.fit(X, y, sensitive_features=table.to_numpy())
    assert not hasattr(clf, "sensitive_names_in_")
    np.testing.assert_array_equal(clf.predict(X, sensitive_features=frame(table)), expected)


def test_labels_that_a_fitted_classifier_does_not_know(data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, cv="prefit")
    said = r"estimator: .* the classes \[0, 1\], and y has the labels \['acc', 'rej'\]"
    with pytest.raises(ValueError, match=said):
        clf.fit(X, np.where(y == 1, "acc", "rej"), sensitive_features=groups)
