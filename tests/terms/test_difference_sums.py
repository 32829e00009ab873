"""Differences of sums: pairs of numbers, and rates at many thresholds."""

import numpy as np
import pytest
from _support.problems import classification
from _support.registry_of_objects import SCALAR_FUNCTIONS, label
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import fairconstrained as fc
from fairconstrained.constraints import DemographicParity, ROCParity
from fairconstrained.functions.base import Indicator, PlusParabola, Rounded
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.terms.difference_sums import Ranked, difference_sums, pair_sum
from fairconstrained.terms.ordered_pairs import OrderedPairs, PairNames


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


FUNCTIONS = [*SCALAR_FUNCTIONS, Sigmoid(6.0), Sigmoid(0.01), Algebraic(), Wave()]
FUNCTIONS.append(PlusParabola(Rounded(fc.functions.Hinge(), 0.2), 0.2))


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


@pytest.mark.parametrize("scores", [[-800.0, 0.1, 800.0], [-1e30]])
def test_scores_of_any_size_do_not_overflow(scores):
    x = Ranked(np.resize(scores, 900), np.full(900, 1 / 900))
    for function in (Sigmoid(), Ramp()):
        sums = difference_sums(function, x, Ranked(np.linspace(-1.0, 1.0, 90)))
        expected = x.weights @ function.value(x.scores[:, None] - sums.second.scores)
        assert_allclose(sums.over_first(x.weights), expected, atol=1e-9)
        assert np.all(np.isfinite(sums.over_second(np.ones(90), order=1)))


def test_scores_that_differ_by_rounding_errors_are_equal(rng):
    scores = np.repeat(rng.standard_normal(5) - 3.0, 4)
    rounded = scores + 4e-15 * rng.standard_normal(20)
    first, second = np.arange(20) % 2 == 0, np.arange(20) % 2 == 1
    sums = [
        pair_sum(Indicator(), Ranked(s[first], np.ones(10)), Ranked(s[second], np.ones(10)))[0]
        for s in (scores, rounded)
    ]
    assert sums[0] == sums[1] == 50.0


ONE, FEW, MANY, LAST = range(5, 6), range(5), range(6, 12), range(12, 13)


PAIRS = {
    "differences": OrderedPairs(1.0, -1.0, ((FEW, FEW), (ONE, ONE), (MANY, MANY)), np.eye(12)),
    "ratios": OrderedPairs(-1.0, 0.8, ((FEW, FEW), (ONE, FEW), (MANY, LAST)), np.eye(13)),
    "means of cells": OrderedPairs(
        1.0, -0.5, ((FEW, FEW), (FEW, ONE)), np.random.default_rng(0).normal(size=(6, 9))
    ),
}


@pytest.fixture(params=PAIRS.values(), ids=PAIRS.keys())
def pairs(request):
    return request.param


@pytest.fixture
def x(pairs, rng):
    return rng.normal(size=pairs.shape[1]).round(1)  # some values are equal


def test_the_matrix_is_that_of_its_rows(pairs, x, rng):
    listed, v = pairs.tocsr().toarray(), rng.normal(size=pairs.shape[0])
    assert listed.shape == pairs.shape
    assert_allclose(pairs @ x, listed @ x, atol=1e-14)
    assert_allclose(pairs @ np.outer(x, [1.0, 2.0]), listed @ np.outer(x, [1.0, 2.0]), atol=1e-14)
    assert_allclose(v @ pairs, v @ listed, atol=1e-14)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_the_largest_pairs_are_those_of_the_list(pairs, x, most):
    values = pairs @ x
    found = pairs.largest(x, -np.inf, most)
    assert_allclose(values[found][:most], np.sort(values)[::-1][: len(found)][:most], atol=1e-14)
    least = np.median(values)
    assert np.all(values[pairs.largest(x, least, most)] >= least)
    assert len(pairs.largest(x, values.max() + 1e-9, most)) == 0


def test_distinct_pairs_share_no_number_and_the_largest_is_among_them(pairs, rng):
    x = rng.normal(size=pairs.shape[1])
    found = pairs.largest(x, -np.inf, 3, distinct=True)
    assert found[0] == np.argmax(pairs @ x)
    if pairs.families[0] == pairs.families[-1]:
        for end in pairs[found].ends():
            assert len(np.unique(end)) == len(end)


def test_names_are_those_of_the_two_numbers():
    pairs = OrderedPairs(1.0, -1.0, ((range(2), range(2)), (range(2, 5), range(2, 5))), np.eye(5))
    names = PairNames(pairs, "{first} - {second}", list("abcde"))
    assert len(names) == 8
    assert names[:3] == ("a - b", "b - a", "c - d")
    assert names[-1] == "e - d" and list(names)[-1] == names[7]
    with pytest.raises(IndexError):
        names[8]


@pytest.mark.parametrize("against", ["pairs", "overall"])
def test_roc_parity_is_demographic_parity_at_every_threshold(against, rng):
    y, groups = np.where(rng.random(60) < 0.5, 1, -1), np.arange(60) % 3
    weight = rng.uniform(0.5, 2.0, 60)
    thresholds = [0.5, -1.0, 2.0]
    term = ROCParity(0.1, thresholds=thresholds, against=against).bind(y, groups, weight)
    plain = DemographicParity(0.1, against=against).bind(y, groups, weight)
    scores = rng.normal(size=len(y))
    expected = np.column_stack([plain.value(scores - theta) for theta in thresholds]).ravel()
    assert_allclose(term.value(scores), expected, atol=1e-12)
    zero_one = [plain.zero_one().gap(scores - theta) for theta in thresholds]
    assert_allclose(term.zero_one().gap(scores), np.column_stack(zero_one).ravel(), atol=1e-12)
    assert len(set(term.names)) == term.n_outputs


GRID = [-1.5, -0.5, 0.0, 0.5, 1.5]


def test_idca_converges_on_the_ramp():
    problem = classification(ROCParity(0.03, thresholds=GRID, surrogate="ramp"))
    result = fc.solvers.IDCA(max_iter=60).minimize(problem)
    assert result.converged
    assert result.objective == pytest.approx(Smoothing().minimize(problem).objective, rel=1e-3)
    assert problem.at(result.w).constraints.max() > -1e-3
