"""Classifiers of several classes: every class's rate is constrained, against all others."""

import warnings

import numpy as np
import pytest
from _support.certificates import residual
from _support.gaps import divided
from _support.three_classes import three_classes
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairLogisticClassifier, InputWarning, fairness_path
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, DisparateImpact, MinorityRate

N, NAMES = 600, np.array(["cold", "mild", "warm"])


X, CODES, GROUPS = three_classes(N)
Y = NAMES[CODES]
OF_TWO_CLASSES = {"bounded_group_loss", "intersectional_loss", "coverage", "churn"}
BY_CLASS = {name: name for name in CLASSIFIER_CONSTRAINTS if name not in OF_TWO_CLASSES}
BY_CLASS |= {"disparate_impact": DisparateImpact(0.9), "minority_rate": MinorityRate(0.45)}
ACTIVE = {
    "calibration_parity": 0.001,
    "error_rate_parity": 0.002,
    "predictive_equality": 0.01,
    "intra_group_auc": 0.02,
}


def fitted(constraint="demographic_parity", X=X, y=Y, groups=GROUPS, **options):
    clf = FairLogisticClassifier(constraint, **{"kappa": 0.02, **options})
    return clf.fit(X, y, sensitive_features=groups)


def rates(predictions, rows=slice(None)):
    """Return the rate of each class in each group, (n_groups, n_classes)."""
    values, groups = predictions[rows], GROUPS[rows]
    return np.array([values[groups == k].mean(axis=0) for k in np.unique(GROUPS)])


def one_hot(labels):
    return (np.asarray(labels)[:, None] == NAMES).astype(float)


def test_without_constraints_it_is_multinomial_logistic_regression():
    Z = StandardScaler().fit_transform(X)
    mine = FairLogisticClassifier(None, alpha=1e-3, tol=1e-8).fit(Z, Y)
    theirs = LogisticRegression(C=1.0 / (1e-3 * N), tol=1e-10, max_iter=1000).fit(Z, Y)
    assert_allclose(mine.predict_proba(Z), theirs.predict_proba(Z), atol=1e-6)
    assert_allclose(mine.coef_, theirs.coef_, atol=1e-5)
    assert (mine.coef_.shape, mine.intercept_.shape) == ((3, 4), (3,))


@pytest.mark.parametrize("name", BY_CLASS)
def test_every_constraint_is_met_and_certified(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        clf = fitted(BY_CLASS[name], kappa=ACTIVE.get(name, 0.02))
    assert clf.result_.status.value == "converged"
    assert clf.violation_ <= 1e-4
    assert clf.kkt_residual_ <= 1e-4
    assert clf.multipliers_.max() > 0.0  # the constraint is active


@pytest.mark.parametrize("name", sorted(OF_TWO_CLASSES))
def test_constraints_of_two_classes(name):
    with pytest.raises(ValueError, match=r"constraint=.* is for two classes, and y has more"):
        fitted(name)


OPTIONS_OF_TWO_CLASSES = [
    {"loss": "hinge"}, {"loss": "auc"}, {"threshold": 0.3}, {"confidence": 0.9},
]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS_OF_TWO_CLASSES)
def test_options_of_two_classes(option):
    enforce = "decision" if "confidence" in option else "score"
    with pytest.raises(ValueError, match=rf"{next(iter(option))}=.* is for two classes"):
        fitted(enforce=enforce, **option)


def test_a_regression_target_is_warned_of():
    with pytest.warns(UserWarning, match="`y` could represent a regression problem"):
        fitted(None, X[:30], np.arange(30), GROUPS[:30])


def test_the_certificate_is_that_of_the_lagrangian():
    """The KKT residual from values of the loss and the gaps, by finite differences, is zero."""
    clf = fitted(tol=1e-7)
    first, second = (k == GROUPS for k in (0, 1))

    def values(w):
        coef, level = w[:12].reshape(3, 4), w[12:]
        scores = X @ (coef / clf.feature_scale_).T + level
        loss = -np.mean(log_softmax(scores, axis=1)[one_hot(Y) > 0])
        probabilities = softmax(scores, axis=1)
        gap = probabilities[first].mean(axis=0) - probabilities[second].mean(axis=0)
        constraints = np.column_stack([gap, -gap]).ravel() - 0.02
        return loss + 0.5 * clf.alpha * coef.ravel() @ coef.ravel(), constraints

    at = np.append((clf.coef_ * clf.feature_scale_).ravel(), clf.intercept_)
    assert residual(clf.multipliers_, values, at) <= 1e-5
    assert clf.multipliers_.max() > 1e-3


RATES = [
    "demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds",
    "error_rate_parity", DisparateImpact(0.9), "balanced_rate",
]  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", RATES, ids=str)
def test_bounds_on_predictions_are_met(constraint):
    kappa = 0.02 if isinstance(constraint, str) else 0.05
    clf = fitted(constraint, enforce="decision", kappa=kappa)
    search = clf.decision_search_
    assert search.met and search.violation == 0.0
    assert_allclose(search.accuracy, clf.score(X, Y), atol=1e-12)
    assert clf.score(X, Y) > one_hot(Y).mean(axis=0).max() + 0.05
    if constraint == "demographic_parity":
        gap = np.ptp(rates(one_hot(clf.predict(X))), axis=0).max()
        assert gap <= 0.02 + 1e-9
        assert_allclose(clf.decision_gap_, gap, atol=1e-9)


def test_names_of_classes_do_not_matter():
    def of_names(names):
        data = X[:400], names[CODES[:400]], GROUPS[:400]
        return fitted("equalized_odds", *data, enforce="decision").predict_proba(X)

    assert_allclose(of_names(np.array([*"cab"]))[:, [2, 0, 1]], of_names(NAMES), atol=1e-12)


def test_the_largest_probability_is_predicted():
    clf = fitted()
    assert clf.decision_function(X).shape == (N, 3)
    assert_allclose(clf.predict_proba(X), softmax(clf.decision_function(X), axis=1))
    assert_allclose(np.exp(clf.predict_log_proba(X)), clf.predict_proba(X))
    assert_array_equal(clf.predict(X), clf.classes_[clf.predict_proba(X).argmax(axis=1)])


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
def test_a_path_measures_other_rows_as_its_models_do(constraint):
    later = np.arange(400, N)
    rows = divided(later, X=X, y=Y, sensitive_features=GROUPS)
    path = fairness_path(FairLogisticClassifier(constraint), n_kappas=3, **rows)
    for k, values in path.to_frame().reset_index(drop=True).iterrows():
        model = path.estimator_at(k)
        probabilities, decided = model.predict_proba(X), one_hot(model.predict(X))
        assert_allclose(values["val_accuracy"], model.score(X[later], Y[later]))
        loss = -np.log(probabilities[one_hot(Y) > 0][later]).mean()
        assert_allclose(values["val_loss"], loss, atol=1e-9)
        cells = [later[Y[later] == name] for name in NAMES]
        cells = [later] * 3 if constraint == "demographic_parity" else cells
        for column, outputs in (("val_gap", probabilities), ("val_decision_gap", decided)):
            gaps = [np.ptp(rates(outputs, rows)[:, c]) for c, rows in enumerate(cells)]
            assert_allclose(values[column], max(gaps), atol=1e-9)
