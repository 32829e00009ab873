"""`threshold=SelectionRate(share)`: the threshold selects a share of the training rows."""

import warnings

import numpy as np
import pytest
from _support.classifiers import EVERY, SINGLE
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    FairLogisticClassifier,
    InfeasibleConstraintWarning,
    SelectionRate,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss
from fairconstrained.solvers import Status
from fairconstrained.utils.numerics import score_below_share

TRAINED = {  # a network of few units and epochs often has no such model nearby
    "network": {"hidden_layer_sizes": (16,), "max_epochs": 200, "early_stopping": False}
}
GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.65)}


DATA = X, Y, GROUPS = make_biased_classification(600, 4, gap=0.3, random_state=0)


def fitted(name, rows, constraint="demographic_parity", share=0.2, **options):
    X, y, groups = rows
    clf = SINGLE[name](constraint, threshold=SelectionRate(share), **options)
    return clf.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
@pytest.mark.parametrize("name", ["logistic", "hinge", "boosting"])
def test_the_share_of_the_rows_is_selected(name, share):
    clf = fitted(name, DATA, share=share, kappa=0.05)
    decided, scores = clf.predict(X), clf.decision_function(X).round(9)
    equal = np.unique(scores, return_counts=True)[1].max()  # leaves give equal scores
    assert decided.mean() == pytest.approx(share, abs=equal / len(X))
    assert clf.violation_ <= clf.tol
    rates = [decided[k == GROUPS].mean() for k in (0, 1)]
    assert clf.decision_gap_ == pytest.approx(abs(rates[0] - rates[1]))


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_every_constraint_holds_or_is_reported(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = fitted("logistic", DATA, GIVEN.get(name, name), kappa=0.05)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X))
    if name not in (
        "error_rate_parity",
        "predictive_parity",
        "weak_partial_dp",
    ):  # no threshold is its own quantile
        assert clf.violation_ <= clf.tol
    if clf.violation_ > clf.tol:
        assert any(f"{clf.violation_:.3g}" in str(one.message) for one in caught)
        assert any(
            "the search for the threshold did not converge" in str(one.message) for one in caught
        )


@pytest.mark.filterwarnings("ignore:threshold=SelectionRate")
def test_status_and_message_are_those_of_the_threshold_returned():
    X, y, _ = make_biased_classification(300, gap=0.3, random_state=0)
    groups = np.random.default_rng(0).integers(0, 6, 300)
    rule, share = "error_rate_parity", SelectionRate(0.3)
    clf = FairLogisticClassifier(rule, kappa=0.01, threshold=share)
    with pytest.warns() as caught:
        clf.fit(X[:, :5], y, sensitive_features=groups)
    assert clf.violation_ > 100.0 * clf.tol
    said = f"violation {clf.violation_:.2e}"
    assert clf.result_.status is Status.INFEASIBLE
    assert said in clf.result_.message and Status.INFEASIBLE.value in clf.result_.message
    (warning,) = (one for one in caught if one.category is InfeasibleConstraintWarning)
    assert said in str(warning.message)
    with pytest.warns(ConvergenceWarning, match="1 of the path's 2 points did not converge"):
        path = fairness_path(
            FairLogisticClassifier(rule, threshold=share), X[:, :5], y,
            sensitive_features=groups, kappas=[0.2, 0.01],
        )  # fmt: skip
    for k in range(2):
        result = path.estimator_at(k).result_
        assert result.converged == (result.violation <= clf.tol)
        assert f"violation {result.violation:.2e}" in result.message


@pytest.mark.cases(1)
@pytest.mark.parametrize("goal", ["accuracy", "fairness"])
@pytest.mark.parametrize("name", ["logistic", "hinge", "network"])
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_messages_have_the_figures_of_the_model(name, goal):
    result = fitted(name, DATA, goal=goal).result_
    assert f"objective {result.objective:.6g}, violation {result.violation:.2e}" in result.message
    assert result.status.value in result.message
    assert result.violation <= 1e-4 or not result.converged


def test_the_solution_is_that_of_a_fit_at_the_threshold_found():
    clf = fitted("logistic", DATA, kappa=0.05)
    same = FairLogisticClassifier(kappa=0.05, threshold=clf.threshold_)
    same.fit(X, Y, sensitive_features=GROUPS)
    assert clf.multipliers_.max() > 0.01  # the constraint is active
    assert clf.objective_ == pytest.approx(same.objective_, abs=1e-4)
    assert clf.gap_ == pytest.approx(0.05, abs=1e-4)
    assert clf.result_.converged
    assert clf.kkt_residual_ <= 2e-4


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_decisions_meet_the_bound_and_the_share(name, constraint):
    clf = SINGLE[name](
        constraint, threshold=SelectionRate(0.2), kappa=0.08, enforce="decision"
    ).set_params(**TRAINED.get(name, {}))
    clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.decision_search_.met
    assert clf.decision_gap_ <= 0.08
    assert 0.98 * 0.2 - 2.0 / len(X) <= clf.predict(X).mean() <= 0.2 + 1e-9
    assert len(clf.multipliers_) == 2


def test_weights_count():
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(Y))
    weight[:20] = 0.0
    clf = FairLogisticClassifier(threshold=SelectionRate(0.3))
    clf.fit(X, Y, weight, sensitive_features=GROUPS)
    share = np.average(clf.predict(X), weights=weight)
    assert share == pytest.approx(0.3, abs=2.0 / weight.sum())


def test_without_constraints_it_is_the_quantile():
    clf = FairLogisticClassifier(None, threshold=SelectionRate(0.25)).fit(X, Y)
    plain = FairLogisticClassifier(None).fit(X, Y)
    assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=0.02)
    assert clf.threshold_ == pytest.approx(np.quantile(clf.predict_proba(X)[:, 1], 0.75), abs=0.01)


