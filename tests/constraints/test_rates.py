"""Constraints on rates, losses and precisions of groups."""

import re
from itertools import product

import numpy as np
import pytest
from _support.labelled_rows import SEEDS, data
from _support.problems import classification, reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc
from fairconstrained import FairLogisticClassifier, constraints, make_biased_classification
from fairconstrained.functions.losses import Logistic

# The helpers here set kappa for all constraints, also those with a tolerance of their own.
pytestmark = pytest.mark.filterwarnings("ignore:kappa=:fairconstrained.InputWarning")


AGAINST = pytest.mark.parametrize("against", ["pairs", "overall"])


@AGAINST
def test_a_cell_without_rows_is_named_and_nothing_is_asked_of_it(against):
    y, groups, weight, scores = data(4, 3)
    y[groups == "d"] = -1
    with pytest.warns(fc.VacuousConstraintWarning) as caught:
        term = constraints.EqualizedOdds(0.1, against=against).bind(y, groups, weight)
    (said,) = (str(warning.message) for warning in caught)
    assert said.startswith("EqualizedOdds: the cell 'group d | label +1' has no rows")
    rest = groups != "d"
    rows = [part[rest] for part in (y, groups, weight)]
    positives = constraints.EqualOpportunity(0.1, against=against).bind(*rows)
    negatives = constraints.PredictiveEquality(0.1, against=against).bind(y, groups, weight)
    expected = dict(zip(positives.names, positives.value(scores[rest]), strict=True))
    expected |= dict(zip(negatives.names, negatives.value(scores), strict=True))
    assert dict(zip(term.names, term.value(scores), strict=True)) == pytest.approx(expected)


@given(seed=SEEDS, ratio=st.floats(0.05, 1.0))
def test_a_ratio_holds_exactly_where_no_gap_is_above_one_less_it(seed, ratio):
    y, groups, weight, scores = data(seed)
    zero_one = constraints.DisparateImpact(ratio).bind(y, groups, weight).zero_one()
    holds = zero_one.value(scores) <= 1e-12
    assert_array_equal(holds, zero_one.gap(scores) <= 1.0 - ratio + 1e-9)
    assert_array_equal(zero_one.gap(-np.abs(scores)), 0.0)  # rates of zero


def test_kappa_or_ratio():
    y, groups, weight, _ = data(5)
    with pytest.raises(ValueError, match=r"EqualizedOdds: kappa=0.1 .* ratio=0.8.*one of them"):
        constraints.EqualizedOdds(0.1, ratio=0.8).bind(y, groups, weight)
    assert constraints.EqualizedOdds(ratio=0.8).with_defaults(kappa=0.3).kappa is None


def test_a_rate_that_underflows_selects_no_row():
    y, groups, weight, scores = data(5)
    rule = constraints.PredictiveParity(surrogate=fc.functions.Sigmoid(0.01))
    term = rule.bind(y, groups, weight)
    rates, pullback = term.forward(np.where(groups == "b", -7.09, scores))  # has no reciprocal
    precisions = term.averages(rates)
    assert rates[0] > 0.0 and precisions[0] == precisions[-1]
    assert np.all(np.isfinite(pullback(term.averages_vjp(rates, 1.0 / precisions))[0]))


@given(seed=SEEDS)
def test_a_bounded_hinge_bounds_the_errors(seed):
    y, groups, weight, scores = data(seed)
    term = constraints.BoundedGroupLoss(0.6, loss="hinge").bind(y, groups, weight)
    assert term.convex
    assert np.all(term.zero_one().gap(scores) <= term.gap(scores) + 1e-12)


