"""What first-order methods share: the loop, the rows a step reads, constants of a problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.utils.numerics import grouped, ranges
from fairconstrained.utils.parameter_constraints import Count, Limit, NonNegative
from fairconstrained.utils.typing import Array

_DRAWS = 5  # batches that constants are measured on: a single one may miss the steep rows
_LARGER = 10.0  # the penalty on constraints of drawn blocks, in units of that on all constraints
_SAFETY = 1.1  # power iterations end below the largest eigenvalue
_N_ITER = 6  # of power iterations for the curvature, half as many for the slope: one digit will do
_TINY = 1e-12

Answers = Iterable[tuple[Evaluation, Array | None]]


@dataclass(eq=False, repr=False)
class FirstOrderSolver(Solver):
    """Base of the methods that make one gradient step after another.

    Parameters
    ----------
    max_iter : int, default=200
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by
        :func:`~fairconstrained.solvers.base.refine`. If False, estimators try no other solver
        either.
    """

    _: KW_ONLY
    max_iter: Limit = 200
    check_every: Count = 50
    tol: NonNegative = 1e-4
    polish: bool = True

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a problem must have: terms that take batches, unless every step uses all rows."""
        sizes = (getattr(self, name, None) for name in ("batch_size", "checkpoint_size"))
        return () if all(size is None for size in sizes) else ("batchable",)

    @abstractmethod
    def updates(self, problem: Problem, start: Start) -> Iterator[Answers]:
        """Yield after every step, without end, the points to measure and their multipliers."""

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers every `check_every` steps."""
        updates = self.updates(problem, start)
        for k, answers in zip(range(1, self.max_iter + 1), updates, strict=False):
            if self.measures(problem, start, k):
                yield from (Iterate(at, multipliers, k) for at, multipliers in answers)


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

    @property
    def has_all(self) -> bool:
        """Whether it has all constraints."""
        return isinstance(self.constraints, slice)


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
    size : int or None
        The rows to draw per model, roughly (small strata are rounded up). With None, or as many as
        there are, every draw has all rows.
    rng : numpy.random.RandomState
        The source of randomness.
    by_block : bool, default=False
        Whether a batch has only the constraints that its blocks determine, if blocks of one model
        determine all constraints. With thousands of constraints, one or a few per query, a draw
        then costs as much as its rows, whatever the number of constraints.
    """

    def __init__(
        self, problem: Problem, size: int | None, rng: np.random.RandomState, by_block: bool = False
    ):
        self.problem, self.rng = problem, rng
        self.rows: list[_Strata | _Blocks] = []
        self.outputs: list[tuple[CompositeFunction, Array, Array]] = []  # parts, sorted by block
        self.sampled = size is not None and size < problem.n_rows
        if size is None or not self.sampled:
            return
        for strata, blocks in zip(problem.strata(), problem.blocks(), strict=True):
            self.rows.append(_Strata(strata, size) if blocks is None else _Blocks(blocks, size))
        codes = [part.term.output_blocks() for part in problem.constraints]
        if by_block and len(self.rows) == 1 and all(blocks is not None for blocks in codes):
            for part, blocks in zip(problem.constraints, codes, strict=True):
                self.outputs.append((part, *grouped(np.asarray(blocks), self.rows[0].n_blocks)))

    def draw(self, w: Array, like: Evaluation | None = None) -> Drawn:
        """Return a batch at `w`; for all rows an evaluation there spares forward passes."""
        if not self.sampled:
            return Drawn(self.problem.at(w, like=like))
        rows, weights, blocks = zip(*(each.draw(self.rng) for each in self.rows), strict=True)
        if not self.outputs:
            return Drawn(self.problem.batch(*rows, weights=weights).at(w))
        batch = self.problem.with_constraints(()).batch(*rows, weights=weights)
        parts, positions, first = [], [], 0
        for part, order, starts in self.outputs:
            chosen = order[ranges(starts[blocks[0]], starts[blocks[0] + 1])]
            drawn = part.with_outputs(part.term.take_outputs(rows[0], chosen), chosen)
            parts.append(replace(drawn, model=batch.models[0]))
            positions.append(first + chosen)
            first += part.n_outputs
        at = batch.with_constraints(parts).at(w)
        return Drawn(at, np.concatenate(positions), self.rows[0].weight)


class _Strata:
    """The strata of one model's rows, and how many rows each contributes to a batch."""

    n_blocks, weight = 0, 1.0

    def __init__(self, codes: Array, size: int):
        sizes = np.bincount(codes)
        share = np.round(size * sizes / len(codes)).astype(int)
        counts = np.minimum(np.maximum(share, 2), sizes)
        self.order = np.argsort(codes, kind="stable")
        self.first = np.repeat(np.cumsum(sizes) - sizes, counts)
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
        if self.n_drawn == 1:  # a permutation of all blocks would cost more than the step
            blocks = rng.randint(self.n_blocks, size=1)
        else:
            blocks = np.sort(rng.permutation(self.n_blocks)[: self.n_drawn])
        rows = self.order[ranges(self.starts[blocks], self.starts[blocks + 1])]
        return rows, np.full(len(rows), self.weight), blocks


