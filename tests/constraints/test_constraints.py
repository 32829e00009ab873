"""What all constraints have in common, with few groups and with many."""

import numpy as np
import pytest
from _support.labelled_rows import data
from _support.registry_of_objects import CONSTRAINTS as OBJECTS
from _support.registry_of_objects import label, missing
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
