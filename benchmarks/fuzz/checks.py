"""What must hold of fits, each a function that yields failures: figures are those of formulas."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, logsumexp

from benchmarks.fuzz.data import Array
from benchmarks.fuzz.fitting import Outcome, measure, objective, penalty_of, queries, rows_of
from benchmarks.fuzz.formulas import Function, feature_scale, loss_of, mean_loss, surrogate_of
from benchmarks.fuzz.rates import Measured, joined, measures
from benchmarks.harness.processes import OverBudget

DATA_PASSES = 20_000.0
_FEW = 30  # of so many rows one in a thousand fifths has none
_PYTHONS_WARNINGS = ("UserWarning", "ConvergenceWarning")  # beside all that the library defines
_SHORT = ("ConvergenceWarning", "InfeasibleConstraintWarning")


@dataclass(frozen=True)
class Failure:
    """What is wrong: a class that is counted, and a sentence with the figures."""

    kind: str
    text: str


Failures = Iterator[Failure]
Check = Callable[[Outcome], Failures]


def rounding(outcome: Outcome) -> float:
    """Return how far scores may be wrong by rounding alone."""
    return 2e-3 if outcome.data.spec.container == "float32" else 2e-6


def _same(outcome: Outcome, name: str, mine: object, near: float | None = None) -> Failures:
    """Yield a failure if an attribute is not what the formulas say."""
    given = getattr(outcome.estimator, name)
    near = 10.0 * rounding(outcome) if near is None else near
    if not np.allclose(given, mine, rtol=near, atol=near, equal_nan=True):
        yield Failure("wrong figure", f"{name} {given}, is {mine}")


def _violates(outcome: Outcome, violation: float) -> bool:
    return violation > outcome.estimator.tol + rounding(outcome)


def _silent(outcome: Outcome, violation: float) -> Failures:
    """Yield a failure if no warning says that the constraints are violated."""
    said = outcome.status != "converged" and outcome.warned_of(*_SHORT)
    if _violates(outcome, violation) and not said:
        text = f"violation {violation:.3g}, status {outcome.status}"
        yield Failure("silent violation", text)


def _silent_of_decisions(violation: float) -> Failures:
    if violation > 1e-9:
        yield Failure("silent violation of decisions", f"decisions violate by {violation:.3g}")


def _against_constant(outcome: Outcome, violation: float, value: float, best: float) -> Failures:
    """Yield a failure if a feasible constant model has a loss of `best`, and the fit is worse."""
    if outcome.cut_short or not np.isfinite(best):
        return
    if _violates(outcome, violation):
        kind = "misleading status" if "infeasible" in outcome.status else "violates needlessly"
        text = f"status {outcome.status}, violation {violation:.3g}, but a constant is feasible"
        yield Failure(kind, text)
    elif value > 1.02 * best + 1e-3:
        text = f"{value:.5g}, a feasible constant has {best:.5g}, status {outcome.status}"
        yield Failure("worse than a constant", text)


def _unmeasured(outcome: Outcome) -> bool:
    """Return whether chance left no row of a cell to measure a gap on: a fifth of few rows."""
    cells = np.column_stack([outcome.data.codes, outcome.data.positions])[outcome.data.weights > 0]
    few = np.unique(cells, axis=0, return_counts=True)[1].min() < _FEW
    return few and "cannot be measured on the validation rows" in str(outcome.error)


def check_returns(outcome: Outcome) -> Failures:
    """A fit on valid input returns, and in time."""
    if isinstance(outcome.error, OverBudget):
        yield Failure("over budget", f"{outcome.seconds:.0f} CPU seconds")
    elif outcome.error is not None and not _unmeasured(outcome):
        expected = isinstance(outcome.error, ValueError | TypeError)
        yield Failure("error for valid input" if expected else "crash", outcome.trace)
    elif hasattr(outcome.estimator, "result_") and outcome.case.solver == "auto":
        passes = outcome.result.data_passes
        if passes > DATA_PASSES:
            yield Failure("over budget", f"{passes:.0f} data passes")


def check_warnings(outcome: Outcome) -> Failures:
    """All warnings are the library's."""
    for warning in outcome.caught:
        ours = warning.category.__module__.startswith("fairconstrained")
        if not ours and warning.category.__name__ not in _PYTHONS_WARNINGS:
            text = f"{warning.category.__name__}: {warning.message} ({warning.filename})"
            yield Failure("foreign warning", text)
            return


