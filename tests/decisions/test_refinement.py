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


def accuracies(seeds):
    """Return the training accuracies of models of equal rates."""
    found = []
    for seed in seeds:
        X, y, groups = few_distinct_rows(seed)
        clf = FairLogisticClassifier(EqualOpportunity(ratio=1.0), enforce="decision")
        search = clf.fit(X, y, sensitive_features=groups).decision_search_
        assert search.met and clf.decision_gap_ <= 1e-9
        found.append(search.accuracy)
    return np.array(found)


@pytest.mark.cases(0)
def test_it_helps_where_rates_of_few_distinct_scores_must_be_equal(monkeypatch):
    """Rates change in steps, and those of nine rows must be met exactly."""
    found = accuracies(range(15))
    without = replace(CandidateSearch.usual_budget, n_restarts=0)
    monkeypatch.setattr(CandidateSearch, "usual_budget", without)
    gains = found - accuracies(range(15))
    assert np.sum(gains < 0.0) <= 1 and gains.mean() >= 0.02
