"""Constraints on rates and losses against their definitions, written out with plain loops."""

from itertools import permutations, product

import numpy as np
import pytest
from _support.labelled_rows import SEEDS, by_group, data
from _support.problems import classification, reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import (
    CONSTRAINTS,
    BalancedRate,
    BoundedGroupLoss,
    DemographicParity,
    DisparateImpact,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    IntersectionalLossParity,
    MinorityRate,
    PredictiveEquality,
)
from fairconstrained.functions.losses import Hinge, Logistic
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.solvers import IPC

# The helpers here set kappa for all constraints, also those with a tolerance of their own.
pytestmark = pytest.mark.filterwarnings("ignore:kappa=:fairconstrained.InputWarning")

AGAINST = pytest.mark.parametrize("against", ["pairs", "overall"])


def sides(numbers, against):
    """Return the pairs of names that are compared."""
    names = [name for name in numbers if name != "all"]
    if against == "pairs":
        return list(permutations(names, 2))
    return [(a, "all") for a in names] + [("all", a) for a in names]


def errors(phi, y):
    return np.where(y > 0, 1.0 - phi, phi)


class TestErrorRates:
    @AGAINST
    @given(seed=SEEDS, n_groups=st.integers(2, 6), surrogate=st.sampled_from([Sigmoid(), Ramp(2)]))
    def test_values_and_names(self, against, seed, n_groups, surrogate):
        y, groups, weight, scores = data(seed, n_groups)
        term = ErrorRateParity(0.1, surrogate=surrogate, against=against).bind(y, groups, weight)
        wrong = by_group(errors(surrogate.value(scores), y), groups, weight)
        expected = {
            f"error({a}) - error({b}) <= 0.1": wrong[a] - wrong[b] - 0.1
            for a, b in sides(wrong, against)
        }
        found = dict(zip(term.names, term.value(scores), strict=True))
        assert found == pytest.approx(expected, abs=1e-12)

    def test_decisions(self):
        y, groups, weight, scores = data(0)
        scores[:5] = 0.0  # decided against: wrong where the label is positive
        term = ErrorRateParity(0.1).bind(y, groups, weight)
        wrong = by_group(((scores > 0) != (y > 0)).astype(float), groups, weight)
        expected = [wrong[a] - wrong[b] for a, b in sides(wrong, "pairs")]
        assert_allclose(term.zero_one().gap(scores), expected, atol=1e-12)

    def test_a_group_with_one_label_has_an_error_rate_as_well(self, recwarn):
        y, groups, weight, scores = data(1)
        y[groups == "d"] = 1
        term = ErrorRateParity(0.0).bind(y, groups, weight)
        wrong = by_group(errors(Sigmoid().value(scores), y), groups, weight)
        expected = [wrong[a] - wrong[b] for a, b in sides(wrong, "pairs")]
        assert_allclose(term.value(scores), expected, atol=1e-12)
        assert not recwarn.list


RATIOS = {
    DemographicParity: (("", (-1, 1)),),
    EqualOpportunity: ((" | label +1", (1,)),),
    PredictiveEquality: ((" | label -1", (-1,)),),
    EqualizedOdds: ((" | label +1", (1,)), (" | label -1", (-1,))),
}


