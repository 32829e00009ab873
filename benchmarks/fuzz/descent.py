"""Whether scipy's SLSQP, started from the answer, finds a clearly better feasible model nearby."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize

from benchmarks.fuzz.checks import Failure, Failures, class_losses
from benchmarks.fuzz.data import Array
from benchmarks.fuzz.fitting import Outcome, arguments, measure, rows_of
from benchmarks.fuzz.formulas import PAIR_LOSSES, feature_scale, kind_of, mean_loss, penalty
from benchmarks.fuzz.rates import measures

_PAIRWISE = {"GroupAUCParity", "InterGroupAUCParity", "IntraGroupAUCParity"}
_KINKED = {"PartialDemographicParity", "WeakPartialDemographicParity"}
_MOST_CONSTRAINTS = 60
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

    @property
    def allowed(self) -> float:
        """The violation of the answer."""
        return float(self.excess(self.answer).max(initial=0.0))

    def descent(self, start: Array, allowed: float, room: Array | float = np.inf) -> float:
        """Return the objective of the feasible model where SLSQP ends, infinite if it is not."""
        constraints = {"type": "ineq", "fun": lambda w: allowed - self.excess(w)}
        bounds = Bounds(np.maximum(start - room, self.lower), start + room)
        given = {"bounds": bounds, "constraints": [constraints] if len(self.excess(start)) else []}
        given["options"] = {"maxiter": 60, "ftol": 1e-10}
        ended = minimize(self.objective, start, method="SLSQP", **given).x
        feasible = self.excess(ended).max(initial=0.0) <= allowed + 1e-8
        return float(self.objective(ended)) if feasible else np.inf

    def improvements(self) -> Failures:
        """Yield a failure if SLSQP, started from the answer, finds something clearly better."""
        if len(self.excess(self.answer)) > _MOST_CONSTRAINTS:
            return
        before, room = self.objective(self.answer), _NEARBY * (1.0 + np.abs(self.answer))
        after = self.descent(self.answer, self.allowed, room)
        if before - after > 0.01 * abs(before) + 2e-5:
            text = f"objective {before:.6g}, a feasible model nearby has {after:.6g}"
            yield Failure("false certificate", text)


def suits(outcome: Outcome) -> bool:
    """Return whether the problem is smooth, small and without a domain."""
    estimator, data = outcome.estimator, outcome.data
    kinds = {type(rule).__name__ for rule in outcome.constraints}
    given = [estimator, *outcome.constraints]
    functions = [getattr(each, name, None) for each in given for name in ("surrogate", "loss")]
    return bool(
        kinds
        and not kinds & _KINKED
        and not {kind_of(each) for each in functions} & {"ramp", "hinge", *PAIR_LOSSES}
        and hasattr(estimator.alpha, "__float__")
        and len(data.positions) <= (150 if kinds & _PAIRWISE else 600)
        and data.dense.shape[1] <= 12
        and data.sensitive_columns is None
        and estimator.domain is None
        and (estimator.goal, estimator.enforce) == ("accuracy", "score")
        and measure(outcome) is not None
    )


def local(outcome: Outcome) -> Local:
    """Return the problem by the independent formulas, the answer as a point of it."""
    estimator, (rows, counted) = outcome.estimator, rows_of(outcome)
    X = _features(outcome)[counted]
    # Sensitive columns that the model may not see are the last ones of X.
    scale, coef = (each[: X.shape[1]] for each in (estimator.feature_scale_, estimator.coef_[0]))
    mean = X.mean(axis=0) if estimator.fit_intercept else np.zeros(X.shape[1])
    Z = (X - mean) / scale
    answer = np.append(coef * scale, 0.0)
    if estimator.fit_intercept:
        answer[-1] = estimator.intercept_[0] + mean @ coef

    def scores(w: Array) -> Array:
        return Z @ w[:-1] + w[-1] * estimator.fit_intercept

    def objective(w: Array) -> float:
        loss = mean_loss(estimator.loss, scores(w), rows.y, rows.weight)
        return loss + penalty(estimator.alpha, w[:-1])

    def excess(w: Array) -> Array:
        return measures(outcome.constraints, rows, scores(w)).excess

    problem = Local(objective, excess, answer)
    if estimator.domain is not None:
        problem = _in_domain(problem, estimator.domain)
    return _epigraph(problem, len(excess(answer))) if estimator.goal == "fairness" else problem


def _features(outcome: Outcome) -> Array:
    """Return the features of the model: those of X that it may see, or all of them."""
    X = outcome.data.X
    if outcome.data.sensitive_columns is None or not outcome.estimator.use_sensitive:
        return outcome.data.dense
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def _in_domain(problem: Local, domain) -> Local:
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


def _epigraph(problem: Local, count: int) -> Local:
    """Return the problem of least violation of the first constraints, with a bound on the loss.

    The bound is the loss of the answer: a solution with a larger bound is one with this bound.
    """
    bound = problem.objective(problem.answer)

    def excess(v: Array) -> Array:
        inner = problem.excess(v[:-1])
        inner[:count] -= v[-1]
        return np.append(inner, problem.objective(v[:-1]) - bound)

    level = problem.excess(problem.answer)[:count].max(initial=0.0)
    lower = np.append(np.broadcast_to(problem.lower, problem.answer.shape), -np.inf)
    return Local(lambda v: float(v[-1]), excess, np.append(problem.answer, level), lower)


def _local_of_classes(outcome: Outcome) -> Local:
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

    def losses(w: Array) -> Array:
        scores = Z @ w[:split].reshape(n_classes, -1).T + w[split:] * estimator.fit_intercept
        return class_losses(outcome, scores)

    def objective(w: Array) -> float:
        return float(losses(w)[first]) + penalty(estimator.alpha, w[:split])

    def excess(w: Array) -> Array:
        outside = (losses(w) - bounds)[np.isfinite(bounds)]
        if radius is None:
            return outside
        norms = np.linalg.norm(w[:split].reshape(n_classes, -1), axis=1)
        return np.append(outside, norms / radius - 1.0)

    return Local(objective, excess, np.append(estimator.coef_ * scale, estimator.intercept_))


def covered(outcome: Outcome) -> Local | None:
    """Return the problem of a fit by the independent formulas, None if they do not cover it."""
    estimator, data = outcome.estimator, outcome.data
    if outcome.case.estimator == "NeymanPearsonClassifier":
        return _local_of_classes(outcome) if len(data.positions) <= 2000 else None
    if getattr(estimator, "enforce", "") != "score":
        return None
    coef, n = getattr(estimator, "coef_", np.empty((0, 0))), _features(outcome).shape[1]
    seen = coef.ndim == 2 and len(coef) == 1 and not coef[0, n:].any()
    return local(outcome) if seen and measure(outcome) is not None else None


def is_local_solution(outcome: Outcome) -> bool:
    """Return whether SLSQP finds nothing clearly better near a converged answer.

    False where the independent formulas do not cover the fit or give another objective.
    """
    problem = covered(outcome)
    if problem is None:
        return False
    same = np.isclose(problem.objective(problem.answer), outcome.result.objective, rtol=1e-3)
    return bool(same) and not list(problem.improvements())


def check_certificate(outcome: Outcome) -> Failures:
    """A converged answer cannot be improved clearly by moving a little."""
    if outcome.status == "converged" and suits(outcome):
        yield from local(outcome).improvements()


def check_bound(outcome: Outcome) -> Failures:
    """No model that SLSQP finds from three starts is better than the proved gaps allow."""
    estimator, data, case = copy(outcome.estimator), outcome.data, outcome.case
    if getattr(estimator, "optimality_gap_", None) is None or not suits(outcome):
        return
    if not case.estimator.startswith("dask"):
        estimator.certify(data.X, data.y, **arguments(case, data), seconds=_SECONDS)
    problem, gap = local(outcome), estimator.optimality_gap_
    if len(problem.excess(problem.answer)) > _MOST_CONSTRAINTS:
        return
    before, zero = problem.objective(problem.answer), np.zeros_like(problem.answer)
    drawn = np.random.default_rng(0).normal(size=(2, len(zero))) * [[1.0], [4.0]]
    for start in (zero, *drawn):
        after = problem.descent(start, problem.allowed)
        if after < (1.0 - gap) * before - 1e-6 * (1.0 + abs(before)):
            text = f"objective {before:.6g}, gap {gap:.3g}, but a feasible model has {after:.6g}"
            yield Failure("false bound", text)


def check_infeasible(outcome: Outcome) -> Failures:
    """A problem that is called infeasible has no feasible model near zero or near the answer."""
    if "infeasible" not in outcome.status or not suits(outcome):
        return
    problem = local(outcome)
    least = Local(lambda v: float(v[-1]), lambda v: problem.excess(v[:-1]) - v[-1], problem.answer)
    for start in (np.zeros_like(problem.answer), problem.answer):
        level = float(problem.excess(start).max(initial=0.0))
        if (reached := least.descent(np.append(start, level), 0.0)) <= 0.5 * outcome.estimator.tol:
            text = f"violation {outcome.result.violation:.3g}, a model nearby has {reached:.3g}"
            yield Failure("misleading status", text)
            return
