"""Tests of sums of functions of differences: by sorting and on a grid, against the formula."""

import numpy as np
import pytest
from _support.registry_of_objects import SCALAR_FUNCTIONS, label
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fairconstrained.functions.base import PlusParabola, Rounded
from fairconstrained.functions.losses import Hinge
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.terms.difference_sums import Ranked, difference_sums


class Algebraic(Sigmoid):
    """A user's own function, steeper than the curvature of its base class says."""

    def value(self, t):
        return 0.5 + 0.5 * t / np.sqrt(1.0 + t * t)

    def derivative(self, t, value):
        return 0.5 / np.sqrt(1.0 + t * t) ** 3


class Wave(Sigmoid):
    """A function that no grid resolves."""

    def value(self, t):
        return np.sin(1e3 * t)

    def derivative(self, t, value):
        return 1e3 * np.cos(1e3 * t)


FUNCTIONS = [
    *SCALAR_FUNCTIONS,
    Sigmoid(6.0),
    Sigmoid(0.01),
    PlusParabola(Rounded(Hinge(), 0.2), 0.2),
    Algebraic(),
    Wave(),
]


def both(function, spread, seed, n=700, m=90, middle=0.0):
    """Return the sums, and phi and phi' of all pairs with the weights of the rows."""
    rng = np.random.default_rng(seed)
    x = Ranked(middle + spread * rng.normal(size=n), rng.dirichlet(np.ones(n)))
    y = Ranked(rng.permutation(np.linspace(-7.0, 8.0, m)), rng.normal(size=m) / m)
    differences = x.scores[:, None] - y.scores
    value = function.value(differences)
    return difference_sums(function, x, y), value, function.derivative(differences, value)


def check(sums, value, slope, size=1.0, scale=1.0):
    a, b = sums.first.weights, sums.second.weights
    assert_allclose(sums.over_first(a), a @ value, atol=1e-9 * size)
    assert_allclose(sums.over_second(b), value @ b, atol=1e-9 * size)
    assert_allclose(sums.over_first(a, order=1), a @ slope, atol=1e-8 * size / scale)
    assert_allclose(sums.over_second(b, order=1), slope @ b, atol=1e-8 * size / scale)
    change = np.cos(np.arange(len(a))) / len(a)
    assert_allclose(sums.over_first(change, order=1), change @ slope, atol=1e-8 * size / scale)


@pytest.mark.parametrize("function", FUNCTIONS, ids=label)
@pytest.mark.parametrize("spread", [0.01, 3.0, 40.0])
def test_sums_are_the_formula(function, spread):
    size = max(1.0, spread**2) if function.knots is not None else 1.0
    check(*both(function, spread, 0), size, min(getattr(function, "scale", 1.0), 1.0))


@given(
    scale=st.floats(0.05, 20.0),
    middle=st.floats(-50.0, 50.0),
    spread=st.floats(0.0, 30.0),
    n=st.integers(1, 900),
    seed=st.integers(0, 2**32 - 1),
)
def test_sigmoids_are_precise_for_all_scales_and_sizes(scale, middle, spread, n, seed):
    check(*both(Sigmoid(scale), spread, seed, n=n, middle=middle), scale=scale)


@given(width=st.floats(1e-4, 3.0), spread=st.floats(0.0, 10.0), seed=st.integers(0, 2**32 - 1))
def test_rounded_ramps_are_precise_for_all_widths(width, spread, seed):
    check(*both(Rounded(Ramp(), width), spread, seed), size=10.0)


def test_differences_at_a_kink_count_alike_for_rows_and_points():
    x, y = Ranked(np.repeat(np.arange(30.0), 20)), Ranked(np.arange(30.0) - 0.5)
    sums, u = difference_sums(Ramp(), x, y), np.cos(np.arange(30.0))
    assert u @ sums.over_first(x.weights, order=1) == pytest.approx(
        sums.over_second(u, order=1).sum()
    )


def test_scores_of_800_do_not_overflow():
    x = Ranked(np.resize([-800.0, 0.1, 800.0], 900), np.full(900, 1 / 900))
    for function in (Sigmoid(), Ramp()):
        sums = difference_sums(function, x, Ranked(np.linspace(-1.0, 1.0, 90)))
        expected = x.weights @ function.value(x.scores[:, None] - sums.second.scores)
        assert_allclose(sums.over_first(x.weights), expected, atol=1e-9)
        assert np.all(np.isfinite(sums.over_second(np.ones(90), order=1)))
