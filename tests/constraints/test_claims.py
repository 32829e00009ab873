"""Statements about the population: what each constraint claims, and how often tests of it err."""

import numpy as np
import pytest

from fairconstrained import constraints
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.metrics.intervals import clopper_pearson

DELTA = 0.1
LABELS = np.array([1.0, -1.0])


def draw(shift, n, random):
    """Return scores, labels and groups of a population; the first group's scores are shifted."""
    groups = random.choice(3, n, p=[0.5, 0.3, 0.2])
    y = np.where(random.random(n) < np.array([0.5, 0.4, 0.6])[groups], 1.0, -1.0)
    scores = 0.8 * y + np.array([shift, 0.0, 0.0])[groups] + random.standard_normal(n)
    return scores, y, groups


CONSTRAINTS = [
    constraints.DemographicParity(0.1),
    constraints.DemographicParity(0.08, against="overall"),
    constraints.DisparateImpact(0.8),
    constraints.DisparateImpact(0.85, against="overall"),
    constraints.BalancedRate(beta=0.9, kappa=0.15),
    constraints.EqualizedOdds(0.15),
    constraints.ErrorRateParity(0.06),
    constraints.ErrorRateParity(0.05, against="overall"),
    constraints.BoundedGroupLoss(0.22),
    constraints.IntersectionalLossParity(0.05),
    constraints.ROCParity(0.12, thresholds=np.linspace(-2.0, 2.0, 21)),
    constraints.PartialDemographicParity(0.3, ranks=(0.3, 0.6)),
    constraints.WeakPartialDemographicParity(0.3, ranks=(0.3, 0.7)),
]


def at_the_bound(constraint):
    """Return the shift of the population whose gap exceeds the bound by next to nothing."""
    low, high = 0.0, 3.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        scores, y, groups = draw(middle, 40_000, np.random.default_rng(0))
        term = constraint.bind(y, groups, np.ones(len(y))).zero_one()
        low, high = (low, middle) if term.value(scores).max() > 0.0 else (middle, high)
    return high


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda one: repr(one)[:40])
def test_false_statements_are_accepted_as_rarely_as_they_should(constraint):
    """Of 120 draws from a population just beyond the bound at most a tenth and chance pass."""
    shift = at_the_bound(constraint) + 0.03
    random = np.random.default_rng(1)
    accepted, n_draws = 0, 120
    groups = np.repeat(np.arange(3), [250, 150, 100])  # sizes that do not vary keep it fast
    for _ in range(n_draws):
        scores, y, drawn = draw(shift, 5000, random)
        rows = np.concatenate([np.flatnonzero(drawn == k)[: np.sum(groups == k)] for k in range(3)])
        if isinstance(constraint, constraints.EqualizedOdds):
            rows = np.concatenate(
                [np.flatnonzero((drawn == k) & (y == s))[:100] for k in range(3) for s in LABELS]
            )
        claims = constraint.claims(y[rows], drawn[rows], np.ones(len(rows)))
        accepted += all(one.accepts(scores[rows], DELTA) for one in claims)
    assert accepted / n_draws <= DELTA + 3.0 * np.sqrt(DELTA * (1.0 - DELTA) / n_draws)


@pytest.mark.parametrize("constraint", CONSTRAINTS[:9], ids=lambda one: repr(one)[:40])
def test_a_claim_per_output_of_the_term(constraint):
    scores, y, groups = draw(0.4, 3000, np.random.default_rng(0))
    weight = np.ones(3000)
    term = constraint.bind(y, groups, weight)
    claims = constraint.claims(y, groups, weight)
    assert [one.name for one in claims] == list(term.names)
    values = term.zero_one().value(scores)
    limits = np.array([one.limit(scores, DELTA) for one in claims])
    assert np.all(limits > values) and np.all(limits < values + 0.35)
    few = constraint.claims(y[:300], groups[:300], weight[:300])
    assert all(one.deviation() < other.deviation() for one, other in zip(claims, few, strict=True))


