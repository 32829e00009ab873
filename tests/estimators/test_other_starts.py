"""Tests of starts near local solutions of other kinds."""

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import WeakPartialDemographicParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators.solving import better_start
from fairconstrained.solvers import IPC, AugmentedLagrangian, Smoothing
from fairconstrained.solvers.base import Start


def data():
    """Return rows on which solvers that start from 0 end at equal rates within the range."""
    options = {"gap": 0.3, "class_sep": 4.0, "flip_y": 0.05, "random_state": 0}
    X, y, groups = make_biased_classification(1000, **options)
    rng = np.random.default_rng(0)
    redrawn = (groups == 0) & (rng.random(1000) < 0.35)
    X[:, -1] += 1.5 * groups
    return X, np.where(redrawn, rng.integers(0, 2, 1000), y), groups


def fitted(solver="auto", surrogate="sigmoid", **options):
    X, y, groups = data()
    constraint = WeakPartialDemographicParity(0.05, surrogate=surrogate)
    classifier = FairLogisticClassifier(constraint, solver=solver, random_state=0, **options)
    return classifier.fit(X, y, sensitive_features=groups)


def best_of_many_starts(surrogate):
    """Return the least objective from constants."""
    X, y, groups = data()
    constraint = WeakPartialDemographicParity(0.05, surrogate=surrogate)
    fit = FairLogisticClassifier(constraint).bind(X, y, None, groups)
    smooth, unit = fit.problem.smoothed(1e-3), fit.model.offset()
    starts = [Start(level * unit) for level in np.linspace(-2.0, 2.0, 5)]
    results = [AugmentedLagrangian().minimize(smooth, warm=start) for start in starts]
    return min(result.objective for result in results if result.converged)


@pytest.mark.cases(1)
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
def test_weak_partial_parity_ends_at_the_best_of_many_starts(surrogate):
    best = best_of_many_starts(surrogate)
    for solver in ("auto",):
        classifier = fitted(solver, surrogate)
        assert classifier.result_.converged
        assert classifier.objective_ <= 1.001 * best, solver
    inside = fitted(Smoothing(IPC()), surrogate)  # a solver that is passed starts where it says
    assert inside.result_.converged
    assert inside.objective_ > 1.01 * best
    assert classifier.result_.data_passes > inside.result_.data_passes  # both runs are counted


@pytest.mark.parametrize("constraint", ["demographic_parity", "partial_dp", "roc_parity"])
def test_other_constraints_and_models_without_an_intercept_have_one_start(constraint):
    X, y, groups = data()
    for options in ({"constraint": constraint}, {"fit_intercept": False}):
        estimator = FairLogisticClassifier(**{"constraint": "weak_partial_dp", **options})
        problem = estimator.bind(X, y, None, groups).problem
        assert better_start(problem, problem.at(problem.start())) == (None, 0.0)


def test_rates_at_the_ends_of_the_range():
    _, y, groups = data()
    signs, n = np.where(y == 1, 1, -1), len(y)
    term = WeakPartialDemographicParity(0.1, ranks=(0.2, 0.7)).bind(signs, groups, np.ones(n))
    below, above = term.other_starts(term.forward(np.zeros(n))[0])
    low, high = (term.forward(np.full(n, score))[0] for score in (below, above))
    assert low.min() >= 0.18 and low.max() <= 0.2
    assert high.min() >= 0.7 and high.max() <= 0.72
    assert term.other_starts(term.forward(np.full(n, below))[0]) == (above,)
    assert term.other_starts(term.forward(np.full(n, above))[0]) == (below,)
    term = WeakPartialDemographicParity(0.1, ranks=(0.0, 1.0)).bind(signs, groups, np.ones(n))
    assert term.other_starts(term.forward(np.zeros(n))[0]) == ()


def test_nothing_else_is_tried_where_the_bound_proves_the_optimum():
    X, y, groups = make_biased_classification(200, 10, gap=0.12, random_state=0)
    rows = {"X": X, "y": y, "sensitive_features": groups}
    fits = [FairLogisticClassifier(kappa=0.1, solver=name).fit(**rows) for name in ("auto", "sqp")]
    assert fits[0].optimality_gap_ < 1e-3
    assert fits[0].result_.data_passes == fits[1].result_.data_passes
    hard = [FairLogisticClassifier(kappa=0.01, solver=name).fit(**rows) for name in ("auto", "sqp")]
    assert hard[0].optimality_gap_ > 1e-3
    assert hard[0].result_.data_passes > hard[1].result_.data_passes
