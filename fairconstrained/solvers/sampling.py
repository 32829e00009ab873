"""Mini-batches: rows drawn from every cell, or whole blocks such as queries, and their weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class StratifiedSampler:
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
    """

    def __init__(self, problem: Problem, size: int, random_state: np.random.RandomState):
        self.problem = problem
        self.rng = random_state
        self.rows: list[_Draws] = [
            _Strata(strata, size) if blocks is None else _Blocks(blocks, size)
            for strata, blocks in zip(problem.strata(), problem.blocks(), strict=True)
        ]

    def draw(self) -> Batch:
        """Return the problem on a batch, with all constraints."""
        drawn = [one.draw(self.rng) for one in self.rows]
        return Batch(
            self.problem.batch(
                *(rows for rows, _ in drawn), weights=[weights for _, weights in drawn]
            )
        )


class _Draws(ABC):
    """How the rows of one model are drawn."""

    @abstractmethod
    def draw(self, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Return positions of rows and their weights."""


class _Strata(_Draws):
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

    def draw(self, rng: np.random.RandomState) -> tuple[Array, Array]:
        chosen = self.first + (rng.random_sample(len(self.first)) * self.size).astype(int)
        return self.order[chosen], self.weights


class _Blocks(_Draws):
    """The blocks of one model's rows, of which some are drawn with all their rows."""

    def __init__(self, codes: Array, size: int):
        self.order, self.starts = grouped(codes)
        self.n_blocks = len(self.starts) - 1
        wanted = round(size * self.n_blocks / max(len(codes), 1))
        self.n_drawn = min(max(wanted, 1), self.n_blocks)

    def draw_blocks(self, rng: np.random.RandomState) -> Array:
        """Return some blocks, each with the same probability."""
        if self.n_drawn == 1:
            return rng.randint(self.n_blocks, size=1)
        return np.sort(rng.permutation(self.n_blocks)[: self.n_drawn])

    @property
    def weight(self) -> float:
        """One over the probability of a block to be drawn."""
        return self.n_blocks / self.n_drawn

    def rows(self, blocks: Array) -> Array:
        """Return the rows of some blocks."""
        return self.order[ranges(self.starts[blocks], self.starts[blocks + 1])]

    def draw(self, rng: np.random.RandomState) -> tuple[Array, Array]:
        rows = self.rows(self.draw_blocks(rng))
        return rows, np.full(len(rows), self.weight)


class ConstraintSampler:
    """Draws whole blocks of rows together with the constraints that they determine.

    Made for problems with thousands of constraints, one or a few per query: a draw costs as much
    as its rows, whatever the number of constraints.

    Parameters
    ----------
    problem : Problem
        The full problem, see `applies`.
    size : int
        The rows to draw, roughly; one block at least.
    random_state : numpy.random.RandomState
        The source of randomness.
    """

    def __init__(self, problem: Problem, size: int, random_state: np.random.RandomState):
        self.problem = problem
        self.rng = random_state
        codes = problem.blocks()[0]
        assert codes is not None, "see applies"
        self.blocks = _Blocks(codes, size)
        self.outputs, first = [], 0
        for part in problem.constraints:
            found = _output_blocks(part)
            assert found is not None, "see applies"
            order, starts = grouped(found, self.blocks.n_blocks)
            self.outputs.append((order, starts, first))
            first += part.n_outputs

    @staticmethod
    def applies(problem: Problem) -> bool:
        """Return whether every constraint is determined by one block of rows of one model."""
        parts = problem.constraints
        return (
            len(problem.models) == 1
            and bool(parts)
            and not any(_output_blocks(part) is None for part in parts)
        )

    def draw(self) -> Batch:
        """Return the problem on the rows of some blocks."""
        blocks = self.blocks.draw_blocks(self.rng)
        rows = self.blocks.rows(blocks)
        batch = self.problem.with_constraints(()).batch(
            rows, weights=[np.full(len(rows), self.blocks.weight)]
        )
        model, parts, positions = batch.models[0], [], []
        for part, (order, starts, first) in zip(
            self.problem.constraints, self.outputs, strict=True
        ):
            chosen = order[ranges(starts[blocks], starts[blocks + 1])]
            assert part.term is not None, "see applies"
            drawn = part.with_outputs(part.term.take_outputs(rows, chosen), chosen)
            parts.append(replace(drawn, model=model))
            positions.append(first + chosen)
        constraints = np.concatenate(positions)
        return Batch(batch.with_constraints(parts), constraints, self.blocks.weight)


def _output_blocks(part: CompositeFunction) -> Array | None:
    """Return the block that determines each output of a part, None if there is none."""
    return None if part.term is None else part.term.output_blocks()
