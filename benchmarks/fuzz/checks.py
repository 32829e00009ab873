"""What must hold of every fit, each a function that yields failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.fuzz.fitting import Case, Outcome, OverBudget, measure, objective, rows_of
from benchmarks.fuzz.formulas import feature_scale, mean_loss

Array = np.ndarray
DATA_PASSES = 20_000.0
OWN_WARNINGS = ("UserWarning", "ConvergenceWarning")  # and all that the library defines
_SHORT = ("ConvergenceWarning", "InfeasibleConstraintWarning")


@dataclass(frozen=True)
class Failure:
    """What is wrong: a class that is counted, and a sentence with the figures."""

    kind: str
    text: str


def rounding(outcome: Outcome) -> float:
    """Return how far scores may be wrong by rounding alone."""
    return 2e-3 if outcome.data.spec.container == "float32" else 2e-6


def check_returns(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """A fit on valid input returns, and in time."""
    if isinstance(outcome.error, OverBudget):
        yield Failure("over budget", f"{outcome.seconds:.0f} CPU seconds")
    elif isinstance(outcome.error, ValueError | TypeError):
        last = outcome.trace.strip().splitlines()
        where = [line.strip() for line in last if line.strip().startswith("File")][-1]
        yield Failure("error for valid input", f"{outcome.error!r} {where}")
    elif outcome.error is not None:
        yield Failure("crash", outcome.trace)
    elif hasattr(outcome.estimator, "result_") and case.solver == "auto":
        passes = outcome.result.data_passes
        if passes > DATA_PASSES:
            yield Failure("over budget", f"{passes:.0f} data passes")


def check_warnings(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """All warnings are the library's own."""
    for one in outcome.caught:
        own = one.category.__module__.startswith("fairconstrained")
        if not own and one.category.__name__ not in OWN_WARNINGS:
            text = f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
            yield Failure("foreign warning", text)
            return


