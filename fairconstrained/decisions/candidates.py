"""Candidates for a bound on decisions, and how more of them are found from those there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls
from scipy.special import logit

from fairconstrained.decisions.score_line import Line, points_between, scores_of
from fairconstrained.functions.elementary import Indicator
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import CellMeans, average
from fairconstrained.utils.typing import Array

WINDOW = 0.2  # scores nearer to 0 than this say how dense they are there
NEAR = 0.02  # constraints that are this near to their bound are looked after
_POINTS, _FEW_POINTS = 512, 24  # looked at on a line: by counting, and by evaluating each
_WORTH = 0.5  # the excess that a unit of accuracy is worth while there is an excess
# How far repairs aim below the bound, and how near to 0 the scores are that they move: the second
# and later pairs are tried where those before them lead nowhere.
_AIMS = tuple((margin, window) for window in (0.2, 0.1, 0.4) for margin in (0.002, 0.006, 0.012))
_REACH = (-0.5, 1.5)  # lines through two models are followed a little beyond them
_FAR = (-1.0, 4.0)  # ... and those of repairs, whose length is a guess


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model and what its decisions show.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The variables.
    accuracy : float
        The weighted share of right decisions on the training rows.
    excess : float
        max_j G_j(w), the constraints with the indicator: <= 0 where the bound holds.
    scores : mapping from the id of a model to ndarray of shape (n_rows,)
        Its scores.
    """

    w: Array
    accuracy: float
    excess: float
    scores: dict[int, Array] = field(repr=False)

    @property
    def met(self) -> bool:
        """Whether the decisions meet the bound."""
        return self.excess <= 0.0

    @property
    def promise(self) -> float:
        """What is large for models worth repairing: accurate ones, near to the bound."""
        return _WORTH * self.accuracy - max(self.excess, 0.0)

    def better_than(self, other: Candidate) -> bool:
        """Return whether it is preferred: the bound comes first, then the accuracy."""
        if self.met and other.met:
            return self.accuracy > other.accuracy
        return self.met if self.met != other.met else self.excess < other.excess


