"""Constraints on rates, losses and precisions of groups."""

from itertools import permutations, product

import numpy as np
import pytest
from _support.labelled_rows import SEEDS, by_group, data
from _support.problems import classification, reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from fairconstrained import FairLogisticClassifier, constraints, make_biased_classification
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.functions.losses import Hinge, Logistic
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.solvers import IPC

# The helpers here set kappa for all constraints, also those with a tolerance of their own.
pytestmark = pytest.mark.filterwarnings("ignore:kappa=:fairconstrained.InputWarning")


AGAINST = pytest.mark.parametrize("against", ["pairs", "overall"])


# The labels under which the rates of each notion are compared.
EVENTS = {
    constraints.DemographicParity: [("", (-1, 1))],
    constraints.EqualOpportunity: [(" | label +1", (1,))],
    constraints.PredictiveEquality: [(" | label -1", (-1,))],
    constraints.EqualizedOdds: [(" | label +1", (1,)), (" | label -1", (-1,))],
    constraints.ErrorRateParity: [("", (-1, 1))],
}


PARITIES = pytest.mark.parametrize("kind", EVENTS)


def sides(numbers, against):
    """Return the pairs of names that are compared."""
    names = [name for name in numbers if name != "all"]
    if against == "pairs":
        return list(permutations(names, 2))
    return [(a, "all") for a in names] + [("all", a) for a in names]


def by_definition(constraint, positive, y, groups, weight):
    """Return the value and the gap of every output by its name, with plain loops.

    `positive` are the decisions of the rows, soft or not.
    """
    found, errors = {}, isinstance(constraint, constraints.ErrorRateParity)
    values = np.where(y > 0, 1.0 - positive, positive) if errors else positive
    what = "error" if errors else "rate"
    for event, labels in EVENTS[type(constraint)]:
        means = by_group(values, groups, weight, np.isin(y, labels))
        for a, b in sides(means, constraint.against):
            first, second = (f"{what}({k}{event})" for k in (a, b))
            if constraint.ratio is None:
                gap = means[a] - means[b]
                found[f"{first} - {second} <= {constraint.kappa:g}"] = gap - constraint.kappa, gap
            else:
                gap = 1.0 - means[a] / means[b] if means[b] else 0.0
                name = f"{constraint.ratio:g} * {second} - {first} <= 0"
                found[name] = constraint.ratio * means[b] - means[a], gap
    return found


def assert_is(term, scores, expected):
    """Check values, gaps and names of a term."""
    found = zip(term.value(scores), term.gap(scores), strict=True)
    assert dict(zip(term.names, found, strict=True)) == {
        name: pytest.approx(value, abs=1e-9) for name, value in expected.items()
    }


@pytest.mark.cases(10)
@AGAINST
@PARITIES
@given(
    seed=SEEDS,
    n_groups=st.integers(2, 6),
    tolerance=st.floats(0.0, 1.0),
    surrogate=st.sampled_from([Sigmoid(), Ramp(1.5)]),
    parameter=st.sampled_from(["kappa", "ratio"]),
)
def test_values_gaps_and_names_are_the_definition(
    kind, against, seed, n_groups, tolerance, surrogate, parameter
):
    y, groups, weight, scores = data(seed, n_groups)
    scores[0] = 0.0  # which is no positive decision
    constraint = kind(surrogate=surrogate, against=against, **{parameter: tolerance})
    term = constraint.bind(y, groups, weight)
    assert_is(term, scores, by_definition(constraint, surrogate.value(scores), y, groups, weight))
    decisions = (scores > 0).astype(float)
    assert_is(term.zero_one(), scores, by_definition(constraint, decisions, y, groups, weight))
    assert (
        term.n_outputs
        == len(term.names)
        == len(EVENTS[kind]) * (n_groups * (n_groups - 1) if against == "pairs" else 2 * n_groups)
    )


@AGAINST
def test_a_cell_without_rows_is_named_and_nothing_is_asked_of_it(against):
    y, groups, weight, scores = data(4, 3)
    y[groups == "d"] = -1
    with pytest.warns(VacuousConstraintWarning) as caught:
        term = constraints.EqualizedOdds(0.1, against=against).bind(y, groups, weight)
    (said,) = (str(warning.message) for warning in caught)
    assert said.startswith("EqualizedOdds: the cell 'group d | label +1' has no rows")
    phi, rest = Sigmoid().value(scores), groups != "d"
    positives = constraints.EqualOpportunity(0.1, against=against)
    expected = by_definition(positives, *(part[rest] for part in (phi, y, groups, weight)))
    negatives = constraints.PredictiveEquality(0.1, against=against)
    assert_is(term, scores, expected | by_definition(negatives, phi, y, groups, weight))


