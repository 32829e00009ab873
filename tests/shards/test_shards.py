"""Rows in shards: the same values, gradients and solutions as with all rows in one table."""

import numpy as np
import pytest
import scipy.sparse as sp

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import CONSTRAINTS, PartialDemographicParity
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.rows import Unconstrained, bound_parts
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.shards import scores as sharded_scores
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.sums import AtomRows, LocalShards, Shard

PAIRS = {"group_auc", "inter_group_auc", "intra_group_auc"}
N_ROWS = 3000


def bound(constraint, *, container=np.asarray, dtype=float, solver="auto"):
    """Return a fit to rows in memory."""
    X, y, groups = make_biased_classification(N_ROWS, gap=0.3, n_groups=3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N_ROWS)
    classifier = FairLogisticClassifier(constraint, 0.05, solver=solver)
    return classifier.bind(container(np.asarray(X, dtype)), y, weight, groups)


def in_shards(fit, n_shards=3, n_threads=1):
    """Return the problem of a fit with its rows shuffled into shards."""
    data, model = fit.data, fit.model
    pairs = np.column_stack([data.groups.codes, data.y])
    found, atoms = np.unique(pairs, axis=0, return_inverse=True)
    totals = np.bincount(np.ravel(atoms), data.sample_weight)
    groups = Groups(found[:, 0].astype(int), data.groups.names)
    rows = AtomRows(np.arange(len(found)))
    of_atoms = TrainingData(rows, found[:, 1], data.classes, groups, totals)
    shuffled = np.random.default_rng(1).permutation(len(data.y))
    shards = [
        Shard(model.X[rows], np.ravel(atoms)[rows].astype(np.uint8), data.sample_weight[rows])
        for rows in np.array_split(shuffled, n_shards)
    ]
    sharded = ShardedLinearModel.of(model, LocalShards(shards, n_threads), totals)
    loss = resolve_objective("loss", "logistic").bind(of_atoms.y, totals)
    objective = CompositeFunction(sharded, loss, fit.problem.objective.penalty)
    free = Problem(objective, domain=fit.problem.domain)
    parts = bound_parts(fit.constraints, sharded, of_atoms, Unconstrained(free).weighted_scores)
    return Problem(objective, tuple(parts), fit.problem.domain)


def assert_same(fit, problem, *, approximate=False):
    w = np.random.default_rng(2).normal(scale=0.3, size=problem.n_variables)
    here, there = fit.problem.at(w), problem.at(w)
    multipliers = np.random.default_rng(3).uniform(size=problem.n_constraints)
    same = {"rtol": 1e-9, "atol": 1e-9}  # sums at many thresholds are taken on a grid, to 1e-9
    np.testing.assert_allclose(there.objective, here.objective, **same)
    np.testing.assert_allclose(there.constraints, here.constraints, **same)
    np.testing.assert_allclose(there.gradient(multipliers), here.gradient(multipliers), **same)
    np.testing.assert_allclose(there.gap, here.gap, **same)
    from_histograms = {"rtol": 0.0, "atol": 0.01} if approximate else same
    decided = there.decided.constraints, here.decided.constraints
    np.testing.assert_allclose(*decided, **from_histograms)


@pytest.fixture(params=["collected", "histograms"])
def approximate(request, monkeypatch):
    """Whether distributions of scores come from histograms; few rows are collected otherwise."""
    if request.param == "histograms":
        monkeypatch.setattr(sharded_scores, "_FEW_ROWS", 0)
    return request.param == "histograms"


RANKS = {"partial_dp", "weak_partial_dp"}
EXACT = sorted(
    name
    for name in set(CONSTRAINTS) - PAIRS - RANKS - {"churn"}
    if not CONSTRAINTS[name]().needs_queries
)