class Search:
    """The candidates seen so far, and how more of them are found.

    Parameters
    ----------
    problem : Problem
        Its constraints, with the indicator, are what must hold.
    y : ndarray of shape (n_rows,)
        The labels of the objective's rows, -1 or +1.
    sample_weight : ndarray of shape (n_rows,)
        Their weights.
    """

    def __init__(self, problem: Problem, y: Array, sample_weight: Array):
        self.problem = problem
        self.model = problem.objective.model
        self.parts = [CompositeFunction(self.model, right_decisions(y, sample_weight))]
        self.parts += [part.zero_one() for part in problem.constraints]
        share = float(np.average(y > 0, weights=sample_weight))
        first, *others = (self.judge(w) for w in self._constants(share))
        self.best = first
        for one in others:
            self.offer(one)
        self.constant = self.best
        self.n_lines = 0

    def _constants(self, share: float) -> Iterator[Array]:
        """Yield the models that decide the same of everybody, the majority's decision first."""
        w = self.problem.start()
        w[: self.model.n_parameters] = 0.0
        signs = (1.0, -1.0) if share > 0.5 else (-1.0, 1.0)
        for sign in signs if self.model.fit_intercept else (0.0,):
            constant = w.copy()
            constant[self._intercept] = sign * max(abs(float(logit(share))), 1.0)
            yield self.problem.domain.project(constant)

    @property
    def _intercept(self) -> slice:
        return slice(self.model.n_coefficients, self.model.n_parameters)

    def judge(self, w: Array, scores: dict[int, Array] | None = None) -> Candidate:
        """Return the candidate; without its scores this is a pass over the data."""
        if scores is None:
            scores = scores_of(self.parts, w)
            self.problem.counter.rows += sum(len(one) for one in scores.values())
        right, *others = (
            part.term.value(scores[id(part.model)], w[part.auxiliary])
            for part in self.parts
            if part.term is not None
        )
        return Candidate(w, float(right[0]), float(np.concatenate(others).max()), scores)

    def offer(self, candidate: Candidate) -> None:
        """Keep the candidate if it is better than the best."""
        if candidate.better_than(self.best):
            self.best = candidate

    def _follow(self, line: Line, points: Array) -> Candidate:
        """Return the best candidate on a line, its scores computed anew from its variables."""
        self.n_lines += 1
        accuracy, excess = line.values(points)
        if (excess <= 0.0).any():
            best = int(np.argmax(np.where(excess <= 0.0, accuracy, -np.inf)))
        else:
            best = int(np.argmin(excess - _WORTH * accuracy))
        w = line.model(points[best])
        found = self.judge(w, line.scores(points[best]))
        if found.better_than(self.best):
            found = self.judge(w)
            self.offer(found)
        return found

    def _points(self, line: Line, reach: tuple[float, float], center: float | None) -> Array:
        flips = line.flips()
        inside = flips[(flips >= reach[0]) & (flips <= reach[1])]
        points = points_between(inside, _POINTS if line.exact else _FEW_POINTS, center)
        return points if center is not None else np.clip(points, *reach)

    def sweep_intercept(self, one: Candidate) -> Candidate:
        """Return the best candidate among all intercepts; at their ends decisions are constant."""
        if not self.model.fit_intercept:
            return one
        direction = np.zeros_like(one.w)
        direction[self._intercept] = 1.0
        by = {key: np.ones_like(scores) for key, scores in one.scores.items()}
        line = Line(self.parts, one.w, direction, one.scores, by)
        return self._follow(line, self._points(line, (-np.inf, np.inf), 0.0))

    def sweep_between(self, one: Candidate, other: Candidate) -> Candidate:
        """Return the best candidate on the line through two."""
        by = {key: other.scores[key] - scores for key, scores in one.scores.items()}
        line = Line(self.parts, one.w, other.w - one.w, one.scores, by)
        reach = _REACH if self.problem.domain.whole_space else (0.0, 1.0)
        return self._follow(line, self._points(line, reach, None))

    def repair(self, one: Candidate, enough: Callable[[], bool]) -> Candidate:
        """Return a more promising candidate nearby (see `step`), the same if none was found.

        Parameters
        ----------
        one : Candidate
            What to repair.
        enough : callable
            Says when to give up.
        """
        for margin, window in _AIMS:
            if enough():
                break
            found = self.step(one, margin, window)
            if found is one or found.promise > one.promise:
                return found
        return one

    def step(self, one: Candidate, margin: float, window: float) -> Candidate:
        r"""Return a candidate nearby whose decisions are nearer to the bound.

        The rates of decisions move with the features of the rows at the threshold. The step is the
        shortest, in the problem's units, that moves all constraints below the bound to first order:
        :math:`\min \|d\|` subject to :math:`G_j + \nabla \tilde G_j^\top d \le -\text{margin}` for
        those near to it, which is solved as non-negative least squares; how far to go is measured.
        """
        units = self.problem.preconditioner
        slopes, levels = [], []
        for part in self.problem.constraints:
            if not isinstance(part.term, CellMeans):
                return one
            scores = one.scores[id(part.model)]
            level = part.term.zero_one().value(scores)
            rates = np.array([*_slopes(part, scores, window)])
            near = np.flatnonzero(level > -NEAR)
            slopes.append((part.term.combination[near] @ rates) * units[: rates.shape[1]])
            levels.append(level[near] + margin)
        step = shortest(np.vstack(slopes), np.concatenate(levels))
        if not self.problem.domain.whole_space or not np.any(step):
            return one
        direction = np.zeros_like(one.w)
        direction[: len(step)] = step * units[: len(step)]
        by = scores_of(self.parts, direction)
        self.problem.counter.rows += 2.0 * sum(len(scores) for scores in by.values())
        line = Line(self.parts, one.w, direction, one.scores, by)
        found = self._follow(line, self._points(line, _FAR, None))
        self.sweep_intercept(found)
        return found


def _slopes(part: CompositeFunction, scores: Array, window: float) -> Iterator[Array]:
    """Yield the gradient of the rate of decisions in each cell, (n_parameters,)."""
    term = part.term
    assert isinstance(term, CellMeans)
    rows = np.flatnonzero(np.abs(scores) < 3.0 * window)
    bump = np.exp(-0.5 * (scores[rows] / window) ** 2) / (window * np.sqrt(2.0 * np.pi))
    near = sp.csr_array(term.cells[:, rows])
    for start, end in zip(near.indptr[:-1], near.indptr[1:], strict=True):
        members = near.indices[start:end]
        weights = near.data[start:end] * bump[members]
        model = part.model.batch(rows[members])
        yield model.vjp(np.zeros(part.model.n_parameters), weights)


def shortest(slopes: Array, levels: Array) -> Array:
    """Return the shortest d with slopes d + levels <= 0, zeros if there is none.

    References
    ----------
    C. Lawson and R. Hanson, "Solving Least Squares Problems" (1974), chapter 23: least distance
    programming by non-negative least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.candidates import shortest
    >>> shortest(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -3.0])).round(6)
    array([-0.5,  0. ])
    """
    nothing = np.zeros(slopes.shape[1])
    if not len(levels) or levels.max() <= 0.0:
        return nothing
    matrix = np.vstack([-slopes.T, levels])
    target = np.append(nothing, 1.0)
    try:
        weights, _ = nnls(matrix, target)
    except RuntimeError:  # more iterations than it allows itself
        return nothing
    left = matrix @ weights - target
    return nothing if left[-1] > -1e-10 else -left[:-1] / left[-1]


def right_decisions(y: Array, sample_weight: Array) -> CellMeans:
    """Return the share of right decisions: rows with y = -1 are right where the score is <= 0."""
    mean = average(Indicator(), y, sample_weight)
    cells = sp.csc_array(mean.cells.multiply(y))
    negative = float(np.average(y < 0, weights=sample_weight))
    return replace(mean, cells=cells, signs=None, constant=negative)
