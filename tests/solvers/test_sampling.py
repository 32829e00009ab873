"""Tests of mini-batches of whole queries and of the constraints that they determine."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairRanker, make_biased_ranking
from fairconstrained.solvers import PLADA, SOLVERS, LagrangianDescentAscent
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import Rows
from fairconstrained.solvers.multiplier_models import Network

X, Y, QUERY, GROUPS = make_biased_ranking(10, 3, n_documents=30, random_state=0)


@pytest.fixture(scope="module")
def problem():
    return FairRanker(kappa=0.1).bind(X, Y, None, GROUPS, query=QUERY).problem


@pytest.fixture(scope="module")
def free(problem):
    """The solution without constraints."""
    return SOLVERS["ipc"]().minimize(problem.with_constraints(())).w


def sampler(problem, size):
    start = Start(problem.start(), random_state=np.random.RandomState(0))
    return Rows(problem, start, size)


@pytest.mark.parametrize("size", [1, 120])
def test_drawn_constraints_have_their_exact_values(problem, size, rng):
    draws, w = sampler(problem, size), rng.normal(size=problem.n_variables)
    values = problem.at(w).constraints
    for _ in range(5):
        drawn = draws.draw(w)
        n_queries = len(drawn.constraints) // 2
        assert n_queries == (1 if size == 1 else 3)
        assert 2 * n_queries == drawn.at.problem.n_constraints
        assert drawn.weight == pytest.approx(10 / n_queries)
        assert_allclose(drawn.at.constraints, values[drawn.constraints], rtol=1e-12)


def test_weighted_gradients_of_drawn_constraints_are_unbiased(problem, rng):
    w, multipliers = rng.normal(size=3), rng.uniform(size=problem.n_constraints)
    total, drawn_from, draws = np.zeros(3), np.zeros(20), sampler(problem, 1)
    for block in range(10):
        draws.rng = SimpleNamespace(randint=lambda n, size, block=block: np.array([block]))
        drawn = draws.draw(w)
        drawn_from[drawn.constraints] += 1
        total += drawn.at.gradient(drawn.weight * multipliers[drawn.constraints])
    assert_array_equal(drawn_from, np.ones(20))
    assert_allclose(total / 10, problem.at(w).gradient(multipliers), rtol=1e-10)


def test_batches_of_queries_are_whole(problem):
    start = Start(np.ones(3), random_state=np.random.RandomState(0))
    at = Rows(problem, start, 100, all_constraints=True).draw(start.w).at
    assert at.problem.n_constraints == problem.n_constraints
    assert np.isfinite(at.constraints).all()


STEPS = {"batch_size": 1, "max_iter": 1, "check_every": 1, "polish": False}


@pytest.mark.parametrize("solver", [PLADA(**STEPS), LagrangianDescentAscent(**STEPS)], ids=repr)
def test_a_step_updates_the_multipliers_of_the_drawn_query_only(problem, free, solver):
    violated = problem.at(free).constraints.reshape(10, 2).max(axis=1) > 0.05
    assert violated.sum() >= 5
    touched = []
    for seed in range(20):
        start = Start(free, random_state=np.random.RandomState(seed))
        iterate = next(iter(solver.iterate(problem, start)))
        touched.append(np.flatnonzero(iterate.multipliers.reshape(10, 2).any(axis=1)))
    assert max(map(len, touched)) == 1
    assert len(set(np.concatenate(touched).tolist())) >= 3


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("multipliers", "max_iter"), [(None, 300), (Network(hidden=4), 1500)], ids=repr
)  # the weights of a network, which all queries share, follow the violations more slowly
def test_descent_ascent_on_drawn_queries_lowers_the_violation(problem, free, multipliers, max_iter):
    features = None if multipliers is None else np.random.RandomState(0).normal(size=(20, 3))
    solver = LagrangianDescentAscent(
        sigma=3e-3,
        multipliers=multipliers,
        features=features,
        batch_size=1,
        max_iter=max_iter,
        check_every=100,
        polish=False,
    )
    result = solver.minimize(problem, random_state=0)
    assert result.violation < 0.9 * problem.at(free).violation
    assert np.all(result.multipliers >= 0.0)
    assert result.multipliers.max() > 0.0


def test_features_must_be_a_row_per_constraint(problem):
    solver = LagrangianDescentAscent(multipliers=Network(), features=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"a row for each of the 20 constraints; got 3 rows"):
        solver.minimize(problem)


@pytest.mark.parametrize("name", ["ssg-stochastic", "3s-econ-stochastic", "idca-stochastic"])
def test_other_stochastic_solvers_draw_whole_queries(problem, name):
    """They keep all constraints; a run that is polished then finds the solution."""
    result = SOLVERS[name]().with_options(max_iter=5).minimize(problem, random_state=0)
    assert result.violation <= 1e-4
    best = SOLVERS["smoothing"]().minimize(problem)
    assert result.objective == pytest.approx(best.objective, abs=2e-2)
