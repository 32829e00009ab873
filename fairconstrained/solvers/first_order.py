"""What first-order methods share: the loop, the rows a step reads, constants of a problem."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from sklearn.utils.random import sample_without_replacement

from fairconstrained.models.linear import largest_eigenvalue
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.utils.arrays import Array, grouped, ranges
from fairconstrained.utils.parameter_constraints import Count, Limit

_DRAWS = 5  # batches that constants are measured on: a single one may miss the steep rows
_LARGER = 10.0  # the penalty on constraints of drawn blocks, in units of that on all constraints
_N_ITER = 6  # of power iterations for the curvature, half as many for the slope: one digit will do
_SHORT = 0.01  # distance over which constraints are nearly linear

Updates = Iterator[Iterable[tuple[Evaluation, Array | None]]]
Draw = Callable[[np.random.RandomState], tuple[Array, Array, Array]]


class FirstOrderSolver(Solver, kw_only=True):
    """Base of the methods that make one gradient step after another.

    Parameters
    ----------
    max_iter : int, default=200
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
    tol, polish
        See :class:`Solver`.
    """

    max_iter: Limit = 200
    check_every: Count = 50
    polish: bool = True

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a problem must have: terms that take batches, unless every step uses all rows."""
        sizes = (getattr(self, name, None) for name in ("batch_size", "checkpoint_size"))
        return () if all(size is None for size in sizes) else ("batchable",)

    def moved(self, at: Evaluation, step: Array) -> Array:
        """Return the point of the domain next to the one after a step against `step`."""
        return at.problem.domain.project(at.w - step)

    def interval(self, problem: Problem) -> int:
        """Return the number of steps between two measurements."""
        return self.check_every

    @abstractmethod
    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield after every step, without end, the points to measure and their multipliers."""

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers every `check_every` steps."""
        every, updates = self.interval(problem), self.updates(problem, start)
        for k, answers in zip(range(1, self.max_iter + 1), updates, strict=False):
            if k % every == 0 or k == self.max_iter or start.passes_used_up(problem):
                yield from (Iterate(at, multipliers, k) for at, multipliers in answers)


class Constants(NamedTuple):
    """What the steps of a method are made from.

    `curvature`, L, is the largest one of the objective, or of the Lagrangian with given
    multipliers; the slope for one without curvature. `slope`, M, is the largest singular value of
    the constraints' Jacobian; 1 without constraints.
    """

    curvature: float
    slope: float


class Drawn(NamedTuple):
    """A problem or a batch of it at a point, with all constraints or those of the drawn blocks.

    Attributes
    ----------
    at : Evaluation
        The objective is an unbiased estimate. So are the constraints, but for those that the rows
        determine, which have their exact values.
    constraints : slice or ndarray of int of shape (n_drawn,)
        The positions of its constraints among those of the full problem.
    weight : float
        One over the probability of a constraint to be drawn: the factor of its multiplier in an
        unbiased gradient of the Lagrangian.
    """

    at: Evaluation
    constraints: slice | Array = slice(None)
    weight: float = 1.0


@dataclass(eq=False)
class Rows:
    """What the steps of a run read: all rows, a batch, or blocks with their constraints.

    In a batch every stratum of rows has its share, and at least two rows. Rows of one stratum
    belong to the same cells of every term; a small group is thus never missed, and the sizes of the
    cells add no noise. Each stratum is drawn with replacement; a row's weight is the size of its
    stratum over the rows drawn from it, which makes every statistic unbiased.

    Where terms have blocks, such as the queries of a ranker, whole blocks are drawn instead: as
    many as have `size` rows on average, one at least, without replacement. If blocks of one model
    determine all constraints, a batch has only those of its blocks. With thousands of constraints,
    one or a few per query, a draw then costs as much as its rows.
    """

    problem: Problem  # the full problem
    start: Start  # where the run starts, and its source of randomness
    # the rows to draw per model, roughly (small strata are rounded up). With None, or as many as
    # there are, every draw has all rows
    size: int | None = None
    memory: int = 1  # the number of points that the answer averages over, with batches
    n_steps: int = 1  # the steps of the run, over which steps on batches shrink
    all_constraints: bool = False  # whether a batch has all constraints in any case

    def __post_init__(self) -> None:
        """Sort rows and constraints by what is drawn together."""
        problem, self.rng = self.problem, self.start.random_state
        self.first, self.mean, self._n_drawn = self.start.at(problem), self.start.w, 0
        size = problem.n_rows if self.size is None else self.size
        self.sampled = size < problem.n_rows
        self._draws: list[Draw] = []  # of each model
        self._outputs: list[tuple[Array, Array]] = []  # of each constraint, sorted by block
        if not self.sampled:
            return
        for strata, blocks in zip(problem.strata(), problem.blocks(), strict=True):
            self._draws.append(_strata(strata, size) if blocks is None else _blocks(blocks, size))
        codes = [part.term.output_blocks for part in problem.constraints]
        if not self.all_constraints and len(self._draws) == 1 and all(c is not None for c in codes):
            self._outputs = [grouped(np.asarray(c), problem.n_rows) for c in codes]

    def draw(self, w: Array, like: Evaluation | None = None) -> Drawn:
        """Return what the step from `w` sees, and count the point in the average.

        For all rows an evaluation there spares forward passes.
        """
        self._n_drawn += 1
        # the first points are soon forgotten: the share of a new one is large at first
        share = max(1.0 / self.memory, min(4.0 / self._n_drawn, 1.0))
        self.mean = self.mean + share * (w - self.mean)
        return self._draw(w, like or self.first)

    def _draw(self, w: Array, like: Evaluation) -> Drawn:
        problem = self.problem
        if not self.sampled:
            return Drawn(problem.at(w, like=like))
        rows, weights, blocks = zip(*(draw(self.rng) for draw in self._draws), strict=True)
        if not self._outputs:
            return Drawn(problem.batch(*rows, weights=weights).at(w))
        batch = problem.with_constraints(()).batch(*rows, weights=weights)
        parts, positions = [], []
        parts_of = zip(problem.constraints, problem.places, self._outputs, strict=True)
        for part, place, (order, starts) in parts_of:
            chosen = order[ranges(starts[blocks[0]], starts[blocks[0] + 1])]
            term, level = part.term.take_outputs(rows[0], chosen), part.level_of(chosen)
            parts.append(replace(part, model=batch.models[0], term=term, level=level))
            positions.append(place.start + chosen)
        at = batch.with_constraints(parts).at(w)
        return Drawn(at, np.concatenate(positions), float(weights[0][0]))

    def answers(self, at: Evaluation) -> list[Evaluation]:
        """Return the point itself; with batches the average of recent points, on all rows.

        Averages of points on the boundary lie inside: at the end the last point may be better.
        """
        if not self.sampled:
            return [at]
        last = self._n_drawn > self.n_steps
        return [self.problem.at(w) for w in ((self.mean, at.w) if last else (self.mean,))]

    @property
    def fade(self) -> float:
        """The factor of the size of the next step: noise must end."""
        return (1.0 - self._n_drawn / self.n_steps) ** 2 if self.sampled else 1.0

    @cached_property
    def constants(self) -> Constants:
        """L and M as the steps see them, measured when they are first asked for."""
        if not self.sampled:
            return constants_at(self.first)
        batches = [self._draw(self.first.w, self.first) for _ in range(_DRAWS)]
        curvature, slope = np.max([constants_at(batch.at) for batch in batches], axis=0)
        if batches[0].weight > 1.0:
            # The penalty on a drawn constraint is weighted as its gradient is. Its multiplier moves
            # only when it is drawn, hence by larger steps: as if it were less steep.
            slope *= sqrt(batches[0].weight / _LARGER)
        return Constants(float(curvature), float(slope))


