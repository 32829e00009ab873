"""`threshold=SelectionRate(share)`: the threshold selects a share of the training rows."""

import warnings

import numpy as np
import pytest
from _support.classifiers import SINGLE
from _support.gaps import gap_of
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc

LONGER = {"hidden_layer_sizes": (16,), "max_epochs": 200, "early_stopping": False}
GIVEN = {"bounded_group_loss": fc.BoundedGroupLoss(0.65), "coverage": fc.Coverage(0.2)}
GIVEN["churn"] = fc.Churn(kappa=0.5)


TESTED = {"enforce": "decision", "confidence": 0.9, "random_state": 0}
NO_FIXED_POINT = "coverage", "error_rate_parity", "predictive_parity", "weak_partial_dp"
DATA = X, Y, GROUPS = fc.make_biased_classification(600, 4, gap=0.3, random_state=0)


def fitted(name, rows, constraint="demographic_parity", share=0.2, **options):
    X, y, groups = rows
    clf = SINGLE[name](constraint, threshold=fc.SelectionRate(share), **options)
    return clf.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
@pytest.mark.parametrize("name", ["logistic", "hinge", "boosting"])
def test_the_share_of_the_rows_is_selected(name, share):
    clf = fitted(name, DATA, share=share, kappa=0.05)
    decided, scores = clf.predict(X), clf.decision_function(X).round(9)
    equal = np.unique(scores, return_counts=True)[1].max()  # leaves give equal scores
    assert decided.mean() == pytest.approx(share, abs=equal / len(X))
    assert clf.violation_ <= clf.tol
    assert clf.decision_gap_ == pytest.approx(gap_of(decided, GROUPS))


@pytest.mark.parametrize("name", fc.constraints.CLASSIFIER_CONSTRAINTS)
def test_every_constraint_holds_or_is_reported(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = fitted("logistic", DATA, GIVEN.get(name, name), kappa=0.05)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X))
    if name not in NO_FIXED_POINT:
        assert clf.violation_ <= clf.tol
    if clf.violation_ > clf.tol:
        said = " ".join(str(one.message) for one in caught)
        assert f"{clf.violation_:.3g}" in said and clf.result_.status.value == "stalled"
        assert "the search for the threshold did not converge" in said


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_decisions_meet_the_bound_and_the_share(name, constraint):
    options = {"threshold": fc.SelectionRate(0.2), "kappa": 0.08, "enforce": "decision"}
    # A network of few units and epochs often has no such model nearby.
    clf = SINGLE[name](constraint, **options, **LONGER if name == "network" else {})
    clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.decision_search_.met and clf.decision_gap_ <= 0.08
    assert 0.98 * 0.2 - 2.0 / len(X) <= clf.predict(X).mean() <= 0.2 + 1e-9
    assert len(clf.multipliers_) == 2


@pytest.mark.filterwarnings("ignore:threshold=Sel:fairconstrained.ConvergenceWarning")
def test_ranges_and_changes_are_those_of_the_model_that_selects_the_share():
    free, trees = (fitted(name, DATA, None) for name in ("logistic", "boosting"))
    assert free.result_.converged and trees.result_.converged
    low, high = fitted("logistic", DATA, "partial_dp", alpha=1.0).constraint_choices_[0]["ranks"]
    assert low <= 0.2 <= high
    clf = fitted("logistic", DATA, fc.Churn(kappa=0.05), enforce="decision")
    assert clf.decision_gap_ == pytest.approx(np.mean(clf.predict(X) != free.predict(X)))


def test_without_constraints_it_is_the_quantile():
    clf = fc.FairLogisticClassifier(None, threshold=fc.SelectionRate(0.25)).fit(X, Y)
    plain = fc.FairLogisticClassifier(None).fit(X, Y)
    assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=0.02)
    assert clf.threshold_ == pytest.approx(np.quantile(clf.predict_proba(X)[:, 1], 0.75), abs=0.01)


def test_least_unfairness_at_a_share():
    clf = fitted("logistic", DATA, goal="fairness", max_loss_increase=0.02)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X)) and clf.violation_ <= 1e-4


@pytest.mark.parametrize("wrong", [0.0, 1.0, "half", None, True])
def test_wrong_shares_are_named(wrong):
    with pytest.raises(ValueError, match="SelectionRate: rate must be a number between 0 and 1"):
        fitted("logistic", DATA, share=wrong)


def test_the_held_out_rows_test_decisions_at_the_threshold_of_the_training_rows():
    X, _, groups = rows = fc.make_biased_classification(3000, 4, gap=0.2, random_state=0)
    clf = fitted("logistic", rows, share=0.3, kappa=0.3, holdout=0.5, **TESTED)
    certificate, held_out = clf.certificate_, clf.holdout_indices_
    assert certificate.certified and not clf.decision_search_.constant
    decided = clf.predict(X)
    training = np.setdiff1d(np.arange(len(X)), held_out)
    assert 0.98 * 0.3 - 2.0 / len(training) <= decided[training].mean() <= 0.3 + 1e-9
    gap = gap_of(decided[held_out], groups[held_out])
    assert certificate.bounds.max() + 0.3 >= gap <= 0.3
    assert_array_equal(decided == 1, clf.predict_proba(X)[:, 1] > clf.threshold_)


def test_another_share_that_is_selected_is_warned_of():
    with pytest.warns(fc.InputWarning, match=r"49.7% .* because many rows have equal scores"):
        fitted("logistic", (np.sign(X[:, 3:]), Y, GROUPS), None, 0.3)
    rows = fc.make_biased_classification(3000, gap=0.3, random_state=0)
    with pytest.warns(fc.InputWarning, match=r"\d% .* because no model of this share passed"):
        clf = fitted("logistic", rows, share=0.3, kappa=0.2, **TESTED)
    assert clf.certificate_.certified and not clf.decision_search_.met


def test_every_model_of_a_path_selects_the_share_and_meets_its_bound():
    clf = fc.FairLogisticClassifier(threshold=fc.SelectionRate(0.2))
    rows = {"X_val": X, "y_val": Y, "sensitive_features_val": GROUPS}
    path = fc.fairness_path(clf, *DATA[:2], sensitive_features=GROUPS, kappas=[0.1, 0.02], **rows)
    frame = path.to_frame()
    for k, kappa in enumerate(path.kappas):
        model = path.estimator_at(k)
        decided = model.predict(X)
        assert decided.mean() == pytest.approx(0.2, abs=1.0 / len(X))
        assert model.gap_ <= kappa + 1e-4
        alone = fitted("logistic", DATA, kappa=kappa)
        assert model.threshold_ == pytest.approx(alone.threshold_, abs=2e-3)
        assert model.objective_ == pytest.approx(alone.objective_, abs=2e-3)
        assert frame["train_accuracy"].iloc[k] == pytest.approx(model.score(X, Y))
        assert frame["val_accuracy"].iloc[k] == pytest.approx(model.score(X, Y))
        assert frame["val_decision_gap"].iloc[k] == pytest.approx(model.decision_gap_)
    assert len({path.estimator_at(k).threshold_ for k in range(2)}) == 2