def check_finite(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Coefficients, scores and probabilities are finite."""
    estimator = outcome.estimator
    for name in ("coef_", "intercept_", "objective_", "violation_", "multipliers_"):
        if not np.all(np.isfinite(getattr(estimator, name, 0.0))):
            yield Failure("not finite", f"{name} is not finite")
    for name in ("scores", "probabilities"):
        value = getattr(outcome, name)
        if value is not None and not np.all(np.isfinite(value)):
            yield Failure("not finite", f"{name} are not finite")


def check_scores(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """What `decision_function` returns is what the coefficients say."""
    estimator, dense = outcome.estimator, outcome.data.dense
    if outcome.data.sensitive_columns is not None or outcome.scores.ndim != 1:
        return
    coef, level = estimator.coef_, estimator.intercept_
    if len(coef) == 2:
        coef, level = coef[1:] - coef[:1], level[1:] - level[:1]
    scores = dense @ coef[0] + level[0]
    size = np.abs(dense) @ np.abs(coef[0]) + np.abs(level[0]) + 1.0
    off = np.max(np.abs(scores - outcome.scores) / size)
    if off > (1e-5 if outcome.data.spec.container == "float32" else 1e-10):
        yield Failure("wrong figure", f"decision_function is off by {off:.1e} of its size")


def check_violation(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """A violation of the constraints on scores comes with a warning."""
    estimator = outcome.estimator
    if estimator.goal == "fairness" or outcome.warned_of("InfeasibleConstraintWarning"):
        return
    if estimator.enforce == "decision":
        yield from _check_decisions(outcome)
        return
    found = measure(outcome)
    if found is None:
        return
    yield from silent(outcome, found.violation)


def silent(outcome: Outcome, violation: float) -> Iterator[Failure]:
    """Yield a failure if no warning says that the constraints are violated."""
    if violation <= outcome.tol + rounding(outcome):
        return
    if outcome.status == "converged" or not outcome.warned_of(*_SHORT):
        text = f"violation {violation:.3g}, status {outcome.status}"
        yield Failure("silent violation", text)


def _check_decisions(outcome: Outcome) -> Iterator[Failure]:
    found = measure(outcome, decisions=True)
    if found is not None and found.violation > 1e-9:
        text = f"decisions violate by {found.violation:.3g}, kappa {outcome.estimator.kappa}"
        yield Failure("silent violation of decisions", text)


def check_objective(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The objective that is reported agrees with the formulas."""
    estimator, near = outcome.estimator, 10.0 * rounding(outcome)
    if outcome.data.sensitive_columns is None:
        mine = objective(outcome)
        if not np.isclose(mine, estimator.objective_, rtol=near, atol=near):
            yield Failure("wrong figure", f"objective_ {estimator.objective_:.8g}, is {mine:.8g}")


def check_figures(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Violation and gaps that are reported agree with the formulas."""
    estimator, near = outcome.estimator, 10.0 * rounding(outcome)
    if estimator.goal == "fairness":
        return
    found, strict = measure(outcome), measure(outcome, decisions=True)
    partial = any(hasattr(one, "n_ranks") for one in outcome.constraints)
    if found is not None and not partial:
        yield from _same("violation_", estimator.violation_, found.violation, near)
        yield from _same("gap_", estimator.gap_, np.maximum(found.gap, 0.0), near)
    tied = np.abs(outcome.scores).min(initial=1.0) < rounding(outcome) or _rounded_ties(outcome)
    if strict is not None and not tied and not np.isnan(strict.gap):
        yield from _same(
            "decision_gap_", estimator.decision_gap_, np.maximum(strict.gap, 0.0), 1e-6
        )


def _rounded_ties(outcome: Outcome) -> bool:
    """Return whether scores differ by rounding errors only, so that chance orders the rows."""
    steps = np.diff(np.unique(outcome.scores))
    return bool(np.any(steps < 1e-12 * (1.0 + np.abs(outcome.scores).max())))


def _same(name: str, given: float, mine: float, near: float) -> Iterator[Failure]:
    if not np.isclose(given, mine, rtol=near, atol=near, equal_nan=True):
        yield Failure("wrong figure", f"{name} {given:.8g}, is {mine:.8g}")


def check_scale(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The scale of features is the one that is documented."""
    estimator, data = outcome.estimator, outcome.data
    if data.sensitive_columns is not None or estimator.domain is not None:
        return
    _, counted = rows_of(outcome)
    mine = feature_scale(data.dense[counted], data.weights[counted])
    if not np.allclose(mine, estimator.feature_scale_, rtol=1e-3):
        worst = int(np.argmax(np.abs(mine / estimator.feature_scale_ - 1.0)))
        text = (
            f"feature_scale_[{worst}] {estimator.feature_scale_[worst]:.6g}, is {mine[worst]:.6g}"
        )
        yield Failure("wrong figure", text)


def constant_levels(estimator: object) -> Array:
    """Return the scores of the constant models that are tried."""
    return np.linspace(-6.0, 6.0, 49) if getattr(estimator, "fit_intercept", True) else np.zeros(1)


def best_constant(outcome: Outcome) -> float:
    """Return the least loss of the constant models that meet the constraints, inf for none."""
    rows, counted = rows_of(outcome)
    best = np.inf
    for level in constant_levels(outcome.estimator):
        scores = np.full(len(outcome.data.positions), level)
        loss = mean_loss(outcome.estimator.loss, scores[counted], rows.y, rows.weight)
        if loss < best:
            found = measure(outcome, scores)
            if found is not None and found.violation <= 1e-9:
                best = loss
    return float(best)


def check_constant(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """No fit is worse than the best constant model, nor called infeasible where one is feasible."""
    estimator = outcome.estimator
    if outcome.cut_short or estimator.goal == "fairness" or estimator.enforce == "decision":
        return
    best = best_constant(outcome)
    if not np.isfinite(best):
        return
    allowed = outcome.tol + rounding(outcome)
    if outcome.result.violation > allowed:
        kind = "misleading status" if "infeasible" in outcome.status else "violates needlessly"
        text = f"status {outcome.status}, violation {outcome.result.violation:.3g}"
        yield Failure(kind, f"{text}, but a constant is feasible")
    elif estimator.objective_ > 1.02 * best + 1e-3:
        text = f"objective {estimator.objective_:.5g}, a feasible constant has {best:.5g}"
        yield Failure("worse than a constant", f"{text}, status {outcome.status}")


def check_constant_loss(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The mean loss is not above that of the best constant model that meets the constraints."""
    estimator = outcome.estimator
    if outcome.cut_short or estimator.goal == "fairness" or estimator.enforce == "decision":
        return
    best = best_constant(outcome)
    rows, counted = rows_of(outcome)
    mine = mean_loss(estimator.loss, outcome.scores[counted], rows.y, rows.weight)
    if mine > 1.02 * best + 1e-3:
        text = f"mean loss {mine:.5g}, a feasible constant has {best:.5g}"
        yield Failure("worse than a constant", f"{text}, status {outcome.status}")


Check = Callable[[Case, Outcome], Iterator[Failure]]
ALWAYS: tuple[Check, ...] = (check_returns, check_warnings)
OF_MODELS: tuple[Check, ...] = (check_finite,)
OF_CONSTRAINTS: tuple[Check, ...] = (check_violation, check_figures)
OF_LINEAR_MODELS: tuple[Check, ...] = (check_scores, check_objective, check_scale, check_constant)