def test_error_rates_of_one_group_have_clopper_and_pearson_s_limit():
    random = np.random.default_rng(0)
    y, scores, groups = random.choice(LABELS, 90), random.standard_normal(90), np.repeat([0, 1], 45)
    claims = constraints.BoundedGroupLoss(0.6).claims(y, groups, np.ones(90))
    for k, claim in enumerate(claims):
        rate = np.mean((scores > 0) != (y > 0), where=groups == k)
        high = clopper_pearson(np.array([rate]), np.array([45.0]), 0.8).high[0]
        assert claim.limit(scores, 0.1) == pytest.approx(high - 0.6)


def test_partial_parity_is_about_all_thresholds():
    """One statement, on clipped rates: a shift in the upper half is not seen in the lower one."""
    random = np.random.default_rng(0)
    scores, groups = random.random(4000), np.arange(4000) % 2
    upper = np.maximum(2.0 * scores - 1.0, 0.0)
    moved = np.where((groups == 1) & (scores > 0.5), 0.5 + 0.5 * np.sqrt(upper), scores)
    y, weight = np.ones(4000), np.ones(4000)
    for ranks, same in [((0.0, 0.5), False), ((0.5, 1.0), True)]:
        claims = constraints.PartialDemographicParity(0.2, ranks=ranks).claims(y, groups, weight)
        assert all(one.accepts(moved, DELTA) for one in claims) == same
        assert all(one.accepts(scores, DELTA) for one in claims)


def test_weights_that_differ_take_hoeffding():
    random = np.random.default_rng(0)
    y, groups, scores = np.ones(400), np.repeat([0, 1], 200), random.standard_normal(400)
    weight = np.concatenate([np.full(200, 3.0), random.uniform(0.5, 2.0, 200)])
    claim = constraints.DemographicParity(0.1).claims(y, groups, weight)[0]
    first, second = claim.samples
    assert np.isclose(first.size, 200) and 100 < second.size < 199
    rates = [np.average(scores > 0, weights=weight * (groups == k)) for k in (0, 1)]
    reach = np.sqrt(0.5 * np.log(1 / DELTA) * (1 / first.size + 1 / second.size))
    assert claim.limit(scores, DELTA) == pytest.approx(rates[0] - rates[1] - 0.1 + reach)


def test_rows_without_a_group():
    groups = Groups.encode(["a", None, "b", "a", None, "b"], missing="ignore_in_constraint")
    data = TrainingData(np.zeros((6, 1)), np.ones(6), np.array([0, 1]), groups, np.ones(6))
    claim = constraints.DemographicParity(0.1).claims_on(data)[0]
    assert [one.rows.tolist() for one in claim.samples] == [[0, 3], [2, 5]]
    claim = constraints.DemographicParity(0.1).claims_on(data, n_rows=4)[0]
    assert [one.rows.tolist() for one in claim.samples] == [[0, 2], [1, 3]]


NOT_CERTIFIED = [
    (constraints.IntersectionalLossParity(average=True), "groups overlap"),
    (constraints.IntersectionalLossParity(membership="thresholds"), "give a list"),
    (constraints.IntersectionalLossParity(membership="thresholds", thresholds=[0.5]), ""),
    (constraints.ROCParity(), ""),
]


@pytest.mark.parametrize(("constraint", "why"), NOT_CERTIFIED)
def test_why_a_constraint_cannot_be_tested(constraint, why):
    assert why in constraint.cannot_be_tested and bool(constraint.cannot_be_tested) == bool(why)


def test_choices_on_the_training_rows_are_kept():
    _, y, groups = draw(0.0, 200, np.random.default_rng(0))
    term = constraints.ROCParity(0.1, thresholds=[0.0, 1.0]).bind(y, groups, np.ones(200))
    assert constraints.ROCParity(0.1).as_bound(term).thresholds.tolist() == [0.0, 1.0]
    partial = constraints.PartialDemographicParity(0.1, ranks=(0.2, 0.4))
    term = partial.bind(y, groups, np.ones(200))
    assert constraints.PartialDemographicParity(0.1).as_bound(term).ranks == (0.2, 0.4)
    weak = constraints.WeakPartialDemographicParity(0.1, ranks=(0.2, 0.4))
    term = weak.bind(y, groups, np.ones(200))
    assert constraints.WeakPartialDemographicParity(0.1).as_bound(term).ranks == (0.2, 0.4)
