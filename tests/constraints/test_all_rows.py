"""Coverage and churn: bounds on the decisions of all rows, without groups."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import fairconstrained as fc

X, Y, GROUPS = fc.make_biased_classification(1500, 4, gap=0.5, random_state=0)
Y = np.array(["no", "yes"])[Y]
PREVIOUS = LogisticRegression().fit(X, np.where(X[:, 0] > 0.0, "yes", Y))
BEFORE = PREVIOUS.predict(X)


@pytest.mark.filterwarnings("ignore:The bound .* applies to scores")
def test_coverage_of_probabilities_of_decisions_and_of_new_rows() -> None:
    clf = fc.FairLogisticClassifier(fc.Coverage(0.3, kappa=0.02)).fit(X, Y)
    assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(0.32, abs=1e-4)
    clf.set_params(enforce="decision").fit(X, Y)
    assert (clf.predict(X) == "yes").mean() <= 0.32 + 1e-12
    clf.set_params(constraint=fc.Coverage(0.3), kappa=0.15, confidence=0.9, holdout=0.5).fit(X, Y)
    assert clf.certificate_.certified
    assert 0.15 < (clf.predict(X[clf.holdout_indices_]) == "yes").mean() < 0.45


@pytest.mark.parametrize("rate", [0.3, 0.7])
def test_claims_of_coverage_are_about_both_sides(rate: float) -> None:
    weight, scores = np.ones(1000), np.where(np.arange(1000) < 500, 1.0, -1.0)
    over, under = fc.Coverage(rate, kappa=0.1).claims(None, None, weight)
    assert over.excess(scores) == pytest.approx(0.5 - rate - 0.1)
    assert under.excess(scores) == pytest.approx(rate - 0.5 - 0.1)
    assert over.accepts(scores, 0.05) == (rate == 0.7)
    assert under.accepts(scores, 0.05) == (rate == 0.3)


def test_defaults_for_thresholds_are_the_share_of_labels_and_the_classifier() -> None:
    clf = fc.FairThresholds(LogisticRegression(), "coverage", kappa=0.01).fit(X, Y)
    share = (Y == "yes").mean()
    assert (clf.predict(X) == "yes").mean() == pytest.approx(share, abs=0.01)
    assert clf.constraint_choices_ == [{"rate": share}]
    free = LogisticRegression().fit(X, Y).predict(X)
    assert np.mean(clf.set_params(constraint="churn").fit(X, Y).predict(X) != free) <= 0.03


def test_churn_from_a_given_model_also_with_rows_left_out() -> None:
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    clf = fc.FairLogisticClassifier(fc.Churn(PREVIOUS, kappa=0.1), enforce="decision")
    changed = clf.fit(X, Y, weight).predict(X) != BEFORE
    assert changed[weight > 0.0].mean() == pytest.approx(clf.decision_gap_)
    assert clf.decision_gap_ <= 0.1
    free = fc.FairLogisticClassifier(None).fit(X, Y, weight).predict(X) != BEFORE
    assert free[weight > 0.0].mean() > 0.15
    clf.set_params(confidence=0.9, kappa=0.15, constraint=fc.Churn(PREVIOUS)).fit(X, Y)
    assert clf.certificate_.certified


def test_churn_from_the_model_without_constraints() -> None:
    frame = pd.DataFrame(X, columns=[*"abcd"])
    free = fc.FairLogisticClassifier(None).fit(frame, Y).predict(frame)
    bounds = [fc.Coverage(0.3, kappa=0.01), fc.Churn(kappa=0.22)]
    clf = fc.FairLogisticClassifier(bounds, enforce="decision").fit(frame, Y)
    decided = clf.predict(frame)
    assert clf.bound_met_
    assert (decided == "yes").mean() <= 0.31 + 1e-12 < 0.45 < (free == "yes").mean()
    assert (decided != free).mean() <= 0.22 + 1e-12


def test_a_model_of_other_classes_is_refused() -> None:
    other = LogisticRegression().fit(X, X[:, 0] > 0.0)
    with pytest.raises(ValueError, match=r"Churn: previous predicts \[False, True\]"):
        fc.FairLogisticClassifier(fc.Churn(other)).fit(X, Y)


def test_reports_measure_the_decisions_of_a_given_model_on_other_rows() -> None:
    clf = fc.FairLogisticClassifier(fc.Churn(PREVIOUS, kappa=0.1)).fit(X[:1000], Y[:1000])
    weight = (np.arange(500) % 3 > 0).astype(float)
    rows = {"sensitive_features": GROUPS[1000:], "sample_weight": weight}
    report = fc.fairness_report(clf, X[1000:], Y[1000:], **rows)
    changed = (clf.predict(X[1000:]) != BEFORE[1000:])[weight > 0.0].mean()
    (gap,) = report.constraints["decisions"]
    assert gap == pytest.approx(changed)


def test_searches_keep_the_given_model() -> None:
    search = GridSearchCV(
        fc.FairLogisticClassifier(fc.Churn(PREVIOUS)),
        {"kappa": [0.05, 0.1]},
        cv=2,
        error_score="raise",
    )
    assert search.fit(X, Y).best_estimator_.constraint.previous is PREVIOUS


def test_copies_share_the_given_model_only() -> None:
    given = fc.Churn(PREVIOUS, surrogate=fc.functions.Sigmoid(0.5))
    copied = clone(given).set_params(surrogate__scale=2.0)
    assert copied.previous is PREVIOUS
    assert given.surrogate.scale == 0.5
