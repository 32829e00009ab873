"""Every solver on a ranking problem with two constraints per query, against SLSQP."""

from functools import cache

import pytest
from _support.problems import reference

from fairconstrained import FairRanker, make_biased_ranking
from fairconstrained.constraints import QueryParity
from fairconstrained.problem.kkt import KKT
from fairconstrained.solvers import SOLVERS

X, Y, QUERY, GROUPS = make_biased_ranking(6, 3, n_documents=30, random_state=0)


def ranking_problem():
    ranker = FairRanker(QueryParity(0.05, loss="logistic"), alpha=1e-2)
    return ranker.bind(X, Y, None, GROUPS, query=QUERY).problem


@cache
def solution():
    return reference(ranking_problem())


@pytest.mark.parametrize("name", SOLVERS)
def test_solver_finds_the_solution_that_slsqp_finds(name):
    problem = ranking_problem()
    result = SOLVERS[name]().minimize(problem, random_state=0)
    assert result.converged
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(solution(), rel=1e-3)
    assert problem.at(result.w).constraints.max() > -1e-3, "no constraint is active"
    assert KKT.of(problem.at(result.w), result.multipliers).holds(1e-4)
