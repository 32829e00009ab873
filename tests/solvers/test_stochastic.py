"""Mini-batches: of rows, of whole queries with the constraints that they determine, and passes."""

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification, reference
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.harness.paper_problems import QuadraticForm
from fairconstrained import FairRanker, make_biased_ranking, solvers
from fairconstrained.problem import CompositeFunction
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import Rows
from fairconstrained.solvers.multiplier_models import Network

NEAR = [  # a solver, a problem, and the relative error that is allowed
    (solvers.PLADA.stochastic(max_iter=1000), "demographic parity", 1e-2),
    (solvers.PLADA.stochastic(max_iter=1000), "equalized odds, 3 groups", 1e-2),
    (solvers.OnlineStochastic(batch_size=64, max_iter=1000), "demographic parity", 1e-2),
    (solvers.OnlineStochastic(batch_size=64, max_iter=1000), "equalized odds, 3 groups", 1e-2),
    (solvers.OnlineStochastic(batch_size=64, max_iter=1000), "box", 1e-2),
    (solvers.ThreeSEcon.stochastic(max_iter=300, checkpoint_size=200), "demographic parity", 2e-2),
]


@pytest.mark.parametrize(("solver", "name", "error"), NEAR, ids=str)
def test_batches_end_feasible_and_near_the_solution(solver, name, error) -> None:
    problem = PROBLEMS[name]()
    result = solver.minimize(problem, random_state=1)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(problem, starts=1), rel=error)
    assert problem.at(result.w).constraints.max() > -1e-2
    assert result.multipliers.max() > 0.0


# A period of 3S-Econ: 400 rows at either end, 19 steps of 2 batches of 20 rows, one of them twice.
PERIOD = 2 + 19 * 3 * 20 / 400
COUNTED = {
    "3s-econ": (
        solvers.ThreeSEcon.paper(stochastic=True, max_iter=20, batch_size=20, q=20),
        0.95 * PERIOD,
        1.05 * PERIOD,
    ),
    # two forward passes a step on a tenth of the rows, scales, one look at all rows or a few
    "online": (solvers.OnlineStochastic(batch_size=36, max_iter=99, check_every=99), 17.8, 32.0),
    "plada": (solvers.PLADA.stochastic(batch_size=40, max_iter=100), 20.0, 60.0),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", COUNTED)
def test_batches_are_counted_as_fractions_of_a_pass(name) -> None:
    solver, low, high = COUNTED[name]
    result = solver.minimize(PROBLEMS["demographic parity"](), random_state=0)
    assert low <= result.data_passes <= high
    assert result.data_passes % 1.0 > 0.0


def test_batches_of_3s_econ_go_by_all_rows_where_constraints_have_none() -> None:
    ball = CompositeFunction(penalty=QuadraticForm(np.ones(5), -10.0))
    solver = solvers.ThreeSEcon.stochastic(max_iter=20, check_every=20, polish=False)
    result = solver.minimize(classification().with_constraints([ball]), random_state=0)
    assert result.data_passes == 1.0 + 20 * 20 / 400  # all rows once, and batches of 20 of 400


X, Y, QUERY, GROUPS = make_biased_ranking(10, 3, n_documents=30, random_state=0)


@pytest.fixture(scope="module")
def problem():
    return FairRanker(kappa=0.1).bind(X, Y, None, GROUPS, query=QUERY).problem


@pytest.fixture(scope="module")
def free(problem):
    """The solution without constraints."""
    return solvers.SOLVERS["ipc"]().minimize(problem.with_constraints(())).w


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


def test_weighted_gradients_of_drawn_constraints_are_unbiased(problem, rng, monkeypatch):
    w, multipliers = rng.normal(size=3), rng.uniform(size=problem.n_constraints)
    total, drawn_from, draws = np.zeros(3), np.zeros(20), sampler(problem, 1)
    for block in range(10):
        monkeypatch.setattr(
            solvers.first_order,
            "sample_without_replacement",
            lambda *_, random_state, block=block: np.array([block]),
        )
        drawn = draws.draw(w)
        drawn_from[drawn.constraints] += 1
        total += drawn.at.gradient(drawn.weight * multipliers[drawn.constraints])
    assert_array_equal(drawn_from, np.ones(20))
    assert_allclose(total / 10, problem.at(w).gradient(multipliers), rtol=1e-10)


STEPS = {"batch_size": 1, "max_iter": 1, "check_every": 1, "polish": False}


@pytest.mark.parametrize("kind", [solvers.PLADA, solvers.LagrangianDescentAscent])
def test_a_step_updates_the_multipliers_of_the_drawn_query_only(problem, free, kind):
    violated = problem.at(free).constraints.reshape(10, 2).max(axis=1) > 0.05
    assert violated.sum() >= 5
    touched = []
    for seed in range(20):
        start = Start(free, random_state=np.random.RandomState(seed))
        iterate = next(iter(kind(**STEPS).iterate(problem, start)))
        touched.append(np.flatnonzero(iterate.multipliers.reshape(10, 2).any(axis=1)))
    assert max(map(len, touched)) == 1
    assert len(set(np.concatenate(touched).tolist())) >= 3


def test_features_must_be_a_row_per_constraint(problem):
    solver = solvers.LagrangianDescentAscent(multipliers=Network(), features=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"a row for each of the 20 constraints; got 3 rows"):
        solver.minimize(problem)
