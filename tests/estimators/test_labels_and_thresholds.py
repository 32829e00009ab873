"""`pos_label`, the favourable label, and `threshold`, where decisions are cut."""

import numpy as np
import pandas as pd
import pytest
from _support.classifiers import EVERY, SINGLE
from _support.gaps import divided, gap_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logit

import fairconstrained as fc
from fairconstrained.constraints.base import measured_from

GIVEN = {"bounded_group_loss": fc.BoundedGroupLoss(0.62)}
X, Y, GROUPS = fc.make_biased_classification(500, 4, gap=0.3, random_state=0)
NAMES = np.where(Y > 0, "accept", "reject")  # the favourable one comes first


def both(make, constraint, **options):
    """Return the classifiers of the two codings; their favourable decisions are the same."""
    by_number = make(constraint, **options).fit(X, Y, sensitive_features=GROUPS)
    by_name = make(constraint, pos_label="accept", **options)
    return by_number, by_name.fit(X, NAMES, sensitive_features=GROUPS)


def assert_mirrored(by_number, by_name):
    assert by_name.classes_.tolist() == ["accept", "reject"]
    assert by_name.pos_label_ == "accept"
    assert_array_equal(by_name.predict(X) == "accept", by_number.predict(X) == 1)
    scores = by_name.decision_function(X)
    assert_allclose(scores, -by_number.decision_function(X), atol=1e-10)
    assert_array_equal(by_name.predict(X), by_name.classes_[(scores > 0).astype(int)])
    for name in ("objective_", "violation_", "gap_", "decision_gap_", "multipliers_"):
        assert_allclose(getattr(by_name, name), getattr(by_number, name), atol=1e-10)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("name", fc.constraints.CLASSIFIER_CONSTRAINTS)
def test_every_constraint_protects_the_favourable_label(name):
    assert_mirrored(*both(fc.FairLogisticClassifier, GIVEN.get(name, name)))


BOTH = [(name, one) for name in EVERY for one in ("score", "decision")]
BOTH.remove(("cv", "decision"))  # a path varies the tolerance on scores


@pytest.mark.parametrize(("name", "enforce"), BOTH)
def test_every_classifier_has_the_scores_of_the_second_class(name, enforce):
    options = {} if name == "cv" else {"enforce": enforce, "kappa": 0.1}
    by_number, by_name = both(EVERY[name], "equal_opportunity", **options)
    assert_mirrored(by_number, by_name)
    if hasattr(by_number, "predict_proba"):
        one, other = by_number.predict_proba(X), by_name.predict_proba(X)
        assert_allclose(other, one[:, ::-1], atol=1e-12)


@pytest.mark.parametrize("name", SINGLE)
def test_exported_models_agree(name):
    clf = SINGLE[name](pos_label="accept", threshold=0.4).fit(X, NAMES, sensitive_features=GROUPS)
    scores = clf.decision_function(X)
    if name == "boosting":
        exported = clf.to_lightgbm().predict(X, raw_score=True)
    elif name == "network":
        import torch

        with torch.no_grad():
            exported = clf.to_torch()(torch.tensor(X)).numpy()
    else:
        plain = clf.to_sklearn()
        assert_array_equal(plain.predict(X), clf.predict(X))
        exported = plain.decision_function(X)
    assert_allclose(exported, scores, atol=1e-10)


def test_paths_and_their_validation():
    def path(labels, **options):
        clf = fc.FairLogisticClassifier("equal_opportunity", **options)
        rows = divided(np.arange(300, 500), X=X, y=labels, sensitive_features=GROUPS)
        return fc.fairness_path(clf, n_kappas=4, **rows)

    one, other = path(Y), path(NAMES, pos_label="accept")
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame(), atol=1e-9)


def test_the_text_names_a_favourable_string_that_was_not_chosen():
    clf = fc.FairLogisticClassifier()
    assert "favourable" not in repr(clf)
    assert "favourable" not in repr(clf.fit(X, Y, sensitive_features=GROUPS))
    assert repr(clf.fit(X, NAMES, sensitive_features=GROUPS)).count("favourable") == 1
    assert "'reject'" in repr(clf)
    chosen = fc.FairLogisticClassifier(pos_label="accept").fit(X, NAMES, sensitive_features=GROUPS)
    assert "favourable" not in repr(chosen)


CUT = {"hinge": 0.4}  # a score; probabilities for the others


def fitted(name, constraint="demographic_parity", **options):
    made = EVERY[name](constraint, threshold=CUT.get(name, 0.3), **options)
    return made.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("name", EVERY)
