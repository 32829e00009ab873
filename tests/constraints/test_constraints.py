"""Tests of fairconstrained.constraints against their definitions."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from _support.labelled_rows import data
from _support.registry_of_objects import CONSTRAINTS as OBJECTS
from _support.registry_of_objects import label, missing
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained.constraints import (
    CONSTRAINTS,
    BoundedGroupLoss,
    Constraint,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    IntersectionalLossParity,
    MinorityRate,
    PredictiveEquality,
    QueryParity,
)
from fairconstrained.data.groups import Groups
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.functions.surrogates import Ramp, Sigmoid

# The labels under which the rates of each notion are compared.
EVENTS = {
    DemographicParity: [("", (-1, 1))],
    EqualOpportunity: [(" | label +1", (1,))],
    PredictiveEquality: [(" | label -1", (-1,))],
    EqualizedOdds: [(" | label +1", (1,)), (" | label -1", (-1,))],
}
PARITIES = pytest.mark.parametrize("kind", EVENTS)
AGAINST = pytest.mark.parametrize("against", ["pairs", "overall"])


def by_definition(kind, against, phi, kappa, y, groups, weight, scores):
    """Return what each output says and its value, from the definition with plain loops."""
    said = {}
    for event, labels in EVENTS[kind]:
        inside = np.isin(y, labels)

        def rate(rows):
            return np.average(phi[rows], weights=weight[rows])

        rates = {k: rate(inside & (groups == k)) for k in np.unique(groups)}
        overall = rate(inside)
        if against == "pairs":
            gaps = {(a, b): rates[a] - rates[b] for a, b in permutations(rates, 2)}
        else:
            gaps = {(a, "all"): rates[a] - overall for a in rates}
            gaps |= {("all", a): overall - rates[a] for a in rates}
        for (a, b), gap in gaps.items():
            said[f"rate({a}{event}) - rate({b}{event}) <= {kappa:g}"] = gap - kappa
    return said


def test_every_constraint_of_the_package_is_tested():
    assert missing(Constraint, OBJECTS) == {"Constraint"}
    assert {type(one) for one in OBJECTS} == set(CONSTRAINTS.values())


@PARITIES
@AGAINST
@given(
    seed=st.integers(0, 2**32 - 1),
    n_groups=st.integers(2, 6),
    kappa=st.floats(0.0, 1.0),
    surrogate=st.sampled_from([Sigmoid(), Ramp(1.5)]),
)
def test_values_and_names_are_the_definition(kind, against, seed, n_groups, kappa, surrogate):
    y, groups, weight, scores = data(seed, n_groups)
    term = kind(kappa, surrogate=surrogate, against=against).bind(y, groups, weight)
    values = dict(zip(term.names, term.value(scores), strict=True))
    phi = surrogate.value(scores)
    expected = by_definition(kind, against, phi, kappa, y, groups, weight, scores)
    assert len(expected) == term.n_outputs
    assert values == pytest.approx(expected, abs=1e-12)
    n_gaps = n_groups * (n_groups - 1) if against == "pairs" else 2 * n_groups
    assert term.n_outputs == n_gaps * len(EVENTS[kind])


@PARITIES
@AGAINST
def test_zero_one_values_are_those_of_the_decisions(kind, against):
    y, groups, weight, scores = data(0, 3)
    scores[0] = 0.0  # which is no positive decision
    term = kind(0.1, against=against).bind(y, groups, weight).zero_one()
    decisions = (scores > 0).astype(float)
    expected = by_definition(kind, against, decisions, 0.1, y, groups, weight, scores)
    assert_allclose(term.value(scores), [expected[name] for name in term.names], atol=1e-12)
    assert_allclose(term.gap(scores), term.value(scores) + 0.1)


@PARITIES
def test_defaults_outside_of_an_estimator(kind):
    y, groups, weight, scores = data(2, 2)
    default = kind().bind(y, groups, weight)
    named = kind(0.05, surrogate="sigmoid", against="pairs").bind(y, groups, weight)
    assert default.names == named.names
    assert_array_equal(default.value(scores), named.value(scores))
    ramp = kind(surrogate="ramp").bind(y, groups, weight)
    assert_array_equal(
        ramp.value(scores), kind(surrogate=Ramp()).bind(y, groups, weight).value(scores)
    )


@PARITIES
def test_groups_are_taken_encoded_or_not(kind):
    y, groups, weight, scores = data(3, 3)
    encoded = kind().bind(y, Groups.encode(groups), weight)
    assert_array_equal(encoded.value(scores), kind().bind(y, groups, weight).value(scores))


@AGAINST
def test_a_cell_without_rows_is_named_and_nothing_is_asked_of_it(against):
    y, groups, weight, scores = data(4, 3)
    y[groups == "d"] = -1
    constraint = EqualizedOdds(0.1, against=against)
    with pytest.warns(VacuousConstraintWarning) as caught:
        term = constraint.bind(y, groups, weight)
    (said,) = (str(warning.message) for warning in caught)
    assert said.startswith("EqualizedOdds: the cell 'group d | label +1' has no rows")
    phi, values = Sigmoid().value(scores), dict(zip(term.names, term.value(scores), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rest = groups != "d"
        positives = by_definition(
            EqualOpportunity, against, phi[rest], 0.1, y[rest], groups[rest], weight[rest], None
        )
    negatives = by_definition(PredictiveEquality, against, phi, 0.1, y, groups, weight, scores)
    assert values == pytest.approx(positives | negatives, abs=1e-12)


@AGAINST
def test_an_event_without_rows_asks_nothing(against):
    y, groups, weight, scores = data(6, 2)
    with pytest.warns(VacuousConstraintWarning) as caught:
        term = EqualizedOdds(0.1, against=against).bind(np.ones_like(y), groups, weight)
    said = [str(warning.message) for warning in caught]
    assert any("group f | label -1" in message for message in said)
    assert any("'all groups | label -1' (found: none)" in message for message in said)
    expected = EqualOpportunity(0.1, against=against).bind(np.ones_like(y), groups, weight)
    assert term.names == expected.names
    assert_allclose(term.value(scores), expected.value(scores))


def test_groups_must_fit_the_rows():
    y, groups, weight, _ = data(9, 2)
    with pytest.raises(ValueError, match="39 rows, X has 40"):
        DemographicParity().bind(y, groups[1:], weight)


@pytest.mark.parametrize("constraint", OBJECTS, ids=repr)
def test_binding_changes_nothing_of_the_constraint(constraint):
    y, groups, weight, _ = data(10, 2)
    before = constraint.get_params()
    constraint.bind(y, groups, weight)
    assert constraint.get_params() == before
    assert repr(clone(constraint)) == repr(constraint)


def test_with_defaults_fills_in_what_is_none():
    constraint = DemographicParity(surrogate="ramp")
    filled = constraint.with_defaults(kappa=0.3, surrogate="sigmoid", unheard_of=1)
    assert (filled.kappa, filled.surrogate) == (0.3, "ramp")
    assert constraint.kappa is None


EVERY = pytest.mark.parametrize("constraint", OBJECTS, ids=label)
COMPARED = [
    constraint
    for constraint in OBJECTS
    if not isinstance(
        constraint, BoundedGroupLoss | IntersectionalLossParity | MinorityRate | QueryParity
    )
]


def values(constraint, y, groups, weight, scores):
    """Return the sorted values of the term, and the gaps of decisions."""
    term = constraint.bind(y, groups, weight)
    strict = term.zero_one()
    gaps = strict.gap(scores, strict.auxiliary_start)
    return np.sort(term.value(scores, term.auxiliary_start)), np.sort(gaps)


@EVERY
def test_weights_are_repetitions(constraint):
    y, groups, _, scores = data(6)
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    again = [np.repeat(column, times) for column in (y, groups, np.ones(len(y)), scores)]
    for one, other in zip(
        values(constraint, y, groups, times.astype(float), scores),
        values(constraint, *again),
        strict=True,
    ):
        assert_allclose(one, other, atol=1e-9)


@EVERY
def test_neither_names_of_groups_nor_the_order_of_rows_matter(constraint):
    y, groups, weight, scores = data(7)
    renamed = np.array([{"f": 3, "b": 20, "d": 1}[name] for name in groups])
    order = np.random.default_rng(0).permutation(len(y))
    moved = [column[order] for column in (y, renamed, weight, scores)]
    for one, other in zip(
        values(constraint, y, groups, weight, scores), values(constraint, *moved), strict=True
    ):
        assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("constraint", COMPARED, ids=label)
def test_one_group_alone_has_nothing_to_be_compared_with(constraint):
    y, _, weight, scores = data(5, 2)
    with pytest.warns(VacuousConstraintWarning, match=r"fewer than two groups.*\(found: 7\)"):
        term = constraint.bind(y, np.full(len(y), 7), weight)
    assert term.n_outputs == term.n_auxiliary == 0
    assert term.value(scores).shape == term.zero_one().gap(scores).shape == (0,)
    assert_array_equal(term.vjp(scores, np.zeros(0))[0], 0.0)
