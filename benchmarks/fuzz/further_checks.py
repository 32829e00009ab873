"""Checks of other estimators by formulas: several classes, thresholds, rankers, paths, searches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import log_softmax, logsumexp

from benchmarks.fuzz.checks import Failure, against_constant, rounding, same, silent
from benchmarks.fuzz.data import Array
from benchmarks.fuzz.fitting import Case, Outcome, measure, objective, penalty_of, queries
from benchmarks.fuzz.formulas import Function, loss_of, surrogate_of
from benchmarks.fuzz.measures import Measured, NotMeasured, Rows, joined
from benchmarks.fuzz.rates import all_measured


def _rows(outcome: Outcome, favourable: int = 1) -> tuple[Rows, Array]:
    """Return the rows of positive weight, one class against all others, and where they are."""
    data, estimator = outcome.data, outcome.estimator
    counted = np.flatnonzero(data.weights)
    rows = Rows(
        np.where(data.positions[counted] == favourable, 1, -1),
        data.weights[counted],
        data.codes[counted],
        kappa=estimator.kappa,
        surrogate=getattr(estimator, "surrogate", "sigmoid"),
    )
    return rows, counted


def log_odds(scores: Array) -> Array:
    """Return the log odds of every class against all others."""
    others = [logsumexp(np.delete(scores, k, axis=1), axis=1) for k in range(scores.shape[1])]
    return scores - np.column_stack(others)


def _of_classes(outcome: Outcome, scores: Array) -> Measured | None:
    """Return what the constraints ask of every class."""
    odds, parts = log_odds(scores), []
    for k in range(scores.shape[1]):
        rows, counted = _rows(outcome, k)
        try:
            parts.append(all_measured(outcome.constraints, rows, odds[counted, k]))
        except NotMeasured:
            return None
    return joined(parts)


def _multinomial(outcome: Outcome, scores: Array) -> float:
    """Return the mean multinomial loss."""
    chosen = log_softmax(scores, axis=1)[np.arange(len(scores)), outcome.data.positions]
    return float(-np.average(chosen, weights=outcome.data.weights))


def check_several_classes(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Objective, violation and gap agree with the formulas, and no constant model is better."""
    data, scores = outcome.data, outcome.scores
    value = _multinomial(outcome, scores) + penalty_of(outcome.estimator)
    yield from same(outcome, "objective_", value)
    measured = _of_classes(outcome, scores)
    if measured is None:
        return
    yield from silent(outcome, measured.violation)
    if not any(hasattr(constraint, "n_ranks") for constraint in outcome.constraints):
        yield from same(outcome, "violation_", measured.violation)
    shares = np.bincount(data.positions, data.weights) / data.weights.sum()
    constant = np.zeros_like(scores)
    if outcome.estimator.fit_intercept:
        constant += np.log(shares)
    asked = _of_classes(outcome, constant)
    if asked is not None and asked.violation <= 1e-9:
        best = _multinomial(outcome, constant)
        yield from against_constant(outcome, measured.violation, value, best)


