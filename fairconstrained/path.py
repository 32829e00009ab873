"""The frontier of accuracy against fairness: a model for every tolerance, each from the last."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from fairconstrained.estimator import FairLinearClassifier
from fairconstrained.exceptions import ConvergenceWarning
from fairconstrained.held_out import Rows
from fairconstrained.held_out import held_out as held_out_rows
from fairconstrained.inputs import is_number
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem
from fairconstrained.scalar import Array
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.tolerances import AnyTolerance
from fairconstrained.training import Prepared, threads_that_pay

_ORDER = 2  # of the polynomial in kappa that the next point is predicted with
_LEAST = 1e-3  # the largest kappa of a path whose constraint does not bind at all


@dataclass(eq=False)
class FairnessPath:
    r"""Models along a range of tolerances: what :func:`fairness_path` returns.

    Attributes
    ----------
    kappas : ndarray of shape (n_kappas,)
        The tolerances, in falling order.
    estimators : list of FairLinearClassifier
        A fitted estimator for each.
    coefs : ndarray of shape (n_kappas, n_features), or (n_kappas, n_groups, n_features)
        Their coefficients; a row per group with `group_interactions`.
    intercepts : ndarray of shape (n_kappas,) or (n_kappas, n_groups)
        Their intercepts.
    objectives : ndarray of shape (n_kappas,)
        Mean loss plus penalty.
    gaps, decision_gaps : ndarray of shape (n_kappas,)
        The largest gap on the training rows, of the surrogate and of the decisions.
    violations, kkt_residuals : ndarray of shape (n_kappas,)
        The certificates.
    statuses : ndarray of str of shape (n_kappas,)
        How the runs ended: "converged" where the certificate holds.
    multipliers : ndarray of shape (n_kappas, n_constraints)
        The Lagrange multipliers.
    data_passes : ndarray of shape (n_kappas,)
        What each point cost. The first entry has the unconstrained model as well.
    train_accuracy : ndarray of shape (n_kappas,)
        The share of the training rows that is decided right.
    validation : dict of str to ndarray of shape (n_kappas,)
        With validation rows "val_accuracy", "val_loss" (the mean loss), "val_gap" (of the
        surrogate) and "val_decision_gap"; else empty.
    """

    kappas: Array
    estimators: list[FairLinearClassifier] = field(repr=False)
    data_passes: Array = field(repr=False)
    train_accuracy: Array = field(repr=False)
    validation: dict[str, Array] = field(default_factory=dict, repr=False)

    def _each(self, name: str) -> Array:
        return np.array([getattr(one, name) for one in self.estimators])

    @property
    def coefs(self) -> Array:
        """The coefficients."""
        coefs = self._each("coef_")
        return coefs[:, 0] if coefs.shape[1] == 1 else coefs

    @property
    def intercepts(self) -> Array:
        """The intercepts."""
        intercepts = self._each("intercept_")
        return intercepts[:, 0] if intercepts.shape[1] == 1 else intercepts

    @property
    def objectives(self) -> Array:
        """Mean loss plus penalty."""
        return self._each("objective_")

    @property
    def gaps(self) -> Array:
        """The largest gaps of the surrogate."""
        return self._each("gap_")

    @property
    def decision_gaps(self) -> Array:
        """The largest gaps of the decisions."""
        return self._each("decision_gap_")

    @property
    def violations(self) -> Array:
        """The largest violations on scores."""
        return self._each("violation_")

    @property
    def kkt_residuals(self) -> Array:
        """The KKT residuals."""
        return self._each("kkt_residual_")

    @property
    def multipliers(self) -> Array:
        """The multipliers."""
        return self._each("multipliers_")

    @property
    def statuses(self) -> Array:
        """How the runs ended."""
        return np.array([one.result_.status.value for one in self.estimators])

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.kappas)

    def estimator_at(self, k: int) -> FairLinearClassifier:
        """Return the fitted estimator of point k, whose tolerance is ``kappas[k]``."""
        return self.estimators[k]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each point."""
        columns = {
            "kappa": self.kappas,
            "objective": self.objectives,
            "gap": self.gaps,
            "decision_gap": self.decision_gaps,
            "train_accuracy": self.train_accuracy,
            **self.validation,
            "status": self.statuses,
            "violation": self.violations,
            "kkt_residual": self.kkt_residuals,
            "data_passes": self.data_passes,
        }
        return pd.DataFrame(columns)


