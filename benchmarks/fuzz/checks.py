"""What must hold of every fit, each a function that yields failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.fuzz.fitting import Case, Outcome, measure, objective, rows_of
from benchmarks.fuzz.formulas import feature_scale, mean_loss
from benchmarks.harness.processes import OverBudget

DATA_PASSES = 20_000.0
_PYTHONS_WARNINGS = ("UserWarning", "ConvergenceWarning")  # beside all that the library defines
_SHORT = ("ConvergenceWarning", "InfeasibleConstraintWarning")


@dataclass(frozen=True)
class Failure:
    """What is wrong: a class that is counted, and a sentence with the figures."""

    kind: str
    text: str


Check = Callable[[Case, Outcome], Iterator[Failure]]


def rounding(outcome: Outcome) -> float:
    """Return how far scores may be wrong by rounding alone."""
    return 2e-3 if outcome.data.spec.container == "float32" else 2e-6


def same(outcome: Outcome, name: str, mine: object, near: float | None = None) -> Iterator[Failure]:
    """Yield a failure if an attribute is not what the formulas say."""
    given = getattr(outcome.estimator, name)
    near = 10.0 * rounding(outcome) if near is None else near
    if not np.allclose(given, mine, rtol=near, atol=near, equal_nan=True):
        yield Failure("wrong figure", f"{name} {given}, is {mine}")


def silent(outcome: Outcome, violation: float) -> Iterator[Failure]:
    """Yield a failure if no warning says that the constraints are violated."""
    short = violation > outcome.tol + rounding(outcome)
    if short and (outcome.status == "converged" or not outcome.warned_of(*_SHORT)):
        text = f"violation {violation:.3g}, status {outcome.status}"
        yield Failure("silent violation", text)


def against_constant(
    outcome: Outcome, violation: float, value: float, best: float
) -> Iterator[Failure]:
    """Yield a failure if a feasible constant model has a loss of `best`, and the fit is worse."""
    if outcome.cut_short or not np.isfinite(best):
        return
    if violation > outcome.tol + rounding(outcome):
        kind = "misleading status" if "infeasible" in outcome.status else "violates needlessly"
        text = f"status {outcome.status}, violation {violation:.3g}, but a constant is feasible"
        yield Failure(kind, text)
    elif value > 1.02 * best + 1e-3:
        text = f"{value:.5g}, a feasible constant has {best:.5g}, status {outcome.status}"
        yield Failure("worse than a constant", text)


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
    """All warnings are the library's."""
    for warning in outcome.caught:
        ours = warning.category.__module__.startswith("fairconstrained")
        if not ours and warning.category.__name__ not in _PYTHONS_WARNINGS:
            text = f"{warning.category.__name__}: {warning.message} ({warning.filename})"
            yield Failure("foreign warning", text)
            return