def check_thresholds(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Decisions meet the bound, and no common threshold that meets it is more accurate."""
    rows, counted = _rows(outcome)

    def judged(decided: Array) -> tuple[float, float]:
        measured = all_measured(outcome.constraints, rows, decided, decisions=True)
        return measured.violation, float(np.average(decided == rows.y, weights=rows.weight))

    violation, accuracy = judged(outcome.scores[counted])
    met = outcome.estimator.decision_search_.met
    if violation > 1e-9 and (met or not outcome.warned_of("InfeasibleConstraintWarning")):
        yield Failure("silent violation of decisions", f"decisions violate by {violation:.3g}")
    scores = outcome.estimator.estimator_.predict_proba(outcome.data.X)[counted, 1]
    for cut in (-np.inf, *np.unique(scores)):
        short, other = judged(np.where(scores > cut, 1.0, -1.0))
        if short <= 0.0 and (violation > 1e-9 or other > accuracy + 1e-9):
            text = f"accuracy {accuracy:.6g}, violation {violation:.3g}; above {cut:.6g}"
            yield Failure("worse than a threshold", f"{text} it is {other:.6g}, without any")
            return


def check_ranker(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The objective and the violation agree with sums over all pairs of rows."""
    yield from same(outcome, "objective_", _pair_loss(outcome) + penalty_of(outcome.estimator))
    violation = float(np.max(query_excess(outcome), initial=0.0))
    yield from silent(outcome, violation)
    yield from same(outcome, "violation_", violation)


def _pairs(outcome: Outcome, query: int) -> tuple[Array, Array]:
    """Return the relevant and the irrelevant rows of a query, of positive weight."""
    inside = (queries(outcome.data) == query) & (outcome.data.weights > 0)
    positions = outcome.data.positions
    return np.flatnonzero(inside & (positions == 1)), np.flatnonzero(inside & (positions == 0))


def _mean(outcome: Outcome, phi: object, up: Array, down: Array) -> tuple[float, float]:
    """Return the sum of a loss of s_i - s_j over pairs of rows, and the weight of the pairs."""
    scores, weights = outcome.scores, outcome.data.weights
    losses = loss_of(phi)(scores[up][:, None] - scores[down][None, :])
    return float(weights[up] @ losses @ weights[down]), weights[up].sum() * weights[down].sum()


def _pair_loss(outcome: Outcome) -> float:
    parts = [
        _mean(outcome, "logistic", *_pairs(outcome, q)) for q in np.unique(queries(outcome.data))
    ]
    return sum(total for total, _ in parts) / sum(mass for _, mass in parts)


def query_excess(outcome: Outcome) -> Array:
    """Return the differences of the mean losses of both directions, less kappa."""
    (bound,) = outcome.constraints
    kappa = outcome.estimator.kappa if bound.kappa is None else bound.kappa
    group, gaps = outcome.data.codes[:, 0], []
    for query in np.unique(queries(outcome.data)):
        up, down = _pairs(outcome, query)
        sides = []
        for a, b in ((0, 1), (1, 0)):
            first, second = up[group[up] == a], down[group[down] == b]
            if len(first) and len(second):
                total, mass = _mean(outcome, bound.loss, first, second)
                sides.append(total / mass)
        if len(sides) == 2:
            gaps.append([sides[0] - sides[1], sides[1] - sides[0]])
    both = np.array(gaps).reshape(-1, 2)
    if bound.average and len(both):
        both = both.mean(axis=0)
    return np.ravel(both) - kappa


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


def check_neyman_pearson(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The bounds on classes hold or a warning is issued; the figures agree with the formulas."""
    estimator = outcome.estimator
    losses = class_losses(outcome, outcome.data.dense @ estimator.coef_.T + estimator.intercept_)
    yield from same(outcome, "class_losses_", losses)
    violation = float(np.max(losses - estimator.kappa_, initial=0.0))
    yield from silent(outcome, violation)
    zero = class_losses(outcome, np.zeros((len(outcome.data.positions), len(losses))))
    if not np.any(zero > estimator.kappa_):
        best = zero[np.argmax(np.isinf(estimator.kappa_))]
        yield from against_constant(outcome, violation, estimator.objective_, best)


def check_path(case: Case, outcome: Outcome) -> Iterator[Failure]:
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
        point = Outcome(model, outcome.data, outcome.settings, scores=scores)
        measured = measure(point)
        if measured is not None and measured.violation > point.tol + rounding(outcome):
            text = f"violation {measured.violation:.3g} at kappa {path.kappas[k]:.4g}"
            yield Failure("silent violation", text)
        value = objective(point)
        if value > 1.02 * best + 1e-4:
            text = f"objective {value:.5g} at kappa {path.kappas[k]:.4g}, {best:.5g} below it"
            yield Failure("worse than a neighbour", text)
        best = min(best, value)


def check_cross_validated(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The choice is one of the candidates, and its figures are finite where they are defined."""
    model, vacuous = outcome.estimator, outcome.warned_of("VacuousConstraintWarning")
    if not np.any(np.isclose(model.kappas_, model.kappa_)):
        yield Failure("wrong figure", f"kappa_ {model.kappa_} is none of {model.kappas_}")
    for name in ("mean_test_accuracy", "mean_test_gap", "mean_test_loss"):
        undefined = vacuous and name == "mean_test_gap"
        if not (undefined or np.all(np.isfinite(model.cv_results_[name]))):
            yield Failure("not finite", f"cv_results_[{name!r}] is not finite")
