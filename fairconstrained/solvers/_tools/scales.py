"""Scales of a problem, measured where a run starts: what steps and penalties are sized by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.typing import Array

_TINY = 1e-12


@dataclass(frozen=True)
class Scales:
    r"""How steep and how bent the functions of a problem are near a point.

    Attributes
    ----------
    curvature : float
        The largest curvature of the objective, :math:`|\lambda|_{\max}(\nabla^2 f)`, over
        distances that change the scores by about one. For a non-smooth f it is what its kinks
        amount to over such a distance.
    slope : float
        The largest singular value of the constraints' Jacobian, 0 without constraints.
    """

    curvature: float
    slope: float

    @classmethod
    def near(cls, at: Evaluation, random_state: Any, *, n_iter: int = 10) -> Scales:
        """Measure by power iterations on differences of gradients and of constraint values.

        Parameters
        ----------
        at : Evaluation
            The problem, perhaps on a batch, at the point.
        random_state : numpy.random.RandomState
            Draws the first direction.
        n_iter : int, default=10
            Power iterations, each an evaluation.
        """
        problem, gradient = at.problem, at.gradient()

        def bend(v: Array) -> Array:
            length = _unit_length(at, v)
            return (problem.at(at.w + length * v).gradient() - gradient) / length

        def stretch(v: Array) -> Array:
            length = 0.01 * _unit_length(at, v)
            change = (problem.at(at.w + length * v).constraints - at.constraints) / length
            return at.gradient(change, objective=0.0)

        first = random_state.standard_normal(problem.n_variables)
        curvature = _largest_eigenvalue(bend, first, n_iter)
        if not problem.n_constraints:
            return cls(curvature, 0.0)
        mixed = at.gradient(random_state.standard_normal(problem.n_constraints), objective=0.0)
        return cls(curvature, np.sqrt(_largest_eigenvalue(stretch, mixed, n_iter // 2)))


def _unit_length(at: Evaluation, v: Array) -> float:
    """Return the distance along `v` over which the scores change by one (root mean square)."""
    change = at.root_mean_square_change(v)
    return float(1.0 / change) if change > _TINY else 1.0


def _largest_eigenvalue(image: Callable[[Array], Array], v: Array, n_iter: int) -> float:
    """Return the size of the largest eigenvalue of a symmetric map, a bit enlarged."""
    value = 0.0
    for _ in range(n_iter):
        norm = np.linalg.norm(v)
        if norm <= _TINY:
            break
        unit = v / norm
        v = image(unit)
        value = abs(float(unit @ v))
    return 1.1 * value
