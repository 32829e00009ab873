"""FairThresholds: the rows that choose, groups, labels, weights, and scikit-learn's interfaces."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from _support.sklearn_checks import failed_checks
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from fairconstrained import (
    BoundedGroupLoss,
    ConstantDecisionWarning,
    EqualizedOdds,
    FairLogisticClassifier,
    FairThresholds,
    InfeasibleConstraintWarning,
    MinorityRate,
    fairness_report,
    make_biased_classification,
    make_fairness_scorer,
)
from fairconstrained.inspection.scores import GroupScores
from fairconstrained.utils.meta_estimators import prediction_groups


def demographic_parity_difference(y_true, y_pred, *, sensitive_features):
    """The largest difference of selection rates, by NumPy alone."""
    chosen, groups = np.asarray(y_pred) == 1, np.asarray(sensitive_features)
    return float(np.ptp([chosen[groups == name].mean() for name in np.unique(groups)]))


def equal_opportunity_difference(y_true, y_pred, *, sensitive_features, label=1):
    """The largest difference of the rates of predictions `label` among rows of that label."""
    rows = np.asarray(y_true) == label
    return demographic_parity_difference(
        None,
        (np.asarray(y_pred) == label)[rows],
        sensitive_features=np.asarray(sensitive_features)[rows],
    )


def equalized_odds_difference(y_true, y_pred, *, sensitive_features):
    """The larger of the differences for the two labels."""
    return max(
        equal_opportunity_difference(
            y_true, y_pred, sensitive_features=sensitive_features, label=label
        )
        for label in (0, 1)
    )


METRICS = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
}
ON_DECISIONS = [
    *METRICS,
    "predictive_equality",
    "error_rate_parity",
    "disparate_impact",
    "balanced_rate",
    "minority_rate",
]
ON_SCORES = ["roc_parity", "partial_dp", "weak_partial_dp", "group_auc", "inter_group_auc"]


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(1200, 4, gap=0.3, random_state=0)
    return X, y, np.array(["a", "b"])[groups]


@pytest.fixture(scope="module")
def fitted(data):
    """A logistic regression fitted to the first half of the rows."""
    X, y, _ = data
    return LogisticRegression().fit(X[:600], y[:600])


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_the_gap_of_the_decisions_is_bounded(name, per_group, data, fitted):
    X, y, groups = (one[600:] for one in data)
    clf = FairThresholds(fitted, name, kappa=0.04, per_group=per_group, cv="prefit")
    clf.fit(X, y, sensitive_features=groups)
    decisions = clf.predict(X, sensitive_features=groups)
    gap = METRICS[name](y, decisions, sensitive_features=groups)
    before = METRICS[name](y, fitted.predict(X), sensitive_features=groups)
    assert gap == pytest.approx(clf.decision_gap_, abs=1e-9)
    assert gap <= 0.04 + 1e-9 < before
    assert np.mean(decisions == y) == pytest.approx(clf.decision_search_.accuracy)
    assert clf.decision_search_.met and not clf.decision_search_.constant
    assert clf.estimator_ is fitted


@pytest.mark.parametrize("name", ON_DECISIONS)
def test_thresholds_of_groups_are_at_least_as_accurate_as_a_common_one(name, data, fitted):
    X, y, groups = (one[600:] for one in data)
    searches = []
    for per_group in (False, True):
        clf = FairThresholds(fitted, name, kappa=0.03, per_group=per_group, cv="prefit")
        searches.append(clf.fit(X, y, sensitive_features=groups).decision_search_)
    common, own = searches
    assert common.met and own.met
    assert own.accuracy >= common.accuracy
    assert own.accuracy <= own.accuracy_bound <= own.accuracy_unconstrained + 1e-12


@pytest.mark.parametrize("name", ON_SCORES)
def test_constraints_on_scores_are_refused(name, data):
    X, y, groups = data
    with pytest.raises(ValueError, match="bound the decisions"):
        FairThresholds(LogisticRegression(), name).fit(X, y, sensitive_features=groups)


def test_reference_rows_are_refused(data):
    X, y, groups = data
    rule = MinorityRate(0.3, minority="a", reference=X, reference_groups=groups)
    with pytest.raises(ValueError, match="reference rows"):
        FairThresholds(LogisticRegression(), rule).fit(X, y, sensitive_features=groups)


def test_several_constraints_hold_together(data, fitted):
    X, y, groups = data
    both = ["demographic_parity", EqualizedOdds(0.2)]
    clf = FairThresholds(fitted, both, kappa=0.15, per_group=True, cv="prefit")
    clf.fit(X, y, sensitive_features=groups)
    decisions = clf.predict(X, sensitive_features=groups)
    assert demographic_parity_difference(y, decisions, sensitive_features=groups) <= 0.15 + 1e-9
    assert equalized_odds_difference(y, decisions, sensitive_features=groups) <= 0.2 + 1e-9


def test_the_rows_that_choose(data):
    """Cross-validated scores, those of a held-out share, and those of a fitted classifier."""
    X, y, groups = data
    base = LogisticRegression()
    scores = cross_val_predict(base, X, y, cv=3, method="predict_proba")[:, 1]
    folds = FairThresholds(base, kappa=0.1, cv=3, per_group=True)
    folds.fit(X, y, sensitive_features=groups)
    own = folds.thresholds_.loc[groups].to_numpy()
    gap = demographic_parity_difference(y, scores > own, sensitive_features=groups)
    assert gap == pytest.approx(folds.decision_gap_)
    np.testing.assert_allclose(folds.estimator_.coef_, base.fit(X, y).coef_)

    share = FairThresholds(base, kappa=0.1, cv=0.4, per_group=True, random_state=1)
    share.fit(X, y, sensitive_features=groups)
    assert not np.allclose(share.estimator_.coef_, base.coef_)
    assert share.decision_search_.accuracy * 480 == pytest.approx(
        round(share.decision_search_.accuracy * 480)
    )

    frozen = FairThresholds(FrozenEstimator(base), kappa=0.1, per_group=True)
    prefit = FairThresholds(base, kappa=0.1, per_group=True, cv="prefit")
    for one in (frozen, prefit):
        one.fit(X, y, sensitive_features=groups)
    pd.testing.assert_series_equal(frozen.thresholds_, prefit.thresholds_)


def test_folds_in_a_list_are_of_the_rows_that_are_passed(data):
    X, y, groups = data
    weight = np.ones(len(y))
    weight[::7] = 0.0
    kept = weight > 0
    splits = list(KFold(3).split(X))
    base = FairThresholds(LogisticRegression(), kappa=0.1, cv=splits)
    base.fit(X, y, weight, sensitive_features=groups)
    place = np.cumsum(kept) - 1
    inside = [(place[a[kept[a]]], place[b[kept[b]]]) for a, b in splits]
    other = FairThresholds(LogisticRegression(), kappa=0.1, cv=inside)
    other.fit(X[kept], y[kept], weight[kept], sensitive_features=groups[kept])
    assert base.threshold_ == other.threshold_


def test_scores_without_probabilities(data):
    X, y, groups = data
    clf = FairThresholds(LinearSVC(random_state=0), kappa=0.1, per_group=True)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.response_method_ == "decision_function"
    assert not hasattr(clf, "predict_proba")
    margin = clf.decision_margin(X, sensitive_features=groups)
    own = clf.thresholds_.loc[groups].to_numpy()
    np.testing.assert_allclose(margin, clf.estimator_.decision_function(X) - own)
    np.testing.assert_array_equal(clf.predict(X, sensitive_features=groups), (margin > 0) * 1)


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_scores_and_probabilities_are_those_of_the_classifier(method, per_group, data, fitted):
    """As those of scikit-learn's FixedThresholdClassifier; thresholds act in `predict` only."""
    X, y, groups = data
    clf = FairThresholds(fitted, cv="prefit", per_group=per_group, response_method=method)
    clf.fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(clf.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(clf.decision_function(X), fitted.decision_function(X))
    fixed = FixedThresholdClassifier(FrozenEstimator(fitted), threshold=0.9).fit(X, y)
    np.testing.assert_array_equal(clf.decision_function(X), fixed.decision_function(X))


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
    with pytest.raises(ValueError, match="threshold on these scores is not known"):
        GroupScores.from_estimator(clf, X, y, groups, response_method="decision_function")


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


def test_labels_of_any_kind(data):
    X, y, groups = data
    named = np.array(["refused", "accepted"], dtype=object)[y]
    clf = FairThresholds(LogisticRegression(), kappa=0.1, pos_label="accepted", per_group=True)
    clf.fit(X, named, sensitive_features=groups)
    assert clf.pos_label_ == "accepted" and clf.classes_.tolist() == ["accepted", "refused"]
    chosen = clf.predict(X, sensitive_features=groups)
    assert set(chosen) == {"accepted", "refused"}
    assert np.mean(chosen == named) > 0.7


def test_weights_stand_for_repeated_rows(data, fitted):
    X, y, groups = (one[600:] for one in data)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"kappa": 0.05, "per_group": True, "cv": "prefit"}
    weighted = FairThresholds(fitted, **options).fit(X, y, weight, sensitive_features=groups)
    X, y, groups = (np.repeat(one, weight, axis=0) for one in (X, y, groups))
    repeated = FairThresholds(fitted, **options).fit(X, y, sensitive_features=groups)
    assert weighted.decision_search_.accuracy == pytest.approx(
        repeated.decision_search_.accuracy, abs=1e-9
    )
    assert weighted.decision_gap_ <= 0.05 + 1e-9


