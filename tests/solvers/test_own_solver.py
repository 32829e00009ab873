"""A solver needs `iterate` only."""

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.solvers.base import Iterate, Solver


class Descent(Solver):
    """Gradient steps for smooth problems without constraints."""

    requires = ("smooth",)

    def iterate(self, problem, start):
        at = start.at(problem)
        for k in range(1, 400):
            at = problem.at(at.w - 0.5 * at.gradient(np.zeros(0)))
            yield Iterate(at, None, k)


def test_a_solver_without_parameters_runs():
    X, y, _ = make_biased_classification(500, 4, gap=0.3, random_state=0)
    clf = FairLogisticClassifier(None, solver=Descent()).fit(X, y)
    assert isinstance(clf.result_.solver, Descent)
    assert clf.result_.converged
    expected = FairLogisticClassifier(None, tol=1e-6).fit(X, y)
    assert clf.objective_ == pytest.approx(expected.objective_, rel=1e-5)
