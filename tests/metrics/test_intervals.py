"""Intervals of rates and gaps: known values, coverage by simulation, what metrics make of them."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score

from fairconstrained.metrics import group_rates, rate_gaps
from fairconstrained.metrics.intervals import (
    clopper_pearson,
    largest_gap,
    largest_shortfall,
    newcombe,
)

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
        _, low, high = clopper_pearson(np.array([k / n]), np.array([n]), 0.9)
        assert (low[0], high[0]) == pytest.approx((exact.low, exact.high), abs=1e-9)


# Newcombe (1998), table II, method 10: cases (a), (c), (f), (g), (h).
@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_newcombe_gives_the_published_values(first, second, low, high):
    (k, n), (m, size) = first, second
    interval = newcombe(np.array([k / n, m / size]), np.array([n, size]), 0.95)
    assert (interval.low[0], interval.high[0]) == pytest.approx((low, high), abs=6e-5)


def test_interval_is_trivial_without_rows():
    _, low, high = clopper_pearson(np.array([np.nan]), np.array([0]), 0.95)
    assert (low[0], high[0]) == (0.0, 1.0)
    for interval in (largest_gap, largest_shortfall):
        value, low, high = interval([(np.array([0.5, np.nan]), np.array([9, 0]))], 0.95)
        assert np.isnan(value) and (low, high) == (0.0, 1.0)


@pytest.mark.parametrize("interval", [largest_gap, largest_shortfall])
@pytest.mark.parametrize("rates", [(0.5, 0.5, 0.5), (0.2, 0.3, 0.5), (0.02, 0.05, 0.03)])
def test_coverage_of_the_largest_gap(interval, rates, rng):
    """The share of samples whose interval holds the true gap is the confidence or more."""
    rates, sizes, n_samples = np.array(rates), np.array([40, 90, 200]), 800
    true = {largest_gap: np.ptp(rates), largest_shortfall: 1.0 - rates.min() / rates.max()}[
        interval
    ]
    found = [interval([(rng.binomial(sizes, rates) / sizes, sizes)], 0.9) for _ in range(n_samples)]
    covered = np.mean([low <= true + 1e-12 and true <= high + 1e-12 for _, low, high in found])
    assert covered >= 0.9 - 2.0 * np.sqrt(0.09 / n_samples)
    assert all(low <= value + 1e-12 <= high + 2e-12 for value, low, high in found)


@pytest.fixture
def decided(rng):
    n = 500
    return {
        "y": rng.integers(0, 2, n),
        "decisions": rng.integers(0, 2, n),
        "groups": rng.choice(["a", "b", "c"], n),
        "weight": rng.uniform(0.5, 3.0, n),
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_equal_those_of_fairlearn(decided, weighted):
    weight = decided["weight"] if weighted else None
    ours = group_rates(
        decided["y"], decided["decisions"], sensitive_features=decided["groups"],
        sample_weight=weight,
    )  # fmt: skip
    frame = MetricFrame(
        metrics=RATES, y_true=decided["y"], y_pred=decided["decisions"],
        sensitive_features=decided["groups"],
        sample_params={name: {"sample_weight": weight} for name in RATES} if weighted else None,
    )  # fmt: skip
    for name in RATES:
        assert ours[name].iloc[:3].to_numpy() == pytest.approx(frame.by_group[name].to_numpy())
        assert ours[name].iloc[3] == pytest.approx(frame.overall[name])
        inside = (ours[f"{name}_low"] <= ours[name]) & (ours[name] <= ours[f"{name}_high"])
        assert inside.all()


def test_gaps_equal_those_of_fairlearn(decided):
    gaps = rate_gaps(decided["y"], decided["decisions"], sensitive_features=decided["groups"])
    frame = MetricFrame(
        metrics=RATES, y_true=decided["y"], y_pred=decided["decisions"],
        sensitive_features=decided["groups"],
    )  # fmt: skip
    for name in RATES:
        assert gaps.loc[name, "gap"] == pytest.approx(frame.difference()[name])
        assert gaps.loc[name, "highest"] == frame.by_group[name].idxmax()
        assert gaps.loc[name, "lowest"] == frame.by_group[name].idxmin()


def test_equal_weights_have_no_effect_and_zero_weights_drop_rows(decided):
    y, decisions, groups = decided["y"], decided["decisions"], decided["groups"]
    plain = group_rates(y, decisions, sensitive_features=groups)
    same = group_rates(y, decisions, sensitive_features=groups, sample_weight=np.full(500, 3.0))
    pd.testing.assert_frame_equal(plain, same)
    some = np.arange(500) < 200
    part = group_rates(y[some], decisions[some], sensitive_features=groups[some])
    zeros = group_rates(y, decisions, sensitive_features=groups, sample_weight=some.astype(float))
    pd.testing.assert_frame_equal(part, zeros)


def test_invalid_input_raises(decided):
    y, groups = decided["y"], decided["groups"]
    with pytest.raises(ValueError, match="there are 3: "):
        group_rates(np.arange(500) % 3, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="pos_label='maybe' is not one of"):
        group_rates(y, y, sensitive_features=groups, pos_label="maybe")
    with pytest.raises(ValueError, match="as pos_label"):
        group_rates(["yes"], ["yes"], sensitive_features=["a"])
    with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
        rate_gaps(y, y, sensitive_features=groups, confidence=95)
