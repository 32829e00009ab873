"""Mini-batches: rows drawn from every cell, weighted so that statistics are unbiased."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.utils.typing import Array


class StratifiedSampler:
    """Draws batches in which every stratum of rows has its share, and at least two rows.

    Rows of one stratum belong to the same cells of every term; a small group is thus never missed,
    and the sizes of the cells add no noise. Each stratum is drawn with replacement; a row's weight
    is the size of its stratum over the rows drawn from it, which makes every statistic unbiased.

    Parameters
    ----------
    problem : Problem
        The full problem.
    size : int
        The rows to draw per model, roughly (small strata are rounded up).
    random_state : numpy.random.RandomState
        The source of randomness.
    """

    def __init__(self, problem: Problem, size: int, random_state: Any):
        self.problem = problem
        self.rng = random_state
        self.strata = [_Strata(codes, size) for codes in problem.strata()]

    def draw(self) -> Problem:
        """Return the problem on a batch."""
        drawn = [strata.draw(self.rng) for strata in self.strata]
        weights = [strata.weights for strata in self.strata]
        return self.problem.batch(*drawn, weights=weights)


class _Strata:
    """The strata of one model's rows, and how many rows each contributes to a batch."""

    def __init__(self, codes: Array, size: int):
        sizes = np.bincount(codes)
        share = np.round(size * sizes / len(codes)).astype(int)
        counts = np.minimum(np.maximum(share, 2), sizes)
        self.order = np.argsort(codes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.first = np.repeat(starts, counts)
        self.size = np.repeat(sizes, counts)
        self.weights = np.repeat(sizes / counts, counts)

    def draw(self, rng: Any) -> Array:
        """Return positions of rows."""
        return self.order[self.first + (rng.random_sample(len(self.first)) * self.size).astype(int)]