def check_finite(outcome: Outcome) -> Failures:
    """Coefficients, scores and probabilities are finite."""
    names = ("coef_", "intercept_", "objective_", "violation_", "multipliers_")
    values = {name: getattr(outcome.estimator, name, None) for name in names}
    values |= {"scores": outcome.scores, "probabilities": outcome.probabilities}
    for name, value in values.items():
        if value is not None and not np.all(np.isfinite(value)):
            yield Failure("not finite", f"{name}: not finite")


def check_scores(outcome: Outcome) -> Failures:
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


def check_violation(outcome: Outcome) -> Failures:
    """A violation of the constraints on scores, or on decisions, comes with a warning."""
    estimator = outcome.estimator
    if estimator.goal == "fairness" or outcome.warned_of("InfeasibleConstraintWarning"):
        return
    decisions = estimator.enforce == "decision"
    measured = measure(outcome, decisions=decisions)
    if measured is not None and decisions:
        yield from _silent_of_decisions(measured.violation)
    elif measured is not None:
        yield from _silent(outcome, measured.violation)


def check_objective(outcome: Outcome) -> Failures:
    """The objective that is reported agrees with the formulas."""
    if outcome.data.sensitive_columns is None:
        yield from _same(outcome, "objective_", objective(outcome))


def _ranges(outcome: Outcome) -> bool:
    """Return whether thresholds are variables of the fit, whose optimum has a lower violation."""
    return any(hasattr(constraint, "n_ranks") for constraint in outcome.constraints)


def check_figures(outcome: Outcome) -> Failures:
    """Violation and gaps that are reported agree with the formulas."""
    if outcome.estimator.goal == "fairness":
        return
    measured, strict = measure(outcome), measure(outcome, decisions=True)
    if measured is not None and not _ranges(outcome):
        yield from _same(outcome, "violation_", measured.violation)
        yield from _same(outcome, "gap_", np.maximum(measured.gap, 0.0))
    size = np.abs(outcome.scores)
    # Where scores differ by rounding errors only, chance orders the rows.
    tied = np.any(np.diff(np.unique(outcome.scores)) < 1e-12 * (1.0 + size.max()))
    tied = tied or size.min(initial=1.0) < rounding(outcome)
    if strict is not None and not tied and not np.isnan(strict.gap):
        yield from _same(outcome, "decision_gap_", np.maximum(strict.gap, 0.0), 1e-6)


def check_scale(outcome: Outcome) -> Failures:
    """The scale of features is the one that is documented."""
    data, counted = outcome.data, rows_of(outcome)[1]
    if data.sensitive_columns is None and outcome.estimator.domain is None:
        mine = feature_scale(data.dense[counted], data.weights[counted])
        ratio = outcome.estimator.feature_scale_ / mine
        if not np.allclose(ratio, 1.0, rtol=1e-3):
            yield Failure("wrong figure", f"feature_scale_ over that of the formulas: {ratio}")


def _best_constant(outcome: Outcome) -> float:
    """Return the least loss of the constant models that meet the constraints, inf for none."""
    rows, loss = rows_of(outcome)[0], outcome.estimator.loss
    free = getattr(outcome.estimator, "fit_intercept", True)
    levels = np.linspace(-6.0, 6.0, 49) if free else np.zeros(1)
    ones = np.ones(len(rows.y))
    losses = {level: mean_loss(loss, level * ones, rows.y, rows.weight) for level in levels}
    for level in sorted(losses, key=losses.__getitem__):
        measured = measure(outcome, np.full(len(outcome.scores), level))
        if measured is not None and measured.violation <= 1e-9:
            return losses[level]
    return np.inf


def check_constant(outcome: Outcome) -> Failures:
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
    yield from _against_constant(outcome, violation, value, _best_constant(outcome))


