"""What subgradient methods share: the answer so far, and the curvature along recent steps."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.typing import Array

_FORGETTING = 0.9  # per step on the objective: the weight of older curvatures decreases


def squared_norm(gradient: Array, metric: Array) -> float:
    """Return the squared norm of a gradient in a metric, positive even where it vanishes."""
    return max(float(gradient @ (metric * gradient)), 1e-300)


def worst_constraint(values: Array) -> tuple[float, Array]:
    """Return the largest constraint value and the unit vector of its constraint."""
    unit = np.zeros(len(values))
    if not len(values):
        return -np.inf, unit
    unit[int(values.argmax())] = 1.0
    return float(values.max()), unit


class Bend:
    """The curvature of the objective along recent steps, which next evaluations show for free.

    Parameters
    ----------
    objective : CompositeFunction
        The objective. Where it has kinks a curvature says nothing: zero, no limit to the steps.
    """

    def __init__(self, objective: CompositeFunction) -> None:
        self.known = objective.smooth
        self.curvature = 0.0
        self._before: tuple[float, float, float] | None = None

    def remember(self, at: Evaluation, length: float, norm_squared: float) -> None:
        """Keep what the next evaluation is compared with."""
        self._before = (at.objective, length, norm_squared) if self.known else None

    def observe(self, at: Evaluation) -> None:
        """Take in the evaluation after a step on the objective."""
        if self._before is None:
            return
        objective, length, norm_squared = self._before
        fall = length * norm_squared  # of the tangent
        found = 2.0 * (at.objective - objective + fall) / max(length * fall, 1e-300)
        self.curvature = max(found, _FORGETTING * self.curvature)
        self._before = None


class Average:
    """The average of the feasible points, weighted by k + 1."""

    def __init__(self) -> None:
        self.total: float = 0.0
        self.mean: Array | None = None

    def add(self, at: Evaluation, k: int, tol: float) -> None:
        """Add point k if it violates by at most the tolerance."""
        if at.violation > tol:
            return
        self.total += k + 1
        weight = (k + 1) / self.total
        self.mean = at.w if self.mean is None else self.mean + weight * (at.w - self.mean)

    def point(self, last: Evaluation) -> Evaluation:
        """Return the average, the last point if there is none."""
        return last if self.mean is None else last.problem.at(self.mean)


class Best:
    """The feasible point with the smallest objective; if there is none, the least violated one."""

    def __init__(self) -> None:
        self.best: Evaluation | None = None
        self._rank: tuple[float, float] = (np.inf, np.inf)

    def add(self, at: Evaluation, k: int, tol: float) -> None:
        """Add point k, which is feasible if it violates by at most the tolerance."""
        rank = (at.violation if at.violation > tol else 0.0, at.objective)
        if self.best is None or rank < self._rank:
            self.best, self._rank = at, rank

    def point(self, last: Evaluation) -> Evaluation:
        """Return the best point."""
        return last if self.best is None else self.best
