"""FairThresholds: bounds, accuracy, the rows that choose thresholds, and how it is used."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fairlearn import metrics as theirs
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairconstrained as fc
from fairconstrained.inspection.shown import GroupScores

X, Y, CODES = fc.make_biased_classification(1200, 4, gap=0.3, random_state=0)
GROUPS = np.array(["a", "b"])[CODES]
DATA = X, Y, GROUPS
MODEL = LogisticRegression().fit(X[:600], Y[:600])
LATER = X[600:], Y[600:], GROUPS[600:]
METRICS = {
    "demographic_parity": theirs.demographic_parity_difference,
    "equal_opportunity": theirs.equal_opportunity_difference,
    "equalized_odds": theirs.equalized_odds_difference,
}


def fitted(*constraint, rows=DATA, cv="prefit", **options):
    X, y, groups = rows
    clf = fc.FairThresholds(MODEL, *constraint, cv=cv, **options)
    return clf.fit(X, y, sensitive_features=groups)


ON_SCORES = ["roc_parity", "partial_dp", "weak_partial_dp", "group_auc", "inter_group_auc"]


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_the_gap_of_the_decisions_is_bounded(name, per_group):
    X, y, groups = LATER
    clf = fitted(name, rows=LATER, kappa=0.04, per_group=per_group)
    decisions = clf.predict(X, sensitive_features=groups)
    gap = METRICS[name](y, decisions, sensitive_features=groups)
    before = METRICS[name](y, MODEL.predict(X), sensitive_features=groups)
    assert gap == pytest.approx(clf.decision_gap_, abs=1e-9)
    assert gap <= 0.04 + 1e-9 < before
    assert np.mean(decisions == y) == pytest.approx(clf.decision_search_.accuracy)
    assert clf.decision_search_.met and not clf.decision_search_.constant
    assert clf.estimator_ is MODEL


OF_SAMPLES = fc.MinorityRate(0.3, minority="a", reference=X, reference_groups=GROUPS)


@pytest.mark.cases(6)
@pytest.mark.parametrize("constraint", [*ON_SCORES, OF_SAMPLES], ids=str)
def test_constraints_on_scores_or_reference_rows_are_refused(constraint):
    said = "reference rows" if constraint is OF_SAMPLES else "bound the decisions"
    with pytest.raises(ValueError, match=said):
        fc.FairThresholds(LogisticRegression(), constraint).fit(X, Y, sensitive_features=GROUPS)


def test_the_rows_that_choose():
    """Cross-validated scores, those of a held-out share, and those of a fitted classifier."""
    base = LogisticRegression()
    scores = cross_val_predict(base, X, Y, cv=3, method="predict_proba")[:, 1]
    folds = fc.FairThresholds(base, kappa=0.1, cv=3, per_group=True)
    folds.fit(X, Y, sensitive_features=GROUPS)
    own = folds.thresholds_.loc[GROUPS].to_numpy()
    gap = theirs.demographic_parity_difference(Y, scores > own, sensitive_features=GROUPS)
    assert gap == pytest.approx(folds.decision_gap_)
    np.testing.assert_allclose(folds.estimator_.coef_, base.fit(X, Y).coef_)

    share = fc.FairThresholds(base, kappa=0.1, cv=0.4, per_group=True, random_state=1)
    with pytest.warns(fc.InfeasibleConstraintWarning, match="the rows that chose them"):
        share.fit(X, Y, sensitive_features=GROUPS)
    assert not np.allclose(share.estimator_.coef_, base.coef_)
    right = share.decision_search_.accuracy * 480
    assert right == pytest.approx(round(right))

    frozen = fc.FairThresholds(FrozenEstimator(base), kappa=0.1, per_group=True)
    prefit = fc.FairThresholds(base, kappa=0.1, per_group=True, cv="prefit")
    frozen, prefit = (one.fit(X, Y, sensitive_features=GROUPS) for one in (frozen, prefit))
    pd.testing.assert_series_equal(frozen.thresholds_, prefit.thresholds_)


@pytest.mark.parametrize("missing", ["own_group", "ignore_in_constraint"])
@pytest.mark.parametrize("per_group", [False, True])
def test_groups_that_are_missing(missing, per_group):
    X, y, groups = LATER
    some = groups.astype(object)
    some[::5] = None
    options = {"kappa": 0.05, "per_group": per_group, "groups_missing": missing}
    clf = fitted(rows=(X, y, some), **options)
    decisions = clf.predict(X, sensitive_features=some)
    known = np.array([one is not None for one in some])
    measured = {"sensitive_features": groups[known]}
    gap = theirs.demographic_parity_difference(y[known], decisions[known], **measured)
    assert gap <= 0.05 + 1e-9
    if per_group and missing == "ignore_in_constraint":
        expected = MODEL.predict_proba(X[~known])[:, 1] > clf.threshold_
        np.testing.assert_array_equal(decisions[~known], expected * 1)
    assert np.mean(decisions == y) == pytest.approx(clf.decision_search_.accuracy)


def test_a_bound_with_confidence():
    X, y, groups = fc.make_biased_classification(6000, 4, gap=0.3, random_state=1)
    options = {"kappa": 0.15, "per_group": True, "confidence": 0.9, "random_state": 0}
    clf = fc.FairThresholds(LogisticRegression(), **options)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.certificate_.certified and clf.certificate_.confidence == 0.9
    assert clf.certificate_.n_accepted >= 1 and not clf.decision_search_.constant
    held = clf.holdout_indices_
    assert len(np.unique(held)) == len(held) == clf.certificate_.n_held_out
    decisions = clf.predict(X[held], sensitive_features=groups[held])
    gap = theirs.demographic_parity_difference(y[held], decisions, sensitive_features=groups[held])
    assert gap < 0.15


def test_too_few_rows_for_a_confidence_give_constant_decisions():
    clf = fc.FairThresholds(LogisticRegression(), kappa=0.02, confidence=0.99, random_state=0)
    with pytest.warns(fc.ConstantDecisionWarning, match="too few"):
        clf.fit(X[:300], Y[:300], sensitive_features=GROUPS[:300])
    assert len(np.unique(clf.predict(X))) == 1


def test_a_bound_that_no_thresholds_meet():
    with pytest.warns(fc.ConstantDecisionWarning, match="FairThresholds"):
        clf = fitted(fc.EqualizedOdds(ratio=1.0), per_group=True)
    assert clf.decision_search_.met and clf.decision_search_.constant
    with pytest.warns(fc.InfeasibleConstraintWarning, match="FairThresholds"):
        fitted(fc.BoundedGroupLoss(0.05), per_group=True)
    folds = fc.FairThresholds(RandomForestClassifier(1, max_depth=2, random_state=0), kappa=0.1)
    with pytest.warns(fc.ConstantDecisionWarning, match="suit the scores of the folds"):
        folds.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("per_group", [False, True])
def test_weights_of_classes_count_in_the_accuracy_only(per_group):
    X, y, groups = LATER
    kept = (y == 0) | (np.arange(len(y)) % 5 == 0)  # few favourable labels
    X, y, groups = rows = X[kept], y[kept], groups[kept]
    options = {"kappa": 0.2, "per_group": per_group, "rows": rows}
    plain, clf = (fitted(class_weight=one, **options) for one in (None, "balanced"))
    balanced, accurate = (
        balanced_accuracy_score(y, one.predict(X, sensitive_features=groups))
        for one in (clf, plain)
    )
    assert clf.decision_search_.accuracy == pytest.approx(balanced)
    assert balanced > accurate
    decisions = clf.predict(X, sensitive_features=groups)
    gap = theirs.demographic_parity_difference(y, decisions, sensitive_features=groups)
    assert gap == pytest.approx(clf.decision_gap_) and gap <= 0.2 + 1e-9
    with pytest.raises(ValueError, match="class_weight"):
        fitted(class_weight=2.0)


def test_missing_arguments():
    with pytest.raises(ValueError, match="needs groups: pass sensitive_features"):
        fc.FairThresholds(LogisticRegression(), None, per_group=True).fit(X, Y)
    with pytest.raises(NotFittedError, match="estimator is not fitted"):
        fc.FairThresholds(LogisticRegression(), cv="prefit").fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(NotFittedError):
        fc.FairThresholds(LogisticRegression()).predict(X)
    with pytest.raises(ValueError, match="some are in several"):
        twice = [(np.arange(600), np.arange(600, 1200))] * 2
        fc.FairThresholds(LogisticRegression(), cv=twice).fit(X, Y, sensitive_features=GROUPS)


def test_no_rows_are_an_error():
    with pytest.raises(ValueError, match="X has no rows"):
        fc.FairThresholds(LogisticRegression(), None).fit(np.empty((0, 3)), [])


def test_columns_that_are_taken_out_of_x_are_named():
    table = pd.DataFrame(X, columns=list("abcd")).assign(sex=GROUPS)
    inner = fc.FairLogisticClassifier(None, sensitive_columns=["sex"])
    clf = fc.FairThresholds(inner, sensitive_columns="sex", kappa=0.1)
    with pytest.raises(ValueError, match=r"taken out of X.*use_sensitive=True"):
        clf.fit(table, Y)
    clf.set_params(use_sensitive=True).fit(table, Y)
    assert clf.decision_gap_ <= 0.1


def test_the_threshold_is_on_the_scores_that_decide():
    clf = fitted(response_method="decision_function")
    assert clf.score_threshold_ == clf.threshold_
    above = clf.decision_function(X) > clf.score_threshold_
    np.testing.assert_array_equal(clf.predict(X), above * 1)
    clf = fitted()
    np.testing.assert_array_equal(clf.predict(X), (clf.predict_proba(X)[:, 1] > clf.threshold_) * 1)
    with pytest.raises(AttributeError, match="predicts by predict_proba"):
        clf.score_threshold_  # noqa: B018
    scores = GroupScores.from_estimator(clf, X, Y, GROUPS, response_method="decision_function")
    np.testing.assert_array_equal(clf.predict(X), (scores.values > scores.threshold) * 1)
    clf = fitted(per_group=True)
    with pytest.raises(ValueError, match="does not predict by a threshold on predict_proba"):
        GroupScores.from_estimator(clf, X, Y, GROUPS, response_method="predict_proba")


def test_a_classifier_with_probabilities_only():
    forest = RandomForestClassifier(n_estimators=3, random_state=0)
    clf = fc.FairThresholds(forest, None, cv=2).fit(X, Y, sensitive_features=GROUPS)
    assert not hasattr(clf, "decision_function")
    np.testing.assert_array_equal(clf.predict(X), (clf.decision_margin(X) > 0) * 1)


@pytest.mark.parametrize("per_group", [False, True])
def test_the_favourable_class(per_group):
    """The first class as the favourable one mirrors labels, scores and decisions."""
    options = {"constraint": "equal_opportunity", "kappa": 0.02, "per_group": per_group}
    first = fitted(pos_label=0, **options)
    mirrored = LogisticRegression().fit(X[:600], 1 - Y[:600])
    mirrored.coef_, mirrored.intercept_ = -MODEL.coef_, -MODEL.intercept_
    second = fc.FairThresholds(mirrored, cv="prefit", **options)
    second.fit(X, 1 - Y, sensitive_features=GROUPS)
    decisions = first.predict(X, sensitive_features=GROUPS)
    np.testing.assert_array_equal(decisions, 1 - second.predict(X, sensitive_features=GROUPS))
    gap = theirs.equal_opportunity_difference(1 - Y, 1 - decisions, sensitive_features=GROUPS)
    assert gap <= 0.02 + 1e-9
    margins = first.decision_margin(X, sensitive_features=GROUPS)
    np.testing.assert_array_equal(decisions, (margins > 0) * 1)


def test_groups_are_needed_to_predict():
    clf = fitted(kappa=0.1, per_group=True)
    assert clf.groups_at_prediction
    with pytest.raises(ValueError, match="needed to predict"):
        clf.predict(X)
    with pytest.raises(ValueError, match="group 'c', which no row had in fit"):
        clf.predict(X[:2], sensitive_features=["a", "c"])
    with pytest.raises(ValueError, match="one group per row"):
        clf.predict(X, sensitive_features=GROUPS[:5])


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_reports_and_displays_show_the_decisions(per_group, response):
    clf = fitted(kappa=0.1, per_group=per_group, response_method=response)
    decisions = clf.predict(X, sensitive_features=GROUPS)
    scores = GroupScores.from_estimator(clf, X, Y, GROUPS)
    np.testing.assert_array_equal(scores.values > scores.threshold, decisions == 1)
    table = fc.fairness_report(clf, X, Y, GROUPS).to_frame("constraints")
    assert table.loc["demographic_parity", "decisions"] == pytest.approx(clf.decision_gap_)
    both = fc.fairness_report({"before": MODEL, "after": clf}, X, Y, GROUPS)
    accuracy = both.to_frame("summary").loc["accuracy", "after"]
    assert accuracy == pytest.approx(np.mean(decisions == Y))
    rates = both.to_frame("groups")
    assert len(rates) and "after" in both.to_html()
    piped = make_pipeline(FunctionTransformer(), clf)
    piped.fit(X, Y, fairthresholds__sensitive_features=GROUPS)
    scores = GroupScores.from_estimator(piped, X, Y, GROUPS)
    np.testing.assert_array_equal(scores.values > scores.threshold, decisions == 1)


def test_a_refit_keeps_nothing_of_the_thresholds_by_group():
    X, y, groups = LATER
    clf = fitted(rows=LATER, kappa=0.04, per_group=True)
    assert len(clf.thresholds_) == len(np.unique(groups))
    clf.set_params(per_group=False).fit(X, y, sensitive_features=groups)
    assert not hasattr(clf, "thresholds_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_groups_are_matched_by_name(frame):
    """Two columns of the same values: in another order each would have the other's thresholds."""
    table = pd.DataFrame({"sex": GROUPS == "a", "old": X[:, 0] > 0.0})
    clf = fc.FairThresholds(LogisticRegression(), kappa=0.1, per_group=True)
    clf.fit(X, Y, sensitive_features=frame(table))
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
    clf.fit(X, Y, sensitive_features=table.to_numpy())
    assert not hasattr(clf, "sensitive_names_in_")
    np.testing.assert_array_equal(clf.predict(X, sensitive_features=frame(table)), expected)


def test_labels_that_a_fitted_classifier_does_not_know():
    said = r"estimator: .* the classes \[0, 1\], and y has the labels \['acc', 'rej'\]"
    with pytest.raises(ValueError, match=said):
        fitted(rows=(X, np.where(Y == 1, "acc", "rej"), GROUPS))
