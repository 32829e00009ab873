"""What `predict` does meets the bound on the training rows: enforce="decision", and its parts."""

import numpy as np
import pytest
from _support.classifiers import quietly
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import fairconstrained as fc
from fairconstrained.decisions.candidates import CandidateSearch
from fairconstrained.decisions.score_line import points_between
from fairconstrained.decisions.search import DecisionTask
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import IPC
from fairconstrained.terms.cell_means import average

X, Y, GROUPS = fc.make_biased_classification(1200, 6, gap=0.3, random_state=0)
SEEDS = st.integers(0, 2**31 - 1)


def fitted(kappa):
    clf = fc.FairLogisticClassifier(kappa=kappa, enforce="decision")
    return quietly(clf.fit, X, Y, sensitive_features=GROUPS)  # constant decisions are no surprise


@pytest.mark.parametrize("kappa", [0.1, 0.02, 0.0])
def test_demographic_parity_of_predictions(kappa):
    clf = fitted(kappa)
    a, b = (clf.predict(X)[k == GROUPS].mean() for k in (0, 1))
    assert abs(a - b) <= kappa + 1e-12
    assert clf.decision_gap_ <= kappa and clf.decision_gap_ == pytest.approx(abs(a - b))


def test_the_search_says_what_it_costs():
    clf = fitted(kappa=0.1)
    search = clf.decision_search_
    free = fc.FairLogisticClassifier(None).fit(X, Y)
    scores = fc.FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)
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
    objective = CompositeFunction(model, average(Logistic(), y, weight))
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
    solver = IPC(max_iter=20)
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
