"""Intervals and exact tests of rates."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from scipy.stats import binom, binomtest
from sklearn.metrics import accuracy_score

from fairconstrained.metrics import group_rates, intervals, rate_gaps
from fairconstrained.metrics.exact_tests import TwoRates

RATES = {
    "selection_rate": selection_rate,
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "accuracy": accuracy_score,
}


@pytest.mark.parametrize("n", [1, 7, 400])
def test_clopper_pearson_equals_scipy(n):
    for k in {0, 1, n // 2, n}:
        exact = binomtest(k, n).proportion_ci(0.9, method="exact")
        _, low, high = intervals.clopper_pearson(np.array([k / n]), np.array([n]), 0.9)
        assert (low[0], high[0]) == pytest.approx((exact.low, exact.high), abs=1e-9)


OF_NEWCOMBE = [
    ((56, 70), (48, 80), 0.0524, 0.3339),
    ((6, 7), (2, 7), 0.0582, 0.8062),
    ((0, 10), (0, 20), -0.1611, 0.2775),
    ((0, 10), (0, 10), -0.2775, 0.2775),
    ((10, 10), (0, 20), 0.6791, 1.0),
]


# Newcombe (1998), table II, method 10: cases (a), (c), (f), (g), (h).
@pytest.mark.parametrize(("first", "second", "low", "high"), OF_NEWCOMBE)
def test_newcombe_gives_the_published_values(first, second, low, high):
    (k, n), (m, size) = first, second
    interval = intervals.newcombe(np.array([k / n, m / size]), np.array([n, size]), 0.95)
    assert (interval.low[0], interval.high[0]) == pytest.approx((low, high), abs=6e-5)


def test_interval_is_trivial_without_rows():
    _, low, high = intervals.clopper_pearson(np.array([np.nan]), np.array([0]), 0.95)
    assert (low[0], high[0]) == (0.0, 1.0)
    for interval in (intervals.largest_gap, intervals.largest_shortfall):
        value, low, high = interval([(np.array([0.5, np.nan]), np.array([9, 0]))], 0.95)
        assert np.isnan(value) and (low, high) == (0.0, 1.0)


@pytest.mark.parametrize("interval", [intervals.largest_gap, intervals.largest_shortfall])
@pytest.mark.parametrize("rates", [(0.5, 0.5, 0.5), (0.2, 0.3, 0.5), (0.02, 0.05, 0.03)])
def test_coverage_of_the_largest_gap(interval, rates, rng):
    """The share of samples whose interval holds the true gap is the confidence or more."""
    rates, sizes, n_samples = np.array(rates), np.array([40, 90, 200]), 800
    true = np.ptp(rates) if interval is intervals.largest_gap else 1.0 - rates.min() / rates.max()
    found = [interval([(rng.binomial(sizes, rates) / sizes, sizes)], 0.9) for _ in range(n_samples)]
    covered = np.mean([low <= true + 1e-12 and true <= high + 1e-12 for _, low, high in found])
    assert covered >= 0.9 - 2.0 * np.sqrt(0.09 / n_samples)
    assert all(low <= value + 1e-12 <= high + 2e-12 for value, low, high in found)


@pytest.fixture
def decided(rng):
    """Labels, decisions, groups and weights."""
    labels = rng.integers(0, 2, (2, 500))
    return *labels, rng.choice(["a", "b", "c"], 500), rng.uniform(0.5, 3.0, 500)


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_and_gaps_equal_those_of_fairlearn(decided, weighted):
    y, decisions, groups, weight = decided
    weight = weight if weighted else None
    given = {"sensitive_features": groups, "sample_weight": weight}
    rates, gaps = (measure(y, decisions, **given) for measure in (group_rates, rate_gaps))
    weights = {name: {"sample_weight": weight} for name in RATES} if weighted else None
    rows = {"y_true": y, "y_pred": decisions, "sensitive_features": groups}
    frame = MetricFrame(metrics=RATES, sample_params=weights, **rows)
    for name in RATES:
        assert rates[name].iloc[:3].to_numpy() == pytest.approx(frame.by_group[name].to_numpy())
        assert rates[name].iloc[3] == pytest.approx(frame.overall[name])
        inside = (rates[f"{name}_low"] <= rates[name]) & (rates[name] <= rates[f"{name}_high"])
        assert inside.all()
        assert gaps.loc[name, "gap"] == pytest.approx(frame.difference()[name])
        assert gaps.loc[name, "highest"] == frame.by_group[name].idxmax()
        assert gaps.loc[name, "lowest"] == frame.by_group[name].idxmin()


def test_equal_weights_have_no_effect_and_zero_weights_drop_rows(decided):
    y, decisions, groups, _ = decided
    plain = group_rates(y, decisions, sensitive_features=groups)
    same = group_rates(y, decisions, sensitive_features=groups, sample_weight=np.full(500, 3.0))
    pd.testing.assert_frame_equal(plain, same)
    some = np.arange(500) < 200
    part = group_rates(y[some], decisions[some], sensitive_features=groups[some])
    zeros = group_rates(y, decisions, sensitive_features=groups, sample_weight=some.astype(float))
    pd.testing.assert_frame_equal(part, zeros)


SMALL = [
    TwoRates(6, 9, 1.0, 1.0, 0.1),
    TwoRates(25, 12, 1.0, 1.0, 0.05),
    TwoRates(40, 40, 1.0, 1.0, 0.2),
    TwoRates(30, 60, 1.0, 0.8, 0.0),
    TwoRates(30, 30, 1.0, 0.5, 0.1),
    TwoRates(30, 20, 0.7, 0.7, 0.1),
    TwoRates(50, 50, 4.0, 4.0, 0.3, 0.1, 0.35),
]


def probability(test, most, first, second):
    """Return P(x_1 <= most[x_2]) by summation over all pairs of counts, for arrays of rates."""
    first, second = np.atleast_1d(first)[:, None], np.atleast_1d(second)[:, None]
    weights = binom.pmf(np.arange(test.n_second + 1), test.n_second, second)
    below = np.where(most < 0, 0.0, binom.cdf(most, test.n_first, first))
    return np.sum(weights * below, axis=1)


def excess(test, first, second):
    """Return the left-hand side less the bound, for rates clipped to the range."""
    one, other = np.clip([first, second], test.bottom, test.top)
    return test.first * one - test.second * other - test.bound


@pytest.mark.parametrize("test", SMALL)
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_the_error_is_at_most_delta_for_all_rates(test, delta):
    most = test.region(delta)
    assert np.all(np.diff(most) >= 0) and most.min() >= -1 and most.max() <= test.n_first
    rates = np.linspace(0.0, 1.0, 41)
    false = np.array([(p, q) for p in rates for q in rates if excess(test, p, q) >= 1e-12])
    line = np.linspace(*test.range, 801)
    on_line = probability(test, most, test.on_line(line), line)
    worst = max(on_line.max(), probability(test, most, *false.T).max())
    assert 0.4 * delta < worst <= delta


@pytest.mark.parametrize("test", SMALL[:5])
def test_limits_cover(test):
    """For rates below, at and above the bound, by summation over all counts."""
    delta = 0.2
    limits = np.array(
        [
            [test.limit(x, y, delta) for y in range(test.n_second + 1)]
            for x in range(test.n_first + 1)
        ]
    )
    for p, q in [(0.1, 0.1), (0.3, 0.2), (0.5, 0.5), (0.9, 0.6), (0.2, 0.7), (0.02, 0.0)]:
        weights = np.outer(
            binom.pmf(np.arange(test.n_first + 1), test.n_first, p),
            binom.pmf(np.arange(test.n_second + 1), test.n_second, q),
        )
        missed = weights[limits < excess(test, p, q) - 1e-12].sum()
        assert missed <= delta
    accepted = np.arange(test.n_first + 1)[:, None] <= test.region(delta)
    assert np.array_equal(limits <= 0.0, accepted)


def test_a_region_that_is_too_large_does_not_hold():
    test = TwoRates(60, 60, 1.0, 1.0, 0.1)
    most = test.region(0.1)
    assert test.holds(most, 0.1) and not test.holds(most, 0.05)
    assert not test.holds(np.minimum(most + 2, 60), 0.1)


def test_bounds_that_always_or_never_hold():
    assert np.all(TwoRates(10, 10, 0.5, 1.0, 0.6).region(0.1) == 10)
    assert np.all(TwoRates(10, 10, 1.0, 0.5, -0.6).region(0.1) == -1)
