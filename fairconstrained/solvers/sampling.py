"""Mini-batches: rows drawn from every cell, or whole blocks such as queries, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.ranges import grouped, ranges
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Batch:
    """A problem on some rows, with all constraints or with those that these rows determine.

    Attributes
    ----------
    problem : Problem
        The objective is an unbiased estimate. So are the constraints, but for those that the rows
        determine, which have their exact values.
    constraints : slice or ndarray of int of shape (n_drawn,)
        The positions of its constraints among those of the full problem.
    weight : float
        One over the probability of a constraint to be drawn: the factor of its multiplier in an
        unbiased gradient of the Lagrangian.
    """

    problem: Problem
    constraints: slice | Array = field(default_factory=partial(slice, None))
    weight: float = 1.0


class Sampler:
    """Draws batches in which every stratum of rows has its share, and at least two rows.

    Rows of one stratum belong to the same cells of every term; a small group is thus never missed,
    and the sizes of the cells add no noise. Each stratum is drawn with replacement; a row's weight
    is the size of its stratum over the rows drawn from it, which makes every statistic unbiased.

    Where terms have blocks, such as the queries of a ranker, whole blocks are drawn instead: as
    many as have `size` rows on average, one at least, without replacement.

    Parameters
    ----------
    problem : Problem
        The full problem.
    size : int
        The rows to draw per model, roughly (small strata are rounded up).
    random_state : numpy.random.RandomState
        The source of randomness.
    by_block : bool, default=False
        Whether a batch has only the constraints that its blocks determine, if blocks of one model
        determine all constraints. With thousands of constraints, one or a few per query, a draw
        then costs as much as its rows, whatever the number of constraints.
    """

    def __init__(
        self,
        problem: Problem,
        size: int,
        random_state: np.random.RandomState,
        *,
        by_block: bool = False,
    ):
        self.problem, self.rng = problem, random_state
        self.rows = [
            _Strata(strata, size) if blocks is None else _Blocks(blocks, size)
            for strata, blocks in zip(problem.strata(), problem.blocks(), strict=True)
        ]
        codes = [part.term.output_blocks() for part in problem.constraints]
        determined = by_block and len(self.rows) == 1
        self.outputs: list[tuple[CompositeFunction, Array, Array]] = []  # parts, sorted by block
        if determined and all(found is not None for found in codes):
            for part, found in zip(problem.constraints, codes, strict=True):
                self.outputs.append((part, *grouped(np.asarray(found), self.rows[0].n_blocks)))

    def draw(self) -> Batch:
        """Return the problem on a batch."""
        rows, weights, blocks = zip(*(each.draw(self.rng) for each in self.rows), strict=True)
        if not self.outputs:
            return Batch(self.problem.batch(*rows, weights=weights))
        batch = self.problem.with_constraints(()).batch(*rows, weights=weights)
        parts, positions, first = [], [], 0
        for part, order, starts in self.outputs:
            chosen = order[ranges(starts[blocks[0]], starts[blocks[0] + 1])]
            drawn = part.with_outputs(part.term.take_outputs(rows[0], chosen), chosen)
            parts.append(replace(drawn, model=batch.models[0]))
            positions.append(first + chosen)
            first += part.n_outputs
        drawn_ones = np.concatenate(positions)
        return Batch(batch.with_constraints(parts), drawn_ones, self.rows[0].weight)


class _Strata:
    """The strata of one model's rows, and how many rows each contributes to a batch."""

    n_blocks, weight = 0, 1.0

    def __init__(self, codes: Array, size: int):
        sizes = np.bincount(codes)
        share = np.round(size * sizes / len(codes)).astype(int)
        counts = np.minimum(np.maximum(share, 2), sizes)
        self.order = np.argsort(codes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.first = np.repeat(starts, counts)
        self.size = np.repeat(sizes, counts)
        self.weights = np.repeat(sizes / counts, counts)

    def draw(self, rng: np.random.RandomState) -> tuple[Array, Array, Array]:
        """Return positions of rows, their weights, and no blocks."""
        chosen = self.first + (rng.random_sample(len(self.first)) * self.size).astype(int)
        return self.order[chosen], self.weights, chosen[:0]


class _Blocks:
    """The blocks of one model's rows, of which some are drawn with all their rows."""

    def __init__(self, codes: Array, size: int):
        self.order, self.starts = grouped(codes)
        self.n_blocks = len(self.starts) - 1
        wanted = round(size * self.n_blocks / max(len(codes), 1))
        self.n_drawn = min(max(wanted, 1), self.n_blocks)
        self.weight = self.n_blocks / self.n_drawn

    def draw(self, rng: np.random.RandomState) -> tuple[Array, Array, Array]:
        """Return positions of rows, their weights, and their blocks, all equally probable."""
        if self.n_drawn == 1:
            blocks = rng.randint(self.n_blocks, size=1)
        else:
            blocks = np.sort(rng.permutation(self.n_blocks)[: self.n_drawn])
        rows = self.order[ranges(self.starts[blocks], self.starts[blocks + 1])]
        return rows, np.full(len(rows), self.weight), blocks
