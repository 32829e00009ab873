"""The exact test of two rates, against enumeration of all counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from fairconstrained.metrics.exact_tests import TwoRates

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


@settings(max_examples=15, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(2, 40),
    st.floats(0.3, 2.0),
    st.floats(0.3, 2.0),
    st.floats(0.0, 0.3),
    st.sampled_from([0.01, 0.1, 0.3]),
)
def test_random_tests_keep_their_error(n, m, first, second, bound, delta):
    test = TwoRates(n, m, first, second, bound)
    most, (low, high) = test.region(delta), test.range
    assert low <= high
    line = np.linspace(low, high, 101)
    assert np.all(probability(test, most, test.on_line(line), line) <= delta * (1.0 + 1e-9))


def test_a_region_that_is_too_large_does_not_hold():
    test = TwoRates(60, 60, 1.0, 1.0, 0.1)
    most = test.region(0.1)
    assert test.holds(most, 0.1) and not test.holds(most, 0.05)
    assert not test.holds(np.minimum(most + 2, 60), 0.1)


def test_bounds_that_always_or_never_hold():
    assert np.all(TwoRates(10, 10, 0.5, 1.0, 0.6).region(0.1) == 10)
    assert np.all(TwoRates(10, 10, 1.0, 0.5, -0.6).region(0.1) == -1)