def test_least_unfairness_at_a_share():
    clf = fitted("logistic", DATA, goal="fairness", max_loss_increase=0.02)
    assert clf.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X))
    assert clf.violation_ <= 1e-4


def test_a_bound_and_a_share_that_exclude_each_other_are_reported():
    odd = np.where(np.arange(len(Y)) < 3, 2, GROUPS)  # three rows: rates are thirds
    clf = FairLogisticClassifier(kappa=0.01, threshold=SelectionRate(0.2), enforce="decision")
    with pytest.warns((InfeasibleConstraintWarning, ConvergenceWarning), match="violation"):
        clf.fit(X, Y, sensitive_features=odd)
    assert not clf.decision_search_.met


@pytest.mark.parametrize("wrong", [0.0, 1.0, "half", None, True])
@pytest.mark.parametrize("name", SINGLE)
def test_wrong_shares_are_named(name, wrong):
    with pytest.raises(ValueError, match="SelectionRate: rate must be a number between 0 and 1"):
        fitted(name, DATA, share=wrong)


def test_a_share_needs_an_intercept():
    with pytest.raises(ValueError, match="needs an intercept"):
        FairLogisticClassifier(threshold=SelectionRate(0.2), fit_intercept=False).fit(
            X, Y, sensitive_features=GROUPS
        )


SURE = {"enforce": "decision", "confidence": 0.9, "random_state": 0}


class TestConfidence:
    def fitted(self, kappa, share=0.3):
        X, y, groups = make_biased_classification(3000, 4, gap=0.2, random_state=0)
        clf = FairLogisticClassifier(
            kappa=kappa, threshold=SelectionRate(share), holdout=0.5, **SURE
        )
        return clf.fit(X, y, sensitive_features=groups), X, y, groups

    def test_the_held_out_rows_test_decisions_at_the_threshold_of_the_training_rows(self):
        clf, X, _, groups = self.fitted(0.3)
        certificate, held_out = clf.certificate_, clf.holdout_indices_
        assert certificate.certified and not clf.decision_search_.constant
        decided = clf.predict(X)
        training = np.setdiff1d(np.arange(len(X)), held_out)
        assert 0.98 * 0.3 - 2.0 / len(training) <= decided[training].mean() <= 0.3 + 1e-9
        rates = [decided[held_out][groups[held_out] == k].mean() for k in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 0.3
        assert certificate.bounds.max() >= abs(rates[0] - rates[1]) - 0.3
        assert_array_equal(decided == 1, clf.predict_proba(X)[:, 1] > clf.threshold_)

    def test_without_an_accepted_model_predictions_are_constant(self):
        with pytest.warns(ConstantDecisionWarning, match="too few to show"):
            clf, X, _, _ = self.fitted(0.005)
        assert len(np.unique(clf.predict(X))) == 1
        assert clf.certificate_.n_accepted == 0


class TestPaths:
    def test_every_model_selects_the_share_and_meets_its_bound(self):
        clf = FairLogisticClassifier(threshold=SelectionRate(0.2))
        path = fairness_path(
            clf, X, Y, sensitive_features=GROUPS, kappas=[0.1, 0.05, 0.02],
            X_val=X, y_val=Y, sensitive_features_val=GROUPS,
        )  # fmt: skip
        frame = path.to_frame()
        for k, kappa in enumerate(path.kappas):
            model = path.estimator_at(k)
            decided = model.predict(X)
            assert decided.mean() == pytest.approx(0.2, abs=1.0 / len(X))
            assert model.gap_ <= kappa + 1e-4
            alone = FairLogisticClassifier(kappa=kappa, threshold=SelectionRate(0.2))
            alone.fit(X, Y, sensitive_features=GROUPS)
            assert model.threshold_ == pytest.approx(alone.threshold_, abs=2e-3)
            assert model.objective_ == pytest.approx(alone.objective_, abs=2e-3)
            assert frame["train_accuracy"].iloc[k] == pytest.approx(model.score(X, Y))
            assert frame["val_accuracy"].iloc[k] == pytest.approx(model.score(X, Y))
            assert frame["val_decision_gap"].iloc[k] == pytest.approx(model.decision_gap_)
        assert len({path.estimator_at(k).threshold_ for k in range(3)}) == 3

    def test_cross_validation_measures_models_at_their_own_thresholds(self):
        seen, later = np.arange(400), np.arange(400, len(Y))
        search = EVERY["cv"](
            kappas=[0.2, 0.05], max_gap=0.5, cv=[(seen, later)], threshold=SelectionRate(0.2)
        )
        search.fit(X, Y, sensitive_features=GROUPS)
        assert search.predict(X).mean() == pytest.approx(0.2, abs=1.0 / len(X))
        expected = [
            FairLogisticClassifier(kappa=kappa, threshold=SelectionRate(0.2))
            .fit(X[seen], Y[seen], sensitive_features=GROUPS[seen])
            .score(X[later], Y[later])
            for kappa in search.kappas_
        ]
        assert_allclose(search.cv_results_["split0_test_accuracy"], expected, atol=0.011)


def test_equal_scores():
    ones = np.ones(4)
    assert score_below_share(np.array([1.0, 1.0, 1.0, 1.0]), ones, 0.5) == 1.0
    assert score_below_share(np.array([0.0, 1.0, 1.0, 1.0]), ones, 0.5) == 0.5
    assert score_below_share(np.array([3.0, 0.0, 1.0, 2.0]), ones, 0.5) == 1.5
