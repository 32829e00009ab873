"""Regularisation: the strength decides what is met."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import PROBLEMS, rate_between, reference
from sklearn.exceptions import ConvergenceWarning

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.solvers import Regularization, Smoothing


def test_strength_above_the_multipliers_solves_the_constrained_problem() -> None:
    problem = PROBLEMS["demographic parity"]()  # its multiplier is 0.985
    weak, strong = (Regularization(s, max_iter=1000).minimize(problem) for s in (0.5, 2.0))
    assert strong.violation <= 1e-4
    assert strong.objective == pytest.approx(reference(problem, starts=1), rel=1e-3)
    assert weak.violation > 1e-2
    assert weak.objective < strong.objective


def test_weak_strength_minimises_the_penalised_objective() -> None:
    problem, strength = PROBLEMS["demographic parity"](), 0.5
    result = Regularization(strength, max_iter=1000).minimize(problem)
    at = problem.at(result.w)
    worst = np.zeros(problem.n_constraints)
    worst[at.constraints.argmax()] = strength
    assert np.linalg.norm(at.gradient(worst)) <= 1e-3


def test_strength_is_raised_until_the_constraints_hold() -> None:
    problem = rate_between(0.8, 0.9)  # its multiplier is 2.1
    raised = Regularization(max_iter=1500).minimize(problem)
    assert raised.violation <= 1e-4
    assert raised.objective == pytest.approx(reference(problem, starts=1), rel=1e-3)
    assert Regularization(1.0, max_iter=1000).minimize(problem).violation > 1e-2


def test_a_fit_keeps_the_answer_of_a_given_strength() -> None:
    """The safeguard against violated constraints would replace it by the constrained solution."""
    X, y, groups = make_biased_classification(600, gap=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="before the constraints were met"):
        weak, none = (
            FairLogisticClassifier(kappa=0.0, solver=Regularization(s, max_iter=500)).fit(
                X, y, sensitive_features=groups
            )
            for s in (0.05, 1e-6)
        )
    constrained = FairLogisticClassifier(kappa=0.0).fit(X, y, sensitive_features=groups)
    free = FairLogisticClassifier(None).fit(X, y)
    assert none.objective_ == pytest.approx(free.objective_, rel=1e-3)
    assert 1e-2 < weak.violation_ < none.violation_
    assert free.objective_ < weak.objective_ < constrained.objective_
    assert not Smoothing(Regularization(0.05)).seeks_feasibility
    assert Smoothing().seeks_feasibility and Regularization().seeks_feasibility
