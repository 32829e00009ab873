"""scikit-learn's checks of every estimator."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

import fairconstrained as fc


def above(X, column=0, least=0.0):
    return (X.toarray() if sp.issparse(X) else np.asarray(X))[:, column] > least


def excused_of_weights(reason):
    """Return the checks that weights equal repeated rows to 1e-7, with a reason to excuse them."""
    check = "check_sample_weight_equivalence_on_{}_data"
    return dict.fromkeys(map(check.format, ("dense", "sparse")), reason)


BOUND_ON_FEATURES = {
    "check_classifiers_train": "with three classes, bounds on features cost accuracy",
    **excused_of_weights("iterates differ by rounding; tested at tol=1e-7 in test_weights"),
}


def excused_in_this_version(estimator):
    """Return checks that are wrong in the installed version, with the reason.

    Before 1.7 the labels of two classes are made by comparing all labels with the first one, and
    the weighted rows are shuffled before: weighted and repeated rows get different labels.
    """
    binary = not estimator.__sklearn_tags__().classifier_tags.multi_class
    if binary and parse_version(sklearn.__version__) < parse_version("1.7"):
        return excused_of_weights("scikit-learn compares fits to different labels")
    return {}


def failed_checks(estimator, excused=None):
    """Return the names of the checks that fail or are skipped, other than the excused ones."""
    expected = excused_in_this_version(estimator) | (excused or {})
    options = {"on_skip": None, "on_fail": None, "expected_failed_checks": expected}
    outcomes = check_estimator(estimator, **options)
    assert len(outcomes) > 50
    return [one["check_name"] for one in outcomes if one["status"] not in ("passed", "xfail")]


HALF, ZERO = {"sensitive_columns": partial(above, least=0.5)}, {"sensitive_columns": above}
TREES = {"n_estimators": 10, "num_leaves": 6, "min_child_samples": 2, "reg_lambda": 0.1}
TREES |= {"n_jobs": 1, "random_state": 0}
# On 15 separable rows the hinge is flat but for alpha / 2 |w|^2: answers within tol differ by 0.1
# in their scores, and rounding decides which one it is. Among scikit-learn's own estimators those
# of liblinear are excused for the like. Training of a network amplifies the rounding by which sums
# with weights differ from sums of repeated rows, see test_weights.
WEIGHTS = excused_of_weights("compares to 1e-7 what is right to tol")
OF_ROWS = excused_of_weights("bins and the least number of rows in a leaf count rows, not weights")
# Bounds at the level of guessing leave the other classes as bad as that, where it helps the first.
NO_ACCURACY = {"check_classifiers_train": "the default bounds do not ask for accuracy", **WEIGHTS}
OF_THRESHOLDS = {"check_classifiers_train": "a larger probability does not decide"}
NETWORK = {"hidden_layer_sizes": (4,), "max_epochs": 5, "random_state": 0}
ONE_OF_EACH = [
    (fc.FairLogisticClassifier(None), None),
    (fc.FairHingeClassifier(None, alpha=0.1, tol=0.1), WEIGHTS),
    # convex losses take a third of the time
    (fc.NeymanPearsonClassifier(surrogate="logistic", tol=1e-2), NO_ACCURACY),
    (fc.FairBoostingClassifier(None, **TREES), OF_ROWS),
    (fc.FairNetworkClassifier(None, **NETWORK), WEIGHTS),
]
OTHERS = [
    (fc.FairLogisticClassifier(**HALF), BOUND_ON_FEATURES),
    (fc.FairLogisticClassifier(**ZERO), BOUND_ON_FEATURES),
    (fc.FairLogisticClassifier(sensitive_columns=partial(above, column=-1)), BOUND_ON_FEATURES),
    (fc.FairLogisticClassifier("equalized_odds", use_sensitive=True, **HALF), None),
    (fc.FairHingeClassifier(tol=1e-2, **HALF), WEIGHTS),
    (fc.FairBoostingClassifier(**TREES, **HALF), OF_ROWS),
    (fc.FairBoostingClassifier("equalized_odds", **TREES, **ZERO), OF_ROWS),
    (fc.FairNetworkClassifier(hidden_layer_sizes=(8,), **HALF), WEIGHTS),
    (fc.FairLogisticClassifierCV(n_kappas=2, cv=2, random_state=0, **HALF), BOUND_ON_FEATURES),
    (fc.FairThresholds(LogisticRegression(), None), OF_THRESHOLDS),
]
NEEDS = {fc.FairBoostingClassifier: "lightgbm", fc.FairNetworkClassifier: "torch"}
# Some checks cast NaN to integers; in others all rows are in one group, or too few for the folds.
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::fairconstrained.VacuousConstraintWarning"),
    pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning"),
]


def name_of(value):
    """Return the class of an estimator; the repr of one with a function has an address."""
    return type(value).__name__ if hasattr(value, "fit") else str(value)


def check(estimator, excused):
    pytest.importorskip(NEEDS.get(type(estimator), "sklearn"), reason="an extra is not installed")
    assert failed_checks(estimator, excused) == []


@pytest.mark.cases(len(ONE_OF_EACH))
@pytest.mark.parametrize(("estimator", "excused"), ONE_OF_EACH, ids=name_of)
def test_an_estimator_of_each_class(estimator, excused):
    check(estimator, excused)


@pytest.mark.cases(0)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("estimator", "excused"), OTHERS, ids=name_of)
def test_other_estimators(estimator, excused):
    check(estimator, excused)
