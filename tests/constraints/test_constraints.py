"""What all constraints have in common, with few groups and with many."""

import numpy as np
import pytest
from _support.labelled_rows import SEEDS, by_formula, data
from _support.registry_of_objects import CONSTRAINTS as OBJECTS
from _support.registry_of_objects import label, missing
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import constraints
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.terms import head


def test_every_constraint_of_the_package_is_tested():
    assert missing(constraints.Constraint, OBJECTS) == {"Constraint"}
    assert {type(one) for one in OBJECTS} == set(constraints.CONSTRAINTS.values())


def test_groups_must_fit_the_rows():
    y, groups, weight, _ = data(9, 2)
    with pytest.raises(ValueError, match="39 rows, X has 40"):
        constraints.DemographicParity().bind(y, groups[1:], weight)


@pytest.mark.parametrize("constraint", OBJECTS, ids=repr)
def test_binding_changes_nothing_of_the_constraint(constraint):
    y, groups, weight, _ = data(10, 2)
    before = constraint.get_params()
    constraint.bind(y, groups, weight)
    assert constraint.get_params() == before
    assert repr(clone(constraint)) == repr(constraint)


EVERY = pytest.mark.parametrize("constraint", OBJECTS, ids=label)
COMPARED = [
    constraint
    for constraint in OBJECTS
    if not isinstance(
        constraint,
        constraints.BoundedGroupLoss
        | constraints.Churn
        | constraints.Coverage
        | constraints.IntersectionalLossParity
        | constraints.MinorityRate
        | constraints.QueryParity,
    )
]


ASK_FOR_MORE = constraints.Churn | constraints.QueryParity  # than rows and groups
MEASURED = [one for one in OBJECTS if getattr(one, "ranks", "") != "auto"]
MEASURED = [one for one in MEASURED if not isinstance(one, ASK_FOR_MORE)]


@pytest.mark.cases(20)
@pytest.mark.parametrize("constraint", MEASURED, ids=label)
@given(seed=SEEDS, n_groups=st.integers(2, 5), ties=st.booleans())
def test_values_and_gaps_are_those_of_the_formulas(constraint, seed, n_groups, ties):
    y, groups, weight, scores = data(seed, n_groups)
    scores = scores.round(1) if ties else scores
    scores[0] = 0.0  # which is no positive decision
    term = constraint.bind(y, groups, weight)
    for decisions, tested in ((False, term), (True, term.zero_one())):
        asked = by_formula(constraint, y, groups, weight, scores, decisions=decisions)
        own = tested.auxiliary_for(lambda own, tested=tested: tested.value(scores, own))
        values = np.sort(tested.value(scores, own))
        if len(values) == len(asked.excess):
            assert_allclose(values, np.sort(asked.excess), atol=1e-8)
        else:  # the formula has the largest of all pairs only
            assert values[-1] == pytest.approx(max(asked.excess), abs=1e-6)
        if not np.isnan(asked.gap):
            assert tested.gap(scores, own).max() == pytest.approx(asked.gap, abs=1e-8)


OVERALL = {"kappa": 0.1, "against": "overall"}
OUTPUTS = [  # constraints on three groups, how many outputs they have, and the name of the largest
    (constraints.DemographicParity(0.1), 6, "rate(f) - rate(b) <= 0.1"),
    (constraints.DemographicParity(**OVERALL), 6, "rate(f) - rate(all) <= 0.1"),
    (constraints.EqualOpportunity(0.1), 6, "rate(f | label +1) - rate(b | label +1) <= 0.1"),
    (constraints.PredictiveEquality(0.1), 6, "rate(b | label -1) - rate(f | label -1) <= 0.1"),
    (constraints.EqualizedOdds(**OVERALL), 12, "rate(f | label +1) - rate(all | label +1) <= 0.1"),
    (constraints.DisparateImpact(0.9), 6, "0.9 * rate(f) - rate(b) <= 0"),
    (constraints.ErrorRateParity(0.1), 6, "error(b) - error(f) <= 0.1"),
    (constraints.BoundedGroupLoss(0.6, loss="logistic"), 3, "loss(b) <= 0.6"),
    (constraints.GroupAUCParity(0.1), 6, "Pr(f > b) - 1/2 <= 0.1"),
    (constraints.GroupAUCParity(**OVERALL), 6, "Pr(f > others) - 1/2 <= 0.1"),
    (constraints.InterGroupAUCParity(0.1), 6, "Pr(f+ > d-) - Pr(d+ > f-) <= 0.1"),
    (constraints.IntraGroupAUCParity(0.1), 6, "AUC(f) - AUC(b) <= 0.1"),
    (constraints.IntraGroupAUCParity(**OVERALL), 6, "AUC(f) - AUC(others) <= 0.1"),
]


