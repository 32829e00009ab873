"""FairThresholds: bounds, accuracy, and the rows that choose the thresholds."""

import numpy as np
import pandas as pd
import pytest
from _support.gaps import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_predict

from fairconstrained import (
    BoundedGroupLoss,
    ConstantDecisionWarning,
    EqualizedOdds,
    FairThresholds,
    InfeasibleConstraintWarning,
    MinorityRate,
    make_biased_classification,
)

METRICS = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
}
ON_SCORES = ["roc_parity", "partial_dp", "weak_partial_dp", "group_auc", "inter_group_auc"]


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
    with pytest.warns(InfeasibleConstraintWarning, match="the rows that chose them"):
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
