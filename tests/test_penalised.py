"""Regularisation, solved to a tolerance, as E9 and E10 compare with it."""

import pytest

from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.rank_parity import Penalised
from fairconstrained import make_biased_classification
from fairconstrained.constraints import PartialDemographicParity
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.solvers import Regularization


@pytest.mark.cases(0)
@pytest.mark.parametrize("strength", [0.01, 0.1, 10.0])
def test_the_penalised_problem_is_solved_at_least_as_well_as_by_subgradients(strength):
    X, y, groups = make_biased_classification(400, 4, gap=0.4, random_state=0)
    constraint = PartialDemographicParity(0.0, surrogate=Sigmoid(0.5))
    problem = logistic_problem((X, y, groups), constraint)
    start = problem.start()

    def formula(solver):
        at = problem.at(solver.minimize(problem, start).w)
        return at.objective + strength * at.violation

    solved = formula(Penalised(strength, tol=1e-6))
    assert solved <= formula(Regularization(strength, max_iter=3000, check_every=3000)) + 1e-6