def test_weights_reach_the_classifier(data):
    X, y, groups = data
    weight = np.where(y == 1, 5.0, 1.0)
    clf = FairThresholds(LogisticRegression(), kappa=0.1)
    clf.fit(X, y, weight, sensitive_features=groups)
    np.testing.assert_allclose(clf.estimator_.coef_, LogisticRegression().fit(X, y, weight).coef_)


def frame(data):
    X, y, groups = data
    table = pd.DataFrame(X, columns=list("pqrs"))
    return table.assign(sex=groups, area=np.where(X[:, 0] > 0, "north", "south")), y


@pytest.mark.parametrize("use_sensitive", [False, True])
def test_groups_in_columns(use_sensitive, data):
    X, y = frame(data)
    X["sex"] = (X["sex"] == "a").astype(int)
    options = {"sensitive_columns": "sex", "use_sensitive": use_sensitive, "per_group": True}
    X = X.drop(columns="area")
    clf = FairThresholds(LogisticRegression(), kappa=0.05, **options).fit(X, y)
    assert clf.estimator_.n_features_in_ == 4 + use_sensitive
    assert not clf.groups_at_prediction and prediction_groups(clf, X["sex"]) == {}
    gap = demographic_parity_difference(y, clf.predict(X), sensitive_features=X["sex"])
    assert gap < 0.1


