"""The rate of a minority, and groups that overlap."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from _support.labelled_rows import SEEDS, by_formula, data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc
from fairconstrained.constraints import IntersectionalLossParity, MinorityRate
from fairconstrained.data.groups import Groups


def test_by_default_the_smallest_group_gets_its_share():
    groups = np.array(list("aabbbbcccc"))
    term = MinorityRate().bind(None, groups, np.ones(10))
    assert term.names == ("0.2 * rate(all) - 0.2 * rate(a) <= 0",)
    assert_allclose(term.value(np.zeros(10)), 0.0, atol=1e-15)


def test_an_unknown_minority_is_answered_with_the_groups():
    with pytest.raises(ValueError, match=r"minority='z' is not one of the groups \['a', 'b'\]"):
        MinorityRate(minority="z").bind(None, ["a", "b", "b"], np.ones(3))


# The smallest group of the training rows is the largest of other rows.


def _rows():
    X, y, groups = fc.make_biased_classification(2000, gap=0.5, random_state=1)
    groups = np.array(["a", "b"])[groups]
    first, second = np.flatnonzero(groups == "a"), np.flatnonzero(groups == "b")
    seen = np.r_[first[:245], second[:255]]
    later = np.r_[first[245:510], second[255:505]]
    return [[one[rows] for one in (X, y, groups)] for rows in (seen, later)]


@pytest.mark.parametrize("c", [None, 0.45])
def test_the_term_has_the_minority_that_was_chosen(c):
    seen, later = (groups for _, _, groups in _rows())
    term = MinorityRate(c).bind(None, seen, np.ones(500))
    bound = MinorityRate(c).as_bound(term)
    assert (bound.c, bound.minority) == (0.49 if c is None else c, "a")
    assert "rate(a)" in bound.bind(None, later, np.ones(515)).names[0]
    two = Groups.encode(np.column_stack([seen, seen == "a"]))
    pair = MinorityRate().as_bound(MinorityRate().bind(None, two, np.ones(500)))
    assert pair.minority == ("a", "True")
    assert pair.bind(None, two, np.ones(500)).n_outputs == 1


def test_other_rows_without_the_minority_ask_nothing():
    term = MinorityRate().bind(None, ["a", "b", "b"], np.ones(3))
    with pytest.warns(fc.VacuousConstraintWarning, match="'group a' has no rows"):
        there = MinorityRate().as_bound(term).bind(None, ["b", "b"], np.ones(2))
    assert there.n_outputs == 0
    with pytest.warns(fc.VacuousConstraintWarning):
        alone = MinorityRate(0.3).bind(None, ["a", "a"], np.ones(2))
    assert MinorityRate(0.3).as_bound(alone).minority == "a"


@given(seed=SEEDS, n_groups=st.integers(2, 9), loss=st.sampled_from(["hinge", "logistic"]))
def test_overlapping_groups(seed, n_groups, loss):
    y, _, weight, scores = data(seed)
    members = np.random.default_rng(seed).random((40, n_groups)) < 0.5
    members[:2] = [[True], [False]]
    constraint = IntersectionalLossParity(0.1, loss=loss, membership="columns")
    for average, decisions in product([False, True], repeat=2):
        term = constraint.set_params(average=average).bind(y, members, weight)
        asked = by_formula(constraint, y, members, weight, scores, decisions=decisions)
        tested = term.zero_one() if decisions else term
        assert_allclose(tested.value(scores), asked.excess, atol=1e-12)
        assert_allclose(tested.gap(scores), asked.excess + 0.1, atol=1e-12)


@given(seed=SEEDS)
def test_groups_above_thresholds(seed):
    y, _, weight, scores = data(seed)
    table = pd.DataFrame(np.random.default_rng(seed).random((40, 2)), columns=["p", "q"])
    cuts = {"membership": "thresholds", "thresholds": [0.2, 0.5, 0.9], "min_share": 0.05}
    term = IntersectionalLossParity(0.1, **cuts).bind(y, table, weight)
    members, names = [], []
    for a, b in product([0.2, 0.5, 0.9], repeat=2):
        inside = ((table["p"] > a) & (table["q"] > b)).to_numpy()
        if weight[inside].sum() > 0.05 * weight.sum():
            members.append(inside)
            names.append(f"loss(p > {a:g} & q > {b:g}) - loss(all) <= 0.1")
    assert list(term.names) == names
    columns = IntersectionalLossParity(0.1, membership="columns")
    asked = by_formula(columns, y, np.column_stack(members), weight, scores)
    assert_allclose(term.value(scores), asked.excess, atol=1e-12)


def test_rows_in_the_same_groups_are_one_cell_however_many_groups_there_are():
    y, _, weight, scores = data(2)
    members = np.random.default_rng(0).random((40, 2)) < 0.5
    many = np.tile(members, 100)
    term = IntersectionalLossParity(membership="columns").bind(y, many, weight)
    assert term.n_outputs == 200
    assert term.n_statistics <= 4  # the patterns
    assert term.cells.nnz == len(y)
    few = IntersectionalLossParity(membership="columns").bind(y, members, weight)
    assert_allclose(term.value(scores), np.tile(few.value(scores), 100), atol=1e-12)


def test_groups_without_rows_are_named():
    y, _, weight, _ = data(4)
    members = pd.DataFrame({"some": np.arange(40) < 20, "nobody": np.zeros(40, dtype=bool)})
    with pytest.warns(fc.VacuousConstraintWarning, match="the cell 'group nobody' has no rows"):
        term = IntersectionalLossParity(membership="columns").bind(y, members, weight)
    assert len(term.names) == 1


@pytest.mark.parametrize("average", [False, True])
def test_no_group_is_large_enough(average):
    y, groups, weight, scores = data(5)
    constraint = IntersectionalLossParity(min_share=0.9, average=average)
    with pytest.warns(fc.VacuousConstraintWarning, match="more than min_share=0.9"):
        term = constraint.bind(y, groups, weight)
    assert term.value(scores).shape == (0,)
    assert_array_equal(term.vjp(scores, np.zeros(0))[0], 0.0)