class TestRatios:
    @AGAINST
    @pytest.mark.parametrize("kind", RATIOS)
    @given(seed=SEEDS, ratio=st.floats(0.0, 1.0), surrogate=st.sampled_from([Sigmoid(), Ramp(2)]))
    def test_values_gaps_and_names(self, kind, against, seed, ratio, surrogate):
        y, groups, weight, scores = data(seed)
        term = kind(ratio=ratio, surrogate=surrogate, against=against).bind(y, groups, weight)
        values, gaps = {}, []
        for event, labels in RATIOS[kind]:
            rates = by_group(surrogate.value(scores), groups, weight, np.isin(y, labels))
            for a, b in sides(rates, against):
                name = f"{ratio:g} * rate({b}{event}) - rate({a}{event}) <= 0"
                values[name] = ratio * rates[b] - rates[a]
                gaps.append(1.0 - rates[a] / rates[b] if rates[b] else 0.0)
        assert dict(zip(term.names, term.value(scores), strict=True)) == pytest.approx(values)
        assert_allclose(term.gap(scores), gaps, atol=1e-9)

    @given(seed=SEEDS, ratio=st.floats(0.05, 1.0))
    def test_it_holds_exactly_where_no_gap_is_above_one_less_the_ratio(self, seed, ratio):
        y, groups, weight, scores = data(seed)
        zero_one = DisparateImpact(ratio).bind(y, groups, weight).zero_one()
        holds = zero_one.value(scores) <= 1e-12
        assert_array_equal(holds, zero_one.gap(scores) <= 1.0 - ratio + 1e-9)

    def test_a_rate_of_zero_has_no_shortfall(self):
        y, groups, weight, scores = data(2)
        decisions = DisparateImpact().bind(y, groups, weight).zero_one()
        assert_array_equal(decisions.gap(-np.abs(scores)), 0.0)

    def test_the_four_fifths_rule_is_demographic_parity_as_a_ratio(self):
        y, groups, weight, scores = data(3)
        rule = DisparateImpact().bind(y, groups, weight)
        parity = DemographicParity(ratio=0.8).bind(y, groups, weight)
        assert rule.names == parity.names
        assert_array_equal(rule.value(scores), parity.value(scores))

    def test_error_rates_have_ratios_too(self):
        y, groups, weight, scores = data(4)
        term = ErrorRateParity(ratio=0.9).bind(y, groups, weight)
        wrong = by_group(errors(Sigmoid().value(scores), y), groups, weight)
        pairs = sides(wrong, "pairs")
        assert_allclose(term.value(scores), [0.9 * wrong[b] - wrong[a] for a, b in pairs])
        assert_allclose(term.gap(scores), [1.0 - wrong[a] / wrong[b] for a, b in pairs])

    @pytest.mark.parametrize("seed", range(5))
    def test_error_rates_of_zero_up_to_rounding_have_no_gap(self, seed):
        rng = np.random.default_rng(seed)
        y, groups = rng.choice([-1.0, 1.0], 76), rng.integers(0, 3, 76)
        term = ErrorRateParity(ratio=0.0).bind(y, groups, rng.uniform(1.0, 1e4, 76)).zero_one()
        assert_array_equal(term.gap(y), np.zeros(6))

    def test_kappa_or_ratio(self):
        y, groups, weight, _ = data(5)
        with pytest.raises(ValueError, match=r"EqualizedOdds: kappa=0.1 .* ratio=0.8.*one of them"):
            EqualizedOdds(0.1, ratio=0.8).bind(y, groups, weight)
        assert EqualizedOdds(ratio=0.8).with_defaults(kappa=0.3).kappa is None


class TestBalancedRate:
    @AGAINST
    @given(seed=SEEDS, beta=st.floats(0.2, 3.0))
    def test_values_and_gaps(self, against, seed, beta):
        y, groups, weight, scores = data(seed)
        term = BalancedRate(1.2, beta, against=against).bind(y, groups, weight)
        positive = by_group(Sigmoid().value(scores), groups, weight)
        negative = by_group(Sigmoid().value(-scores), groups, weight)
        expected = [positive[a] + beta * negative[b] for a, b in sides(positive, against)]
        assert_allclose(term.gap(scores), expected, rtol=1e-12)
        assert_allclose(term.value(scores), np.array(expected) - 1.2, rtol=1e-10, atol=1e-12)

    def test_with_beta_1_it_is_demographic_parity(self):
        y, groups, weight, scores = data(0)
        parity = DemographicParity(0.1).bind(y, groups, weight).value(scores)
        for constraint in (BalancedRate(1.1), BalancedRate(kappa=0.1)):
            assert_allclose(constraint.bind(y, groups, weight).value(scores), parity, atol=1e-12)


