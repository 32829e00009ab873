"""What FairLogisticClassifier's fitted attributes mean."""

import numpy as np
import pytest
from fairlearn import metrics as theirs
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained.solvers import IPC, AugmentedLagrangian

DIFFERENCES = {
    "demographic_parity": theirs.demographic_parity_difference,
    "equal_opportunity": theirs.equal_opportunity_difference,
    "predictive_equality": theirs.false_positive_rate_difference,
    "equalized_odds": theirs.equalized_odds_difference,
}


DATA = X, Y, GROUPS = fc.make_biased_classification(400, 5, gap=0.4, random_state=0)


def fitted(data, sample_weight=None, **options):
    X, y, groups = data
    classifier = fc.FairLogisticClassifier(**{"kappa": 0.02, **options})
    return classifier.fit(X, y, sample_weight, sensitive_features=groups)


def test_predictions_agree():
    classifier = fitted(DATA)
    score = classifier.decision_function(X)
    assert_allclose(score, X @ classifier.coef_[0] + classifier.intercept_, atol=1e-12)
    assert_array_equal(classifier.predict(X), (score > 0).astype(int))
    assert_allclose(classifier.predict_proba(X)[:, 1], expit(score), atol=1e-12)
    logs = classifier.predict_log_proba(X)
    assert_allclose(np.exp(logs), classifier.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.3])
@pytest.mark.parametrize("constraint", ["demographic_parity", None])
def test_the_objective_is_loss_and_penalty(constraint, alpha):
    X, y, groups = DATA
    X = X * [1.0, 100.0, 0.01, 1.0, 1.0] + 3.0
    classifier = fitted((X, y, groups), constraint=constraint, alpha=alpha)
    assert_allclose(classifier.feature_scale_, X.std(axis=0))
    size = np.sum((classifier.feature_scale_ * classifier.coef_) ** 2)
    expected = log_loss(y, classifier.predict_proba(X)) + alpha / 2 * size
    assert classifier.objective_ == pytest.approx(expected, rel=1e-9)
    inside = fitted((X, y, groups), domain=fc.domains.L1Ball(2.0))
    assert_array_equal(inside.feature_scale_, np.ones(5))


@pytest.mark.filterwarnings("ignore:kappa=:fairconstrained.InputWarning")  # own tolerances
@pytest.mark.parametrize("constraint", DIFFERENCES)
@pytest.mark.parametrize("n_groups", [2, 3, 7])
def test_decision_gap_is_what_fairlearn_measures(constraint, n_groups):
    options = {"n_groups": n_groups, "gap": 0.5, "random_state": n_groups}
    X, y, groups = data = fc.make_biased_classification(700, 5, **options)
    classifier = fitted(data, constraint=constraint, kappa=0.1)
    gap = DIFFERENCES[constraint](y, classifier.predict(X), sensitive_features=groups)
    assert classifier.decision_gap_ == pytest.approx(gap, abs=1e-12)
    assert gap > 0.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_unconstrained_is_logistic_regression(alpha, fit_intercept):
    X, y, _ = DATA
    X = StandardScaler().fit_transform(X)
    options = {"alpha": alpha, "fit_intercept": fit_intercept}
    ours = fc.FairLogisticClassifier(constraint=None, tol=1e-8, **options).fit(X, y)
    theirs = LogisticRegression(C=1 / (len(y) * alpha), tol=1e-10, max_iter=1000)
    theirs.set_params(fit_intercept=fit_intercept).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_multipliers_are_the_price_of_kappa(constraint):
    options = {"constraint": constraint, "tol": 1e-7, "alpha": 1e-2}
    kappa, step = 0.03, 1e-3
    kappas = (kappa - step, kappa, kappa + step)
    low, middle, high = (fitted(DATA, kappa=one, **options) for one in kappas)
    slope = (high.objective_ - low.objective_) / (2 * step)
    assert slope < 0
    assert middle.multipliers_.sum() == pytest.approx(-slope, rel=0.02)


def test_the_tolerance_is_kept():
    for tol in (1e-2, 1e-4, 1e-6):
        classifier = fitted(DATA, tol=tol)
        assert classifier.violation_ <= tol and classifier.kkt_residual_ <= tol
        assert classifier.result_.solver.tol == tol
    solver = IPC(tol=1e-3)
    assert fitted(DATA, solver=solver, tol=1e-6).result_.solver.tol == 1e-3


def test_a_warm_start_survives_another_problem():
    classifier = fitted(DATA, warm_start=True)
    X, y, groups = fc.make_biased_classification(800, 6, n_groups=5, gap=0.5, random_state=2)
    classifier.fit(X, y, sensitive_features=groups)  # six features for five, and five groups
    assert classifier.coef_.shape == (1, 6) and classifier.result_.converged
    classifier.set_params(constraint=None, fit_intercept=False).fit(X, y)
    assert classifier.intercept_ == 0.0 and classifier.result_.converged
    classifier.set_params(constraint="equalized_odds", domain=fc.domains.L1Ball(1.0), kappa=0.1)
    classifier.fit(X, y, sensitive_features=groups)
    assert np.abs(classifier.coef_).sum() <= 1.0 + 1e-9


def test_fit_changes_no_object():
    constraint, solver = fc.DemographicParity(), IPC(AugmentedLagrangian(max_inner=500))
    said = repr((constraint, solver))
    classifier = fitted(DATA, constraint=constraint, kappa=0.3, solver=solver, max_iter=7)
    assert repr((constraint, solver)) == said and constraint.kappa is None
    assert classifier.result_.solver.max_iter == 7


def test_verbose_prints_a_line_per_outer_iteration(capsys):
    fitted(DATA)
    assert capsys.readouterr().out == ""
    classifier = fitted(DATA, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == classifier.n_iter_ == len(classifier.result_.trace)
    assert lines[-1].startswith(f"[FairLogisticClassifier] iteration {classifier.n_iter_}: ")
    for word in ("objective", "violation", "KKT residual"):
        assert word in lines[0]
