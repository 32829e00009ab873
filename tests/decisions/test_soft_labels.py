"""Rates of few rows: soft labels, and the search that gives their violation a price."""

import numpy as np
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import PredictiveEquality
from fairconstrained.decisions import candidates
from fairconstrained.decisions.new_rows import SoftLabels


def drawn(n_rows, seed, share=0.03, shift=-1.0):
    """Return rows with a small group whose scores are lower, and features of few rows."""
    rng = np.random.default_rng(seed)
    small = rng.random(n_rows) < share
    u = rng.standard_normal(n_rows) + np.where(small, shift, 0.0)
    levels = rng.integers(0, 40, n_rows)
    X = np.column_stack([u, rng.standard_normal(n_rows) + small, *(levels == k for k in range(40))])
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(0.5 - 2.0 * u))).astype(int)
    return X, y, np.where(small, "small", "large")


def bound(X, y, groups, kind=FairLogisticClassifier, **options):
    return kind("equalized_odds", 0.02, **options).bind(X, y, sensitive_features=groups)


def labels_of(fit):
    scores, _ = fit.unconstrained.weighted_scores(fit.data)
    return SoftLabels.of(scores, fit.data.y, fit.data.groups.codes, fit.data.sample_weight)


def test_a_soft_rate_is_the_expectation_over_labels():
    X, y, groups = drawn(3000, 0)
    fit = bound(X, y, groups)
    labels = labels_of(fit)
    (part,) = labels.constraints(fit.problem)
    scores, small = X[:, 0] - 0.3, groups == "small"
    p, selected = labels.probability, scores > 0
    values = part.term.zero_one().value(scores)
    rates = []
    for here in (small, ~small):
        soft, n = np.average(selected[here], weights=p[here]), np.sum(here & (y == 1))
        share = n / (n + 300.0)
        rates.append(share * selected[here & (y == 1)].mean() + (1.0 - share) * soft)
    assert np.min(np.abs(values + 0.02 - (rates[0] - rates[1]))) < 1e-12


def test_ratios_are_those_of_the_soft_rates():
    X, y, groups = three_groups(0)
    constraint = PredictiveEquality(ratio=0.8)
    fit = FairLogisticClassifier(constraint).bind(X, y, sensitive_features=groups)
    labels = labels_of(fit)
    (part,) = labels.constraints(fit.problem)
    scores, codes, negative = fit.data.X[:, 0], fit.data.groups.codes, fit.data.y < 0
    selected, rates = scores > 0, []
    for k in range(3):
        here, n = codes == k, np.sum(negative & (codes == k))
        soft = np.average(selected[here], weights=1.0 - labels.probability[here])
        share = n / (n + 300.0)
        rates.append(share * selected[here & negative].mean() + (1.0 - share) * soft)
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    found = part.term.zero_one().gap(scores)
    assert_allclose(np.sort(found), np.sort([1.0 - rates[a] / rates[b] for a, b in pairs]))
    assert_allclose(part.term.gap_bounds, 0.2)


def three_groups(seed, one_label=False):
    """Return rows of two large groups and a small one, perhaps with one label."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(300, 3)), rng.choice(3, size=300, p=[0.45, 0.45, 0.1])
    y = X.sum(axis=1) + 0.8 * groups + rng.logistic(size=300) > 0.5
    return X, y | (one_label & (groups == 2)), groups


def test_a_price_lowers_the_expected_violation(monkeypatch):
    found = dict.fromkeys((0.0, 5.0), 0.0)
    for seed in range(3):
        X, y, groups = drawn(3000, seed, share=0.015, shift=-0.7)
        fit = bound(X, y, groups)
        first = fit.solve()[0]
        for price in found:
            monkeypatch.setattr(candidates, "_PRICE", price)
            task = fit.decision_task(first)
            scores, _ = fit.model.forward(task.search().w)
            estimates = task.expected[0].term.zero_one().value(scores)
            found[price] += max(float(estimates.max()), 0.0)
    assert found[5.0] < found[0.0]