class Rows(Sampler):
    """What the steps of a run read: all rows, a batch, or blocks with their constraints.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    start : Start
        Where the run starts, and its source of randomness.
    size : int or None, default=None
        The rows of a batch, see :class:`Sampler`.
    memory : int, default=1
        The number of points that the answer averages over, with batches.
    """

    def __init__(self, problem: Problem, start: Start, size: int | None = None, memory: int = 1):
        super().__init__(problem, size, start.random_state, by_block=True)
        self.first, self.mean = start.at(problem), start.w
        self._memory, self._n_drawn = memory, 0

    def draw(self, w: Array, like: Evaluation | None = None) -> Drawn:
        """Return what the step from `w` sees, and count the point in the average."""
        self._n_drawn += 1
        # the first points are soon forgotten: the share of a new one is large at first
        share = max(1.0 / self._memory, min(4.0 / self._n_drawn, 1.0))
        self.mean = self.mean + share * (w - self.mean)
        return super().draw(w, like or self.first)

    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        """Return the point itself; with batches the average of recent points, on all rows.

        Averages of points on the boundary lie inside: at the end the last point may be better.
        """
        if not self.sampled:
            return [at]
        return [self.problem.at(w) for w in ((self.mean, at.w) if last else (self.mean,))]

    def fade(self, done: float) -> float:
        """Return the factor of the step size when a share of the run is done: noise must end."""
        return (1.0 - done) ** 2 if self.sampled else 1.0

    def constants(self) -> tuple[float, float]:
        """Return L and M as the steps see them, see `constants_at`."""
        if not self.sampled:
            return constants_at(self.first)
        batches = [super(Rows, self).draw(self.first.w) for _ in range(_DRAWS)]
        curvature, slope = np.max([constants_at(batch.at) for batch in batches], axis=0)
        if batches[0].weight > 1.0:
            # The penalty on a drawn constraint is weighted as its gradient is. Its multiplier moves
            # only when it is drawn, hence by larger steps: as if it were less steep.
            slope *= sqrt(batches[0].weight / _LARGER)
        return float(curvature), float(slope)


class Average:
    """The weighted average of points."""

    def __init__(self) -> None:
        self.mean: Array = np.zeros(())
        self.total = 0.0

    def add(self, x: Array, weight: float = 1.0) -> None:
        """Add a point."""
        self.total += weight
        self.mean = self.mean + weight / self.total * (x - self.mean)


def moved(at: Evaluation, step: Array) -> Array:
    """Return the point of the domain next to the one after a step against `step`."""
    return at.problem.domain.project(at.w - step)


def worst_constraint(values: Array) -> tuple[float, Array]:
    """Return the largest constraint value and the unit vector of its constraint."""
    unit = np.zeros(len(values))
    if not len(values):
        return -np.inf, unit
    unit[int(values.argmax())] = 1.0
    return float(values.max()), unit


def linearised(at: Evaluation, w: Array) -> Array:
    """Return the constraints at `w` in their linearisation at a point."""
    jacobian = at.constraint_gradients(np.arange(at.problem.n_constraints))
    return np.asarray(at.constraints + jacobian @ (w - at.w))


def constants_at(at: Evaluation, multipliers: Array | None = None) -> tuple[float, float]:
    r"""Return how strongly the objective bends near a point, and how steep the constraints are.

    Both are found by power iterations: on differences of gradients over distances that change the
    scores by about one, so that a kink counts as what it amounts to there, and on differences of
    constraint values.

    Parameters
    ----------
    at : Evaluation
        The problem, or a batch of it, at the point.
    multipliers : ndarray of shape (n_constraints,) or None, default=None
        The constraints whose curvature counts as well.

    Returns
    -------
    curvature : float
        L, the largest curvature of the objective, or of the Lagrangian with the multipliers; the
        slope for one without curvature.
    slope : float
        M, the largest singular value of the constraints' Jacobian; 1 without constraints.

    References
    ----------
    PLADA, assumptions 2 and 3 (L_F and M_G).
    """
    problem, gradient = at.problem, at.gradient(multipliers)
    rng = np.random.RandomState(0)  # constants do not depend on the random state of the run

    def near(v: Array, share: float) -> tuple[Evaluation, float]:
        """Return the evaluation where scores have changed by a share, and the length of the way."""
        change = at.root_mean_square_change(v)
        length = share / change if change > _TINY else share
        return problem.at(at.w + length * v), length

    def bend(v: Array) -> Array:
        there, length = near(v, 1.0)
        return (there.gradient(multipliers) - gradient) / length

    def stretch(v: Array) -> Array:
        there, length = near(v, 0.01)
        return at.gradient((there.constraints - at.constraints) / length, objective=0.0)

    slope = 0.0
    if problem.n_constraints:
        mixed = at.gradient(rng.standard_normal(problem.n_constraints), objective=0.0)
        slope = sqrt(_largest_eigenvalue(stretch, mixed, _N_ITER // 2))
    first = rng.standard_normal(problem.n_variables)
    curvature = _largest_eigenvalue(bend, first, _N_ITER)
    return curvature or slope or 1.0, slope or 1.0


def _largest_eigenvalue(image: Callable[[Array], Array], v: Array, n_iter: int) -> float:
    """Return the size of the largest eigenvalue of a symmetric map, a bit enlarged."""
    value = 0.0
    for _ in range(n_iter):
        norm = float(np.linalg.norm(v))
        if norm <= _TINY:
            break
        unit = v / norm
        v = image(unit)
        value = abs(float(unit @ v))
    return _SAFETY * value
