"""Whether scipy's SLSQP, started from the answer, finds a clearly better feasible model nearby."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.data import Array
from benchmarks.fuzz.fitting import FITTERS, Case, Outcome, arguments, kind_of, measure, rows_of
from benchmarks.fuzz.formulas import feature_scale, is_smooth_loss, mean_loss, penalty
from benchmarks.fuzz.further_checks import class_losses
from benchmarks.fuzz.rates import all_measured

_PAIRWISE = ("GroupAUCParity", "InterGroupAUCParity", "IntraGroupAUCParity")
_KINKED = ("PartialDemographicParity", "WeakPartialDemographicParity")
_SECONDS = 0.3  # to certify
_NEARBY = 0.5  # how far a coefficient may move, as a share of 1 + |coefficient|


@dataclass(frozen=True, eq=False)
class Local:
    """The problem of a fit in coefficients per scale of their feature, and the intercept.

    `lower` has the lower bounds of the variables.
    """

    objective: Callable[[Array], float]
    excess: Callable[[Array], Array]
    answer: Array
    lower: Array | float = -np.inf


def _smooth(value: Any) -> bool:
    name = value if isinstance(value, str) else type(value).__name__.lower()
    return name not in ("ramp", "hinge")


def suits(outcome: Outcome) -> bool:
    """Return whether the problem is smooth, small and without a domain."""
    estimator, data = outcome.estimator, outcome.data
    kinds = [type(one).__name__ for one in outcome.constraints]
    small = len(data.positions) <= (150 if set(kinds) & set(_PAIRWISE) else 600)
    smooth = is_smooth_loss(estimator.loss) and not set(kinds) & set(_KINKED)
    for one in outcome.constraints:
        own = [getattr(one, name, None) for name in ("surrogate", "loss")]
        smooth = smooth and all(_smooth(value) for value in own if value is not None)
    smooth = smooth and _smooth(estimator.surrogate) and hasattr(estimator.alpha, "__float__")
    plain = data.sensitive_columns is None and estimator.domain is None
    plain = plain and estimator.goal == "accuracy" and estimator.enforce == "score"
    few = small and data.dense.shape[1] <= 12 and kinds
    return bool(few and smooth and plain and measure(outcome) is not None)


def local(outcome: Outcome) -> Local:
    """Return the problem by the independent formulas, the answer as a point of it."""
    estimator, (rows, counted) = outcome.estimator, rows_of(outcome)
    X = _features(outcome)[counted]
    scale = np.asarray(estimator.feature_scale_)
    mean = X.mean(axis=0) if estimator.fit_intercept else np.zeros(X.shape[1])
    Z = (X - mean) / scale
    answer = np.append(estimator.coef_[0] * scale, 0.0)
    if estimator.fit_intercept:
        answer[-1] = estimator.intercept_[0] + mean @ estimator.coef_[0]

    def scores(w: Array) -> Array:
        return Z @ w[:-1] + w[-1] * estimator.fit_intercept

    def objective(w: Array) -> float:
        loss = mean_loss(estimator.loss, scores(w), rows.y, rows.weight)
        return loss + penalty(estimator.alpha, w[:-1])

    def excess(w: Array) -> Array:
        return all_measured(outcome.constraints, rows, scores(w)).excess

    problem = Local(objective, excess, answer)
    if estimator.domain is not None:
        problem = _in_domain(problem, estimator.domain)
    return _epigraph(problem, outcome) if estimator.goal == "fairness" else problem


def _features(outcome: Outcome) -> Array:
    """Return the features of the model: those of X that it may see, or all of them."""
    X = outcome.data.X
    if outcome.data.sensitive_columns is None or not outcome.estimator.use_sensitive:
        return outcome.data.dense
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def _in_domain(problem: Local, domain: Any) -> Local:
    """Return the problem in the positive and negative parts of the coefficients, in a domain."""
    size = len(problem.answer) - 1
    coefficients = problem.answer[:size]
    ball, radius = type(domain).__name__, getattr(domain, "radius", np.inf)

    def joined(v: Array) -> Array:
        return np.append(v[:size] - v[size:-1], v[-1])

    def excess(v: Array) -> Array:
        w = v[:size] - v[size:-1]
        norm = v[:-1].sum() if ball == "L1Ball" else np.sqrt(w @ w)
        outside = [norm / radius - 1.0]
        if ball == "Box":
            outside = [*(w - domain.upper), *(domain.lower - w)]
        return np.append(problem.excess(joined(v)), outside)

    parts = [np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0), problem.answer[-1:]]
    lower = np.append(np.zeros(2 * size), -np.inf)
    return Local(lambda v: problem.objective(joined(v)), excess, np.concatenate(parts), lower)


def _epigraph(problem: Local, outcome: Outcome) -> Local:
    """Return the problem of least violation among models whose loss is not above a bound.

    The bound is the loss of the answer: a solution with a larger bound is one with this bound.
    """
    bound = problem.objective(problem.answer)
    count = len(measure(outcome).excess)  # type: ignore[union-attr]

    def excess(v: Array) -> Array:
        inner = problem.excess(v[:-1])
        inner[:count] -= v[-1]
        return np.append(inner, problem.objective(v[:-1]) - bound)

    level = problem.excess(problem.answer)[:count].max(initial=0.0)
    lower = np.append(np.broadcast_to(problem.lower, problem.answer.shape), -np.inf)
    return Local(lambda v: float(v[-1]), excess, np.append(problem.answer, level), lower)


def local_of_classes(outcome: Outcome) -> Local:
    """Return the problem of Neyman-Pearson classification, as :func:`local` does."""
    estimator, data = outcome.estimator, outcome.data
    n_classes, n_features = estimator.coef_.shape
    counted = data.weights > 0
    X, radius = data.dense, estimator.radius
    scale = feature_scale(X[counted], data.weights[counted]) if radius is None else np.ones(1)
    Z = X / scale
    bounds = np.asarray(estimator.kappa_)
    first = int(np.argmax(np.isinf(bounds)))
    split = n_classes * n_features

    def scores(w: Array) -> Array:
        return Z @ w[:split].reshape(n_classes, -1).T + w[split:] * estimator.fit_intercept

    def objective(w: Array) -> float:
        loss = class_losses(outcome, scores(w))[first]
        return float(loss) + penalty(estimator.alpha, w[:split])

    def excess(w: Array) -> Array:
        losses = (class_losses(outcome, scores(w)) - bounds)[np.isfinite(bounds)]
        if radius is None:
            return losses
        norms = np.linalg.norm(w[:split].reshape(n_classes, -1), axis=1)
        return np.append(losses, norms / radius - 1.0)

    answer = np.append(estimator.coef_ * scale, estimator.intercept_)
    return Local(objective, excess, answer)


def is_local_solution(outcome: Outcome) -> bool:
    """Return whether SLSQP finds nothing clearly better near a converged answer.

    False where the independent formulas do not cover the fit or give another objective.
    """
    problem = _covered(outcome)
    if problem is None:
        return False
    same = np.isclose(problem.objective(problem.answer), outcome.result.objective, rtol=1e-3)
    return bool(same) and not list(_improvements(problem))


def _covered(outcome: Outcome) -> Local | None:
    """Return the problem of a fit by the independent formulas, None if they do not cover it."""
    estimator, data = outcome.estimator, outcome.data
    if type(estimator).__name__ == "NeymanPearsonClassifier":
        return local_of_classes(outcome) if len(data.positions) <= 2000 else None
    if getattr(estimator, "enforce", "") != "score" or measure(outcome) is None:
        return None
    shape = getattr(estimator, "coef_", np.empty(0)).shape
    return local(outcome) if shape == (1, _features(outcome).shape[1]) else None


def check_certificate(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """A converged answer cannot be improved clearly by moving a little."""
    if outcome.status == "converged" and suits(outcome):
        yield from _improvements(local(outcome))


def _improvements(problem: Local) -> Iterator[Failure]:
    """Yield a failure if SLSQP, started from the answer, finds a clearly better feasible model."""
    at = problem.excess(problem.answer)
    if len(at) > 60:
        return
    allowed = max(0.0, float(at.max(initial=0.0)))
    before, room = problem.objective(problem.answer), _NEARBY * (1.0 + np.abs(problem.answer))
    after = _descent(problem, problem.answer, allowed, room)
    if before - after > 0.01 * abs(before) + 2e-5:
        text = f"objective {before:.6g}, a feasible model nearby has {after:.6g}"
        yield Failure("false certificate", text)


def _descent(problem: Local, start: Array, allowed: float, room: Array | float = np.inf) -> float:
    """Return the objective of the feasible model where SLSQP ends, infinite if it is not."""
    lower = np.maximum(start - room, problem.lower)
    constraints = {"type": "ineq", "fun": lambda w: allowed - problem.excess(w)}
    found = minimize(
        problem.objective,
        start,
        method="SLSQP",
        bounds=list(zip(lower, start + room, strict=True)),
        constraints=[constraints] if len(problem.excess(start)) else [],
        options={"maxiter": 60, "ftol": 1e-10},
    )
    feasible = problem.excess(found.x).max(initial=0.0) <= allowed + 1e-8
    return float(problem.objective(found.x)) if feasible else np.inf


def check_bound(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """No model that SLSQP finds from three starts is better than the proved gaps allow."""
    estimator, data = copy(outcome.estimator), outcome.data
    gap = getattr(estimator, "optimality_gap_", None)
    if gap is None or not suits(outcome):
        return
    if kind_of(estimator) not in FITTERS:
        estimator.certify(data.X, data.y, **arguments(data), seconds=_SECONDS)
        gap = estimator.optimality_gap_
    problem, source = local(outcome), np.random.default_rng(0)
    at = problem.excess(problem.answer)
    if len(at) > 60:
        return
    allowed, before = max(0.0, float(at.max(initial=0.0))), problem.objective(problem.answer)
    drawn = source.normal(size=(2, len(problem.answer))) * [[1.0], [4.0]]
    for start in (np.zeros_like(problem.answer), *drawn):
        after = _descent(problem, start, allowed)
        if after < (1.0 - gap) * before - 1e-6 * (1.0 + abs(before)):
            text = f"objective {before:.6g}, gap {gap:.3g}, but a feasible model has {after:.6g}"
            yield Failure("false bound", text)


def check_infeasible(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """A problem that is called infeasible has no feasible model near zero or near the answer."""
    if "infeasible" not in outcome.status or not suits(outcome):
        return
    problem = local(outcome)
    least = Local(lambda v: float(v[-1]), lambda v: problem.excess(v[:-1]) - v[-1], problem.answer)
    for start in (np.zeros_like(problem.answer), problem.answer):
        level = float(problem.excess(start).max(initial=0.0))
        if (found := _descent(least, np.append(start, level), 0.0)) <= 0.5 * outcome.tol:
            text = f"violation {outcome.result.violation:.3g}, a model nearby has {found:.3g}"
            yield Failure("misleading status", text)
            return
