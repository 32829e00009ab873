"""Checks of the Neyman-Pearson classifier, of paths and of cross-validation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.fuzz.checks import Failure, rounding, silent
from benchmarks.fuzz.data import Array
from benchmarks.fuzz.fitting import Case, Outcome, measure
from benchmarks.fuzz.formulas import Function, loss_of, mean_loss, penalty, surrogate_of


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


def _all_scores(outcome: Outcome) -> Array:
    estimator = outcome.estimator
    return np.asarray(outcome.data.dense @ estimator.coef_.T + estimator.intercept_)


def check_neyman_pearson(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The bounds on classes hold or a warning is issued; the figures agree with the formulas."""
    estimator, near = outcome.estimator, 10.0 * rounding(outcome)
    losses = class_losses(outcome, _all_scores(outcome))
    if not np.allclose(losses, estimator.class_losses_, rtol=near, atol=near):
        yield Failure("wrong figure", f"class_losses_ {estimator.class_losses_}, are {losses}")
    violation = float(np.max(losses - estimator.kappa_, initial=0.0))
    yield from silent(outcome, violation)
    zero = class_losses(outcome, np.zeros((len(outcome.data.positions), len(losses))))
    first = int(np.argmax(np.isinf(estimator.kappa_)))
    if outcome.cut_short or np.any(zero > estimator.kappa_):
        return
    if violation > outcome.tol + rounding(outcome):
        infeasible = "infeasible" in outcome.status
        kind = "misleading status" if infeasible else "violates needlessly"
        yield Failure(kind, f"violation {violation:.3g}, but zero scores are feasible")
    elif estimator.objective_ > 1.02 * zero[first] + 1e-3:
        text = f"objective {estimator.objective_:.5g}, zero scores have {zero[first]:.5g}"
        yield Failure("worse than a constant", f"{text}, status {outcome.status}")


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
    for k in np.argsort(path.kappas):
        model = path.estimator_at(int(k))
        scores = model.decision_function(outcome.data.X)
        one = Outcome(model, outcome.data, outcome.settings, scores=scores)
        found = measure(one)
        if found is not None and converged[k] and found.violation > one.tol + rounding(outcome):
            text = f"violation {found.violation:.3g} at kappa {path.kappas[k]:.4g}"
            yield Failure("silent violation", text)
        value = mean_loss(model.loss, scores, *_labels(outcome))
        value += penalty(model.alpha, model.coef_ * model.feature_scale_)
        if converged[k] and value > 1.02 * best + 1e-4:
            text = f"objective {value:.5g} at kappa {path.kappas[k]:.4g}, {best:.5g} below it"
            yield Failure("worse than a neighbour", text)
        if converged[k]:
            best = min(best, value)


def _labels(outcome: Outcome) -> tuple[Array, Array]:
    return np.where(outcome.data.positions == 1, 1, -1), outcome.data.weights


def check_cross_validated(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """The choice is one of the candidates, and its figures are finite where they are defined."""
    model, vacuous = outcome.estimator, outcome.warned_of("VacuousConstraintWarning")
    if not np.any(np.isclose(model.kappas_, model.kappa_)):
        yield Failure("wrong figure", f"kappa_ {model.kappa_} is none of {model.kappas_}")
    for name in ("mean_test_accuracy", "mean_test_gap", "mean_test_loss"):
        undefined = vacuous and name == "mean_test_gap"
        if not (undefined or np.all(np.isfinite(model.cv_results_[name]))):
            yield Failure("not finite", f"cv_results_[{name!r}] is not finite")