def _of_classes(outcome: Outcome, scores: Array) -> Measured | None:
    """Return what the constraints ask of the log odds of every class against all others."""
    parts = []
    for k in range(scores.shape[1]):
        odds = scores[:, k] - logsumexp(np.delete(scores, k, axis=1), axis=1)
        parts.append(measure(outcome, odds, favourable=k))
    return None if None in parts else joined(parts)


def _multinomial(outcome: Outcome, scores: Array) -> float:
    """Return the mean multinomial loss."""
    chosen = log_softmax(scores, axis=1)[np.arange(len(scores)), outcome.data.positions]
    return float(-np.average(chosen, weights=outcome.data.weights))


def check_several_classes(outcome: Outcome) -> Failures:
    """Objective, violation and gap agree with the formulas, and no constant model is better."""
    data, scores = outcome.data, outcome.scores
    value = _multinomial(outcome, scores) + penalty_of(outcome.estimator)
    yield from _same(outcome, "objective_", value)
    measured = _of_classes(outcome, scores)
    if measured is None:
        return
    yield from _silent(outcome, measured.violation)
    if not _ranges(outcome):
        yield from _same(outcome, "violation_", measured.violation)
    shares = np.bincount(data.positions, data.weights) / data.weights.sum()
    constant = np.zeros_like(scores)
    if outcome.estimator.fit_intercept:
        constant += np.log(shares)
    asked = _of_classes(outcome, constant)
    if asked is not None and asked.violation <= 1e-9:
        best = _multinomial(outcome, constant)
        yield from _against_constant(outcome, measured.violation, value, best)


def check_alternatives(outcome: Outcome) -> Failures:
    """Of the candidates with a score that is high enough the one of the smallest gap is chosen."""
    record = outcome.estimator
    table, least = record.candidates, record.candidates.loc[record.baseline, "choice_score"]
    enough = table[table.choice_score >= least - record.max_loss - 1e-12]
    chosen = table.loc[record.recommended]
    if not chosen.choice_gap <= enough.choice_gap.min() + 1e-12:
        yield Failure("alternatives", f"{record.recommended} of\n{table.to_string()}")
    figures = table[["score", "gap", "choice_score", "choice_gap"]]
    if not figures.apply(lambda each: each.between(0.0, 1.0 + 1e-12)).all(axis=None):
        yield Failure("alternatives", f"scores and gaps beyond [0, 1]:\n{figures.to_string()}")


def check_thresholds(outcome: Outcome) -> Failures:
    """Decisions meet the bound, and no common threshold that meets it is more accurate."""
    rows, counted = rows_of(outcome)

    def judged(decided: Array) -> tuple[float, float]:
        measured = measures(outcome.constraints, rows, decided, decisions=True)
        return measured.violation, float(np.average(decided == rows.y, weights=rows.weight))

    violation, accuracy = judged(outcome.scores[counted])
    if outcome.estimator.decision_search_.met or not outcome.warned_of(_SHORT[1]):
        yield from _silent_of_decisions(violation)
    scores = outcome.estimator.estimator_.predict_proba(outcome.data.X)[counted, 1]
    for cut in (-np.inf, *np.unique(scores)):
        short, other = judged(np.where(scores > cut, 1.0, -1.0))
        if short <= 0.0 and (violation > 1e-9 or other > accuracy + 1e-9):
            text = f"accuracy {accuracy:.6g}, violation {violation:.3g}; above {cut:.6g}"
            yield Failure("worse than a threshold", f"{text} it is {other:.6g}, without any")
            return


def check_ranker(outcome: Outcome) -> Failures:
    """The objective and the violation agree with sums over all pairs of rows of a query."""
    (bound,) = outcome.constraints
    kappa = outcome.estimator.kappa if bound.kappa is None else bound.kappa
    data, group = outcome.data, outcome.data.codes[:, 0]
    gaps, total, mass = [], 0.0, 0.0

    def summed(phi: object, up: Array, down: Array) -> tuple[float, float]:
        losses = loss_of(phi)(outcome.scores[up][:, None] - outcome.scores[down])
        u, v = data.weights[up], data.weights[down]
        return float(u @ losses @ v), float(u.sum() * v.sum())

    for query in np.unique(queries(data)):
        inside = (queries(data) == query) & (data.weights > 0)
        up, down = (np.flatnonzero(inside & (data.positions == label)) for label in (1, 0))
        total, mass = np.add((total, mass), summed("logistic", up, down))
        sides = [summed(bound.loss, up[group[up] == a], down[group[down] == 1 - a]) for a in (0, 1)]
        if all(weight for _, weight in sides):
            gaps.append(sides[0][0] / sides[0][1] - sides[1][0] / sides[1][1])
    yield from _same(outcome, "objective_", total / mass + penalty_of(outcome.estimator))
    compared = np.mean(gaps) if bound.average and gaps else np.array(gaps)
    violation = float(np.max(np.abs(compared) - kappa, initial=0.0))
    yield from _silent(outcome, violation)
    yield from _same(outcome, "violation_", violation)


