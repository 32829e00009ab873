"""Candidates for a bound on decisions, and searches along lines of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from fairconstrained.decisions.score_line import Line, Measure, Scores, ScoresOnLine, points_between
from fairconstrained.decisions.smoothing import smooth_part
from fairconstrained.functions.base import Indicator
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, average
from fairconstrained.utils.numerics import ROUNDING, at_most
from fairconstrained.utils.typing import Array

_MOST_CONSTANT = 35.0  # the score of a constant model where there is one class: its loss is 0
_PRICE = 0.2  # what a unit of expected violation on new rows costs in accuracy
_ACCURACY_WEIGHT = 0.5  # the decrease of a violation that is worth a unit of accuracy
_N_POINTS = 512  # of a line at which decisions are counted
_EVALUATED_SCORES = 1e5  # up to which more points than the least number are evaluated
_N_EVEN = 9  # points at equal distances
_REACH = -0.5, 1.5  # of the line through two models, which are at 0 and 1


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model with its accuracy and the constraints on its decisions."""

    w: Array  # the variables, (n_variables,)
    accuracy: float  # the weighted share of correct predictions on the training rows
    # max_j G_j(w), the constraints with the indicator; at most 0, up to rounding, where the bound
    # holds
    violation: float
    loss: float  # the problem's objective
    constant: bool  # whether it predicts the same class for every row
    # its scores, for each model of the problem; none where rows are in shards, (n_rows,)
    scores: Scores = field(repr=False)
    # the outputs of the constraints, and of the estimates for new rows
    outputs: Sequence[Array] = field(repr=False)
    price: float = 0.0  # what its expected violation on new rows costs, in units of accuracy
    spread: float = 1.0  # the standard deviation of its scores

    @property
    def merit(self) -> float:
        """The accuracy less the price of the expected violation on new rows."""
        return self.accuracy - self.price

    @property
    def met(self) -> bool:
        """Whether the decisions meet the bound, up to rounding."""
        return bool(at_most(self.violation))

    @property
    def promise(self) -> float:
        """A number that is large for models of merit near the bound."""
        return _ACCURACY_WEIGHT * self.merit - max(self.violation, 0.0)

    def better_than(self, other: Candidate) -> bool:
        """Return whether it is preferred: the bound first, then the merit, then the loss."""
        if not (self.met and other.met):
            return self.met if self.met != other.met else self.violation < other.violation
        if abs(self.merit - other.merit) > ROUNDING:
            return self.merit > other.merit
        return self.loss < other.loss


