"""What the steps of a primal-dual method read: all rows, a batch, or blocks with constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import sqrt

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.sampling import ConstraintSampler, StratifiedSampler
from fairconstrained.solvers._tools.smoothness import Lipschitz
from fairconstrained.solvers.base import Solver
from fairconstrained.solvers.start import Start
from fairconstrained.utils.typing import Array

_PROBES = 5  # batches that the constants are measured on


class BatchSolver(Solver):
    """Base of the methods whose steps read all rows or a batch.

    Attributes
    ----------
    batch_size : int or None
        A parameter: the rows of a batch; None for all rows.
    """

    batch_size: int | None

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a problem must have: terms that take batches, unless every step uses all rows."""
        return () if self.batch_size is None else ("batchable",)


class PrimalDualSolver(BatchSolver):
    """Base of the methods whose steps change weights and multipliers.

    Attributes
    ----------
    check_every : int
        A parameter: the steps between two measurements.
    variance_reduction : bool
        A parameter: whether a batch's values of constraints are corrected.
    """

    check_every: int
    variance_reduction: bool

    def rows(self, problem: Problem, start: Start) -> RowSource:
        """Return what the steps of a run read, see `rows_of`."""
        return rows_of(
            problem,
            start,
            self.batch_size,
            self.check_every,
            variance_reduction=self.variance_reduction,
        )


def rows_of(
    problem: Problem,
    start: Start,
    batch_size: int | None,
    memory: int,
    *,
    variance_reduction: bool = True,
) -> RowSource:
    """Return what the steps of a run read.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    start : Start
        Where the run starts, and its source of randomness.
    batch_size : int or None
        The rows of a batch, roughly; None takes all rows. Where every constraint is determined by a
        block of rows, batches are whole blocks with their constraints.
    memory : int
        The number of points that the answer averages over, with batches.
    variance_reduction : bool, default=True
        Whether a batch's values of constraints are corrected by exact ones at an earlier point.
    """
    if batch_size is None:
        return AllRows(start.at(problem))
    if ConstraintSampler.applies(problem):
        constraints = ConstraintSampler(problem, batch_size, start.random_state)
        return Blocks(constraints, start.at(problem), memory)
    sampler = StratifiedSampler(problem, batch_size, start.random_state)
    return Batches(sampler, start.at(problem), memory, corrected=variance_reduction)


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a step sees of the problem.

    Attributes
    ----------
    at : Evaluation
        What gives the gradients.
    values : ndarray of shape (n_drawn,)
        The values of the drawn constraints.
    constraints : slice or ndarray of int of shape (n_drawn,)
        Their positions among all.
    weight : float
        One over the probability with which each of them is drawn.
    """

    at: Evaluation
    values: Array
    constraints: slice | Array = field(default_factory=lambda: slice(None))
    weight: float = 1.0

    @property
    def knows_all(self) -> bool:
        """Whether these are the values of all constraints."""
        return isinstance(self.constraints, slice)


class RowSource(ABC):
    """Where functions and gradients come from."""

    lipschitz: Lipschitz
    penalty: float = 1.0  # rho in units of the one that balances objective and constraints
    counted: float = 1.0  # the part of the penalty's curvature by which steps are shortened

    @abstractmethod
    def draw(self, w: Array) -> Drawn:
        """Return what gives the gradients at `w`, and the values of constraints there."""

    def first_values(self, drawn: Drawn) -> Array:
        """Return the values of all constraints at the start."""
        return drawn.values

    @abstractmethod
    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        """Return the full problem at what may be the answer."""

    def fade(self, done: float) -> float:
        """Return the factor of the step size when a fraction of the run is done."""
        return 1.0

    @abstractmethod
    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        """Learn from a step what can be learnt about the constants."""


class AllRows(RowSource):
    """Every row in every step."""

    def __init__(self, first: Evaluation):
        self.first = first
        self.lipschitz = Lipschitz(first)

    def draw(self, w: Array) -> Drawn:
        """Return the whole problem at `w`."""
        at = self.first.problem.at(w, like=self.first)
        return Drawn(at, at.constraints)

    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        """Return the point itself."""
        return [at]

    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        """Update the constants by what the step shows."""
        self.lipschitz.observe(before, after, gradient, multipliers)


class _Averaged(RowSource):
    """Some rows per step: the answer is an average of recent points."""

    def __init__(self, anchor: Evaluation, memory: int):
        self.anchor = anchor
        self.average = anchor.w
        self.memory = memory
        self.drawn = 0

    def add(self, w: Array) -> None:
        """Add a point to the average; the first points are soon forgotten."""
        self.drawn += 1
        share = max(1.0 / self.memory, min(4.0 / self.drawn, 1.0))
        self.average = self.average + share * (w - self.average)

    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        full = self.anchor.problem
        self.anchor = full.at(self.average)
        # an average of points on the boundary of W lies inside: the last point may be better
        return [self.anchor, full.at(at.w)] if last else [self.anchor]

    def fade(self, done: float) -> float:
        return (1.0 - done) ** 2

    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        """Two batches differ by more than a step does: nothing is learnt."""


class Batches(_Averaged):
    """A mini-batch per step, the constraints' values corrected by exact ones at an anchor."""

    def __init__(
        self, sampler: StratifiedSampler, anchor: Evaluation, memory: int, *, corrected: bool
    ):
        super().__init__(anchor, memory)
        self.sampler = sampler
        self.corrected = corrected
        self.lipschitz = Lipschitz(sampler.draw().at(anchor.w))

    def draw(self, w: Array) -> Drawn:
        """Return a batch at `w`, and the constraints' values."""
        batch = self.sampler.draw()
        at = batch.at(w)
        values = at.constraints
        if self.corrected:
            values = self.anchor.constraints + values - batch.at(self.anchor.w).constraints
        self.add(w)
        return Drawn(at, values)


class Blocks(_Averaged):
    """Whole blocks of rows per step, with the exact values of the constraints they determine.

    A multiplier moves only when its block is drawn, hence by larger steps. The penalty bends only
    the functions of the few drawn blocks whose constraints are active: shorter steps of the
    weights would cost more than what they overshoot, which fades.
    """

    penalty = 10.0
    counted = 0.0

    def __init__(self, sampler: ConstraintSampler, anchor: Evaluation, memory: int):
        super().__init__(anchor, memory)
        self.sampler = sampler
        draws = [sampler.draw() for _ in range(_PROBES)]
        found = [Lipschitz(one.problem.at(anchor.w)) for one in draws]
        self.lipschitz = max(found, key=lambda one: one.curvature)
        # the penalty of a drawn constraint is weighted as its gradient is
        self.lipschitz.slope = sqrt(draws[0].weight) * max(one.slope for one in found)

    def draw(self, w: Array) -> Drawn:
        """Return some blocks at `w`, with the constraints they determine."""
        found = self.sampler.draw()
        at = found.problem.at(w)
        self.add(w)
        return Drawn(at, at.constraints, found.constraints, found.weight)

    def first_values(self, drawn: Drawn) -> Array:
        """Return the values of all constraints, which a draw does not have."""
        return self.anchor.constraints
