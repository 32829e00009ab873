"""enforce="decision" with every constraint: the bound, then accuracy, then loss."""

import numpy as np
import pytest
from _support.classifiers import quietly
from sklearn.metrics import roc_auc_score

import fairconstrained as fc
from fairconstrained import constraints
from fairconstrained.utils.numerics import ROUNDING

RANKINGS = ["group_auc", "inter_group_auc", "intra_group_auc", "roc_parity"]
RANKINGS += ["partial_dp", "weak_partial_dp"]


def draw(n_groups, n=240, seed=0):
    """Return biased data with groups of several sizes."""
    X, y, halves = fc.make_biased_classification(n, 4, gap=0.3, random_state=seed)
    parts = np.random.default_rng(seed).random(n) < 0.4
    return X, y, halves if n_groups == 2 else 2 * halves + parts


def imbalanced(n=600, seed=0, rate=0.07):
    """Return data whose majority prediction is hard to improve, though scores rank rows well."""
    random = np.random.default_rng(seed)
    X, groups = random.normal(size=(n, 3)), random.integers(0, 2, n)
    score = X @ [0.8, 0.4, 0.0] + 0.5 * groups + random.logistic(size=n)
    return X, (score > np.quantile(score, 1.0 - rate)).astype(int), groups


def fitted(constraint, X, y, groups, **options):
    clf = fc.FairLogisticClassifier(constraint, enforce="decision", **options)
    return quietly(clf.fit, X, y, sensitive_features=groups)


def constants(clf, X, y, groups):
    """Return accuracy and violation on decisions of the two constant models."""
    problem = clf.bind(X, y, None, groups).problem
    for sign in (-1.0, 1.0):
        w = problem.start()
        w[: X.shape[1] + 1] = np.append(np.zeros(X.shape[1]), sign)
        yield np.mean(y == (sign > 0)), problem.at(w).zero_one_violation


@pytest.mark.cases(2)
@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("name", constraints.CLASSIFIER_CONSTRAINTS)
def test_not_worse_than_a_feasible_constant_and_consistent_figures(name, n_groups):
    X, y, groups = draw(n_groups)
    few = {"n_thresholds": 10} if name == "roc_parity" else {}
    constraint = constraints.CLASSIFIER_CONSTRAINTS[name](**few)
    options = {"kappa": 0.1} if constraint.takes_kappa else {}
    clf = fitted(constraint, X, y, groups, **options)
    search, result = clf.decision_search_, clf.result_
    assert np.all(np.isfinite(clf.coef_)) and np.all(np.isfinite(clf.intercept_))
    assert search.met == (result.zero_one_violation == 0.0) == (search.violation == 0.0)
    assert search.accuracy == pytest.approx(clf.score(X, y))
    assert search.constant == (np.unique(clf.predict(X)).size == 1)
    feasible = [right for right, violation in constants(clf, X, y, groups) if violation == 0.0]
    assert search.met or not feasible
    assert search.accuracy >= max(feasible, default=0.0) - ROUNDING
    assert result.violation == clf.violation_
    assert f"on scores the model has objective {result.objective:.6g}" in str(result)
    assert f"violation {result.violation:.2e} and" in str(result)
    assert f"KKT residual {result.kkt_residual:.2e}" in str(result)


# A bound of zero difference, which constant decisions meet up to rounding.


@pytest.mark.parametrize(
    "constraint",
    [
        fc.DemographicParity(0.0),
        fc.DemographicParity(ratio=1.0),
        constraints.EqualizedOdds(0.0),
        constraints.DisparateImpact(1.0),
        constraints.IntraGroupAUCParity(0.0),
        constraints.InterGroupAUCParity(0.0),
    ],
)
@pytest.mark.parametrize("rate", [0.07, 0.93])
def test_a_bound_of_zero_is_met_by_the_majority_at_least(constraint, rate):
    X, y, groups = imbalanced(120, rate=rate)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    clf = fc.FairLogisticClassifier(constraint, enforce="decision")
    quietly(clf.fit, X, y, weight, sensitive_features=groups)
    majority = max(np.average(y, weights=weight), 1.0 - np.average(y, weights=weight))
    assert clf.decision_search_.met and clf.result_.zero_one_violation == 0.0
    assert clf.decision_search_.accuracy >= majority - ROUNDING


# Constraints on rankings are met by constant decisions with scores that rank rows.


@pytest.mark.parametrize("name", RANKINGS)
def test_the_better_loss_among_equally_accurate_models(name):
    X, y, groups = imbalanced()
    clf = fitted(name, X, y, groups, kappa=0.2, random_state=0)
    assert clf.decision_search_.met
    assert clf.score(X, y) >= 1.0 - y.mean() - ROUNDING
    share = y.mean()
    entropy = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    assert clf.objective_ < entropy - 1e-3
    assert np.any(clf.coef_) and roc_auc_score(y, clf.decision_function(X)) > 0.6