def fairness_path(
    estimator: FairLinearClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    sensitive_features: Any = None,
    kappas: Any = None,
    n_kappas: int = 30,
    min_ratio: float = 0.01,
    X_val: Any = None,
    y_val: Any = None,
    sample_weight_val: Any = None,
    sensitive_features_val: Any = None,
) -> FairnessPath:
    r"""Fit an estimator for a range of tolerances, from the unconstrained model down.

    Every point starts where a polynomial in kappa through the last points leads, in the weights and
    in the multipliers, with what the solver has learned of the curvature, and has the certificate
    of a fit of its own. Thirty points read the data about as often as three single fits.

    Parameters
    ----------
    estimator : FairLogisticClassifier or FairHingeClassifier
        What to fit; it is not changed, and its `kappa` does not matter. Constraints with a kappa of
        their own keep it.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The features.
    y : array-like of shape (n_samples,)
        The labels.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    sensitive_features : array-like or DataFrame or None, default=None
        The groups, as in `fit`.
    kappas : array-like of float or None, default=None
        The tolerances; they are put into falling order. None takes `n_kappas` in geometric
        progression from the largest at which the constraint binds, at most 1, to `min_ratio` times
        it.
    n_kappas : int, default=30
        The number of points if `kappas` is None, at least 2.
    min_ratio : float, default=0.01
        The smallest kappa by the largest one if `kappas` is None, in (0, 1).
    X_val, y_val, sample_weight_val, sensitive_features_val : array-like or None, default=None
        Rows to measure accuracy, loss and gaps on, given as the training rows are.

    Returns
    -------
    path : FairnessPath
        The models and their measures.

    Raises
    ------
    ValueError
        If no constraint takes its kappa from the estimator, or an argument is not valid.

    Warns
    -----
    ConvergenceWarning
        Once, if points did not converge.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, fairness_path
    >>> from fairconstrained import make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, gap=0.3, random_state=0)
    >>> path = fairness_path(FairLogisticClassifier(), X, y, sensitive_features=groups, n_kappas=5)
    >>> set(path.statuses.tolist()), path.coefs.shape
    ({'converged'}, (5, 10))
    >>> bool(path.gaps[-1] < 0.01 < 0.1 < path.gaps[0])
    True
    >>> bool(path.estimator_at(-1).kappa == path.kappas[-1])
    True
    """
    path = follow(
        estimator, (X, y, sample_weight, sensitive_features), kappas=kappas, n_kappas=n_kappas,
        min_ratio=min_ratio, held_out=(X_val, y_val, sample_weight_val, sensitive_features_val),
    )  # fmt: skip
    warn_unless_converged(path.statuses, path.kappas)
    return path


def warn_unless_converged(statuses: Array, kappas: Array) -> None:
    """Warn once if points of a path did not converge.

    Warns
    -----
    ConvergenceWarning
        Says how many, at which kappas, and what to do.
    """
    failed = statuses != "converged"
    if failed.any():
        warnings.warn(
            f"{failed.sum()} of the path's {len(kappas)} points did not converge "
            f"({', '.join(sorted(set(statuses[failed])))}), at kappa = "
            f"{', '.join(f'{kappa:.3g}' for kappa in kappas[failed])}: raise max_iter or tol, or "
            "look at the statuses and leave these points out.",
            ConvergenceWarning,
            stacklevel=3,
        )


def follow(
    estimator: FairLinearClassifier,
    rows: Sequence[Any],
    *,
    kappas: Any = None,
    n_kappas: int = 30,
    min_ratio: float = 0.01,
    held_out: Sequence[Any] = (None, None, None, None),
) -> FairnessPath:
    """Return the path without a warning; see :func:`fairness_path`.

    Parameters
    ----------
    estimator, kappas, n_kappas, min_ratio
        See :func:`fairness_path`.
    rows, held_out : sequence
        X, y, sample_weight and sensitive_features.
    """
    _check_followed(estimator)
    base = clone(estimator).set_params(kappa=0.0)
    prepared = base._prepare(*rows)
    with threads_that_pay(prepared.data.X):
        problems = AnyTolerance(prepared, base, _begin(prepared).w)
        chosen = _grid(problems, kappas, n_kappas, min_ratio)
        elsewhere = held_out_rows(prepared, base, *held_out)
        points = list(_points(problems, chosen, elsewhere))
    estimators, results, accuracy, measures = zip(*points, strict=True)
    passes = np.array([result.data_passes for result in results])
    passes[0] += prepared.unconstrained.result.data_passes
    validation = {name: np.array([one[name] for one in measures]) for name in measures[0]}
    return FairnessPath(chosen, list(estimators), passes, np.array(accuracy), validation)


