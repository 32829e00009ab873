"""What subgradient methods measure steps with: a metric, the worst constraint, a curvature."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.typing import Array

_DECAY = 0.9  # of an observed curvature per step on the objective


def step_metric(problem: Problem, *, preconditioned: bool) -> Array:
    """Return the diagonal that steps multiply gradients by: ones on a bounded domain.

    Parameters
    ----------
    problem : Problem
        The problem.
    preconditioned : bool
        Whether the step rule works in :attr:`Problem.preconditioner` on the whole space.
    """
    if preconditioned and problem.domain.whole_space:
        return problem.preconditioner**2
    return np.ones(problem.n_variables)


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


class ObjectiveCurvature:
    """The curvature of the objective along recent steps, without further evaluations.

    Parameters
    ----------
    objective : CompositeFunction
        The objective. The curvature of a non-smooth one stays 0, which does not limit steps.
    """

    def __init__(self, objective: CompositeFunction) -> None:
        self._smooth = objective.smooth
        self.value = 0.0
        self._before: tuple[float, float, float] | None = None

    def remember(self, at: Evaluation, length: float, norm_squared: float) -> None:
        """Store the point before a step on the objective."""
        self._before = (at.objective, length, norm_squared) if self._smooth else None

    def observe(self, at: Evaluation) -> None:
        """Update the curvature from the point after a step on the objective."""
        if self._before is None:
            return
        objective, length, norm_squared = self._before
        predicted = length * norm_squared  # decrease of the linearised objective
        curvature = 2.0 * (at.objective - objective + predicted) / max(length * predicted, 1e-300)
        self.value = max(curvature, _DECAY * self.value)
        self._before = None