def test_predictions_are_cut_at_the_threshold(name):
    clf = fitted(name)
    assert clf.threshold_ == CUT.get(name, 0.3)
    assert clf.score_threshold_ == pytest.approx(CUT.get(name, logit(0.3)))
    assert_array_equal(clf.predict(X) == 1, clf.decision_function(X) > clf.score_threshold_)
    if name not in CUT:
        assert_array_equal(clf.predict(X) == 1, clf.predict_proba(X)[:, 1] > 0.3)
    if name != "network":  # its rows for validation are not in the gap
        assert clf.decision_gap_ == pytest.approx(gap_of(clf.predict(X) == 1, GROUPS))


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The same class is predicted")  # 0.05 is small for group AUC
@pytest.mark.parametrize("name", fc.constraints.CLASSIFIER_CONSTRAINTS)
def test_every_constraint_refers_to_the_threshold(name):
    constraint = GIVEN.get(name, name)
    clf = fc.FairLogisticClassifier(constraint, 0.05, threshold=0.3)
    clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.violation_ <= 1e-4
    bare = constraint if name in GIVEN else fc.constraints.CONSTRAINTS[name](
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
    x, signs, cut, alpha = X[:, :2], np.where(Y > 0, 1.0, -1.0), logit(0.25), 1e-3
    clf = fc.FairLogisticClassifier(kappa=0.02, threshold=0.25, alpha=alpha, tol=1e-6)
    clf.fit(x, Y, sensitive_features=GROUPS)
    scale = clf.feature_scale_

    def loss(w):
        scores = x @ w[:2] + w[2]
        penalty = 0.5 * alpha * np.sum((w[:2] * scale) ** 2)
        return np.logaddexp(0.0, -signs * scores).mean() + penalty

    def gap(w):
        rates = expit(x @ w[:2] + w[2] - cut)
        return rates[GROUPS == 1].mean() - rates[GROUPS == 0].mean()

    bounds = [{"type": "ineq", "fun": lambda w, k=k: 0.02 - k * gap(w)} for k in (1.0, -1.0)]
    start = np.append(clf.coef_[0], clf.intercept_)
    found = minimize(loss, start, constraints=bounds, method="SLSQP", options={"ftol": 1e-12})
    assert clf.multipliers_.max() > 0.01  # the constraint is active
    assert clf.objective_ == pytest.approx(found.fun, abs=2e-6)
    assert_allclose(start, found.x, atol=5e-3)


COMPARED = {
    "demographic_parity": ["selection_rate"],
    "equalized_odds": ["true_positive_rate", "false_positive_rate"],
    "error_rate_parity": ["accuracy"],
}


@pytest.mark.parametrize("constraint", COMPARED)
@pytest.mark.parametrize("name", SINGLE)
def test_bounds_on_decisions_hold_at_the_threshold(name, constraint):
    clf = fitted(name, constraint, kappa=0.1, enforce="decision")
    assert clf.decision_search_.met
    assert not clf.decision_search_.constant
    assert clf.decision_gap_ <= 0.1
    if name != "network":
        table = fc.metrics.group_rates(Y, clf.predict(X), sensitive_features=GROUPS).iloc[:-1]
        gaps = np.ptp(table[COMPARED[constraint]], axis=0)
        assert gaps.max() == pytest.approx(clf.decision_gap_)


def test_warm_starts_and_paths_have_the_threshold():
    clf = fc.FairLogisticClassifier(kappa=0.03, threshold=0.3, warm_start=True)
    first = clf.fit(X, Y, sensitive_features=GROUPS)
    coef, passes = first.coef_.copy(), first.result_.data_passes
    again = clf.fit(X, Y, sensitive_features=GROUPS)
    assert again.result_.data_passes < passes
    assert_allclose(again.coef_, coef, atol=1e-2)
    path = fc.fairness_path(
        fc.FairLogisticClassifier(threshold=0.3), X, Y, sensitive_features=GROUPS,
        kappas=[0.1, 0.03], X_val=X, y_val=Y, sensitive_features_val=GROUPS,
    )  # fmt: skip
    assert_allclose(path.coefs[1], coef[0], atol=1e-2)
    assert_allclose(path.validation["val_decision_gap"], path.decision_gaps)
    accuracy = np.mean(path.estimators[1].predict(X) == Y)
    assert path.validation["val_accuracy"][1] == pytest.approx(accuracy)


def test_group_interactions_have_the_threshold_in_every_group():
    table = np.column_stack([X, GROUPS])
    clf = fc.FairLogisticClassifier(
        threshold=0.3, sensitive_columns=[-1], group_interactions=True, enforce="decision"
    ).fit(table, Y)
    assert clf.decision_gap_ == pytest.approx(gap_of(clf.predict(table) == 1, GROUPS))
    assert_array_equal(clf.predict(table) == 1, clf.predict_proba(table)[:, 1] > 0.3)


def test_a_threshold_needs_an_intercept():
    for threshold in (0.3, fc.SelectionRate(0.2)):
        clf = fc.FairLogisticClassifier(threshold=threshold, fit_intercept=False)
        with pytest.raises(ValueError, match="needs an intercept"):
            clf.fit(X, Y, sensitive_features=GROUPS)
    half = fc.FairLogisticClassifier(threshold=0.5, fit_intercept=False)
    assert half.fit(X, Y, sensitive_features=GROUPS).threshold_ == 0.5