@given(seed=SEEDS, ratio=st.floats(0.05, 1.0))
def test_a_ratio_holds_exactly_where_no_gap_is_above_one_less_it(seed, ratio):
    y, groups, weight, scores = data(seed)
    zero_one = constraints.DisparateImpact(ratio).bind(y, groups, weight).zero_one()
    holds = zero_one.value(scores) <= 1e-12
    assert_array_equal(holds, zero_one.gap(scores) <= 1.0 - ratio + 1e-9)
    assert_array_equal(zero_one.gap(-np.abs(scores)), 0.0)  # rates of zero


def test_kappa_or_ratio():
    y, groups, weight, _ = data(5)
    with pytest.raises(ValueError, match=r"EqualizedOdds: kappa=0.1 .* ratio=0.8.*one of them"):
        constraints.EqualizedOdds(0.1, ratio=0.8).bind(y, groups, weight)
    assert constraints.EqualizedOdds(ratio=0.8).with_defaults(kappa=0.3).kappa is None


@AGAINST
@given(seed=SEEDS, beta=st.floats(0.2, 3.0))
def test_values_and_gaps_of_balanced_rates(against, seed, beta):
    y, groups, weight, scores = data(seed)
    term = constraints.BalancedRate(1.2, beta, against=against).bind(y, groups, weight)
    positive = by_group(Sigmoid().value(scores), groups, weight)
    negative = by_group(Sigmoid().value(-scores), groups, weight)
    expected = [positive[a] + beta * negative[b] for a, b in sides(positive, against)]
    assert_allclose(term.gap(scores), expected, rtol=1e-12)
    assert_allclose(term.value(scores), np.array(expected) - 1.2, rtol=1e-10, atol=1e-12)


@given(seed=SEEDS, n_groups=st.integers(1, 6), loss=st.sampled_from([Logistic(), Hinge()]))
def test_values_decisions_and_names_of_bounded_losses(seed, n_groups, loss):
    y, groups, weight, scores = data(seed, n_groups)
    scores[:7] = 0.0
    term = constraints.BoundedGroupLoss(0.6, loss=loss).bind(y, groups, weight)
    errors = ((scores > 0) != (y > 0)).astype(float)
    for tested, losses in ((term, loss.value(y * scores)), (term.zero_one(), errors)):
        means = by_group(losses, groups, weight)
        del means["all"]
        expected = {f"loss({k}) <= 0.6": (mean - 0.6, mean) for k, mean in means.items()}
        assert_is(tested, scores, expected)
    assert term.convex
    if isinstance(loss, Hinge):  # which bounds the errors
        assert np.all(term.zero_one().gap(scores) <= term.gap(scores) + 1e-12)