def _strata(codes: Array, size: int) -> Draw:
    """Return what draws rows of every stratum: their positions, their weights, and no blocks."""
    order, starts = grouped(codes)
    sizes = np.diff(starts)
    share = np.round(size * sizes / len(codes)).astype(int)
    counts = np.minimum(np.maximum(share, 2), sizes)
    first, room, weights = (np.repeat(x, counts) for x in (starts[:-1], sizes, sizes / counts))

    def draw(rng: np.random.RandomState) -> tuple[Array, Array, Array]:
        chosen = first + (rng.random_sample(len(first)) * room).astype(int)
        return order[chosen], weights, chosen[:0]

    return draw


def _blocks(codes: Array, size: int) -> Draw:
    """Return what draws blocks, all equally probable: all their rows, weights, and the blocks."""
    order, starts = grouped(codes)
    n_blocks = len(starts) - 1
    n_drawn = min(max(round(size * n_blocks / max(len(codes), 1)), 1), n_blocks)

    def draw(rng: np.random.RandomState) -> tuple[Array, Array, Array]:
        blocks = np.sort(sample_without_replacement(n_blocks, n_drawn, random_state=rng))
        rows = order[ranges(starts[blocks], starts[blocks + 1])]
        return rows, np.full(len(rows), n_blocks / n_drawn), blocks

    return draw


class Mean:
    """The weighted averages of points and of what belongs to them."""

    def __init__(self) -> None:
        self.means: Sequence[Array] = ()
        self.total = 0.0

    def add(self, *values: Array, weight: float = 1.0) -> Sequence[Array]:
        """Add a point; return the averages."""
        self.total += weight
        means = self.means or values
        share = weight / self.total
        self.means = [m + share * (x - m) for m, x in zip(means, values, strict=True)]
        return self.means


def constants_at(at: Evaluation, multipliers: Array | None = None) -> Constants:
    r"""Return how strongly the objective bends near a point, and how steep the constraints are.

    Both are found by power iterations: on differences of gradients over a distance of one, the
    scale of parameters of scaled features, so that a kink counts as what it amounts to there, and
    on differences of constraint values.

    References
    ----------
    PLADA, assumptions 2 and 3 (L_F and M_G).
    """
    problem, gradient = at.problem, at.gradient(multipliers)
    rng = np.random.RandomState(0)  # constants do not depend on the random state of the run

    def bend(v: Array) -> Array:
        return problem.at(at.w + v).gradient(multipliers) - gradient

    def stretch(v: Array) -> Array:
        change = problem.at(at.w + _SHORT * v).constraints - at.constraints
        return at.gradient(change / _SHORT, objective=0.0)

    slope = 0.0
    if problem.n_constraints:
        mixed = at.gradient(rng.standard_normal(problem.n_constraints), objective=0.0)
        slope = sqrt(largest_eigenvalue(stretch, mixed, n_iter=_N_ITER // 2))
    curvature = largest_eigenvalue(bend, rng.standard_normal(problem.n_variables), n_iter=_N_ITER)
    return Constants(curvature or slope or 1.0, slope or 1.0)