ACTIVE = {  # constraints, and numbers of groups
    "error rates": (constraints.ErrorRateParity(0.001), 2),
    "error rates, 3 groups": (constraints.ErrorRateParity(0.005, against="overall"), 3),
    "four fifths": (constraints.DisparateImpact(0.9), 2),
    "ratios of odds, 3 groups": (constraints.EqualizedOdds(ratio=0.8), 3),
    "balanced": (constraints.BalancedRate(0.75, 0.7), 2),
    "bounded loss": (constraints.BoundedGroupLoss(0.535), 2),
    "minority": (constraints.MinorityRate(0.48, minority=0), 2),
    "intersectional": (constraints.IntersectionalLossParity(0.001, loss="logistic"), 4),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_the_solution_is_scipys_and_the_constraint_is_active(name):
    constraint, n_groups = ACTIVE[name]
    problem = classification(constraint, n_groups=n_groups)
    result, expected = fc.solvers.IPC().minimize(problem), reference(problem)
    assert result.converged
    assert result.objective == pytest.approx(expected, rel=1e-4)
    assert problem.at(result.w).constraints.max() > -1e-3
    assert result.multipliers.max() > 1e-3


def test_the_gap_of_a_ratio_is_the_shortfall():
    X, y, groups = make_biased_classification(400, 4, gap=0.4, random_state=0)
    rule = FairLogisticClassifier("disparate_impact", kappa=0.0)
    rule.fit(X, y, sensitive_features=groups)
    rates = [rule.predict_proba(X)[groups == k, 1].mean() for k in (0, 1)]
    decided = [rule.predict(X)[groups == k].mean() for k in (0, 1)]
    assert rule.gap_ == pytest.approx(0.2, abs=1e-3)
    assert rates[0] / rates[1] == pytest.approx(0.8, abs=1e-3)
    assert rule.decision_gap_ == pytest.approx(1.0 - decided[0] / decided[1])


def test_numeric_columns_become_overlapping_groups():
    X, y, _ = make_biased_classification(400, 4, gap=0.4, random_state=0)
    thresholds = {"membership": "thresholds", "thresholds": 5}
    constraint = constraints.IntersectionalLossParity(0.05, loss="logistic", **thresholds)
    classifier = FairLogisticClassifier(constraint, sensitive_columns=[0, 1]).fit(X, y)
    assert classifier.result_.converged
    losses = Logistic().value((2 * y - 1) * classifier.decision_function(X))
    cuts = [np.linspace(x.min(), x.max(), 5, endpoint=False) for x in X[:, :2].T]
    groups = [(X[:, 0] > a) & (X[:, 1] > b) for a, b in product(*cuts)]
    excess = [losses[rows].mean() - losses.mean() for rows in groups if rows.mean() > 0.01]
    assert len(excess) == len(classifier.multipliers_) > 10
    assert max(excess) == pytest.approx(0.05, abs=1e-4)


OF_RATES = [constraints.DemographicParity, constraints.EqualizedOdds, constraints.ErrorRateParity]
OF_PAIRS = ["GroupAUCParity", "InterGroupAUCParity", "IntraGroupAUCParity"]
NAMED_GROUPS = [
    *product(OF_RATES, [{"kappa": 0.1}, {"ratio": 0.8}]),
    *product([getattr(constraints, name) for name in OF_PAIRS], [{"kappa": 0.1}]),
]


@pytest.mark.parametrize(("constraint", "settings"), NAMED_GROUPS)
def test_against_a_group_has_the_pairs_of_that_group(constraint, settings):
    rng = np.random.default_rng(0)
    groups, y = rng.choice(["a", "b", "c", "d"], 200), rng.choice([-1.0, 1.0], 200)
    rows = y, groups, rng.uniform(1.0, 2.0, 200)
    scores = rng.normal(size=200)
    every, named = (constraint(**settings, against=a).bind(*rows) for a in ("pairs", "b"))
    values = dict(zip(every.names, every.value(scores), strict=True))
    with_b = {name for name in values if re.search(r"\bb\b", name)}
    assert set(named.names) == with_b and 0 < len(with_b) < len(values)
    assert_allclose(named.value(scores), [values[name] for name in named.names])


def test_against_a_group_that_no_row_has_and_of_strata_and_attributes():
    with pytest.warns(fc.VacuousConstraintWarning, match="no row of .* is in the group 'z'"):
        constraints.DemographicParity(against="z").bind(None, np.array(["a", "b"]), np.ones(2))
    X, y, groups = make_biased_classification(300, random_state=0)
    both = {"sensitive_features": groups, "control_features": np.arange(300) % 2}
    with pytest.raises(ValueError, match="against='z' is neither"):
        FairLogisticClassifier(constraints.DemographicParity(against="z")).fit(X, y, **both)
    clf = FairLogisticClassifier(constraints.DemographicParity(against="0"), combine="marginal")
    names = clf.bind(X, y, sensitive_features=np.c_[groups, X[:, 0] > 0.0]).problem.names
    assert len(names) == 4 and all("=0)" in name and "=1)" in name for name in names)
