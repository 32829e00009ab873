"""Where the fits of a path start, and the rows on which models are measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.candidates import correct_predictions
from fairconstrained.estimators.fit import Fit
from fairconstrained.metrics import mean_ndcg
from fairconstrained.models import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.result import SolverState
from fairconstrained.terms.class_losses import correct_share
from fairconstrained.utils.typing import Array

ORDER = 2  # of the polynomial in kappa that extrapolates to the next point
_ACCURATE = 0.3  # of the solver's tolerance: with a smaller error no further step is needed


def fitting(warm: Start | Result, problem: Problem, model: Model) -> Start | Result:
    """Return the warm start; its coefficients alone if the terms' own variables are others."""
    if warm.w.size == problem.n_variables:
        return warm
    w = problem.start()
    w[: model.n_parameters] = warm.w[: model.n_parameters]
    return Start(w)


@dataclass(frozen=True, eq=False)
class SolvedPoint:
    """A point of a path, from which the next ones are extrapolated.

    Attributes
    ----------
    kappa : float
        The tolerance of the constraints.
    w : ndarray of shape (n_variables,)
        The solution.
    multipliers : ndarray of shape (n_constraints,)
        The multipliers of the solution.
    state : SolverState or None
        The state that the solver left.
    converged : bool
        Whether the run met its tolerance.
    """

    kappa: float
    w: Array
    multipliers: Array
    state: SolverState | None
    converged: bool

    @classmethod
    def of(cls, kappa: float, result: Result, at: Evaluation) -> SolvedPoint:
        """Return the point of a result, more accurate than the result where that costs little.

        If the error of the result is near the tolerance of its solver, and the solver can make one
        more step without reading the rows again, the point is the one after this step.
        """
        w, multipliers, state = result.w, result.multipliers, result.state
        if result.converged and state is not None:
            error = KKT.of(at, multipliers).error
            accurate = error <= _ACCURATE * result.solver.tol
            step = None if accurate else result.solver.next_step(at, result)
            if step is not None:
                w, multipliers = w + step[0], step[1]
        return cls(kappa, w, multipliers, state, result.converged)

    @property
    def active(self) -> Array:
        """Which constraints have a positive multiplier, shape (n_constraints,)."""
        return self.multipliers > 0.0


def predicted(solved: Sequence[SolvedPoint], kappa: float) -> Start | None:
    """Return the start of the next point, extrapolated by a polynomial through the last ones.

    Only points with the same active constraints are on one smooth branch.
    """
    if not solved:
        return None
    last, branch = solved[-1], list[SolvedPoint]()
    for point in reversed(solved):
        if not (point.converged and np.array_equal(point.active, last.active)):
            break
        branch.append(point)
    if len(branch) < 2:
        return Start(last.w, last.multipliers, last.state)
    w, multipliers = np.zeros_like(last.w), np.zeros_like(last.multipliers)
    for point in branch:
        others = [other.kappa for other in branch if other is not point]
        weight = math.prod((kappa - other) / (point.kappa - other) for other in others)
        w += weight * point.w
        multipliers += weight * point.multipliers
    return Start(w, np.maximum(multipliers, 0.0), last.state)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on which models are measured.

    Attributes
    ----------
    problem : Problem
        The loss and the constraints on the rows.
    data : TrainingData
        The rows.
    """

    problem: Problem
    data: TrainingData

    def worth(self, w: Array, *, like: Evaluation | None = None) -> float:
        """Return the weighted share of correct predictions, of rankers the mean ``NDCG@10``."""
        data, queries = self.data, self.data.query
        problem = self._accuracy if queries is None else self.problem
        at = problem.at(w[: problem.n_variables], like=like)
        if queries is None:
            return float(at.constraints[0])
        scores = at.scores_of(problem.objective)
        return mean_ndcg(data.y > 0, scores, query=queries.codes, sample_weight=data.sample_weight)

    @cached_property
    def _accuracy(self) -> Problem:
        """The problem with the accuracy as its one constraint function, a sum over rows."""
        data = self.data
        y = data.class_positions if data.several_classes else data.y
        correct = correct_share if data.several_classes else correct_predictions
        function = CompositeFunction(self.problem.objective.model, correct(y, data.sample_weight))
        return self.problem.with_constraints([function])

    def measured(self, w: Array) -> dict[str, float]:
        """Return what a model is worth, its loss and its gaps."""
        at = self.problem.at(w[: self.problem.n_variables])
        return {
            f"val_{'accuracy' if self.data.query is None else 'ndcg'}": self.worth(w, like=at),
            "val_loss": at.objective,
            "val_gap": at.gap,
            "val_decision_gap": at.decided.gap,
        }


def validation_rows(fit: Fit, *held_out: Any) -> Rows | None:
    """Return rows that are not the training rows of a fit, None if there are none.

    See :meth:`~fairconstrained.data.validation.TrainingData.validation_rows`.
    """
    data = fit.data.validation_rows(*held_out)
    return None if data is None else Rows(fit.problem_on(data), data)