def test_marginal_groups_have_thresholds_for_intersections(data):
    X, y = frame(data)
    columns = ["sex", "area"]
    clf = FairThresholds(
        LogisticRegression(),
        kappa=0.03,
        per_group=True,
        sensitive_columns=columns,
        combine="marginal",
        cv=0.5,
        random_state=0,
    ).fit(X, y)
    assert clf.groups_.tolist() == ["sex=a", "sex=b", "area=north", "area=south"]
    assert len(clf.thresholds_) == 4
    assert clf.decision_search_.met and clf.decision_gap_ <= 0.03 + 1e-9
    assert len(clf.predict(X)) == len(y)


@pytest.mark.parametrize("missing", ["own_group", "ignore_in_constraint"])
@pytest.mark.parametrize("per_group", [False, True])
def test_groups_that_are_missing(missing, per_group, data, fitted):
    X, y, groups = (one[600:] for one in data)
    some = groups.astype(object)
    some[::5] = None
    clf = FairThresholds(
        fitted, kappa=0.05, per_group=per_group, groups_missing=missing, cv="prefit"
    ).fit(X, y, sensitive_features=some)
    decisions = clf.predict(X, sensitive_features=some)
    known = np.array([one is not None for one in some])
    gap = demographic_parity_difference(
        y[known], decisions[known], sensitive_features=groups[known]
    )
    assert gap <= 0.05 + 1e-9
    if per_group and missing == "ignore_in_constraint":
        expected = fitted.predict_proba(X[~known])[:, 1] > clf.threshold_
        np.testing.assert_array_equal(decisions[~known], expected * 1)
    assert np.mean(decisions == y) == pytest.approx(clf.decision_search_.accuracy)


def test_many_groups():
    rng = np.random.default_rng(0)
    n = 6000
    groups = rng.integers(0, 60, n)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.03 * (groups - 30) + rng.normal(size=n) > 0).astype(int)
    X[:, 1] += 0.05 * groups
    base = LogisticRegression().fit(X, y)
    clf = FairThresholds(base, kappa=0.1, per_group=True, cv="prefit")
    clf.fit(X, y, sensitive_features=groups)
    decisions = clf.predict(X, sensitive_features=groups)
    assert demographic_parity_difference(y, decisions, sensitive_features=groups) <= 0.1 + 1e-9
    assert clf.decision_search_.accuracy_bound == pytest.approx(clf.decision_search_.accuracy)
    before = demographic_parity_difference(y, base.predict(X), sensitive_features=groups)
    assert before > 0.3


