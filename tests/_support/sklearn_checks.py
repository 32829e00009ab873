"""scikit-learn's checks of an estimator, with what its versions differ in."""

import sklearn
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

WEIGHTS = tuple(f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))


def excused_of_weights(reason):
    """Return the checks that weights equal repeated rows to 1e-7, with a reason to excuse them."""
    return dict.fromkeys(WEIGHTS, reason)


BOUND_ON_FEATURES = {
    "check_classifiers_train": "with three classes, bounds on features cost accuracy",
    **excused_of_weights("iterates differ by rounding; tested at tol=1e-7 in test_several_classes"),
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
    outcomes = check_estimator(
        estimator, on_skip=None, on_fail=None, expected_failed_checks=expected
    )
    assert len(outcomes) > 50
    return [one["check_name"] for one in outcomes if one["status"] not in ("passed", "xfail")]
