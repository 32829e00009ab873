"""A path of tolerances: where its fits start, the rows on which they are measured, its models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral, Real
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import krogh_interpolate
from sklearn.pipeline import Pipeline

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.candidates import correct_predictions
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.metrics import mean_ndcg
from fairconstrained.models import Model
from fairconstrained.problem import KKT, CompositeFunction, Evaluation, Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.sqp import next_step
from fairconstrained.terms.classes import correct_share
from fairconstrained.utils.arguments import is_number
from fairconstrained.utils.arrays import Array, at_most

_ACCURATE = 0.3  # of the solver's tolerance: with a smaller error no further step is needed


def fitting(warm: Start | Result, problem: Problem, model: Model) -> Start | Result:
    """Return the warm start; its coefficients alone if the terms' own variables are others."""
    if warm.w.size == problem.n_variables:
        return warm
    w = problem.start()
    w[: model.n_parameters] = warm.w[: model.n_parameters]
    return Start(w)


Point = tuple[float, Result]  # a tolerance and the solution there


def refined(result: Result, at: Evaluation) -> Result:
    """Return a result, more accurate where that costs little: the next ones are extrapolated.

    If its error is near the tolerance of its solver, and one more step can be made without reading
    the rows again, the point is the one after this step.
    """
    if not result.converged:
        return result
    if KKT.of(at, result.multipliers).error <= _ACCURATE * result.solver.tol:
        return result
    step = next_step(at, result)
    return result if step is None else replace(result, w=result.w + step[0], multipliers=step[1])


