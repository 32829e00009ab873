"""`threshold`: decisions that are not cut at a probability of one half."""

import numpy as np
import pytest
from _support.classifiers import EVERY, SINGLE
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logit

from fairconstrained import FairLogisticClassifier, fairness_path, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, CONSTRAINTS, BoundedGroupLoss
from fairconstrained.constraints.losses import measured_from
from fairconstrained.metrics import group_rates

GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.62)}
CUT = {"hinge": 0.4}  # a score; probabilities for the others


DATA = X, Y, GROUPS = make_biased_classification(500, 4, gap=0.3, random_state=0)


def fitted(name, rows, constraint="demographic_parity", **options):
    X, y, groups = rows
    made = EVERY[name](constraint, threshold=CUT.get(name, 0.3), **options)
    return made.fit(X, y, sensitive_features=groups)


def score_cut(name):
    return CUT.get(name, float(logit(0.3)))


def rate_gap(clf, X, groups):
    decided = clf.predict(X) == clf.pos_label_
    rates = [decided[groups == k].mean() for k in np.unique(groups)]
    return max(rates) - min(rates)


@pytest.mark.parametrize("name", EVERY)
def test_predictions_are_cut_at_the_threshold(name):
    clf = fitted(name, DATA)
    assert clf.threshold_ == CUT.get(name, 0.3)
    assert clf.score_threshold_ == pytest.approx(score_cut(name))
    assert_array_equal(clf.predict(X) == 1, clf.decision_function(X) > clf.score_threshold_)
    if name not in CUT:
        assert_array_equal(clf.predict(X) == 1, clf.predict_proba(X)[:, 1] > 0.3)
    if name != "network":  # its rows for validation are not in the gap
        assert clf.decision_gap_ == pytest.approx(rate_gap(clf, X, GROUPS))


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The same class is predicted")  # 0.05 is small for group AUC
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_every_constraint_refers_to_the_threshold(name):
    constraint = GIVEN.get(name, name)
    clf = FairLogisticClassifier(constraint, 0.05, threshold=0.3)
    clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.violation_ <= 1e-4
    bare = constraint if name in GIVEN else CONSTRAINTS[name](
        **({} if name in ("disparate_impact", "minority_rate") else {"kappa": 0.05})
    )  # fmt: skip
    if bare.bound_to_training_rows or name in ("roc_parity", "minority_rate"):
        return  # they depend on the model without constraints, or on other rows
    signs = np.where(Y > 0, 1.0, -1.0)
    term = measured_from(bare.bind(signs, GROUPS, np.ones(len(Y))), clf.score_threshold_)
    scores = clf.decision_function(X) - clf.score_threshold_
    assert term.gap(scores).max() == pytest.approx(clf.gap_, abs=1e-8)
    if not term.n_auxiliary:
        assert term.zero_one().gap(scores).max() == pytest.approx(clf.decision_gap_, abs=1e-8)


def test_the_solution_is_that_of_a_general_solver():
    X, y, groups = DATA
    X, signs, cut = X[:, :2], np.where(y > 0, 1.0, -1.0), logit(0.25)
    alpha = 1e-3
    clf = FairLogisticClassifier(kappa=0.02, threshold=0.25, alpha=alpha, tol=1e-6)
    clf.fit(X, y, sensitive_features=groups)
    scale = clf.feature_scale_

    def loss(w):
        scores = X @ w[:2] + w[2]
        penalty = 0.5 * alpha * np.sum((w[:2] * scale) ** 2)
        return np.logaddexp(0.0, -signs * scores).mean() + penalty

    def gap(w):
        rates = expit(X @ w[:2] + w[2] - cut)
        return rates[groups == 1].mean() - rates[groups == 0].mean()

    bounds = [{"type": "ineq", "fun": lambda w, k=k: 0.02 - k * gap(w)} for k in (1.0, -1.0)]
    start = np.append(clf.coef_[0], clf.intercept_)
    found = minimize(loss, start, constraints=bounds, method="SLSQP", options={"ftol": 1e-12})
    assert clf.multipliers_.max() > 0.01  # the constraint is active
    assert clf.objective_ == pytest.approx(found.fun, abs=2e-6)
    assert_allclose(start, found.x, atol=5e-3)


@pytest.mark.parametrize(
    "constraint", ["demographic_parity", "equalized_odds", "error_rate_parity"]
)
@pytest.mark.parametrize("name", SINGLE)
def test_bounds_on_decisions_hold_at_the_threshold(name, constraint):
    clf = fitted(name, DATA, constraint, kappa=0.1, enforce="decision")
    assert clf.decision_search_.met
    assert not clf.decision_search_.constant
    assert clf.decision_gap_ <= 0.1
    if name == "network":
        return
    table = group_rates(Y, clf.predict(X), sensitive_features=GROUPS).iloc[:-1]
    names = {
        "demographic_parity": ["selection_rate"],
        "equalized_odds": ["true_positive_rate", "false_positive_rate"],
        "error_rate_parity": ["accuracy"],
    }[constraint]
    gaps = [table[one].max() - table[one].min() for one in names]
    assert max(gaps) == pytest.approx(clf.decision_gap_)


def test_warm_starts_and_paths():
    clf = FairLogisticClassifier(kappa=0.03, threshold=0.3, warm_start=True)
    first = clf.fit(X, Y, sensitive_features=GROUPS)
    coef, passes = first.coef_.copy(), first.result_.data_passes
    again = clf.fit(X, Y, sensitive_features=GROUPS)
    assert again.result_.data_passes < passes
    assert_allclose(again.coef_, coef, atol=1e-2)
    path = fairness_path(
        FairLogisticClassifier(threshold=0.3), X, Y, sensitive_features=GROUPS,
        kappas=[0.1, 0.03], X_val=X, y_val=Y, sensitive_features_val=GROUPS,
    )  # fmt: skip
    assert_allclose(path.coefs[1], coef[0], atol=1e-2)
    assert_allclose(path.validation["val_decision_gap"], path.decision_gaps)
    accuracy = np.mean(path.estimators[1].predict(X) == Y)
    assert path.validation["val_accuracy"][1] == pytest.approx(accuracy)


def test_group_interactions_have_the_threshold_in_every_group():
    table = np.column_stack([X, GROUPS])
    clf = FairLogisticClassifier(
        threshold=0.3, sensitive_columns=[-1], group_interactions=True, enforce="decision"
    ).fit(table, Y)
    assert clf.decision_gap_ == pytest.approx(rate_gap(clf, table, GROUPS))
    assert_array_equal(clf.predict(table) == 1, clf.predict_proba(table)[:, 1] > 0.3)


def test_a_threshold_needs_an_intercept():
    clf = FairLogisticClassifier(threshold=0.3, fit_intercept=False)
    with pytest.raises(ValueError, match="needs an intercept"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    half = FairLogisticClassifier(threshold=0.5, fit_intercept=False)
    assert half.fit(X, Y, sensitive_features=GROUPS).threshold_ == 0.5
