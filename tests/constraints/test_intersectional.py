"""Parity of losses in many groups that overlap, against its definition."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from _support.labelled_rows import SEEDS, data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.functions.losses import Hinge, Logistic


def intersectional(members, y, weight, scores, loss):
    """Return the excess of every group's mean loss."""
    losses = loss.value(y * scores)
    overall = np.average(losses, weights=weight)
    return [np.average(losses[m], weights=weight[m]) - overall for m in members.T]


class TestIntersectionalLoss:
    @given(seed=SEEDS, n_groups=st.integers(2, 9), loss=st.sampled_from([Hinge(), Logistic()]))
    def test_overlapping_groups(self, seed, n_groups, loss):
        y, _, weight, scores = data(seed)
        members = np.random.default_rng(seed).random((40, n_groups)) < 0.5
        members[:2] = [[True], [False]]
        constraint = IntersectionalLossParity(0.1, loss=loss, membership="columns")
        term = constraint.bind(y, members, weight)
        expected = intersectional(members, y, weight, scores, loss)
        assert_allclose(term.gap(scores), expected, atol=1e-12)
        assert_allclose(term.value(scores), np.array(expected) - 0.1, atol=1e-12)
        average = constraint.set_params(average=True).bind(y, members, weight)
        assert_allclose(average.gap(scores), np.mean(expected), atol=1e-12)
        wrong = ((scores > 0) != (y > 0)).astype(float)
        decided = intersectional(members, y, weight, scores, Fixed(wrong))
        assert_allclose(term.zero_one().gap(scores), decided, atol=1e-12)

    @given(seed=SEEDS)
    def test_thresholds(self, seed):
        y, _, weight, scores = data(seed)
        table = pd.DataFrame(np.random.default_rng(seed).random((40, 2)), columns=["p", "q"])
        term = IntersectionalLossParity(
            0.1, membership="thresholds", thresholds=[0.2, 0.5, 0.9], min_share=0.05
        ).bind(y, table, weight)
        members, names = [], []
        for a, b in product([0.2, 0.5, 0.9], repeat=2):
            inside = ((table["p"] > a) & (table["q"] > b)).to_numpy()
            if weight[inside].sum() > 0.05 * weight.sum():
                members.append(inside)
                names.append(f"loss(p > {a:g} & q > {b:g}) - loss(all) <= 0.1")
        assert list(term.names) == names
        expected = intersectional(np.array(members).T, y, weight, scores, Hinge())
        assert_allclose(term.gap(scores), expected, atol=1e-12)

    def test_rows_in_the_same_groups_are_one_cell_however_many_groups_there_are(self):
        y, _, weight, scores = data(2)
        members = np.random.default_rng(0).random((40, 2)) < 0.5
        many = np.tile(members, 100)
        term = IntersectionalLossParity(membership="columns").bind(y, many, weight)
        assert term.n_outputs == 200
        assert term.n_statistics <= 4  # the patterns
        assert term.cells.nnz == len(y)
        few = IntersectionalLossParity(membership="columns").bind(y, members, weight)
        assert_allclose(term.value(scores), np.tile(few.value(scores), 100), atol=1e-12)

    @pytest.mark.parametrize(
        ("options", "groups", "message"),
        [
            ({"membership": "all"}, "words", r"membership='all' is unknown.*'crossed', 'columns'"),
            ({"membership": "columns"}, "words", "columns of True and False.*'b'"),
            ({"membership": "thresholds"}, "words", "needs numbers.*'b'"),
            ({"membership": "thresholds", "thresholds": 0}, "numbers", "integer >= 1"),
            ({"membership": "thresholds", "thresholds": []}, "numbers", "thresholds must be"),
            ({"membership": "thresholds", "thresholds": ["x"]}, "numbers", "thresholds must be"),
            ({"min_share": 2}, "words", "min_share must be a number between 0 and 1"),
            ({"average": "yes"}, "words", "average must be True or False"),
            ({"loss": "log"}, "words", "loss='log' is unknown"),
            ({"kappa": -1}, "words", "kappa must be a number between 0 and 1"),
        ],
    )
    def test_bad_input(self, options, groups, message):
        y, words, weight, scores = data(3)
        columns = {"words": words, "numbers": scores}
        with pytest.raises(ValueError, match=message):
            IntersectionalLossParity(**options).bind(y, columns[groups], weight)

    def test_groups_without_rows_are_named(self):
        y, _, weight, _ = data(4)
        members = pd.DataFrame({"some": np.arange(40) < 20, "nobody": np.zeros(40, dtype=bool)})
        with pytest.warns(VacuousConstraintWarning, match="the cell 'group nobody' has no rows"):
            term = IntersectionalLossParity(membership="columns").bind(y, members, weight)
        assert len(term.names) == 1

    @pytest.mark.parametrize("average", [False, True])
    def test_no_group_is_large_enough(self, average):
        y, groups, weight, scores = data(5)
        constraint = IntersectionalLossParity(min_share=0.9, average=average)
        with pytest.warns(VacuousConstraintWarning, match="more than min_share=0.9"):
            term = constraint.bind(y, groups, weight)
        assert term.value(scores).shape == (0,)
        assert_array_equal(term.vjp(scores, np.zeros(0))[0], 0.0)


class Fixed(Logistic):
    """A loss whose value is known for the rows as they are."""

    def __init__(self, known):
        self.known = known

    def value(self, t):
        return self.known