def predicted(solved: Sequence[Point], kappa: float) -> Start | None:
    """Return the start of the next point, extrapolated by a polynomial through the last ones.

    Only points with the same active constraints are on one smooth branch.
    """
    if not solved:
        return None
    last, branch = solved[-1][1], list[Point]()
    for there, result in reversed(solved):
        same = np.array_equal(result.multipliers > 0.0, last.multipliers > 0.0)
        if not (result.converged and same):
            break
        branch.append((there, result))
    if len(branch) < 2:
        return Start(last.w, last.multipliers, last.state)
    points = [np.append(result.w, result.multipliers) for _, result in branch]
    point = krogh_interpolate([there for there, _ in branch], points, kappa)
    w, multipliers = np.split(point, [len(last.w)])
    return Start(w, np.maximum(multipliers, 0.0), last.state)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on which models are measured."""

    problem: Problem  # the loss and the constraints on the rows
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


def _of_each(attribute: str, meaning: str, convert: Callable[[Any], Array] = np.array) -> Any:
    """Return a property of a path: an attribute of each of its estimators."""
    get = attrgetter(attribute)
    return property(lambda path: convert([*map(get, path.estimators)]), doc=meaning)


def _one_row_flat(values: list[Array]) -> Array:
    rows = np.array(values)
    return rows[:, 0] if rows.shape[1] == 1 else rows


@dataclass(eq=False)
class FairnessPath:
    r"""Models for a sequence of tolerances, returned by :func:`fairness_path`.

    Attributes
    ----------
    kappas : ndarray of shape (n_kappas,)
        The tolerances, in decreasing order.
    estimators : list of estimator
        A fitted estimator for each of them; for a pipeline its last step.
    coefs : ndarray of shape (n_kappas, n_features), or (n_kappas, n_groups, n_features)
        The coefficients of linear classifiers; a row per group with `group_interactions`, a row per
        class with more than two classes.
    intercepts : ndarray of shape (n_kappas,) or (n_kappas, n_groups)
        The intercepts of linear classifiers; as for `coefs`.
    objectives : ndarray of shape (n_kappas,)
        Mean loss plus penalty.
    gaps, decision_gaps : ndarray of shape (n_kappas,)
        The largest gap on the training rows, of the surrogate and of the predictions.
    violations, kkt_residuals : ndarray of shape (n_kappas,)
        The largest violations of the constraints, and the KKT residuals.
    bounds_met : ndarray of bool of shape (n_kappas,)
        Whether each model meets its bound: `bound_met_`.
    optimality_gaps : ndarray of shape (n_kappas,)
        With ``bound=True``: the `optimality_gap_` of each model; nan where no bound is known.
    objective_bounds : ndarray of shape (n_kappas,)
        Lower bounds on the objective of all models with the same constraints.
    statuses : ndarray of str of shape (n_kappas,)
        The status of each run: "converged" if the optimality conditions hold.
    multipliers : ndarray of shape (n_kappas, n_constraints)
        The Lagrange multipliers.
    data_passes : ndarray of shape (n_kappas,)
        The data passes of each point; those of the unconstrained model are in the first entry.
    train_quality : ndarray of shape (n_kappas,)
        The quality of the models on the training rows: `train_accuracy` of classifiers, the
        weighted share of correct predictions, or `train_ndcg` of rankers, the mean ``NDCG@10``.
    validation : dict of str to ndarray of shape (n_kappas,)
        With validation rows "val_accuracy" (of rankers "val_ndcg"), "val_loss" (the mean loss),
        "val_gap" (of the surrogate) and "val_decision_gap"; else empty.
    pipeline : Pipeline or None
        For a pipeline: the pipeline, with all steps but the last one fitted.
    validation_size : float
        The number of validation rows, with weights the effective number of Kish; nan without them.
    quality : {"accuracy", "ndcg"}
        The measure of `train_quality`.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, fairness_path
    >>> from fairconstrained import make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> path = fairness_path(FairLogisticClassifier(), X, y, sensitive_features=groups, n_kappas=3)
    >>> path.to_frame()[["gap", "status"]].shape
    (3, 2)
    >>> path.estimator_at(kappa=0.05).kappa <= 0.05
    True
    """

    kappas: Array
    estimators: list[FairEstimator] = field(repr=False)
    data_passes: Array = field(repr=False)
    train_quality: Array = field(repr=False)
    validation: dict[str, Array] = field(default_factory=dict, repr=False)
    pipeline: Pipeline | None = field(default=None, repr=False)
    validation_size: float = field(default=float("nan"), repr=False)

    @property
    def quality(self) -> str:
        """The measure of `train_quality`."""
        return "ndcg" if self.estimators[0].needs_queries else "accuracy"

    @property
    def train_accuracy(self) -> Array:
        """The weighted share of correct predictions on the training rows, of classifiers."""
        return self._quality("accuracy")

    @property
    def train_ndcg(self) -> Array:
        """The mean ``NDCG@10`` on the training rows, of rankers."""
        return self._quality("ndcg")

    def _quality(self, name: str) -> Array:
        if self.quality != name:
            raise AttributeError(f"the path of these models has train_{self.quality}, not {name}.")
        return self.train_quality

    coefs = _of_each("coef_", "The coefficients.", _one_row_flat)
    intercepts = _of_each("intercept_", "The intercepts.", _one_row_flat)
    objectives = _of_each("objective_", "Mean loss plus penalty.")
    gaps = _of_each("gap_", "The largest gaps of the surrogate.")
    decision_gaps = _of_each("decision_gap_", "The largest gaps of the decisions.")
    violations = _of_each("violation_", "The largest violations on scores.")
    bounds_met = _of_each("bound_met_", "Whether each model meets its bound.")
    kkt_residuals = _of_each("kkt_residual_", "The KKT residuals.")
    multipliers = _of_each("multipliers_", "The multipliers.")

    statuses = _of_each("result_.status.value", "How the runs ended.")
    optimality_gaps = _of_each(
        "optimality_gap_",
        "How far each objective is from the least one, at most.",
        partial(np.array, dtype=float),
    )

    @property
    def objective_bounds(self) -> Array:
        """Lower bounds on the objective of all models with the same constraints."""
        return self.objectives * (1.0 - self.optimality_gaps)

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.kappas)

    def estimator_at(
        self, index: int | None = None, *, kappa: float | None = None
    ) -> FairEstimator | Pipeline:
        """Return the fitted estimator or pipeline of a point, by its position or its tolerance.

        Parameters
        ----------
        index : int or None, default=None
            The position of the point: its tolerance is ``kappas[index]``. Negative positions count
            from the end, where the tolerance is smallest.
        kappa : float or None, default=None
            Instead of the position, a tolerance: the point with the largest tolerance that is at
            most this one.

        Returns
        -------
        estimator : estimator or Pipeline
            The fitted estimator or pipeline.

        Raises
        ------
        ValueError
            If there is no such point, or not one of the two is given.
        """
        if (index is None) == (kappa is None):
            raise ValueError(
                "estimator_at takes the position of a point, estimator_at(index=3), or a "
                f"tolerance, estimator_at(kappa=0.05); got index={index!r} and kappa={kappa!r}."
            )
        n = len(self.kappas)
        if kappa is not None:
            if not is_number(kappa, Real):
                raise ValueError(f"kappa must be a number, the largest gap allowed; got {kappa!r}.")
            index = int(np.sum(~at_most(self.kappas, kappa)))  # they are in falling order
            if index == n:
                raise ValueError(
                    f"kappa={kappa!r} is below the tolerances of the path, the smallest of which "
                    f"is {self.kappas[-1]:.4g}: pass kappas=[..., {kappa!r}] to fairness_path."
                )
        elif not (is_number(index, Integral) and -n <= index < n):
            raise ValueError(
                f"index must be the position of a point, an integer in [-{n}, {n - 1}]; got "
                f"{index!r}. The point of a tolerance is estimator_at(kappa=tolerance)."
            )
        fitted = self.estimators[index]
        if self.pipeline is None:
            return fitted
        *before, (name, _) = self.pipeline.steps
        return type(self.pipeline)([*before, (name, fitted)])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each point."""
        columns = {
            "kappa": self.kappas,
            "bound_met": self.bounds_met,
            "objective": self.objectives,
            "gap": self.gaps,
            "decision_gap": self.decision_gaps,
            f"train_{self.quality}": self.train_quality,
            **self.validation,
            "status": self.statuses,
            "violation": self.violations,
            "kkt_residual": self.kkt_residuals,
            "data_passes": self.data_passes,
        }
        return pd.DataFrame(columns)
