"""Probabilities exist where the loss gives log odds, exports keep the loss, the hinge is SVM's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairconstrained as fc

X, Y, GROUPS = fc.make_biased_classification(300, 4, gap=0.3, random_state=0)


def fitted(loss, **options):
    return fc.FairLogisticClassifier(None, loss=loss, **options).fit(X, Y)


@pytest.mark.parametrize("name", [*fc.objectives.OBJECTIVES, "nonsense"])
def test_only_scores_that_are_log_odds_give_probabilities(name):
    clf = fc.FairLogisticClassifier(loss=name)
    expected = name == "logistic"
    known = name != "nonsense"  # which `fit` refuses
    assert not known or fc.objectives.resolve_objective("loss", name).gives_log_odds is expected
    for method in ("predict_proba", "predict_log_proba"):
        assert hasattr(clf, method) is expected


def test_the_missing_method_says_why():
    with pytest.raises(AttributeError, match="predict_proba") as raised:
        _ = fitted("hinge").predict_proba
    assert "loss='hinge' gives scores that are not log odds" in str(raised.value.__cause__)


def test_no_export_of_a_loss_of_pairs():
    with pytest.raises(ValueError, match="no linear classifier with loss='auc'"):
        fitted("auc").to_sklearn()


def test_it_is_linear_svc_without_a_constraint():
    X, y, _ = fc.make_biased_classification(600, 5, gap=0.4, random_state=0)
    X = StandardScaler().fit_transform(X)
    ours = fc.FairHingeClassifier(None, alpha=0.01, fit_intercept=False, tol=3e-6).fit(X, y)
    svc = LinearSVC(loss="hinge", C=1.0 / (0.01 * len(y)), fit_intercept=False, tol=1e-6)
    theirs = svc.set_params(max_iter=100_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.998


def test_scad_leaves_out_features():
    X, y, groups = fc.make_biased_classification(600, 5, gap=0.4, random_state=0)
    noise = np.random.default_rng(0).standard_normal((600, 5))
    classifier = fc.FairHingeClassifier(alpha=fc.penalties.SCAD(0.05))
    classifier.fit(np.hstack([X, noise]), y, sensitive_features=groups)
    assert np.abs(classifier.coef_[0, 5:]).max() < 1e-3 < 0.1 < np.abs(classifier.coef_).max()
