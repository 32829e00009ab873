"""What `predict` does meets the bound on the training rows with every constraint, and its parts."""

import numpy as np
import pytest
from _support.classifiers import quietly
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import roc_auc_score

import fairconstrained as fc
from fairconstrained import constraints
from fairconstrained.decisions.candidates import CandidateSearch
from fairconstrained.decisions.score_line import points_between
from fairconstrained.decisions.search import DecisionTask
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import average
from fairconstrained.utils.arrays import ROUNDING

X, Y, GROUPS = fc.make_biased_classification(1200, 6, gap=0.3, random_state=0)
SEEDS = st.integers(0, 2**31 - 1)


def fitted(kappa, enforce="decision", **options):
    clf = fc.FairLogisticClassifier(kappa=kappa, enforce=enforce, **options)
    return quietly(clf.fit, X, Y, sensitive_features=GROUPS)  # constant decisions are no surprise


@pytest.mark.parametrize("kappa", [0.1, 0.02, 0.0])
def test_demographic_parity_of_predictions(kappa):
    clf = fitted(kappa)
    a, b = (clf.predict(X)[k == GROUPS].mean() for k in (0, 1))
    assert abs(a - b) <= kappa + 1e-12
    assert clf.decision_gap_ <= kappa and clf.decision_gap_ == pytest.approx(abs(a - b))
    assert np.all(clf.coef_ == fitted(kappa, solver="ipc").coef_)


@pytest.mark.parametrize("threshold", [None, fc.SelectionRate(0.4)])
def test_the_search_says_what_it_costs(threshold):
    clf = fitted(kappa=0.1, threshold=threshold)
    search = clf.decision_search_
    free = fc.FairLogisticClassifier(None, threshold=threshold).fit(X, Y)
    scores = fitted(kappa=0.1, threshold=threshold, enforce="score")
    assert search.accuracy == pytest.approx(clf.score(X, Y))
    assert search.accuracy_on_scores == pytest.approx(scores.score(X, Y))
    assert search.accuracy_unconstrained == pytest.approx(free.score(X, Y))
    assert search.accuracy_cost == pytest.approx(free.score(X, Y) - clf.score(X, Y))
    assert search.data_passes_on_scores == scores.result_.data_passes
    assert clf.result_.data_passes == search.data_passes


def test_no_less_accurate_than_the_intercept_alone():
    """Better than what a user would do: the best threshold of the fit on scores."""
    clf = fitted(kappa=0.1)
    scores = fc.FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)
    found = scores.decision_function(X)
    best = 0.0
    for threshold in np.quantile(found, np.linspace(0, 1, 201)):
        decisions = found > threshold
        if abs(decisions[GROUPS == 0].mean() - decisions[GROUPS == 1].mean()) <= 0.1:
            best = max(best, np.mean(decisions == Y))
    assert clf.score(X, Y) >= best - 1e-12


def test_constant_predictions_warn():
    """Features that determine both group and label leave constant decisions."""
    x, y = GROUPS[:, None].astype(float), GROUPS.copy()
    y[:5] = 1 - y[:5]
    clf = fc.FairLogisticClassifier(kappa=0.05, enforce="decision")
    said = "The same class is predicted.*training accuracy"
    with pytest.warns(fc.ConstantDecisionWarning, match=said):
        clf.fit(x, y, sensitive_features=GROUPS)
    assert np.unique(clf.predict(x)).size == 1 and clf.decision_gap_ == 0.0
    assert_array_equal(clf.coef_, [[0.0]])
    assert clf.score(x, y) == max(y.mean(), 1 - y.mean())


def test_a_bound_that_is_not_met_warns():
    """Constant decisions do not meet parity of errors where the groups' labels differ."""
    x, y = np.zeros((100, 1)), np.arange(100) < 60
    groups = np.where(np.arange(100) < 50, "a", "b")
    clf = fc.FairLogisticClassifier("error_rate_parity", kappa=0.1, enforce="decision")
    with pytest.warns(fc.InfeasibleConstraintWarning, match="violation 0.7"):
        clf.fit(x, y, sensitive_features=groups)
    assert not clf.decision_search_.met


def small_problem(seed, n=60, kappa=0.1):
    random = np.random.default_rng(seed)
    features = random.integers(-2, 3, (n, 3)).astype(float)  # many equal rows, many ties
    y, groups = random.choice([-1.0, 1.0], n), random.choice(["a", "b", "c"], n)
    y[:2], groups[:3] = [1.0, -1.0], ["a", "b", "c"]
    weight = random.uniform(0.5, 2.0, n)
    model = LinearModel(features)
    term = fc.DemographicParity(kappa).bind(y, groups, weight)
    objective = CompositeFunction(model, average(fc.functions.Logistic(), y, weight))
    return Problem(objective, (CompositeFunction(model, term),)), y, weight, random


@settings(max_examples=10)
@given(SEEDS)
def test_counts_on_a_line_are_those_of_each_model(seed):
    problem, y, weight, random = small_problem(seed)
    search = CandidateSearch(problem, y, weight)
    one, other = (search.evaluate(random.normal(size=4)) for _ in range(2))
    line = search.line(one, other.w - one.w, to=other)
    points = points_between(line.flips(), 40)
    (accuracy,), violation = line.outputs(points)
    for k, t in enumerate(points):
        found = search.evaluate(line.model(t))
        assert accuracy[k] == pytest.approx(found.accuracy)
        assert violation[:, k].max() == pytest.approx(found.violation)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.integers(6, 40))