ACTIVE = {  # constraints, and numbers of groups
    "error rates": (constraints.ErrorRateParity(0.001), 2),
    "error rates, 3 groups": (constraints.ErrorRateParity(0.005, against="overall"), 3),
    "four fifths": (constraints.DisparateImpact(0.9), 2),
    "ratios of odds, 3 groups": (constraints.EqualizedOdds(ratio=0.8), 3),
    "balanced": (constraints.BalancedRate(0.75, 0.7), 2),
    "bounded loss": (constraints.BoundedGroupLoss(0.535), 2),
    "minority": (constraints.MinorityRate(0.48, minority=0), 2),
    "intersectional": (constraints.IntersectionalLossParity(0.001, loss="logistic"), 4),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_the_solution_is_scipys_and_the_constraint_is_active(name):
    constraint, n_groups = ACTIVE[name]
    problem = classification(constraint, n_groups=n_groups)
    result, expected = IPC().minimize(problem), reference(problem)
    assert result.converged
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(expected, rel=1e-4)
    assert problem.at(result.w).constraints.max() > -1e-3
    assert result.multipliers.max() > 1e-3


def test_the_gap_of_a_ratio_is_the_shortfall():
    X, y, groups = make_biased_classification(400, 4, gap=0.4, random_state=0)
    rule = FairLogisticClassifier("disparate_impact", kappa=0.0)
    rule.fit(X, y, sensitive_features=groups)
    rates = [rule.predict_proba(X)[groups == k, 1].mean() for k in (0, 1)]
    decided = [rule.predict(X)[groups == k].mean() for k in (0, 1)]
    assert rule.gap_ == pytest.approx(0.2, abs=1e-3)
    assert rates[0] / rates[1] == pytest.approx(0.8, abs=1e-3)
    assert rule.decision_gap_ == pytest.approx(1.0 - decided[0] / decided[1])


def test_numeric_columns_become_overlapping_groups():
    X, y, _ = make_biased_classification(400, 4, gap=0.4, random_state=0)
    constraint = constraints.IntersectionalLossParity(
        0.05, loss="logistic", membership="thresholds", thresholds=5
    )
    classifier = FairLogisticClassifier(constraint, sensitive_columns=[0, 1]).fit(X, y)
    assert classifier.result_.converged
    assert len(classifier.multipliers_) > 10
    losses = Logistic().value((2 * y - 1) * classifier.decision_function(X))
    cuts = [np.linspace(x.min(), x.max(), 5, endpoint=False) for x in X[:, :2].T]
    groups = [(X[:, 0] > a) & (X[:, 1] > b) for a, b in product(*cuts)]
    excess = [losses[rows].mean() - losses.mean() for rows in groups if rows.mean() > 0.01]
    assert len(excess) == len(classifier.multipliers_)
    assert max(excess) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize(
    "constraint",
    [constraints.DemographicParity, constraints.EqualizedOdds, constraints.ErrorRateParity],
)
@pytest.mark.parametrize("settings", [{"kappa": 0.1}, {"ratio": 0.8}])
def test_against_a_group_has_the_pairs_of_that_group(constraint, settings):
    rng = np.random.default_rng(0)
    groups, y = rng.choice(["a", "b", "c", "d"], 200), rng.choice([-1.0, 1.0], 200)
    rows = y, groups, rng.uniform(1.0, 2.0, 200)
    scores = rng.normal(size=200)
    both = (constraint(**settings, against=against) for against in ("pairs", "b"))
    every, named = (one.bind(*rows) for one in both)
    values = dict(zip(every.names, every.value(scores), strict=True))
    with_b = {name for name in every.names if "(b" in name}
    assert set(named.names) == with_b and 0 < len(with_b) < len(values)
    assert_allclose(named.value(scores), [values[name] for name in named.names])


def test_against_a_group_that_no_row_has():
    with pytest.raises(ValueError, match="against='z' is neither 'pairs' nor"):
        constraints.DemographicParity(against="z").bind(None, np.array(["a", "b"]), np.ones(2))


def test_against_a_group_of_strata_and_attributes():
    X, y, groups = make_biased_classification(300, random_state=0)
    both = {"sensitive_features": groups, "control_features": np.arange(300) % 2}
    with pytest.raises(ValueError, match="against='z' is neither"):
        FairLogisticClassifier(constraints.DemographicParity(against="z")).fit(X, y, **both)
    attributes = {"sensitive_features": np.column_stack([groups, X[:, 0] > 0.0])}
    with pytest.raises(ValueError, match="against='0' names a group, and with combine='marginal'"):
        FairLogisticClassifier(constraints.DemographicParity(against="0"), combine="marginal").fit(
            X, y, **attributes
        )


RNG = np.random.default_rng(0)


GROUPS = RNG.integers(0, 2, 400)


X = RNG.normal(size=(400, 1)) + GROUPS[:, None]


Y = np.where(X[:, 0] - 1.2 * GROUPS + RNG.logistic(size=400) > 0, 1, -1)


WEIGHT = RNG.uniform(0.5, 2.0, 400)


def precisions(selected, groups=GROUPS):
    """Return the mean label of each group, weighted by how far a row is selected."""
    shares = [WEIGHT[groups == k] * selected[groups == k] for k in np.unique(groups)]
    return [
        share @ (Y[groups == k] > 0) / share.sum()
        for k, share in zip(np.unique(groups), shares, strict=True)
    ]


@pytest.mark.parametrize("against", ["pairs", "overall"])
def test_gaps_are_those_of_the_precisions(against):
    groups, scores = GROUPS + 2 * (np.arange(400) % 2), RNG.normal(size=400)
    term = constraints.PredictiveParity(0.1, against=against).bind(Y, groups, WEIGHT)
    for part, selected in ((term, expit(scores)), (term.zero_one(), scores > 0.0)):
        each = np.array(precisions(selected, groups))
        (overall,) = precisions(selected, np.zeros(400))
        gap = np.ptp(each) if against == "pairs" else np.abs(each - overall).max()
        assert part.gap(scores).max() == pytest.approx(gap)