@pytest.mark.cases(len(OUTPUTS))
@pytest.mark.parametrize(("constraint", "n_outputs", "largest"), OUTPUTS, ids=str)
def test_outputs_have_the_names_of_what_they_compare(constraint, n_outputs, largest):
    """Group f has much better scores of positives, and worse ones of negatives, b the opposite."""
    y, groups, _, _ = data(3)
    place = np.array([0.3, 0.8, 4.0])[np.unique(groups, return_inverse=True)[1]]
    scores = place * np.where(y > 0, 1.0, -0.1)
    term = constraint.bind(y, groups, np.ones(len(y)))
    assert term.n_outputs == len(set(term.names)) == n_outputs
    assert term.names[np.argmax(term.value(scores))] == largest


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
    with pytest.warns(VacuousConstraintWarning, match=r"fewer than two groups.*\(found: group 7\)"):
        term = constraint.bind(y, np.full(len(y), 7), weight)
    assert term.n_outputs == term.n_auxiliary == 0
    assert term.value(scores).shape == term.zero_one().gap(scores).shape == (0,)
    assert_array_equal(term.vjp(scores, np.zeros(0))[0], 0.0)


MANY = {
    "differences": constraints.DemographicParity(0.03),
    "two events": constraints.EqualizedOdds(0.03),
    "errors": constraints.ErrorRateParity(0.03),
    "errors, overall": constraints.ErrorRateParity(0.03, against="overall"),
    "overall": constraints.EqualizedOdds(0.03, against="overall"),
    "ratios": constraints.DisparateImpact(0.9),
}


rng = np.random.default_rng(0)
X, GROUPS = rng.normal(size=(2000, 3)), rng.integers(0, 40, 2000)
X[:, 0] += 0.4 * rng.normal(size=40)[GROUPS]
X, Y, GROUPS = (X, np.where(X @ [1.0, -1.0, 0.5] + rng.logistic(size=2000) > 0.0, 1, -1), GROUPS)


def both_terms(constraint, y, groups, monkeypatch):
    unlisted = constraint.bind(y, groups, np.ones(len(y)))
    assert not isinstance(unlisted._small, np.ndarray)
    monkeypatch.setattr(head, "_DENSE", 10**9)
    return unlisted, constraint.bind(y, groups, np.ones(len(y)))


@pytest.mark.parametrize("constraint", MANY.values(), ids=MANY.keys())
def test_the_term_is_that_of_the_listed_pairs(constraint, monkeypatch, rng):
    unlisted, listed = both_terms(constraint, Y, GROUPS, monkeypatch)
    assert isinstance(listed._small, np.ndarray)
    assert unlisted.n_outputs == listed.n_outputs
    for one, other in ((unlisted, listed), (unlisted.zero_one(), listed.zero_one())):
        r = one.forward(X[:, 0])[0]
        assert_allclose(one.head(r), other.head(r), atol=1e-14)
        assert_allclose(one.gap_of(r), other.gap_of(r), atol=1e-12)
        v, some = rng.random(one.n_outputs), rng.choice(one.n_outputs, 20, replace=False)
        assert_allclose(one.head_vjp(r, v), other.head_vjp(r, v), atol=1e-10)
        assert_allclose(one.values_of(r, some), other.values_of(r, some), atol=1e-14)
        assert_allclose(one.vjp_of(r, some, v[:20]), other.vjp_of(r, some, v[:20]), atol=1e-14)
        largest = one.head(r)[one.largest(r, -np.inf, 50)]
        assert_allclose(largest, np.sort(other.head(r))[::-1][:50], atol=1e-14)
        assert_allclose(one.largest_gaps(r)[0].max(), other.gap_of(r).max(), atol=1e-14)
