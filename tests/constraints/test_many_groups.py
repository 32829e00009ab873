"""Parity of many groups: pairs are not listed, and the answers are those of the list."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import (
    DemographicParity,
    DisparateImpact,
    EqualizedOdds,
    ErrorRateParity,
)
from fairconstrained.terms import head

CONSTRAINTS = {
    "differences": DemographicParity(0.03),
    "two events": EqualizedOdds(0.03),
    "errors": ErrorRateParity(0.03),
    "errors, overall": ErrorRateParity(0.03, against="overall"),
    "overall": EqualizedOdds(0.03, against="overall"),
    "ratios": DisparateImpact(0.9),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(2000, 3)), rng.integers(0, 40, 2000)
    X[:, 0] += 0.4 * rng.normal(size=40)[groups]
    return X, np.where(X @ [1.0, -1.0, 0.5] + rng.logistic(size=2000) > 0.0, 1, -1), groups


def both_terms(constraint, y, groups, monkeypatch):
    unlisted = constraint.bind(y, groups, np.ones(len(y)))
    assert not isinstance(unlisted._small, np.ndarray)
    monkeypatch.setattr(head, "_DENSE", 10**9)
    return unlisted, constraint.bind(y, groups, np.ones(len(y)))


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_the_term_is_that_of_the_listed_pairs(constraint, rows, monkeypatch, rng):
    X, y, groups = rows
    unlisted, listed = both_terms(constraint, y, groups, monkeypatch)
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


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_a_fit_is_that_of_the_listed_pairs(constraint, rows, monkeypatch):
    X, y, groups = rows
    clf = FairLogisticClassifier(constraint).fit(X, y, sensitive_features=groups)
    monkeypatch.setattr(head, "_DENSE", 10**9)
    other = FairLogisticClassifier(constraint).fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and other.result_.converged
    assert clf.objective_ == pytest.approx(other.objective_, abs=2e-5)
    assert clf.gap_ == pytest.approx(other.gap_, abs=1e-4)
    assert clf.multipliers_.shape == other.multipliers_.shape
    assert np.count_nonzero(clf.multipliers_) <= 20
