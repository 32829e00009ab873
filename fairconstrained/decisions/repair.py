"""Repair of models short of a bound on decisions: the smallest change that meets it, linearised."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Line
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.compat import nnls
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
    for part, measure in zip(problem.constraints, search.measures[1:], strict=True):
        if not isinstance(part.term, CellMeans):
            return one
        level = measure.value(one.scores, one.w)
        rates = np.array([*_rate_slopes(part, one.w, one.scores[measure.position], window)])
        active = np.flatnonzero(level > -search.budget.active)
        slopes.append((part.term.combination[active] @ rates) * units[: rates.shape[1]])
        levels.append(level[active] + margin)
    step = least_norm_step(np.vstack(slopes), np.concatenate(levels))
    if not problem.domain.whole_space or not np.any(step):
        return one
    direction = np.zeros_like(one.w)
    direction[: len(step)] = step * units[: len(step)]
    by = search.scores_at(direction)
    problem.counter.rows += sum(len(scores) for scores in by)  # the slopes read them as well
    line = Line(search.measures, one.w, direction, one.scores, by)
    found = search.follow(line, search.points_on(line, search.budget.repair_range, None))
    search.sweep_intercept(found)
    return found


def _rate_slopes(
    part: CompositeFunction, w: Array, scores: Array, window: float
) -> Iterator[Array]:
    """Yield the gradient of the rate of decisions in each cell, (n_parameters,)."""
    term = part.term
    assert isinstance(term, CellMeans) and part.model is not None
    rows = np.flatnonzero(np.abs(scores) < 3.0 * window)
    density = np.exp(-0.5 * (scores[rows] / window) ** 2) / (window * np.sqrt(2.0 * np.pi))
    near = sp.csr_array(term.cells[:, rows])
    parameters = w[: part.model.n_parameters]
    for start, end in zip(near.indptr[:-1], near.indptr[1:], strict=True):
        members = near.indices[start:end]
        if not len(members):  # no row of the cell is near the threshold
            yield np.zeros_like(parameters)
            continue
        weights = near.data[start:end] * density[members]
        _, pullback = part.model.batch(rows[members]).forward(parameters)
        yield pullback(weights)


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
    try:
        weights, _ = nnls(matrix, target)
    except RuntimeError:  # nnls has reached its iteration limit
        return zeros
    left = matrix @ weights - target
    return zeros if left[-1] > -1e-10 else -left[:-1] / left[-1]
