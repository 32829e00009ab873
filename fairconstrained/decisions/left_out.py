"""What decisions on new rows look like: those on rows that are left out of the fit."""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from fairconstrained.decisions.smooth_rounds import LAST_WIDTH, smooth_rates
from fairconstrained.models.feature_scale import row_blocks
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import Dual
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.classes import counts_predictions
from fairconstrained.utils.arrays import Array

_MOST_VARIABLES = 500  # of which the Hessian is decomposed
_LEAST_CURVATURE = 1e-5  # of the largest one
_LEAST_REST = 0.2  # of the curvature along a row, without the row


def score_changes(at: Evaluation, multipliers: Dual, rows: Array | None = None) -> Array | None:
    r"""Return how much the score of each row changes where the row is left out of the fit.

    Let :math:`\ell_i(s_i)` be what row i adds to the Lagrangian at a solution with multipliers, and
    H the Hessian of the Lagrangian. A step of Newton's method without the row changes its score by
    about

    .. math::
        \frac{q_i\, \ell_i'}{1 - q_i\, \ell_i''}, \qquad q_i = x_i^\top |H|^{-1} x_i,

    because the gradient of all other rows is :math:`-\ell_i' x_i`. New rows have no such influence
    on the model. It is None for other models than linear ones with one score (trees and networks
    also fit features to the rows), for domains, for functions without second derivatives, and for
    more than 500 variables. `rows` says which row each one is, where rows are listed for several
    groups: all of its places are left out together.

    References
    ----------
    K. Rahnama Rad, A. Maleki, "A scalable estimate of the out-of-sample prediction error via
    approximate leave-one-out cross-validation" (2020), equation 7; without constraints.
    """
    problem = at.problem
    model, n = problem.objective.model, problem.n_variables
    curved = all(part.term.curved and part.penalty.quadratic for part in problem.parts)
    if not (curved and problem.domain.whole_space and n <= _MOST_VARIABLES):
        return None
    if not isinstance(model, LinearModel) or model.fits_features or model.n_outputs > 1:
        return None
    if len(problem.models) > 1 or model.n_parameters < n or not model.in_memory:
        return None
    first, second = at.score_derivatives(multipliers)
    if rows is not None:
        first, second = (np.bincount(rows, each)[rows] for each in (first, second))
    sizes, vectors = np.linalg.eigh(at.hessian(multipliers))
    # The Hessian is not positive definite at all solutions: a step goes down along all directions.
    sizes = np.maximum(np.abs(sizes), _LEAST_CURVATURE * np.abs(sizes).max())
    roots = vectors / np.sqrt(sizes)
    # The scores of n models are the products of the rows with the columns of the root.
    models, d = replace(model, n_outputs=n), model.n_coefficients
    w = np.append(roots[:d].T, roots[d:])
    blocks = [models.on(model.X[rows]).scores(w) for rows in row_blocks(model.X)]
    influence = np.concatenate([(block**2).sum(axis=1) for block in blocks])
    return influence * first / np.maximum(1.0 - influence * second, _LEAST_REST)


def statistics_left_out(
    at: Evaluation, fitted: Evaluation, multipliers: Dual, rows: Array | None = None
) -> list[Array] | None:
    """Return the rates of decisions of all constraints, each on rows that are left out of the fit.

    They are the rates on the training rows, and the changes of smooth rates with the changes of the
    scores at the fit with multipliers: few decisions change, and their number would be noise.
    """
    changes = score_changes(fitted, multipliers, rows)
    if changes is None:
        return None
    decided, every = at.decided, []
    for part in decided.problem.constraints:
        statistics, term = decided.statistics_of(part), cast("Any", part.term)
        if counts_predictions(term):
            scores = decided.scores_of(part)
            smooth = smooth_rates(term, np.ones(len(scores)))
            smooth = replace(smooth, signs=smooth.signs / (LAST_WIDTH * scores.std()))
            left_out, seen = (smooth.forward(s)[0] for s in (scores + changes, scores))
            statistics = statistics + left_out - seen
        every.append(statistics)
    return every