def test_points_lie_between_flips(flips, many):
    flips = np.sort(flips)
    for center in (None, 0.0):
        points = points_between(flips, many, center)
        assert np.all(np.diff(points) > 0) and len(points) <= many + 4
        assert points[0] < flips[0] and points[-1] > flips[-1]
        assert np.abs(points[:, None] - flips).min() >= 1e-10


def test_the_intercept_alone_finds_the_best_threshold():
    problem, y, weight, random = small_problem(3)
    search = CandidateSearch(problem, y, weight)
    one = search.evaluate(random.normal(size=4))
    search.sweep_intercept(one)
    scores = one.scores[search.model]
    for threshold in np.concatenate([[-99.0], np.unique(scores)]):
        w = one.w.copy()
        w[-1] -= threshold + 1e-6
        found = search.evaluate(w)
        assert not (found.met and found.accuracy > search.best.accuracy + 1e-12)


@settings(max_examples=5)
@given(SEEDS)
def test_the_bound_is_met_on_random_data(seed):
    problem, y, weight, _ = small_problem(seed, kappa=0.05)
    solver = fc.solvers.IPC(max_iter=20)
    first = solver.minimize(problem)
    found = DecisionTask(problem, first, y, weight, first.w).search()
    at = problem.at(found.w)
    assert found.met and at.zero_one_violation == 0.0 and at.decided.gap <= 0.05


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_partial_parity_of_predictions_does_not_end_constant(seed):
    """Thresholds are variables: tolerances get smaller by what the ranking still violates."""
    X, y, groups = fc.make_biased_classification(400, random_state=seed)
    clf = fc.FairLogisticClassifier("partial_dp", 0.1, enforce="decision")
    clf.fit(X, y, sensitive_features=groups)
    search = clf.decision_search_
    assert search.met and clf.decision_gap_ <= 0.1 + 1e-9
    assert not search.constant
    assert search.accuracy > max(y.mean(), 1.0 - y.mean()) + 0.05


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


def fit_to(constraint, X, y, groups, **options):
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
    clf = fit_to(constraint, X, y, groups, **options)
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


OF_RATES = [
    fc.DemographicParity(0.0),
    fc.DemographicParity(ratio=1.0),
    constraints.EqualizedOdds(0.0),
    constraints.DisparateImpact(1.0),
    constraints.IntraGroupAUCParity(0.0),
    constraints.InterGroupAUCParity(0.0),
]


@pytest.mark.parametrize("constraint", OF_RATES)
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
    clf = fit_to(name, X, y, groups, kappa=0.2, random_state=0)
    assert clf.decision_search_.met
    assert clf.score(X, y) >= 1.0 - y.mean() - ROUNDING
    share = y.mean()
    entropy = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    assert clf.objective_ < entropy - 1e-3
    assert np.any(clf.coef_) and roc_auc_score(y, clf.decision_function(X)) > 0.6


def test_fits_with_smaller_tolerances_lead_on_where_rounds_end_far_below_a_model_near_the_bound():
    """Rounds alone ended at 0.579, between groups of 14 and 20 rows and a nearly perfect model."""
    random, groups = np.random.default_rng(3), np.repeat(np.arange(4), [600, 500, 20, 14])
    y = (random.random(len(groups)) < np.array([0.5, 0.62, 0.7, 0.5])[groups]).astype(int)
    x = random.normal(size=(len(groups), 10))
    seen = random.random(len(groups)) < np.array([0.93, 0.965, 0.9, 0.88])[groups]
    x[:, 0] += np.array([4.0, 4.6, 3.6, 3.4])[groups] * y * seen
    clf = fc.FairLogisticClassifier("equalized_odds", kappa=0.06, enforce="decision")
    clf = quietly(clf.fit, x, y, sensitive_features=groups)
    assert clf.decision_gap_ <= 0.06 and clf.score(x, y) > 0.75


def test_sigmoids_narrow_in_place_of_decisions_where_precisions_are_compared():
    """Rounds with sigmoids as wide as those of scores ended at 0.768."""
    X, y, groups = fc.make_biased_classification(1200, 6, gap=0.3, random_state=2)
    clf = fc.FairLogisticClassifier("predictive_parity", kappa=0.03, enforce="decision")
    clf.fit(X, y, sensitive_features=groups)
    assert clf.decision_gap_ <= 0.03 and clf.score(X, y) > 0.78


@pytest.mark.parametrize("ranks", [(0.05, 0.3), (0.7, 1.0)])
def test_fits_with_smaller_tolerances_have_constraints_with_fewer_gaps_than_outputs(ranks):
    X, y, groups = fc.make_biased_classification(150, 3, gap=0.5, random_state=0)
    both = [constraints.PartialDemographicParity(ranks=ranks), "predictive_equality"]
    clf = fc.FairLogisticClassifier(both, kappa=0.02, enforce="decision", alpha=0.01)
    clf = quietly(clf.fit, X, y, sensitive_features=groups)
    assert clf.bound_met_ and clf.decision_search_.violation == 0.0
