"""FairHingeClassifier, and how functions with kinks are minimised: rounded, then certified."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairconstrained import FairHingeClassifier, make_biased_classification
from fairconstrained.functions.base import PlusParabola
from fairconstrained.functions.losses import Hinge
from fairconstrained.functions.surrogates import PositivePart, Ramp
from fairconstrained.penalties import SCAD

DATA = X, Y, GROUPS = make_biased_classification(600, 5, gap=0.4, random_state=0)


def fitted(data, **options):
    X, y, groups = data
    return FairHingeClassifier(**options).fit(X, y, sensitive_features=groups)


def test_it_is_linear_svc_without_a_constraint():
    X, y, _ = DATA
    X = StandardScaler().fit_transform(X)
    ours = FairHingeClassifier(None, alpha=0.01, fit_intercept=False, tol=3e-6).fit(X, y)
    svc = LinearSVC(loss="hinge", C=1.0 / (0.01 * len(y)), fit_intercept=False, tol=1e-6)
    theirs = svc.set_params(max_iter=100_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.998


def test_scad_leaves_out_features():
    X, y, groups = make_biased_classification(600, 5, gap=0.4, random_state=0)
    noise = np.random.default_rng(0).standard_normal((600, 5))
    classifier = fitted((np.hstack([X, noise]), y, groups), alpha=SCAD(0.05))
    assert np.abs(classifier.coef_[0, 5:]).max() < 1e-3 < 0.1 < np.abs(classifier.coef_).max()


KINKED = [Hinge(), Ramp(), Ramp(2.5), PositivePart(-0.5, 2.0)]
KINKED += [PlusParabola(PositivePart(0.5), 0.3)]
