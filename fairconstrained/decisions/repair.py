"""Repair of models short of a bound on decisions: the smallest change that meets it, linearised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Measure
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.passes import forward_pass
from fairconstrained.terms.base import NO_AUXILIARY
from fairconstrained.terms.cell_means import CellMeans, averages
from fairconstrained.terms.class_scores import ByClass
from fairconstrained.utils.numerics import nonnegative_least_squares
from fairconstrained.utils.typing import Array


def repair(search: CandidateSearch, one: Candidate, enough: Callable[[], bool]) -> Candidate:
    """Return a more promising candidate near another, the same if none was found.

    Parameters
    ----------
    search : CandidateSearch
        Keeps the best candidate.
    one : Candidate
        The model to repair.
    enough : callable
        Returns True when the budget is used up.
    """
    budget = search.budget
    if not search.model.linear:  # scores along a line are not those of its ends
        return one
    weight = budget.accuracy_weight
    for window in budget.repair_windows:
        for margin in budget.repair_margins:
            if enough():
                return one
            found = repair_step(search, one, margin, window)
            if found is one or found.promise(weight) > one.promise(weight):
                return found
    return one


def repair_step(search: CandidateSearch, one: Candidate, margin: float, window: float) -> Candidate:
    r"""Return a candidate whose decisions are nearer to the bound.

    Rates of decisions change with the features of the rows at the threshold. The step is the
    shortest one, in the problem's preconditioned variables, that moves all active constraints below
    the bound to first order: :math:`\min \|d\|` subject to :math:`G_j + \nabla \tilde G_j^\top d
    \le -\text{margin}`. A search along it finds the step length.

    Parameters
    ----------
    search : CandidateSearch
        Keeps the best candidate.
    one : Candidate
        Where the step starts.
    margin : float
        The distance below the bound that is aimed at.
    window : float
        The bandwidth of the density of the scores at the threshold.
    """
    problem, units = search.problem, search.problem.preconditioner
    slopes, levels = [], []
    strict = search.measures[1:]
    known = zip(problem.constraints, strict, search.values(strict, one), strict=True)
    for part, measure, level in known:
        active = np.flatnonzero(level > -search.budget.active)
        slope = _slopes(search, part, measure, one, active, window)
        if slope is None:
            return one
        slopes.append(slope * units[: slope.shape[1]])
        levels.append(level[active])
    rates, excess = np.vstack(slopes), np.concatenate(levels)
    step = least_norm_step(rates, excess + margin)
    if not np.any(step):  # rates that must be equal cannot be below the bound on both sides
        step = least_norm_step(rates, excess)
    if not problem.domain.whole_space or not np.any(step):
        return one
    direction = np.zeros_like(one.w)
    direction[: len(step)] = step * units[: len(step)]
    line = search.line_along(one, direction)
    problem.counter.rows += problem.n_rows  # the slopes read them as well
    found = search.follow(line, search.points_on(line, search.budget.repair_range, None))
    search.sweep_intercept(found)
    return found


def _slopes(
    search: CandidateSearch,
    part: CompositeFunction,
    measure: Measure,
    one: Candidate,
    active: Array,
    window: float,
) -> Array | None:
    """Return the gradients of some outputs on decisions, None for terms that are not on rates."""
    if isinstance(part.term, CellMeans):
        return _rate_slopes(part, one.w, active, window)
    if isinstance(part.term, ByClass) and part.term.zero_one().counts_predictions:
        return _class_slopes(part, part.term, one.w, one.scores[measure.position], active, window)
    return None


def _rate_slopes(part: CompositeFunction, w: Array, active: Array, window: float) -> Array:
    """Return the gradients of some outputs on decisions, (n_active, n_parameters).

    They are those of a steep sigmoid, whose slope is a density of that deviation at the threshold.
    """
    term = part.term
    assert isinstance(term, CellMeans)
    rows = forward_pass(part.model, w[: part.model.n_parameters])
    steep = averages(term, Sigmoid(window * np.sqrt(3.0) / np.pi))
    steep = replace(steep, combination=term.combination)
    return rows.rows(rows.term(steep, NO_AUXILIARY, tuple), active, None)[0]


def _class_slopes(
    part: CompositeFunction, term: ByClass, w: Array, scores: Array, active: Array, window: float
) -> Array:
    """Return the gradients of rates of several classes, with steep soft-max probabilities.

    Divided by the window, scores give probabilities near 0 and 1, whose averages change as the
    rates of decisions do.
    """
    statistics, pullback = term.forward(scores / window)
    _, to_weights = part.model.forward(w[: part.model.n_parameters])
    slopes = np.zeros((len(active), part.model.n_parameters))
    for row, output in zip(slopes, active, strict=True):
        unit = np.zeros(term.n_outputs)
        unit[output] = 1.0
        row[:] = to_weights(pullback(term.head_vjp(statistics, unit))[0] / window)
    return slopes


def least_norm_step(slopes: Array, levels: Array) -> Array:
    """Return the shortest d with slopes d + levels <= 0, zeros if there is none.

    References
    ----------
    C. Lawson and R. Hanson, "Solving Least Squares Problems" (1974), chapter 23: least distance
    programming by non-negative least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.repair import least_norm_step
    >>> least_norm_step(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -3.0])).round(6)
    array([-0.5,  0. ])
    """
    zeros = np.zeros(slopes.shape[1])
    if not len(levels) or levels.max() <= 0.0:
        return zeros
    matrix = np.vstack([-slopes.T, levels])
    target = np.append(zeros, 1.0)
    left = matrix @ nonnegative_least_squares(matrix, target) - target
    return zeros if left[-1] > -1e-10 else -left[:-1] / left[-1]