class TestBoundedGroupLoss:
    @given(seed=SEEDS, n_groups=st.integers(1, 6), loss=st.sampled_from([Logistic(), Hinge()]))
    def test_values_and_names(self, seed, n_groups, loss):
        y, groups, weight, scores = data(seed, n_groups)
        term = BoundedGroupLoss(0.6, loss=loss).bind(y, groups, weight)
        means = by_group(loss.value(y * scores), groups, weight)
        del means["all"]
        expected = {f"loss({k}) <= 0.6": mean - 0.6 for k, mean in means.items()}
        assert dict(zip(term.names, term.value(scores), strict=True)) == pytest.approx(expected)
        assert term.convex

    def test_decisions_show_the_error_rate(self):
        y, groups, weight, scores = data(0)
        scores[:7] = 0.0
        decided = BoundedGroupLoss(0.6).bind(y, groups, weight).zero_one()
        wrong = by_group(((scores > 0) != (y > 0)).astype(float), groups, weight)
        assert_allclose(decided.gap(scores), [wrong[k] for k in np.unique(groups)], atol=1e-12)

    @given(seed=SEEDS)
    def test_the_hinge_loss_bounds_the_errors(self, seed):
        y, groups, weight, scores = data(seed)
        term = BoundedGroupLoss(0.6, loss="hinge").bind(y, groups, weight)
        assert np.all(term.zero_one().gap(scores) <= term.gap(scores) + 1e-12)

    def test_the_estimators_kappa_and_loss_are_the_defaults(self):
        found = BoundedGroupLoss().with_defaults(kappa=0.3, loss="hinge", surrogate="ramp")
        assert (found.bound, found.loss) == (0.3, "hinge")
        assert BoundedGroupLoss(0.5).with_defaults(kappa=0.3).bound == 0.5


ACTIVE = {
    "error rates": (ErrorRateParity(0.001), {}),
    "error rates, 3 groups": (ErrorRateParity(0.005, against="overall"), {"n_groups": 3}),
    "four fifths": (DisparateImpact(0.9), {}),
    "ratios of odds, 3 groups": (EqualizedOdds(ratio=0.8), {"n_groups": 3}),
    "balanced": (BalancedRate(0.75, 0.7), {}),
    "bounded loss": (BoundedGroupLoss(0.535), {}),
    "minority": (MinorityRate(0.48, minority=0), {}),
    "intersectional": (IntersectionalLossParity(0.001, loss="logistic"), {"n_groups": 4}),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_the_solution_is_scipys_and_the_constraint_is_active(name):
    constraint, options = ACTIVE[name]
    problem = classification(constraint, **options)
    result, expected = IPC().minimize(problem), reference(problem)
    assert result.converged
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(expected, rel=1e-4)
    assert problem.at(result.w).constraints.max() > -1e-3
    assert result.multipliers.max() > 1e-3


class TestInAnEstimator:
    @pytest.fixture(scope="class")
    @staticmethod
    def rows():
        return make_biased_classification(400, 4, gap=0.4, random_state=0)

    def test_kappa_is_the_bound_of_the_groups_losses(self, rows):
        X, y, groups = rows
        named = FairLogisticClassifier("bounded_group_loss", kappa=0.5, loss="hinge")
        named.fit(X, y, sensitive_features=groups)
        explicit = FairLogisticClassifier(BoundedGroupLoss(0.5, loss="hinge"), loss="hinge")
        explicit.fit(X, y, sensitive_features=groups)
        assert_allclose(named.coef_, explicit.coef_, atol=1e-10)

    def test_the_gap_of_a_ratio_is_the_shortfall(self, rows):
        X, y, groups = rows
        rule = FairLogisticClassifier("disparate_impact", kappa=0.0).fit(
            X, y, sensitive_features=groups
        )
        rates = [rule.predict_proba(X)[groups == k, 1].mean() for k in (0, 1)]
        decided = [rule.predict(X)[groups == k].mean() for k in (0, 1)]
        assert rule.gap_ == pytest.approx(0.2, abs=1e-3)
        assert rates[0] / rates[1] == pytest.approx(0.8, abs=1e-3)
        assert rule.decision_gap_ == pytest.approx(1.0 - decided[0] / decided[1])

    def test_numeric_columns_become_overlapping_groups(self, rows):
        X, y, _ = rows
        constraint = IntersectionalLossParity(
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

    @pytest.mark.parametrize("name", ["disparate_impact", "bounded_group_loss", "minority_rate"])
    def test_the_least_unfairness(self, rows, name):
        X, y, groups = rows
        options = {"goal": "fairness", "max_loss_increase": 0.05}
        fairest = FairLogisticClassifier(name, **options).fit(X, y, sensitive_features=groups)
        free = FairLogisticClassifier(None).fit(X, y)
        term = CONSTRAINTS[name]().bind(2 * y - 1, groups, np.ones(len(y)))
        assert fairest.result_.converged
        assert fairest.objective_ <= 1.05 * free.objective_ * (1.0 + 1e-4)
        assert fairest.gap_ < term.gap(free.decision_function(X)).max() - 0.001
