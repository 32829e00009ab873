"""Rows in shards: the same values, gradients and solutions as with all rows in one table."""

import numpy as np
import pytest
import scipy.sparse as sp

import fairconstrained as fc
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.rows import Unconstrained, bound_parts
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import ShardedScores
from fairconstrained.shards.sums import AtomRows, LocalShards, Shard
from fairconstrained.terms.cell_means import rates_on_line, zeros_on_line
from fairconstrained.utils.arrays import score_below_share

PAIRS = {"group_auc", "inter_group_auc", "intra_group_auc"}
N_ROWS = 3000


def bound(constraint, *, container=np.asarray, dtype=float, solver="auto"):
    """Return a fit to rows in memory."""
    X, y, groups = fc.make_biased_classification(N_ROWS, gap=0.3, n_groups=3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N_ROWS)
    classifier = fc.FairLogisticClassifier(constraint, 0.05, solver=solver)
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
    loss = fc.objectives.resolve_objective("loss", "logistic").bind(of_atoms.y, totals)
    objective = CompositeFunction(sharded, loss, fit.problem.objective.penalty)
    free = Problem(objective, domain=fit.problem.domain)
    parts = bound_parts(fit.constraints, sharded, of_atoms, Unconstrained(free).on(sharded))
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


RANKS = {"partial_dp", "weak_partial_dp"}
EXACT = sorted(
    name
    for name in set(fc.constraints.CONSTRAINTS) - PAIRS - RANKS - {"churn"}
    if not fc.constraints.CONSTRAINTS[name]().needs_queries
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


def test_automatic_ranks_come_from_the_distribution_of_the_scores():
    fit = bound(fc.constraints.PartialDemographicParity())
    problem = in_shards(fit)
    assert problem.constraints[0].term.ranks == fit.problem.constraints[0].term.ranks
    assert_same(fit, problem, approximate=True)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_quadratic_surrogates_of_pairs_are_sums_and_others_have_no_gradient(name):
    fit = bound(name)
    assert_same(fit, in_shards(fit), approximate=True)
    problem = in_shards(bound(type(fc.constraints.CONSTRAINTS[name]())(surrogate="sigmoid")))
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
    fit = bound(fc.constraints.CONSTRAINTS[name](**given))
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


NAMES = ["demographic_parity", "equalized_odds", "error_rate_parity", "intersectional_loss"]


def problems(name, n_shards=3):
    """Return a problem with its rows in memory and in shards, and two models."""
    fit = bound(fc.constraints.CONSTRAINTS[name]())
    random = np.random.default_rng(4)
    ends = random.normal(scale=0.5, size=(2, fit.model.n_parameters))
    return fit, in_shards(fit, n_shards), *ends


def line_of(problem, w, direction, counted=None):
    counts = [] if counted is None else counted
    return ShardedScores(problem.models[0], w, direction, counts.append)


@pytest.mark.parametrize("name", NAMES)
def test_rates_along_a_line_are_those_of_all_rows(name):
    fit, sharded, w, direction = problems(name)
    points, counted = np.linspace(-2.0, 2.0, 41), []
    line = line_of(sharded, w, direction, counted)
    (found,) = line.rates([sharded.constraints[0].zero_one().term], points)
    at, by = (fit.model.forward(one)[0] for one in (w, direction))
    (wanted,) = rates_on_line([fit.problem.constraints[0].zero_one().term], at, by, points)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert counted == [len(at)]
    terms = [part.zero_one().term for part in sharded.constraints]
    (statistics,) = line.statistics([(terms[0], np.zeros((41, 0)))], points)
    np.testing.assert_allclose(statistics.T, wanted, atol=1e-12)


@pytest.mark.parametrize("reach", [(-0.5, 1.5), (-np.inf, np.inf), (5e8, 6e8)])
def test_zeros_are_quantiles_that_do_not_depend_on_the_shards(reach):
    fit, sharded, w, _ = problems("demographic_parity")
    direction = fit.model.offset()
    found = line_of(sharded, w, direction).zeros(reach)
    at = fit.model.forward(w)[0]
    zeros = zeros_on_line(at, np.ones_like(at))
    zeros = np.sort(zeros[(zeros >= reach[0]) & (zeros <= reach[1])])
    assert len(found) == len(zeros)  # of few rows each has one
    width = np.ptp(zeros) if not np.isfinite(reach[1]) else reach[1] - reach[0]
    np.testing.assert_allclose(found, zeros, atol=width / 65536)
    other = in_shards(fit, 7)
    np.testing.assert_array_equal(line_of(other, w, direction).zeros(reach), found)


@pytest.mark.parametrize("name", ["partial_dp", "group_auc"])
def test_statistics_of_distributions_come_from_histograms(name):
    given = {"ranks": (0.1, 0.6), "n_ranks": 3} if name == "partial_dp" else {}
    fit = bound(fc.constraints.CONSTRAINTS[name](**given))
    sharded = in_shards(fit)
    random = np.random.default_rng(4)
    w, direction = random.normal(scale=0.5, size=(2, fit.model.n_parameters))
    term = sharded.constraints[0].zero_one().term
    points, own = np.array([-1.0, 0.5]), np.zeros((2, term.n_auxiliary))
    counted = []
    (found,) = line_of(sharded, w, direction, counted).statistics([(term, own)], points)
    assert sum(counted) == 2 * fit.model.n_rows
    for t, statistics in zip(points, found, strict=True):
        scores = fit.model.forward(w + t * direction)[0]
        here = fit.problem.constraints[0].zero_one().term.forward(scores)[0]
        np.testing.assert_allclose(statistics, here, atol=0.01)


def test_rows_above_thresholds():
    fit, sharded, w, _ = problems("demographic_parity")
    model, scores = sharded.models[0], fit.model.forward(w)[0]
    thresholds = np.array([0.7, -np.inf, 0.0, -0.3])
    weights, counts = ShardedScores(model, w).above(thresholds)
    pairs = np.column_stack([fit.data.groups.codes, fit.data.y])
    atoms = np.ravel(np.unique(pairs, axis=0, return_inverse=True)[1])
    for k, threshold in enumerate(thresholds):
        above = scores > threshold
        np.testing.assert_array_equal(counts[:, k], np.bincount(atoms[above]))
        weight = np.bincount(atoms[above], fit.data.sample_weight[above])
        np.testing.assert_allclose(weights[:, k], weight)
    assert ShardedScores(model, w).range[0] == pytest.approx(scores.min())
    some = model.on(AtomRows(np.array([4, 1])))
    np.testing.assert_array_equal(ShardedScores(some, w).above(thresholds)[1], counts[[4, 1]])


N_SCORES = 30_000
SHARES = (1e-6, 0.001, 0.2, 0.5, 0.77, 0.9999, 1.0 - 1e-6)

SCORES = {
    "normal": lambda random: random.normal(size=N_SCORES),
    "with outliers": lambda random: random.standard_cauchy(N_SCORES) ** 3,
    "with ties": lambda random: random.integers(0, 9, N_SCORES) / 7.0,
    "most are equal": lambda random: random.normal(size=N_SCORES) * (random.random(N_SCORES) < 0.1),
    "two values": lambda random: random.integers(0, 2, N_SCORES).astype(float),
    "all equal": lambda random: np.full(N_SCORES, -1.5),
    "neighbouring numbers": lambda random: 1.0 + np.spacing(1.0) * random.integers(0, 40, N_SCORES),
}


def of_one_feature(scores, weight, n_shards):
    """Return a model of one feature, which is the score."""
    weight = np.ones(N_SCORES) if weight is None else weight
    parts = np.array_split(np.arange(N_SCORES), n_shards)
    shards = [Shard(scores[p, None], np.zeros(len(p), int), weight[p]) for p in parts]
    total = np.array([weight.sum()], dtype=float)
    plain = LinearModel(np.empty((0, 1)), fit_intercept=False)
    return ShardedLinearModel.of(plain, LocalShards(shards), total)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(SCORES))
def test_it_is_the_score_of_all_rows_in_memory(name, weighted):
    random = np.random.default_rng(0)
    scores = SCORES[name](random)
    weight = random.uniform(0.5, 2.0, N_SCORES) if weighted else None
    ones = np.ones(N_SCORES) if weight is None else weight
    for n_shards in (1, 5):
        model = of_one_feature(scores, weight, n_shards)
        for share in SHARES:
            found = ShardedScores(model, np.ones(1)).score_below_share(share)
            assert found == score_below_share(scores, ones, share), (n_shards, share)