def test_a_bound_with_confidence(data):
    X, y, groups = make_biased_classification(6000, 4, gap=0.3, random_state=1)
    clf = FairThresholds(
        LogisticRegression(), kappa=0.15, per_group=True, confidence=0.9, random_state=0
    ).fit(X, y, sensitive_features=groups)
    assert clf.certificate_.certified and clf.certificate_.confidence == 0.9
    assert clf.certificate_.n_accepted >= 1 and not clf.decision_search_.constant
    held = clf.holdout_indices_
    assert len(np.unique(held)) == len(held) == clf.certificate_.n_held_out
    decisions = clf.predict(X[held], sensitive_features=groups[held])
    gap = demographic_parity_difference(y[held], decisions, sensitive_features=groups[held])
    assert gap < 0.15


def test_too_few_rows_for_a_confidence_give_constant_decisions(data):
    X, y, groups = (one[:300] for one in data)
    clf = FairThresholds(LogisticRegression(), kappa=0.02, confidence=0.99, random_state=0)
    with pytest.warns(ConstantDecisionWarning, match="too few"):
        clf.fit(X, y, sensitive_features=groups)
    assert len(np.unique(clf.predict(X))) == 1


def test_a_bound_that_no_thresholds_meet(data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, EqualizedOdds(ratio=1.0), per_group=True, cv="prefit")
    with pytest.warns(ConstantDecisionWarning, match="FairThresholds"):
        clf.fit(X, y, sensitive_features=groups)
    assert clf.decision_search_.met and clf.decision_search_.constant
    clf = FairThresholds(fitted, BoundedGroupLoss(0.05), per_group=True, cv="prefit")
    with pytest.warns(InfeasibleConstraintWarning, match="FairThresholds"):
        clf.fit(X, y, sensitive_features=groups)


def test_groups_are_needed_to_predict(data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, kappa=0.1, per_group=True, cv="prefit")
    clf.fit(X, y, sensitive_features=groups)
    assert clf.groups_at_prediction
    assert prediction_groups(make_pipeline(clf), groups)["sensitive_features"] is groups
    with pytest.raises(ValueError, match="needed to predict"):
        clf.predict(X)
    with pytest.raises(ValueError, match="group 'c', which has no threshold"):
        clf.predict(X[:2], sensitive_features=["a", "c"])
    with pytest.raises(ValueError, match="one group per row"):
        clf.predict(X, sensitive_features=groups[:5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv must be"),
        ({"cv": 1.5}, "cv must be"),
        ({"cv": "fitted"}, "cv must be"),
        ({"kappa": 2.0}, "kappa"),
        ({"per_group": "yes"}, "per_group must be True or False"),
        ({"constraint": "parity"}, "is unknown"),
        ({"response_method": "predict"}, "response_method"),
        ({"confidence": 2}, "confidence"),
        ({"pos_label": 7}, "pos_label=7 is not among"),
        ({"groups_missing": "drop"}, "groups_missing"),
        ({"sensitive_columns": [0]}, "given twice"),
        ({"estimator": StandardScaler()}, "StandardScaler"),
        ({"confidence": 0.9, "constraint": "group_auc"}, "confidence"),
    ],
)
def test_arguments_that_are_not_valid(options, message, data):
    X, y, groups = data
    clf = FairThresholds(**{"estimator": LogisticRegression(), **options})
    with pytest.raises((ValueError, TypeError), match=message):
        clf.fit(X, y, sensitive_features=groups)


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


def test_without_a_constraint_the_thresholds_are_the_most_accurate(data, fitted):
    X, y, _ = data
    clf = FairThresholds(fitted, None, cv="prefit").fit(X, y)
    scores = fitted.predict_proba(X)[:, 1]
    best = max(np.mean((scores > t) == y) for t in [0.0, *scores])
    assert clf.score(X, y) == best
    assert np.isnan(clf.decision_gap_)


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_reports_and_displays_show_the_decisions(per_group, response, data, fitted):
    X, y, groups = data
    clf = FairThresholds(
        fitted, kappa=0.1, per_group=per_group, response_method=response, cv="prefit"
    ).fit(X, y, sensitive_features=groups)
    decisions = clf.predict(X, sensitive_features=groups)
    scores = GroupScores.from_estimator(clf, X, y, groups)
    np.testing.assert_array_equal(scores.scores > scores.threshold, decisions == 1)
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
    np.testing.assert_array_equal(scores.scores > scores.threshold, decisions == 1)