def check_finite(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Coefficients, scores and probabilities are finite."""
    names = ("coef_", "intercept_", "objective_", "violation_", "multipliers_")
    values = {name: getattr(outcome.estimator, name, None) for name in names}
    values |= {"scores": outcome.scores, "probabilities": outcome.probabilities}
    for name, value in values.items():
        if value is not None and not np.all(np.isfinite(value)):
            yield Failure("not finite", f"{name}: not finite")


def check_scores(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """What `decision_function` returns is what the coefficients say."""
    estimator, dense = outcome.estimator, outcome.data.dense
    if outcome.data.sensitive_columns is not None or outcome.scores.ndim != 1:
        return
    coef, level = estimator.coef_, estimator.intercept_
    if len(coef) == 2:  # Neyman-Pearson with two classes
        coef, level = coef[1:] - coef[:1], level[1:] - level[:1]
    scores = dense @ coef[0] + level[0]
    size = np.abs(dense) @ np.abs(coef[0]) + np.abs(level[0]) + 1.0
    off = np.max(np.abs(scores - outcome.scores) / size)
    if off > (1e-5 if outcome.data.spec.container == "float32" else 1e-10):
        yield Failure("wrong figure", f"decision_function is off by {off:.1e} of its size")


def check_violation(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """A violation of the constraints on scores, or on decisions, comes with a warning."""
    estimator = outcome.estimator
    if estimator.goal == "fairness" or outcome.warned_of("InfeasibleConstraintWarning"):
        return
    decisions = estimator.enforce == "decision"
    measured = measure(outcome, decisions=decisions)
    if measured is None:
        return
    if not decisions:
        yield from silent(outcome, measured.violation)
    elif measured.violation > 1e-9:
        text = f"decisions violate by {measured.violation:.3g}, kappa {estimator.kappa}"
        yield Failure("silent violation of decisions", text)


def check_objective(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The objective that is reported agrees with the formulas."""
    if outcome.data.sensitive_columns is None:
        yield from same(outcome, "objective_", objective(outcome))


def check_figures(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Violation and gaps that are reported agree with the formulas."""
    if outcome.estimator.goal == "fairness":
        return
    measured, strict = measure(outcome), measure(outcome, decisions=True)
    # Thresholds of partial parity are variables of the fit: their optimum has a lower violation.
    partial = any(hasattr(constraint, "n_ranks") for constraint in outcome.constraints)
    if measured is not None and not partial:
        yield from same(outcome, "violation_", measured.violation)
        yield from same(outcome, "gap_", np.maximum(measured.gap, 0.0))
    tied = np.abs(outcome.scores).min(initial=1.0) < rounding(outcome) or _rounded_ties(outcome)
    if strict is not None and not tied and not np.isnan(strict.gap):
        yield from same(outcome, "decision_gap_", np.maximum(strict.gap, 0.0), 1e-6)


def _rounded_ties(outcome: Outcome) -> bool:
    """Return whether scores differ by rounding errors only, so that chance orders the rows."""
    steps = np.diff(np.unique(outcome.scores))
    return bool(np.any(steps < 1e-12 * (1.0 + np.abs(outcome.scores).max())))


def check_scale(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The scale of features is the one that is documented."""
    data = outcome.data
    if data.sensitive_columns is None and outcome.estimator.domain is None:
        counted = rows_of(outcome)[1]
        mine = feature_scale(data.dense[counted], data.weights[counted])
        ratio = outcome.estimator.feature_scale_ / mine
        if not np.allclose(ratio, 1.0, rtol=1e-3):
            yield Failure("wrong figure", f"feature_scale_ over that of the formulas: {ratio}")


def best_constant(outcome: Outcome) -> float:
    """Return the least loss of the constant models that meet the constraints, inf for none."""
    rows, counted = rows_of(outcome)
    free = getattr(outcome.estimator, "fit_intercept", True)
    best = np.inf
    for level in np.linspace(-6.0, 6.0, 49) if free else np.zeros(1):
        scores = np.full(len(outcome.data.positions), level)
        loss = mean_loss(outcome.estimator.loss, scores[counted], rows.y, rows.weight)
        if loss < best:
            measured = measure(outcome, scores)
            if measured is not None and measured.violation <= 1e-9:
                best = loss
    return float(best)


def check_constant(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """No fit is worse than the best constant model, nor called infeasible where one is feasible."""
    estimator = outcome.estimator
    if outcome.cut_short or estimator.goal == "fairness" or estimator.enforce == "decision":
        return
    if hasattr(estimator, "coef_"):
        violation, value = outcome.result.violation, estimator.objective_
    else:  # the penalties of other models are not measured
        rows, counted = rows_of(outcome)
        violation = 0.0
        value = mean_loss(estimator.loss, outcome.scores[counted], rows.y, rows.weight)
    yield from against_constant(outcome, violation, value, best_constant(outcome))


ALWAYS: tuple[Check, ...] = (check_returns, check_warnings)
OF_OTHER_MODELS: tuple[Check, ...] = (
    check_finite, check_violation, check_figures, check_constant,
)  # fmt: skip
OF_LINEAR_MODELS: tuple[Check, ...] = (
    *OF_OTHER_MODELS, check_scores, check_objective, check_scale,
)  # fmt: skip
