"""Warnings after a fit: what was not found, and what was hardly wanted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.fit import Fit
from fairconstrained.exceptions import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    InfeasibleConstraintWarning,
    InputWarning,
)
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.solvers import Result, Status
from fairconstrained.utils.splits import in_fold
from fairconstrained.utils.typing import Array

_FAR = 0.1  # a gap of predictions that is larger than kappa by this is hardly what was wanted


def warn_of_other_solver(results: Sequence[Result], stacklevel: int) -> None:
    """Warn once if other solvers' models were taken in place of those of the solver asked for.

    Warns
    -----
    ConvergenceWarning
        It names both solvers.
    """
    replaced = [one for one in results if one.replaces is not None]
    if not replaced:
        return
    asked = {type(one.replaces).__name__ for one in replaced}
    taken = {type(one.solver).__name__ for one in replaced}
    where = f" of {len(replaced)} of {len(results)} fits" if len(results) > 1 else ""
    warnings.warn(
        f"solver: {', '.join(sorted(asked))} did not converge to a model that meets the "
        f"constraints; the model{where} is that of {', '.join(sorted(taken))}, which is better. "
        "Use another solver, raise max_iter, or pass the solver as an object with polish=False to "
        f"keep its own answer. {replaced[0].message}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_of(result: Result, stacklevel: int) -> None:
    """Warn if a run ended short of its tolerance, or another solver's model was taken.

    Warns
    -----
    InfeasibleConstraintWarning
        If its violation is above the tolerance and cannot fall near its point.
    ConvergenceWarning
        If it did not converge otherwise.
    """
    warn_of_other_solver([result], stacklevel + 1)
    if result.violation > result.solver.tol and result.status is Status.INFEASIBLE:
        warnings.warn(
            f"No model that meets the constraints was found; the least violation is "
            f"{result.violation:.3g}, and the model that has it is kept. {result.message}",
            InfeasibleConstraintWarning,
            stacklevel=stacklevel,
        )
    elif result.violation > result.solver.tol:
        warnings.warn(
            f"The run ended before the constraints were met; the least violation is "
            f"{result.violation:.3g}, and the model that has it is kept. {result.message}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    elif not result.complete:
        warnings.warn(result.message, ConvergenceWarning, stacklevel=stacklevel)


def far_predictions(
    constraints: Sequence[Constraint], data: TrainingData, at: Evaluation
) -> tuple[float, float] | None:
    """Return the gap of predictions that exceeds its bound on rates most, if it does so by far.

    Parameters
    ----------
    constraints : sequence of Constraint
        The constraints on scores.
    data : TrainingData
        The rows.
    at : Evaluation
        The problem at the solution.

    Returns
    -------
    found : tuple of float or None
        The gap and the bound.
    """
    parts = iter(at.decided.gaps)
    found: list[tuple[float, float]] = []
    for one in constraints:
        for gaps, bounds in islice(parts, len(one.groupings(data))):
            if one.bounds_rates:
                found += zip(gaps.tolist(), bounds.tolist(), strict=True)
    return farthest([pair for pair in found if pair[0] > pair[1] + _FAR])


def farthest(pairs: Iterable[tuple[float, float] | None]) -> tuple[float, float] | None:
    """Return the gap and the bound that differ most, None if there are none."""
    present = [pair for pair in pairs if pair is not None]
    return max(present, key=lambda pair: pair[0] - pair[1], default=None)


def warn_of_predictions(far: tuple[float, float] | None, stacklevel: int) -> None:
    """Warn if predictions exceed a bound on scores by far.

    The fits to the folds of a search say nothing: the fit to all rows says it once.

    Warns
    -----
    InputWarning
        Names `enforce`.
    """
    if far is None or in_fold():
        return
    warnings.warn(
        f"The bound of {far[1]:.3g} is one on scores: the gap of the predictions, decision_gap_, "
        f"is {far[0]:.3f}. To bound that of the predictions, use enforce='decision'.",
        InputWarning,
        stacklevel=stacklevel,
    )


def warn_of_one_side(fit: Fit, w: Array, stacklevel: int) -> None:
    """Warn if constraints are met because all scores are on one side of the threshold.

    Losses of pairs depend on differences of scores only. A number can be added to all scores, until
    a constraint on rates holds, and the loss does not change.

    Parameters
    ----------
    fit : Fit
        What was fitted.
    w : ndarray of shape (n_variables,)
        The solution.
    stacklevel : int
        See :func:`warnings.warn`.

    Warns
    -----
    ConstantDecisionWarning
        If the loss does not determine the intercept, all scores have the same sign, and a gap of
        the same scores minus their median is larger, and above its bound.
    """
    objective = resolve_objective("loss", fit.estimator.loss)
    if objective.determines_intercept or fit.data.several_classes:
        return
    at = fit.problem.uncounted().at(w)
    for part in fit.problem.constraints:
        scores = at.scores_of(part)
        if part.term.n_auxiliary or not scores.size:
            continue
        selected = scores > 0.0
        if selected.any() and not selected.all():
            continue
        least = np.maximum(part.term.gap(scores), part.term.gap_bounds)
        if np.max(part.term.gap(scores - np.median(scores)) - least) > fit.solver.tol:
            warnings.warn(
                "All scores of the training rows are "
                f"{'above' if selected.all() else 'below'} the threshold, and the constraints are "
                "met in this way only: this loss does not determine the intercept. Use constraints "
                "on rankings, such as 'group_auc' or, for rankers, 'query_parity', or a loss that "
                "determines the intercept, such as 'logistic'.",
                ConstantDecisionWarning,
                stacklevel=stacklevel,
            )
            return


def warn_of_equal_predictions(fit: Fit, at: Evaluation, stacklevel: int) -> None:
    """Warn if a bound on differences of scores makes all predictions equal.

    Parameters
    ----------
    fit : Fit
        What was fitted.
    at : Evaluation
        The problem at the solution.
    stacklevel : int
        See :func:`warnings.warn`.

    Warns
    -----
    ConstantDecisionWarning
        If predictions of the unconstrained model differ, and kappa is below the values that are
        usual: they are named, see `Constraint.usual_kappas`.
    """
    spans = [(one, one.usual_kappas) for one in fit.constraints]
    small = [(one, span) for one, span in spans if span and one.checked_kappa() < span[0]]
    if not small or not resolve_objective("loss", fit.estimator.loss).determines_intercept:
        return
    if not _all_equal(at.model_pass(fit.problem.objective.model).distribution()[0]):
        return
    if _all_equal(fit.unconstrained.weighted_scores(fit.data)[0]):
        return
    one, (low, high) = small[0]
    kind = type(one).__name__
    warnings.warn(
        f"The same class is predicted for every training row. {kind} with kappa={one.kappa:g} "
        f"bounds {one.scores_title}, not probabilities: values from {low:g} to {high:g} are usual. "
        f"Pass one to the constraint, such as {kind}({np.sqrt(low * high):g}).",
        ConstantDecisionWarning,
        stacklevel=stacklevel,
    )


def _all_equal(scores: Array) -> bool:
    """Return whether the same class is predicted for all rows."""
    predicted = scores.argmax(axis=1) if scores.ndim == 2 else scores > 0.0
    return len(np.unique(predicted)) == 1