class CandidateSearch:
    """Keeps the best candidate, and finds candidates along lines of models.

    Parameters
    ----------
    problem : Problem
        Its constraints, with the indicator, must hold.
    y : ndarray of shape (n_rows,)
        The labels of the objective's rows, -1 or +1.
    sample_weight : ndarray of shape (n_rows,)
        Their weights.
    constants : sequence of ndarray of shape (n_variables,) or None, default=None
        The constant models; None takes those whose coefficients are zero.
    expected : sequence of CompositeFunction, default=()
        Estimates of constraints on new rows. Their violation is not forbidden, but has a price.

    Attributes
    ----------
    problem : Problem
        The problem, with the estimates among the constraints.
    least_points : int
        The points of a line at which constraints that cannot be counted are evaluated.
    best : Candidate
        The best one so far.
    constant : Candidate
        The best constant one, whose coefficients are zero.
    """

    least_points: ClassVar[int] = 24

    def __init__(
        self,
        problem: Problem,
        y: Array,
        sample_weight: Array,
        constants: Sequence[Array] | None = None,
        expected: Sequence[CompositeFunction] = (),
    ):
        wanted = [*problem.constraints, *expected]
        self.problem = problem.with_constraints(wanted) if expected else problem
        self.rows = y, sample_weight
        self.model = problem.objective.model
        self.unit_shift = self.problem.unit_shift()
        correct = CompositeFunction(self.model, self._correct(y, sample_weight))
        parts = [correct, *(self._strict(part) for part in problem.constraints)]
        estimates = [self._strict(part) for part in expected]
        self.measures = Measure.all_of(parts, problem.models)
        self.measures += Measure.all_of(estimates, problem.models, estimate=True)
        (self.objective,) = Measure.all_of([problem.objective], problem.models)
        self.counted = all(measure.counted for measure in self.measures)
        known = self._constants(y, sample_weight) if constants is None else constants
        first, *others = (self.evaluate(w) for w in known)
        self.best = first
        for one in others:
            if one.better_than(self.best):
                self.best = one
        self.constant = self.best

    @classmethod
    def searches(cls, problem: Problem) -> bool:
        """Return whether it is for a problem: for all with one score per row, in memory."""
        return True

    def _correct(self, y: Array, sample_weight: Array) -> Term:
        """Return the share of correct predictions."""
        return correct_predictions(y, sample_weight)

    def _strict(self, part: CompositeFunction) -> CompositeFunction:
        """Return a constraint on decisions."""
        return part.zero_one()

    def _is_constant(self, scores: Array) -> bool:
        """Return whether the same class is predicted for every row."""
        decisions = scores > 0.0
        return bool(decisions.all() or not decisions.any())

    def _constants(self, y: Array, sample_weight: Array) -> Iterator[Array]:
        """Yield the constant models, the one that predicts the majority first."""
        share = float(np.average(y > 0, weights=sample_weight))
        w = self.problem.start()
        w[: self.model.n_parameters] = 0.0
        signs = (1.0, -1.0) if share > 0.5 else (-1.0, 1.0)
        for sign in (0.0,) if self.unit_shift is None else signs:
            constant = w.copy()
            if self.unit_shift is not None:
                level = np.clip(abs(float(logit(share))), 1.0, _MOST_CONSTANT)
                constant += sign * level * self.unit_shift
            yield self.problem.domain.project(constant)

    def scores_at(self, w: Array) -> Scores:
        """Return the scores of every model: a pass over the data."""
        models = self.problem.models
        scores = tuple(model.forward(w[: model.n_parameters])[0] for model in models)
        self.problem.counter.rows += sum(len(one) for one in scores)
        return scores

    def evaluate(self, w: Array, scores: Scores | None = None) -> Candidate:
        """Return the candidate; without its scores this is a pass over the data."""
        scores = self.scores_at(w) if scores is None else scores
        outputs = [measure.value(scores, w) for measure in self.measures]
        loss = self.objective.value(scores, w)[0]
        return self._candidate(
            w, outputs, loss, scores, self._is_constant(scores[0]), self._spread(scores[0])
        )

    def _candidate(
        self,
        w: Array,
        outputs: Sequence[Array],
        loss: float,
        scores: Scores,
        constant: bool,
        spread: float,
    ) -> Candidate:
        """Return a candidate with what the outputs of the search's measures say."""
        right, *others = outputs
        largest = [-np.inf, 0.0]  # of constraints and estimates
        for measure, values in zip(self.measures[1:], others, strict=True):
            largest[measure.estimate] = max(values.max(initial=-np.inf), largest[measure.estimate])
        loss = float(loss + self.problem.objective.penalty.value(w))
        violation, excess = float(largest[0]), float(largest[1])
        return Candidate(
            w, float(right[0]), violation, loss, constant, scores, others, _PRICE * excess, spread
        )

    def _spread(self, scores: Array) -> float:
        """Return the standard deviation of scores."""
        _, weight = self.rows
        mean = np.average(scores, weights=weight)
        return float(np.sqrt(np.average((scores - mean) ** 2, weights=weight)))

    def offer(self, candidate: Candidate) -> None:
        """Keep the candidate if it is better than the best.

        Where constraints are on rates of decisions, constant decisions are those of the model
        without coefficients: scores that depend on the features are of no use to them. Constraints
        on rankings are on the scores themselves, and the better loss decides.
        """
        if candidate.constant and self.counted:
            return
        if candidate.better_than(self.best):
            self.best = candidate

    def add(self, one: Candidate) -> Candidate:
        """Offer a candidate and all intercepts of it; return the best of these."""
        self.offer(one)
        return self.sweep_intercept(one)

    def follow(self, line: Line, points: Array) -> Candidate:
        """Return the best candidate on a line; if it is the best so far, its scores are exact."""
        t = points[self._best_of(line, points)]
        w = line.model(t)
        found = self.evaluate(w, line.scores(t))
        if found.better_than(self.best):
            found = self.evaluate(w)
            self.offer(found)
        return found

    def _best_of(self, line: Line, points: Array) -> int:
        """Return the position of the best point: bound first, then merit."""
        accuracy, violation, excess = line.values(points)
        merit = accuracy - _PRICE * excess
        met = at_most(violation)
        if not met.any():
            return int(np.argmin(violation - _ACCURACY_WEIGHT * merit))
        return int(np.argmax(np.where(met, merit, -np.inf)))

    def points_on(self, line: Line, reach: tuple[float, float], center: float | None) -> Array:
        """Return where a line is evaluated, between the points at which decisions change.

        Rankings change elsewhere as well: points at equal distances are added.
        """
        points = points_between(line.flips(reach), self._many(line), center)
        if center is not None:
            return points
        points = np.clip(points, *reach)
        if not line.exact:
            points = np.union1d(points, np.linspace(*reach, _N_EVEN))
        return points

    def _many(self, line: Line) -> int:
        """Return about the number of points of a line that are evaluated."""
        if line.exact:
            return _N_POINTS
        affordable = int(_EVALUATED_SCORES / max(self.measures[0].term.n_rows, 1))
        return int(np.clip(affordable, self.least_points, _N_POINTS))

    def sweep_intercept(self, one: Candidate) -> Candidate:
        """Return the best candidate among all intercepts; the outermost ones are constant."""
        if self.unit_shift is None:
            return one
        line = self._line_of_intercepts(one, self.unit_shift)
        return self.follow(line, self.points_on(line, (-np.inf, np.inf), 0.0))

    def _line_of_intercepts(self, one: Candidate, direction: Array) -> Line:
        """Return the line of all intercepts of a model."""
        by = tuple(np.ones_like(scores) for scores in one.scores)
        return self._line(one.w, direction, one.scores, by)

    def _line(self, w: Array, direction: Array, at: Scores, by: Scores) -> Line:
        """Return the line from w, whose scores are given with what the direction adds to them."""
        rows = [self._rows(*ends) for ends in zip(at, by, strict=True)]
        return Line(self.measures, w, direction, rows)

    def _rows(self, at: Array, by: Array) -> ScoresOnLine:
        """Return the scores of rows on a line."""
        return ScoresOnLine(at, by)

    def towards_constant(self, one: Candidate, shares: Sequence[float]) -> Iterator[Candidate]:
        """Yield the model with other intercepts: shares of its decisions against the constant."""
        if self.unit_shift is None:
            return
        line = self._line_of_intercepts(one, self.unit_shift)
        positive = self.constant.w @ self.unit_shift > 0.0
        flips = line.flips((0.0, np.inf) if positive else (-np.inf, 0.0))
        for share in shares if len(flips) else ():
            t = np.quantile(flips, 1.0 - share if positive else share)
            yield self.evaluate(line.model(t), line.scores(t))

    def sweep_between(self, one: Candidate, other: Candidate) -> Candidate:
        """Return the best candidate on the line through two, for models with linear scores."""
        if not self.model.linear:
            return one
        by = tuple(end - begin for begin, end in zip(one.scores, other.scores, strict=True))
        line = self._line(one.w, other.w - one.w, one.scores, by)
        reach = _REACH if self.problem.domain.whole_space else (0.0, 1.0)
        return self.follow(line, self.points_on(line, reach, None))

    def smooth_parts(self) -> list[CompositeFunction]:
        """Return the share of errors and the constraints as smooth functions, see `smooth_part`.

        Where constraints are on rankings, which say little about decisions, the loss is before
        them.
        """
        rows = self.rows[1], self.model.n_rows
        constraints = [smooth_part(part, *rows) for part in self.problem.constraints]
        errors = CompositeFunction(self.model, self._smooth_errors())
        first = [errors] if self.counted else [self.problem.objective, errors]
        return [*first, *constraints]

    def _smooth_errors(self) -> Term:
        """Return the share of errors with probabilities of decisions."""
        errors = CompositeFunction(self.model, wrong_predictions(*self.rows))
        return smooth_part(errors, self.rows[1], self.model.n_rows).term

    def values(self, measures: Sequence[Measure], one: Candidate) -> list[Array]:
        """Return the outputs of measures at a candidate."""
        return [measure.value(one.scores, one.w) for measure in measures]


def correct_predictions(y: Array, sample_weight: Array) -> CellMeans:
    """Return the share of correct predictions: for y = -1 those with scores of at most 0."""
    mean = average(Indicator(), y, sample_weight)
    cells = sp.csc_array(mean.cells.multiply(y))
    negative = float(np.average(y < 0, weights=sample_weight))
    return replace(mean, cells=cells, signs=None, constant=negative)


def wrong_predictions(y: Array, sample_weight: Array) -> CellMeans:
    """Return the share of wrong predictions."""
    correct = correct_predictions(y, sample_weight)
    return replace(correct, combination=-np.ones((1, 1)), constant=1.0 - correct.constant)


def most_promising(candidates: Sequence[Candidate], n: int) -> list[Candidate]:
    """Return the `n` candidates of the largest promise, the most promising first."""
    return sorted(candidates, key=lambda one: -one.promise)[:n]
