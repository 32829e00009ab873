"""Tests of partial and weak partial demographic parity, against definitions and other solvers."""

import numpy as np
import pytest
from _support.labelled_rows import SEEDS, by_formula, data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier, make_biased_classification, metrics
from fairconstrained.constraints import PartialDemographicParity, WeakPartialDemographicParity
from fairconstrained.functions.surrogates import Sigmoid


@given(seed=SEEDS, kappa=st.floats(0.0, 0.9), low=st.floats(0.0, 0.6))
def test_partial_parity_is_its_formula(seed, kappa, low):
    y, groups, weight, scores = data(seed)
    ranks, count, phi = (low, low + 0.3), 4, Sigmoid(0.5)
    parity = PartialDemographicParity(kappa, surrogate=phi, ranks=ranks, n_ranks=count)
    term = parity.bind(y, groups, weight)
    theta = np.random.default_rng(seed).normal(size=count)
    values = dict(zip(term.names, term.value(scores, theta), strict=True))
    assert len(values) == term.n_outputs == 2 * 3 * count
    assert term.n_auxiliary == count
    expected = []
    for k in np.unique(groups):
        own = groups == k
        for j in range(count):
            p = low + (j + 0.5) / count * (1.0 - kappa) * 0.3
            rate = np.average(phi.value(scores[own] - theta[j]), weights=weight[own])
            expected += [(p - rate) / 0.3, (rate - p) / 0.3 - kappa]
    assert_allclose(sorted(values.values()), sorted(expected), atol=1e-9)


@pytest.mark.parametrize("kind", [PartialDemographicParity, WeakPartialDemographicParity])
@given(seed=SEEDS, low=st.floats(0.0, 0.5), width=st.floats(0.2, 0.5), ties=st.booleans())
def test_gaps_of_decisions_are_the_formulas_for_any_range(kind, seed, low, width, ties):
    y, groups, weight, scores = data(seed)
    scores = scores.round(1) if ties else scores
    constraint = kind(0.1, ranks=(low, low + width))
    zero_one = constraint.bind(y, groups, weight).zero_one()
    expected = by_formula(constraint, y, groups, weight, scores, decisions=True).gap
    assert zero_one.gap(scores).max() == pytest.approx(expected, abs=1e-9)
    assert_allclose(zero_one.value(scores), zero_one.gap(scores) - 0.1, atol=1e-12)


def test_any_gap_is_allowed_by_kappa_one():
    assert PartialDemographicParity(1.0).bind(*data(0)[:3]).n_outputs == 0


def test_auto_takes_the_most_unfair_range_around_the_unconstrained_rate():
    X, y, groups = make_biased_classification(400, gap=0.4, random_state=1)
    free = FairLogisticClassifier(None).fit(X, y)
    scores, rate = free.decision_function(X), np.mean(free.predict(X) == 1)
    gaps = {}
    for low in np.round(np.arange(16) * 0.05, 10):
        ranks = (float(low), float(np.round(low + 0.25, 10)))
        if ranks[0] <= rate <= ranks[1]:
            gaps[ranks] = metrics.partial_demographic_parity_difference(
                y, scores, sensitive_features=groups, ranks=ranks
            )
    best = max(gaps, key=lambda r: (round(gaps[r], 9), -abs(0.5 * sum(r) - rate)))
    auto = FairLogisticClassifier("partial_dp", kappa=0.1).fit(X, y, sensitive_features=groups)
    fixed = FairLogisticClassifier(PartialDemographicParity(ranks=best), kappa=0.1)
    fixed.fit(X, y, sensitive_features=groups)
    assert auto.objective_ == pytest.approx(fixed.objective_, rel=1e-6)
    assert auto.result_.converged


def test_thresholds_for_given_scores_are_where_the_largest_violation_is_least(rng):
    y, groups, scores = np.ones(60), np.repeat([0, 1, 2], 20), 5.0 + 3.0 * rng.normal(size=60)
    constraint = PartialDemographicParity(0.1, ranks=(0.2, 0.8), n_ranks=4)
    term = constraint.bind(y, groups, np.ones(60))
    found = term.auxiliary_for(lambda own: term.value(scores, own))
    least = term.value(scores, found).reshape(2, -1, 4).max(axis=(0, 1))
    for theta in np.linspace(-5.0, 15.0, 2001):
        there = term.value(scores, np.full(4, theta)).reshape(2, -1, 4).max(axis=(0, 1))
        assert np.all(there >= least - 1e-6)
    assert least.max() < term.value(scores, term.auxiliary_start).max() - 0.1
