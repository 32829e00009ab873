"""Constraints that are met by scores on one side of the threshold only."""

from __future__ import annotations

import warnings

import numpy as np

from fairconstrained.estimators.fit import Fit
from fairconstrained.exceptions import ConstantDecisionWarning
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.typing import Array


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
    if not _all_equal(at.uncounted().model_pass(fit.problem.objective.model).distribution()[0]):
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
