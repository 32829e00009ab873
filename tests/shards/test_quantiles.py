"""The score above which a share of the rows in shards lies, and that of all scores in memory."""

import numpy as np
import pytest

from fairconstrained.models.linear import LinearModel
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.rows import Shard
from fairconstrained.shards.scores import ShardedScores
from fairconstrained.shards.sums import LocalShards
from fairconstrained.utils.numerics import score_below_share

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


def in_shards(scores, weight, n_shards):
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
        model = in_shards(scores, weight, n_shards)
        for share in SHARES:
            found = ShardedScores(model, np.ones(1)).score_below_share(share)
            assert found == score_below_share(scores, ones, share), (n_shards, share)