def _check_followed(estimator: Any) -> None:
    """Check that the estimator has a tolerance to vary."""
    if not isinstance(estimator, FairLinearClassifier):
        raise TypeError(
            "estimator must be a FairLogisticClassifier or a FairHingeClassifier (for a pipeline, "
            f"transform X first and pass its last step); got {estimator!r}."
        )
    for name, wanted in (("goal", "accuracy"), ("enforce", "score")):
        if getattr(estimator, name) != wanted:
            raise ValueError(
                f"a path varies the tolerance on scores: set {name}={wanted!r} (it is "
                f"{getattr(estimator, name)!r})."
            )
    if estimator.constraint is None:
        raise ValueError("constraint=None has no tolerance to vary: name a constraint.")


def _grid(problems: AnyTolerance, kappas: Any, n_kappas: Any, min_ratio: Any) -> Array:
    """Return the tolerances in falling order; at kappa = 0, violations are kappas that bind."""
    follows, prepared = problems.follows, problems.prepared
    if follows.size and not follows.any():  # without groups there is nothing to follow
        raise ValueError(
            f"constraint={problems.base.constraint!r} does not take its tolerance from the "
            "estimator: leave kappa at None in the constraint whose tolerance is to vary."
        )
    if kappas is not None:
        given = np.unique(np.asarray(kappas, dtype=float))[::-1]
        if given.ndim != 1 or not given.size or not np.all((given >= 0) & np.isfinite(given)):
            raise ValueError(f"kappas must be numbers >= 0, at least one; got {kappas!r}.")
        return given
    if not (is_number(n_kappas, Integral) and n_kappas >= 2):
        raise ValueError(f"n_kappas must be an integer >= 2; got {n_kappas!r}.")
    if not (is_number(min_ratio, Real) and 0.0 < min_ratio < 1.0):
        raise ValueError(f"min_ratio must be a number between 0 and 1; got {min_ratio!r}.")
    free = prepared.problem.at(_begin(prepared).w)
    most = float(free.constraints[follows].max(initial=0.0))
    return np.geomspace(1.0, min_ratio, n_kappas) * np.clip(most, _LEAST, 1.0)


def _begin(prepared: Prepared) -> Start:
    """Return the unconstrained model as a start."""
    result = prepared.unconstrained.result
    w = prepared.problem.start()
    w[: result.w.size] = result.w
    return Start(w, None, result.state)


def _points(
    problems: AnyTolerance, kappas: Array, elsewhere: Rows | None
) -> Iterator[tuple[FairLinearClassifier, Result, float, dict[str, float]]]:
    """Yield the fitted estimator, the result, and what they are worth, for every tolerance."""
    prepared, base, data = problems.prepared, problems.base, problems.prepared.data
    start, solver = _begin(prepared), base._solver(prepared.problem)
    if type(solver) is not type(prepared.unconstrained.result.solver):
        start = replace(start, state={})
    solved: deque[tuple[float, Result]] = deque(maxlen=_ORDER + 1)
    for kappa in kappas:
        fitted = copy(base)
        fitted.kappa = float(kappa)
        problem = problems.at(fitted.kappa)
        warm = _fitting(_predicted(solved, kappa) or start, problem, prepared.model)
        result = solver.minimize(problem, warm=warm, random_state=base.random_state)
        solved.append((kappa, result))
        fitted._store_result(result)
        fitted._store(problem, prepared.model, data, prepared.layout)
        here = Rows(problem.unmetered(), data)
        measures = {} if elsewhere is None else elsewhere.measured(result.w)
        yield fitted, result, here.accuracy(result.w), measures


def _fitting(warm: Start | Result, problem: Problem, model: LinearModel) -> Start | Result:
    """Return the warm start; its coefficients alone if the terms' own variables are others."""
    if warm.w.size == problem.n_variables:
        return warm
    w = problem.start()
    w[: model.n_parameters] = warm.w[: model.n_parameters]
    return Start(w)


def _predicted(solved: Sequence[tuple[float, Result]], kappa: float) -> Start | Result | None:
    """Return where the next point is expected: a polynomial through the last ones.

    Only points with the same active constraints are on one smooth branch.
    """
    if not solved:
        return None
    last = solved[-1][1]
    active = last.multipliers > 0
    known: list[tuple[float, Result]] = []
    for at, result in reversed(solved):
        if not (result.converged and np.array_equal(result.multipliers > 0, active)):
            break
        known.append((at, result))
    if len(known) < 2:
        return last
    nodes = np.array([at for at, _ in known])
    weights = [
        np.prod((kappa - np.delete(nodes, k)) / (nodes[k] - np.delete(nodes, k)))
        for k in range(len(nodes))
    ]
    w = np.array(weights) @ np.stack([one.w for _, one in known])
    multipliers = np.array(weights) @ np.stack([one.multipliers for _, one in known])
    return Start(w, np.maximum(multipliers, 0.0), last.state)
