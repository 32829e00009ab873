"""The search in one variable after another, where repairs do not reach the bound."""

from dataclasses import replace

import numpy as np
import pytest

from fairconstrained import EqualOpportunity, FairLogisticClassifier
from fairconstrained.decisions.candidates import CandidateSearch


def few_distinct_rows(seed):
    """Return six binary features, labels that depend on them, and a group of nine rows."""
    rng = np.random.default_rng(seed)
    X = (rng.random((160, 6)) < rng.uniform(0.02, 0.6, 6)).astype(float)
    latent = X @ rng.standard_normal(6) + 0.5 * rng.logistic(size=160)
    return X, (latent > np.median(latent)).astype(int), (np.arange(160) >= 9).astype(int)


def mean_accuracy(X, y, groups):
    """Return the mean training accuracy over orders of the rows."""
    accuracies = []
    for k in range(4):
        order = np.random.default_rng(k).permutation(len(y))
        clf = FairLogisticClassifier(EqualOpportunity(ratio=1.0), enforce="decision")
        search = clf.fit(X[order], y[order], sensitive_features=groups[order]).decision_search_
        assert search.met and clf.decision_gap_ <= 1e-9
        accuracies.append(search.accuracy)
    return np.mean(accuracies)


@pytest.mark.parametrize("seed", [8, 14, 16, 28, 32])
def test_it_helps_where_rates_of_few_distinct_scores_must_be_equal(seed, monkeypatch):
    """Rates change in steps, and those of nine rows must be met exactly."""
    rows = few_distinct_rows(seed)
    accuracy = mean_accuracy(*rows)
    without = replace(CandidateSearch.usual_budget, n_restarts=0)
    monkeypatch.setattr(CandidateSearch, "usual_budget", without)
    assert accuracy >= mean_accuracy(*rows) + 0.005