@pytest.mark.parametrize("per_group", [False, True])
def test_weights_of_classes_count_in_the_accuracy_only(per_group, data, fitted):
    X, y, groups = (one[600:] for one in data)
    kept = (y == 0) | (np.arange(len(y)) % 5 == 0)  # few favourable labels
    X, y, groups = X[kept], y[kept], groups[kept]
    options = {"kappa": 0.2, "per_group": per_group, "cv": "prefit"}
    plain = FairThresholds(fitted, **options).fit(X, y, sensitive_features=groups)
    clf = FairThresholds(fitted, class_weight="balanced", **options)
    clf.fit(X, y, sensitive_features=groups)
    balanced, accurate = (
        balanced_accuracy_score(y, one.predict(X, sensitive_features=groups))
        for one in (clf, plain)
    )
    assert clf.decision_search_.accuracy == pytest.approx(balanced)
    assert balanced > accurate
    decisions = clf.predict(X, sensitive_features=groups)
    gap = demographic_parity_difference(y, decisions, sensitive_features=groups)
    assert gap == pytest.approx(clf.decision_gap_) and gap <= 0.2 + 1e-9
    with pytest.raises(ValueError, match="class_weight"):
        FairThresholds(fitted, class_weight=2.0, cv="prefit").fit(X, y, sensitive_features=groups)


def test_copies(data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, "equalized_odds", kappa=0.1, per_group=True, cv="prefit")
    assert clone(clf).get_params()["constraint__against"] == "pairs"
    clf.fit(X, y, sensitive_features=groups)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(
        again.predict(X, sensitive_features=groups), clf.predict(X, sensitive_features=groups)
    )


def test_in_a_pipeline_and_a_search(data):
    X, y = frame(data)
    X["sex"] = (X["sex"] == "a").astype(int)
    X = X.drop(columns="area")
    clf = FairThresholds(
        RandomForestClassifier(n_estimators=5, random_state=0),
        per_group=True,
        sensitive_columns=["sex"],
        cv=0.5,
        random_state=0,
    )
    scoring = {
        "accuracy": "accuracy",
        "gap": make_fairness_scorer(
            demographic_parity_difference, sensitive_columns=["sex"], greater_is_better=False
        ),
    }
    grid = {"kappa": [0.02, 0.3], "estimator__max_depth": [2, 4]}
    search = GridSearchCV(clf, grid, cv=2, scoring=scoring, refit="accuracy").fit(X, y)
    gaps = -search.cv_results_["mean_test_gap"].reshape(2, 2)
    assert gaps[1].min() < gaps.max()
    assert search.best_estimator_.thresholds_.index.tolist() == [0, 1]


def test_metadata_routing(data):
    X, y, groups = data
    weight = np.where(y == 1, 3.0, 1.0)
    with config_context(enable_metadata_routing=True):
        inner = FairLogisticClassifier(kappa=0.2).set_fit_request(
            sensitive_features=True, sample_weight=True
        )
        clf = FairThresholds(inner, kappa=0.05, per_group=True, cv=2)
        clf.set_fit_request(sensitive_features=True, sample_weight=True)
        clf.set_predict_request(sensitive_features=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clf)
        piped.fit(X, y, sensitive_features=groups, sample_weight=weight)
        decisions = piped.predict(X, sensitive_features=groups)
    own = FairLogisticClassifier(kappa=0.2).fit(
        StandardScaler().fit_transform(X), y, weight, sensitive_features=groups
    )
    np.testing.assert_allclose(piped[-1].estimator_.coef_, own.coef_, atol=1e-6)
    gap = demographic_parity_difference(y, decisions, sensitive_features=groups)
    assert gap < 0.12


def test_a_fair_classifier_inside_gets_the_groups_without_routing(data):
    X, y, groups = data
    clf = FairThresholds(FairLogisticClassifier(kappa=0.1), kappa=0.05, cv=2)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.estimator_.groups_.tolist() == ["a", "b"]
    assert clf.decision_search_.met and not clf.decision_search_.constant


@pytest.mark.slow  # half a minute
def test_check_estimator():
    reason = "thresholds other than 1/2: decisions are not those of the larger probability"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of a class in a fold, in some checks
        clf = FairThresholds(LogisticRegression(), None)
        failed = failed_checks(clf, {"check_classifiers_train": reason})
    assert set(failed) <= {"check_array_api_input"}  # skipped without SCIPY_ARRAY_API
