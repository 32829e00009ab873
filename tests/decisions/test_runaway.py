"""A solver that runs away while the search tightens its constraints."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.objectives import PairwiseLoss
from fairconstrained.solvers import Smoothing


class RunsAway(Smoothing):
    """Its later answers have an intercept at which squares of scores overflow."""

    n_answers = 0

    def minimize(self, problem, **options):
        """Return the answer with another intercept."""
        RunsAway.n_answers += 1
        result = super().minimize(problem, **options)
        w = result.w.copy()
        w[-1] = 2e288
        return replace(result, w=w)


WITHOUT_PAIRS = {"query_parity", "bounded_group_loss"}  # of rankers; its loss is the estimator's


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", sorted(set(CONSTRAINTS) - WITHOUT_PAIRS))
def test_weights_whose_scores_overflow_are_no_candidates(name):
    X, y, groups = make_biased_classification(300, gap=0.5, random_state=0)
    RunsAway.n_answers = 0
    clf = FairLogisticClassifier(
        name, 0.01, loss=PairwiseLoss("hinge"), enforce="decision", solver=RunsAway()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant decisions
        warnings.simplefilter("error", RuntimeWarning)
        clf.fit(X, y, sensitive_features=groups)
    assert RunsAway.n_answers
    assert np.all(np.abs(clf.coef_) < 1e100) and np.all(np.abs(clf.intercept_) < 1e100)
    assert np.isfinite(clf.decision_function(X)).all()
