"""Tests of rates at many thresholds and of ROC parity."""

import numpy as np
import pytest
from _support.problems import classification
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import DemographicParity, ROCParity
from fairconstrained.metrics import roc_parity_difference
from fairconstrained.solvers import IDCA
from fairconstrained.solvers.smoothing import Smoothing


def roc_data(n_groups=3, n_rows=60):
    rng = np.random.default_rng(5)
    groups = np.arange(n_rows) % n_groups
    return np.where(rng.random(n_rows) < 0.5, 1, -1), groups, rng.uniform(0.5, 2.0, n_rows)


@pytest.mark.parametrize("against", ["pairs", "overall"])
def test_roc_parity_is_demographic_parity_at_every_threshold(against, rng):
    y, groups, weight = roc_data()
    thresholds = [0.5, -1.0, 2.0]
    term = ROCParity(0.1, thresholds=thresholds, against=against).bind(y, groups, weight)
    plain = DemographicParity(0.1, against=against).bind(y, groups, weight)
    scores = rng.normal(size=len(y))
    expected = np.column_stack([plain.value(scores - theta) for theta in thresholds]).ravel()
    assert_allclose(term.value(scores), expected, atol=1e-12)
    zero_one = np.column_stack(
        [plain.zero_one().gap(scores - theta) for theta in thresholds]
    ).ravel()
    assert_allclose(term.zero_one().gap(scores), zero_one, atol=1e-12)
    assert len(set(term.names)) == term.n_outputs


def test_the_estimator_takes_the_grid_of_the_unconstrained_scores():
    X, y, groups = make_biased_classification(400, gap=0.4, random_state=0)
    clf = FairLogisticClassifier(ROCParity(n_thresholds=50), kappa=0.05)
    clf.fit(X, y, sensitive_features=groups)
    free = FairLogisticClassifier(None).fit(X, y)
    assert clf.result_.converged
    assert clf.violation_ <= 1e-4
    measured, before = (
        roc_parity_difference(y, one.decision_function(X), sensitive_features=groups)
        for one in (clf, free)
    )
    assert measured < before - 0.1
    assert clf.decision_gap_ <= measured + 1e-12  # at the thresholds of the grid only
    assert clf.decision_gap_ > 0.5 * measured


GRID = [-1.5, -0.5, 0.0, 0.5, 1.5]


def test_idca_converges_on_the_ramp():
    problem = classification(ROCParity(0.03, thresholds=GRID, surrogate="ramp"))
    solver = IDCA(max_iter=60)
    result = solver.minimize(problem)
    assert result.converged
    assert result.violation <= solver.tol
    assert result.objective == pytest.approx(Smoothing().minimize(problem).objective, rel=1e-3)
    assert problem.at(result.w).constraints.max() > -1e-3
