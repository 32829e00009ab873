"""`class_weight`: weights of the classes in the loss, and in nothing else."""

import numpy as np
import pytest
from _support.classifiers import SINGLE
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, fairness_path, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss

GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.62)}


@pytest.fixture(scope="module")
def rows():
    """Rows with three times as many labels of one class, and weights."""
    X, y, groups = make_biased_classification(700, 4, gap=0.3, random_state=0)
    kept = (y == 0) | (np.random.default_rng(0).random(len(y)) < 0.35)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, kept.sum())
    weight[::17] = 0.0
    return X[kept], y[kept], groups[kept], weight


def by_row(class_weight, y, weight):
    """Return the weights of the rows times those of their classes."""
    if class_weight == "balanced":
        counted = weight > 0
        totals = [weight[counted & (y == k)].sum() for k in (0, 1)]
        class_weight = {k: sum(totals) / (2.0 * totals[k]) for k in (0, 1)}
    return weight * np.array([class_weight.get(k, 1.0) for k in (0, 1)])[y]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 4.0}, {1: 3.0}])
def test_without_constraints_it_is_logistic_regression(rows, class_weight, weighted):
    X, y, _, weight = rows
    weight = weight if weighted else np.ones(len(y))
    ours = FairLogisticClassifier(None, alpha=0.0, class_weight=class_weight, tol=1e-8)
    ours.fit(X, y, weight)
    # scikit-learn's "balanced" counts weights since 1.7 only: these are the same weights as a dict
    given = class_weight
    if class_weight == "balanced":
        ratio = by_row("balanced", y, weight)
        given = {k: ratio[(y == k) & (weight > 0)][0] / weight[(y == k) & (weight > 0)][0]
                 for k in (0, 1)}  # fmt: skip
    theirs = LogisticRegression(C=np.inf, class_weight=given, tol=1e-10, max_iter=1000)
    theirs.fit(X, y, weight)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_constraints_count_people_not_class_weights(rows, name):
    X, y, groups, weight = rows
    constraint = GIVEN.get(name, name)
    clf = FairLogisticClassifier(constraint, 0.05, class_weight="balanced")
    clf.fit(X, y, weight, sensitive_features=groups)
    plain = FairLogisticClassifier(constraint, 0.05).bind(X, y, weight, groups)
    balanced = clf.bind(X, y, weight, groups)
    coef, intercept = np.full((1, X.shape[1]), 0.3), np.full(1, -0.2)
    ours, theirs = (
        fit.problem.at(fit.problem.start_at(fit.model.variables(coef, intercept)))
        for fit in (balanced, plain)
    )
    if name not in ("roc_parity", "partial_dp", "weak_partial_dp"):  # from the model without them
        assert_allclose(ours.constraints, theirs.constraints, atol=1e-12)
    assert ours.objective != pytest.approx(theirs.objective, abs=1e-3)


@pytest.mark.parametrize("enforce", ["score", "decision"])
@pytest.mark.parametrize("name", SINGLE)
def test_every_classifier_selects_more_of_a_heavier_class(rows, name, enforce):
    X, y, groups, _ = rows
    rates = []
    for class_weight in (None, "balanced", {1: 8.0}):
        clf = SINGLE[name](kappa=0.1, class_weight=class_weight, enforce=enforce)
        rates.append(clf.fit(X, y, sensitive_features=groups).predict(X).mean())
    assert rates[0] < rates[1] - 0.02 < rates[2] - 0.04


def test_names_and_their_order_do_not_matter(rows):
    X, y, groups, weight = rows
    names = np.where(y > 0, "accept", "reject")
    one = FairLogisticClassifier(class_weight={0: 1.0, 1: 5.0})
    one.fit(X, y, weight, sensitive_features=groups)
    other = FairLogisticClassifier(
        class_weight={"reject": 1.0, "accept": 5.0}, pos_label="accept"
    ).fit(X, names, weight, sensitive_features=groups)
    assert_array_equal(other.coef_, -one.coef_)


def test_paths_weigh_the_held_out_loss_as_the_loss(rows):
    X, y, groups, _ = rows
    seen = np.arange(len(y)) < 300
    clf = FairLogisticClassifier(class_weight={0: 1.0, 1: 5.0})
    path = fairness_path(
        clf, X[seen], y[seen], sensitive_features=groups[seen], kappas=[0.1, 0.05],
        X_val=X[~seen], y_val=y[~seen], sensitive_features_val=groups[~seen],
    )  # fmt: skip
    margins = np.where(y > 0, 1.0, -1.0)[~seen] * path.estimators[0].decision_function(X[~seen])
    expected = np.average(np.logaddexp(0.0, -margins), weights=np.where(y[~seen] > 0, 5.0, 1.0))
    assert path.validation["val_loss"][0] == pytest.approx(expected)
