"""Sums along lines of models, above thresholds, and quantiles of scores, for rows in shards."""

import numpy as np
import pytest

from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.models.linear import LinearModel
from fairconstrained.shards import scores as sharded_scores
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import ShardedScores
from fairconstrained.shards.sums import AtomRows, LocalShards, Shard
from fairconstrained.terms.cell_means import rates_on_line, zeros_on_line
from fairconstrained.utils.numerics import score_below_share
from tests.shards.test_shards import bound, in_shards

NAMES = ["demographic_parity", "equalized_odds", "error_rate_parity", "intersectional_loss"]


def problems(name, n_shards=3):
    """Return a problem with its rows in memory and in shards, and two models."""
    fit = bound(CONSTRAINTS[name]())
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
@pytest.mark.parametrize(("few_rows", "precision", "n_reads"), [(20_000, 1e-12, 1), (0, 0.01, 2)])
def test_statistics_of_distributions_are_exact_for_few_rows(
    name, few_rows, precision, n_reads, monkeypatch
):
    monkeypatch.setattr(sharded_scores, "_FEW_ROWS", few_rows)
    given = {"ranks": (0.1, 0.6), "n_ranks": 3} if name == "partial_dp" else {}
    fit = bound(CONSTRAINTS[name](**given))
    sharded = in_shards(fit)
    random = np.random.default_rng(4)
    w, direction = random.normal(scale=0.5, size=(2, fit.model.n_parameters))
    term = sharded.constraints[0].zero_one().term
    points, own = np.array([-1.0, 0.5]), np.zeros((2, term.n_auxiliary))
    counted = []
    (found,) = line_of(sharded, w, direction, counted).statistics([(term, own)], points)
    assert sum(counted) == fit.model.n_rows * n_reads
    for t, statistics in zip(points, found, strict=True):
        scores = fit.model.forward(w + t * direction)[0]
        here = fit.problem.constraints[0].zero_one().term.forward(scores)[0]
        np.testing.assert_allclose(statistics, here, atol=precision)


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


N_ROWS = 30_000
SHARES = (1e-6, 0.001, 0.2, 0.5, 0.77, 0.9999, 1.0 - 1e-6)

SCORES = {
    "normal": lambda random: random.normal(size=N_ROWS),
    "with outliers": lambda random: random.standard_cauchy(N_ROWS) ** 3,
    "with ties": lambda random: random.integers(0, 9, N_ROWS) / 7.0,
    "most are equal": lambda random: np.where(
        random.random(N_ROWS) < 0.9, 0.3, random.random(N_ROWS)
    ),
    "two values": lambda random: random.integers(0, 2, N_ROWS).astype(float),
    "all equal": lambda random: np.full(N_ROWS, -1.5),
    "neighbouring numbers": lambda random: 1.0 + np.spacing(1.0) * random.integers(0, 40, N_ROWS),
}


def of_one_feature(scores, weight, n_shards):
    """Return a model of one feature, which is the score."""
    parts = np.array_split(np.arange(N_ROWS), n_shards)
    shards = [
        Shard(scores[own, None], np.zeros(len(own), int), None if weight is None else weight[own])
        for own in parts
    ]
    total = np.array([N_ROWS if weight is None else weight.sum()], dtype=float)
    plain = LinearModel(np.empty((0, 1)), fit_intercept=False)
    return ShardedLinearModel.of(plain, LocalShards(shards), total)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(SCORES))
def test_it_is_the_score_of_all_rows_in_memory(name, weighted):
    random = np.random.default_rng(0)
    scores = SCORES[name](random)
    weight = random.uniform(0.5, 2.0, N_ROWS) if weighted else None
    ones = np.ones(N_ROWS) if weight is None else weight
    for n_shards in (1, 5):
        model = of_one_feature(scores, weight, n_shards)
        for share in SHARES:
            found = ShardedScores(model, np.ones(1)).score_below_share(share)
            assert found == score_below_share(scores, ones, share), (n_shards, share)
