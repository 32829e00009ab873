r"""Bounds for several classes, at multipliers for which the Lagrangian is convex.

With the multinomial loss and average soft-max probabilities p it is a penalty plus a sum over rows,

.. math:: \varphi_i(s) = n_i \Big(\log \sum_k e^{s_k} - s_{y_i}\Big) + \sum_k c_{ik} p_k(s).

The second derivative of the second part along v is :math:`E[(c - E c) (v - E v)^2]` under p, that
of the first :math:`n E[(v - E v)^2]`: a row is convex if :math:`\max_k c_k - \min_k c_k \le n`.
Multipliers are scaled down until this holds in all rows. Then Fenchel's inequality bounds the
minimum from below at any point, see :func:`_bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr

from fairconstrained.bounds.fenchel import ROUNDING, TINY, least_of_penalty
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.classes import ByClass, MultinomialLoss
from fairconstrained.utils.typing import Array


def is_multinomial(part: CompositeFunction) -> bool:
    """Return whether a part is the multinomial loss."""
    return isinstance(part.term, MultinomialLoss)


def of_probabilities(part: CompositeFunction) -> bool:
    """Return whether a part is affine in averages of soft-max probabilities."""
    term = part.term
    return (
        isinstance(term, ByClass) and term.sharpness == 1.0 and all(map(_of_sigmoids, term.terms))
    )


def _of_sigmoids(term: Any) -> bool:
    if not isinstance(term, CellMeans) or type(term.function) is not Sigmoid or term.shift:
        return False
    return term.function.scale == 1.0


def class_bound(
    at: Evaluation, multipliers: Array, most: float, over: Callable[[float], bool]
) -> tuple[float, float]:
    """Return a lower bound on the objective of all models that violate no more, and its passes.

    Multipliers are looked for on the line from the given ones to zero, in at most `most` data
    passes, until a bound suffices (`over`).
    """
    weights, level = _weights(at, multipliers)
    of_loss = _row_weights(at)
    share = float((np.ptp(weights, axis=1) / of_loss).max())
    factor = 1.0 / max(share * (1.0 + 1e-12), 1.0)
    scaled = factor * multipliers
    terms = factor * weights, factor * level
    best, passes = _bound(at, scaled, *terms, at.violation), 1.0
    if over(best):
        return best, passes

    def lagrangian(w: Array) -> tuple[float, Array]:
        nonlocal best, passes
        there = at.problem.at(w)
        passes += 1.0
        best = max(best, _bound(there, scaled, *terms, at.violation))
        if over(best) or passes >= most:
            raise StopIteration
        return there.objective + float(scaled @ there.constraints), there.gradient(scaled)

    with suppress(StopIteration):
        minimize(lagrangian, at.w, jac=True, method="L-BFGS-B", options={"ftol": 0.0})
    return best, passes


def _row_weights(at: Evaluation) -> Array:
    """Return the weights n of the rows in the loss."""
    return cast("MultinomialLoss", at.problem.objective.term)._spread(np.ones(1))


def _weights(at: Evaluation, multipliers: Array) -> tuple[Array, float]:
    """Return c, (n_rows, n_classes), and what the constraints are where no row is of a class."""
    model = cast("LinearModel", at.problem.models[0])
    weights, level = np.zeros((model.n_rows, model.n_outputs)), 0.0
    for part, place in zip(at.problem.constraints, at.problem.places[1:], strict=True):
        term, of_part = cast("ByClass", part.term), multipliers[place]
        level += float(of_part @ (term.head(np.zeros(term.n_statistics)) + part.level_of(None)))
        on_statistics = term.head_vjp(np.zeros(term.n_statistics), of_part)
        ends = np.cumsum([each.n_statistics for each in term.by_class])[:-1]
        of_classes = zip(term.by_class, np.split(on_statistics, ends), strict=True)
        for k, (each, of_cells) in enumerate(of_classes):
            on_rows = each._spread(of_cells)
            if each.signs is not None:  # sigmoid(-t) = 1 - sigmoid(t)
                level += float(on_rows[each.signs < 0.0].sum())
                on_rows = on_rows * each.signs
            weights[:, k] += on_rows
    return weights, level


def _bound(
    at: Evaluation, multipliers: Array, weights: Array, level: float, violation: float
) -> float:
    r"""Return a lower bound on the Lagrangian at all parameters, from any point.

    With slopes :math:`\theta_i = \nabla \varphi_i(s_i)` it is the sum of :math:`\varphi_i(s_i) -
    \langle \theta_i, s_i \rangle` and of the least value of :math:`\sum_i \langle \theta_i, s_i
    \rangle` plus the penalty. Intercepts have no penalty, so that slopes must sum to zero. They are
    averaged, with a share epsilon, with those of a constant model of probabilities q, :math:`n_i (q
    - e_{y_i})`, whose conjugate is at most :math:`-n_i H(q) - \min_k c_{ik}`; q makes the sum zero.
    """
    problem, n = at.problem, _row_weights(at)
    objective, model = problem.objective, cast("LinearModel", problem.models[0])
    scores = at.scores_of(objective)
    slopes = np.zeros(scores.shape)
    parts = zip(problem.parts, [np.ones(1), *np.split(multipliers, _ends(at))], strict=False)
    for part, of_part in parts:
        statistics, pullback = part.term.forward(scores)
        slopes += pullback(part.term.head_vjp(statistics, of_part))[0]
    level = level - violation * float(multipliers.sum())
    loss = at.objective - objective.penalty.value(at.w)
    total = loss + float(multipliers @ (at.constraints - violation)) - level
    labels = cast("MultinomialLoss", objective.term).labels
    shares = np.bincount(labels, n, minlength=model.n_outputs)
    left = slopes.sum(axis=0) if model.fit_intercept else np.zeros(model.n_outputs)
    most = max(float((left / np.maximum(shares, TINY)).max()), 0.0)
    share = most / (1.0 + most)  # the least epsilon for which no probability is negative
    q = np.maximum(shares - left / max(most, TINY), 0.0)
    constant = np.tile(q, (len(n), 1))
    constant[np.arange(len(n)), labels] -= 1.0
    mean = (1.0 - share) * slopes + share * n[:, None] * constant
    products = slopes * scores
    of_constant = float(n.sum() * entr(q).sum() + weights.min(axis=1).sum())
    on_parameters = model.vjp(at.w, mean)[: model.n_coefficients]
    assert objective.penalty.elastic_net is not None
    rest = least_of_penalty(on_parameters, *objective.penalty.elastic_net)
    bound = (1.0 - share) * (total - products.sum()) + share * of_constant + rest.sum() + level
    size = np.abs(products).sum() + abs(total) + np.abs(rest).sum() + abs(level) + abs(of_constant)
    return float(bound - ROUNDING * size)


def _ends(at: Evaluation) -> list[int]:
    return [place.stop for place in at.problem.places[1:]]
