"""All ordered pairs of many numbers, against their list."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.terms.ordered_pairs import OrderedPairs, PairNames

ONE, FEW, MANY, LAST = range(5, 6), range(5), range(6, 12), range(12, 13)
PAIRS = {
    "differences": OrderedPairs(1.0, -1.0, ((FEW, FEW), (ONE, ONE), (MANY, MANY))),
    "ratios": OrderedPairs(-1.0, 0.8, ((FEW, FEW), (ONE, FEW), (MANY, LAST))),
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
        for end in pairs.ends(found):
            assert len(np.unique(end)) == len(end)


def test_names_are_those_of_the_two_numbers():
    names = PairNames(
        OrderedPairs(1.0, -1.0, ((range(2), range(2)), (range(2, 5), range(2, 5)))),
        "{first} - {second}",
        list("abcde"),
    )
    assert len(names) == 8
    assert names[:3] == ("a - b", "b - a", "c - d")
    assert names[-1] == "e - d" and list(names)[-1] == names[7]
    with pytest.raises(IndexError):
        names[8]


def test_equal_numbers_make_equal_pairs():
    pairs = OrderedPairs(1.0, -1.0, ((range(3), range(3)),))
    assert_array_equal(pairs @ np.ones(3), np.zeros(6))
    assert len(pairs.largest(np.ones(3), 0.0, 2)) == 2