def _function(surrogate: object) -> Function:
    """Return phi of a margin: a loss, or one less a surrogate."""
    try:
        decide = surrogate_of(surrogate)
    except LookupError:
        return loss_of(surrogate)
    return lambda t: decide(-np.asarray(t))


def class_losses(outcome: Outcome, scores: Array) -> Array:
    """Return the loss of every class, for scores with a column per class."""
    data, phi = outcome.data, _function(outcome.estimator.surrogate)
    losses = []
    for k in range(scores.shape[1]):
        rows = (data.positions == k) & (data.weights > 0)
        margins = scores[rows][:, [k]] - np.delete(scores[rows], k, axis=1)
        losses.append(np.average(phi(margins).sum(axis=1), weights=data.weights[rows]))
    return np.array(losses)


def check_neyman_pearson(outcome: Outcome) -> Failures:
    """The bounds on classes hold or a warning is issued; the figures agree with the formulas."""
    estimator = outcome.estimator
    losses = class_losses(outcome, outcome.data.dense @ estimator.coef_.T + estimator.intercept_)
    yield from _same(outcome, "class_losses_", losses)
    violation = float(np.max(losses - estimator.kappa_, initial=0.0))
    yield from _silent(outcome, violation)
    zero = class_losses(outcome, np.zeros((len(outcome.data.positions), len(losses))))
    if not np.any(zero > estimator.kappa_):
        best = zero[np.argmax(np.isinf(estimator.kappa_))]
        yield from _against_constant(outcome, violation, estimator.objective_, best)


def check_path(outcome: Outcome) -> Failures:
    """Every converged point meets its tolerance, and the objective falls as kappa rises."""
    path = outcome.estimator
    if not np.all(np.isfinite(path.coefs)):
        yield Failure("not finite", "coefficients of the path are not finite")
        return
    converged = path.statuses == "converged"
    if not converged.all() and not outcome.warned_of("ConvergenceWarning"):
        yield Failure("misleading status", "points did not converge, and no warning was issued")
    best = np.inf
    for k in (int(k) for k in np.argsort(path.kappas) if converged[k]):
        model = path.estimator_at(k)
        scores = model.decision_function(outcome.data.X)
        point = Outcome(outcome.case, model, outcome.data, scores=scores)
        measured = measure(point)
        if measured is not None and _violates(point, measured.violation):
            text = f"violation {measured.violation:.3g} at kappa {path.kappas[k]:.4g}"
            yield Failure("silent violation", text)
        value = objective(point)
        if value > 1.02 * best + 1e-4:
            text = f"objective {value:.5g} at kappa {path.kappas[k]:.4g}, {best:.5g} below it"
            yield Failure("worse than a neighbour", text)
        best = min(best, value)


def check_cross_validated(outcome: Outcome) -> Failures:
    """The choice is one of the candidates, and its figures are finite where they are defined."""
    model, vacuous = outcome.estimator, outcome.warned_of("VacuousConstraintWarning")
    if not np.any(np.isclose(model.kappas_, model.kappa_)):
        yield Failure("wrong figure", f"kappa_ {model.kappa_} is none of {model.kappas_}")
    for name in ("mean_test_accuracy", "mean_test_gap", "mean_test_loss"):
        undefined = vacuous and name == "mean_test_gap"
        if not (undefined or np.all(np.isfinite(model.cv_results_[name]))):
            yield Failure("not finite", f"cv_results_[{name!r}] is not finite")
