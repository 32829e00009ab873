"""Where the fits of a path start: extrapolated from the points before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairconstrained.models import Model
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.utils.typing import Array

ORDER = 2  # of the polynomial in kappa that extrapolates to the next point
_ACCURATE = 0.3  # of the tolerance: an error up to which extrapolations need no further step


def fitting(warm: Start | Result, problem: Problem, model: Model) -> Start | Result:
    """Return the warm start; its coefficients alone if the terms' own variables are others."""
    if warm.w.size == problem.n_variables:
        return warm
    w = problem.start()
    w[: model.n_parameters] = warm.w[: model.n_parameters]
    return Start(w)


@dataclass(frozen=True, eq=False)
class SolvedPoint:
    """A point of a path, as extrapolations use it.

    Attributes
    ----------
    kappa : float
        Its tolerance.
    start : Start
        The solution. Where it is not much more accurate than the tolerance, that after one more
        step of its method, see :meth:`SolverState.next_step`.
    converged : bool
        Whether the run met its tolerance.
    """

    kappa: float
    start: Start
    converged: bool

    @classmethod
    def of(cls, kappa: float, result: Result, at: Evaluation) -> SolvedPoint:
        """Return the point of a result.

        Parameters
        ----------
        kappa : float
            Its tolerance.
        result : Result
            The solution.
        at : Evaluation
            The problem there.
        """
        w, multipliers, state = result.w, result.multipliers, result.state
        if result.converged and state is not None and not _is_accurate(result, at):
            step = state.next_step(at, multipliers)
            w, multipliers = (w, multipliers) if step is None else (w + step[0], step[1])
        return cls(kappa, Start(w, multipliers, state), result.converged)


def predicted(solved: Sequence[SolvedPoint], kappa: float) -> Start | None:
    """Return the start of the next point, extrapolated by a polynomial through the last ones.

    Only points with the same active constraints are on one smooth branch.
    """
    if not solved:
        return None
    last = solved[-1].start
    assert last.multipliers is not None
    active = last.multipliers > 0.0
    known: list[SolvedPoint] = []
    for one in reversed(solved):
        if not (one.converged and np.array_equal(_multipliers(one) > 0.0, active)):
            break
        known.append(one)
    if len(known) < 2:
        return last
    w, multipliers = np.zeros_like(last.w), np.zeros_like(last.multipliers)
    for one in known:
        others = [other.kappa for other in known if other is not one]
        weight = math.prod((kappa - other) / (one.kappa - other) for other in others)
        w += weight * one.start.w
        multipliers += weight * _multipliers(one)
    return Start(w, np.maximum(multipliers, 0.0), last.state)


def _is_accurate(result: Result, at: Evaluation) -> bool:
    """Return whether a solution is clearly more accurate than its tolerance."""
    return KKT.of(at, result.multipliers).error <= _ACCURATE * result.solver.tol


def _multipliers(point: SolvedPoint) -> Array:
    """Return the multipliers of a point."""
    assert point.start.multipliers is not None
    return point.start.multipliers
