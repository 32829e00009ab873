"""What first-order methods share: their parameters, what a step reads, constants of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from math import sqrt

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Solver, Start
from fairconstrained.solvers.sampling import Sampler
from fairconstrained.utils.typing import Array

_DRAWS = 5  # batches that constants are measured on: a single one may miss the steep rows
_LARGER = 10.0  # the penalty on constraints of drawn blocks, in units of that on all constraints
_SAFETY = 1.1  # power iterations end below the largest eigenvalue
_N_ITER = 6  # of power iterations for the curvature, half as many for the slope: one digit will do
_TINY = 1e-12


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
    max_iter: int = 200
    check_every: int = 50
    tol: float = 1e-4
    polish: bool = True

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a problem must have: terms that take batches, unless every step uses all rows."""
        sizes = (getattr(self, name, None) for name in ("batch_size", "checkpoint_size"))
        return () if all(size is None for size in sizes) else ("batchable",)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem or a batch of it at a point, with some or all of the constraints.

    Attributes
    ----------
    at : Evaluation
        What gives values and gradients.
    constraints : slice or ndarray of int of shape (n_drawn,)
        The positions of its constraints among all.
    weight : float
        One over the probability with which each of them is drawn.
    """

    at: Evaluation
    constraints: slice | Array = field(default_factory=partial(slice, None))
    weight: float = 1.0

    @property
    def has_all(self) -> bool:
        """Whether it has all constraints."""
        return isinstance(self.constraints, slice)


class Rows:
    """What the steps of a run read: all rows, a batch, or blocks with their constraints.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    start : Start
        Where the run starts, and its source of randomness.
    size : int or None, default=None
        The rows of a batch, roughly; None takes all rows. Where every constraint is determined by a
        block of rows, batches are whole blocks with their constraints.
    memory : int, default=1
        The number of points that the answer averages over, with batches.
    """

    def __init__(self, problem: Problem, start: Start, size: int | None = None, memory: int = 1):
        self.problem = problem
        self.sampled = size is not None and size < problem.n_rows
        self.first, self.mean = start.at(problem), start.w
        self._memory, self._n_drawn = memory, 0
        self._sampler = None
        if size is not None and self.sampled:
            self._sampler = Sampler(problem, size, start.random_state, by_block=True)

    def draw(self, w: Array, like: Evaluation | None = None) -> Drawn:
        """Return what the step from `w` sees; an evaluation there spares forward passes."""
        self._n_drawn += 1
        # the first points are soon forgotten: the share of a new one is large at first
        share = max(1.0 / self._memory, min(4.0 / self._n_drawn, 1.0))
        self.mean = self.mean + share * (w - self.mean)
        if self._sampler is None:
            return Drawn(self.problem.at(w, like=like or self.first))
        batch = self._sampler.draw()
        return Drawn(batch.problem.at(w), batch.constraints, batch.weight)

    def answers(self, at: Evaluation, *, last: bool = False) -> list[Evaluation]:
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
        if self._sampler is None:
            return constants_at(self.first)
        batches = [self._sampler.draw() for _ in range(_DRAWS)]
        found = np.array([constants_at(one.problem.at(self.first.w)) for one in batches])
        curvature, slope = found.max(axis=0)
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

    def bend(v: Array) -> Array:
        length = _unit_length(at, v)
        return (problem.at(at.w + length * v).gradient(multipliers) - gradient) / length

    def stretch(v: Array) -> Array:
        length = 0.01 * _unit_length(at, v)
        change = (problem.at(at.w + length * v).constraints - at.constraints) / length
        return at.gradient(change, objective=0.0)

    slope = 0.0
    if problem.n_constraints:
        mixed = at.gradient(rng.standard_normal(problem.n_constraints), objective=0.0)
        slope = sqrt(_largest_eigenvalue(stretch, mixed, _N_ITER // 2))
    first = rng.standard_normal(problem.n_variables)
    curvature = _largest_eigenvalue(bend, first, _N_ITER)
    return curvature or slope or 1.0, slope or 1.0


def _unit_length(at: Evaluation, v: Array) -> float:
    """Return the distance along `v` over which the scores change by one (root mean square)."""
    change = at.root_mean_square_change(v)
    return float(1.0 / change) if change > _TINY else 1.0


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