@pytest.mark.parametrize("name", EXACT)
def test_values_gradients_and_solutions_are_those_of_one_table(name):
    fit = bound(name, solver="augmented-lagrangian")
    problem = in_shards(fit)
    assert_same(fit, problem)
    here, there = (
        fit.estimator._solver(fit.problem).minimize(fit.problem),
        fit.estimator._solver(fit.problem).minimize(problem),
    )
    assert there.status == here.status
    assert there.objective == pytest.approx(here.objective, rel=1e-8)
    np.testing.assert_allclose(there.w, here.w, atol=1e-6)


def test_automatic_ranks_come_from_the_distribution_of_the_scores(approximate):
    fit = bound(PartialDemographicParity())
    problem = in_shards(fit)
    assert problem.constraints[0].term.ranks == fit.problem.constraints[0].term.ranks
    assert_same(fit, problem, approximate=approximate)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_quadratic_surrogates_of_pairs_are_sums_and_others_have_no_gradient(name, approximate):
    fit = bound(name)
    assert_same(fit, in_shards(fit), approximate=approximate)
    problem = in_shards(bound(type(CONSTRAINTS[name]())(surrogate="sigmoid")))
    with pytest.raises(TypeError, match="not a sum over rows"):
        problem.at(problem.start()).gradient(np.ones(problem.n_constraints))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_dense_and_sparse_rows_of_both_precisions(container, dtype):
    fit = bound("equalized_odds", container=container, dtype=dtype)
    problem = in_shards(fit)
    assert_same(fit, problem)
    w = np.random.default_rng(2).normal(scale=0.3, size=problem.n_variables)
    multipliers = np.random.default_rng(3).uniform(size=problem.n_constraints)
    here, there = (one.at(w).hessian(multipliers) for one in (fit.problem, problem))
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n_shards", "n_threads"), [(1, 1), (7, 1), (7, 2)])
def test_neither_the_number_of_shards_nor_threads_matter(n_shards, n_threads):
    fit = bound("equalized_odds")
    assert_same(fit, in_shards(fit, n_shards, n_threads))


def test_an_evaluation_with_its_gradient_reads_the_rows_once():
    problem = in_shards(bound("equalized_odds")).uncounted()
    at = problem.at(np.ones(problem.n_variables))
    at.objective, at.constraints, at.gradient(np.ones(problem.n_constraints))
    assert problem.passes == 1.0


@pytest.mark.parametrize("solver", ["plada", "ssg"])
def test_deterministic_solvers_take_rows_in_shards(solver):
    fit = bound("demographic_parity", solver=solver)
    options = {"max_data_passes": 60}
    here = fit.estimator._solver(fit.problem).minimize(fit.problem, **options)
    there = fit.estimator._solver(fit.problem).minimize(in_shards(fit), **options)
    # Switching makes the last digits of the weights depend on the order of sums.
    assert there.objective == pytest.approx(here.objective, rel=1e-5)
    assert there.violation == pytest.approx(here.violation, abs=1e-5)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["roc_parity", "partial_dp", "equalized_odds", "group_auc"])
def test_rows_of_the_jacobian_are_those_of_one_table_and_one_round(name):
    given = {"ranks": (0.1, 0.6), "n_ranks": 7} if name == "partial_dp" else {}
    fit = bound(CONSTRAINTS[name](**given))
    problem = in_shards(fit)
    w = np.random.default_rng(2).normal(scale=0.3, size=problem.n_variables)
    here, there = fit.problem.at(w), problem.at(w)
    np.testing.assert_allclose(there.constraints, here.constraints, rtol=1e-9, atol=1e-12)
    shards, rounds = problem.models[0].shards, []
    gather = shards.gather

    def counted(function, *arguments):
        rounds.append(function.__name__)
        return gather(function, *arguments)

    object.__setattr__(shards, "gather", counted)
    for which in (np.arange(problem.n_constraints), np.array([problem.n_constraints - 1, 0])):
        rounds.clear()
        found = there.constraint_gradients(which)
        np.testing.assert_allclose(found, here.constraint_gradients(which), rtol=1e-9, atol=1e-9)
        assert len(rounds) <= 1
