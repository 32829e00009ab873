"""Predictive parity: precisions, the best model of a grid, decisions by counts."""

import numpy as np
import pytest
from scipy.special import expit

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import PredictiveParity
from fairconstrained.metrics import predictive_parity_difference

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
    term = PredictiveParity(0.1, against=against).bind(Y, groups, WEIGHT)
    for part, selected in ((term, expit(scores)), (term.zero_one(), scores > 0.0)):
        each = np.array(precisions(selected, groups))
        (overall,) = precisions(selected, np.zeros(400))
        gap = np.ptp(each) if against == "pairs" else np.abs(each - overall).max()
        assert part.gap(scores).max() == pytest.approx(gap)


def test_no_model_of_a_grid_with_the_bound_is_better():
    kappa = 0.1
    clf = FairLogisticClassifier("predictive_parity", kappa, alpha=0.0, tol=1e-7)
    clf.fit(X, Y, sensitive_features=GROUPS, sample_weight=WEIGHT)
    assert clf.bound_met_ and clf.result_.kkt_residual <= 1e-7
    assert clf.gap_ == pytest.approx(np.ptp(precisions(expit(clf.decision_function(X)))))
    assert clf.gap_ == pytest.approx(kappa, abs=1e-6)

    def loss(scores):
        return np.average(np.logaddexp(0.0, -Y * scores), weights=WEIGHT)

    best = np.inf
    for slope in np.linspace(-2.0, 2.0, 161):
        for level in np.linspace(-3.0, 3.0, 121):
            scores = slope * X[:, 0] + level
            if np.ptp(precisions(expit(scores))) <= kappa:
                best = min(best, loss(scores))
    assert loss(clf.decision_function(X)) <= best + 1e-7
    assert loss(clf.decision_function(X)) >= best - 0.005  # the grid has models that are as good


def test_decisions_meet_the_bound_by_counts():
    given = {"sensitive_features": GROUPS, "sample_weight": WEIGHT}
    free = FairLogisticClassifier(None).fit(X, Y, sample_weight=WEIGHT)
    before = predictive_parity_difference(Y, free.predict(X), **given)
    clf = FairLogisticClassifier("predictive_parity", 0.05, enforce="decision", random_state=0)
    clf.fit(X, Y, **given)
    after = predictive_parity_difference(Y, clf.predict(X), **given)
    assert after <= 0.05 < before
    assert after == pytest.approx(clf.decision_gap_)


def test_many_groups_have_the_gap_of_their_pairs():
    source = np.random.default_rng(0)
    X, groups = source.normal(size=(3500, 2)), np.arange(3500) % 70
    y = (source.random(3500) < expit(X[:, 0] + groups / 70)).astype(int)
    clf = FairLogisticClassifier(PredictiveParity(), kappa=0.33, bound=False)
    clf.fit(X, y, sensitive_features=groups)
    chances = clf.predict_proba(X)[:, 1]
    hits, selected = (np.bincount(groups, part) for part in (chances * y, chances))
    assert clf.gap_ == pytest.approx(np.ptp(hits / selected)) == pytest.approx(0.33, abs=1e-4)
