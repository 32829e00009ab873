"""Candidates for a bound on decisions, and searches along lines of them."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from fairconstrained.decisions.score_line import (
    ClassIntercept,
    ClassScores,
    Line,
    Rows,
    Scores,
    ScoresOnLine,
    is_counted,
    largest_outputs,
    points_between,
)
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import ShiftedSquare
from fairconstrained.models.linear import LinearModel, Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import BINS, ShardedScores, of_distribution
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, average
from fairconstrained.terms.classes import ByClass
from fairconstrained.utils.arrays import ROUNDING, Array, at_most

_MOST_CONSTANT = 35.0  # the score of a constant model where there is one class: its loss is 0
_PRICE = 0.2  # what a unit of expected violation on new rows costs in accuracy
_ACCURACY_WEIGHT = 0.5  # the decrease of a violation that is worth a unit of accuracy
_N_POINTS = 512  # of a line at which decisions are counted
_EVALUATED_SCORES = 1e5  # up to which more points than the least number are evaluated
_LEAST_POINTS = 24  # of a line at which constraints that cannot be counted are evaluated
_REACH = -0.5, 1.5  # of the line through two models, which are at 0 and 1
_CYCLES = 2  # how often the intercepts of several classes are changed one after another


class Candidate:
    """A model with its accuracy and the constraints on its decisions: a pass over the data."""

    def __init__(self, search: "CandidateSearch", w: Array):
        at = search.decisions.at(w)
        self.w, self.problem = w, search.problem
        # of the correct predictions, the constraints on decisions, and the estimates for new rows
        self.statistics = [at.statistics_of(part) for part in search.parts]
        # whether it predicts the same class for every row, and the standard deviation of its scores
        self.constant, self.spread = search.shape(at)
        # its scores, (n_rows,), for each model of the problem; none where rows are in shards
        in_memory = (model for model in search.decisions.models if model.in_memory)
        self.scores: Scores = {model: at.model_pass(model).scores for model in in_memory}
        self._judge(search)

    def _judge(self, search: "CandidateSearch") -> None:
        outputs = map(largest_outputs, search.parts, self.statistics)
        # the weighted share of correct predictions on the training rows; max_j G_j(w), the
        # constraints with the indicator; the largest positive part of the estimates for new rows
        figures = search.figures([*outputs])
        self.accuracy, self.violation, self.excess = (each.item() for each in figures)
        self.met = bool(at_most(self.violation))  # whether the decisions meet the bound
        # the accuracy less the price of the expected violation on new rows
        self.merit = self.accuracy - _PRICE * self.excess
        # a number that is large for models of merit near the bound
        self.promise = _ACCURACY_WEIGHT * self.merit - max(self.violation, 0.0)

    def judged_by(self, search: "CandidateSearch") -> "Candidate":
        """Return the same model as judged by a search with other bounds.

        The rows and the constraints are the same, so that no pass over the data is needed.
        """
        other = copy(self)
        other._judge(search)
        return other

    def loss(self) -> float:
        """Return the problem's objective; in shards it is a pass over the data."""
        return self.problem.at(self.w).with_scores(self.scores).objective

    def better_than(self, other: "Candidate") -> bool:
        """Return whether it is preferred: the bound first, then the merit, then the loss."""
        if not (self.met and other.met):
            return self.met if self.met != other.met else self.violation < other.violation
        if abs(self.merit - other.merit) > ROUNDING:
            return self.merit > other.merit
        return self.loss() < other.loss()


class CandidateSearch:
    """Keeps the best candidate, and finds candidates along lines of models.

    Rows in shards are read once for a candidate and twice for a line: a histogram of the points
    where decisions change, of which the points of the line are quantiles, and the rates at these.
    The rates at a point are exact; between two of them there may be a better model.

    The constraints of the problem, with the indicator, must hold. `y`, -1 or +1, and the weights
    are those of the objective's rows, in shards those of the atoms. Without `constants`, these are
    the models whose coefficients are zero. `expected` are estimates of constraints on new rows:
    their violation is not forbidden, but has a price. A constraint on other rows, in memory, raises
    a ValueError where rows are in shards.
    """

    # the scores of rows on the line through two models, and where only an intercept changes
    rows_on_line: ClassVar[type[ScoresOnLine]] = ScoresOnLine
    rows_on_shift: ClassVar[type[ScoresOnLine]] = ScoresOnLine

    def __init__(
        self,
        problem: Problem,
        y: Array,
        sample_weight: Array,
        constants: "Sequence[Array | Candidate] | None" = None,
        expected: Sequence[CompositeFunction] = (),
    ):
        if len({model.in_memory for model in problem.models}) > 1:
            raise ValueError(
                "enforce='decision' on dask collections needs constraints on the training rows; "
                "one of them is on reference rows in memory. Use enforce='score', or the estimator "
                "of fairconstrained on data in memory."
            )
        # the estimates are the last constraints
        self.problem = problem.with_constraints([*problem.constraints, *expected])
        self.rows, self.model = (y, sample_weight), problem.objective.model
        self.n_strict = len(problem.constraints)
        # the share of correct predictions, of several classes that of each among all rows, then
        # these constraints with the indicator; whether all are affine in shares of decisions
        strict = [_strict(part) for part in self.problem.constraints]
        self.parts = [CompositeFunction(self.model, self._correct()), *strict]
        self.counted = all(is_counted(part.term) for part in self.parts)
        means = [CompositeFunction(self.model, term) for term in self._means()]
        without_loss = replace(self.problem, objective=CompositeFunction())
        self.decisions = without_loss.with_constraints([*self.parts, *means])
        # the directions of intercepts, and what they add to the scores of a row
        unit = problem.unit_shift()
        self.shifts = [] if unit is None else self._shifts(unit)
        models = self._constants() if constants is None else constants
        self.constants = [
            model.judged_by(self) if isinstance(model, Candidate) else self.evaluate(model)
            for model in models
        ]
        first, *others = self.constants
        for other in others:
            first = other if other.better_than(first) else first
        self.best = self.constant = first

    def _correct(self) -> Term:
        """Return the share of correct predictions."""
        return correct_predictions(*self.rows)

    def _means(self) -> list[Term]:
        """Return what tells the shape of scores in shards.

        They are the share of positive predictions, and the means of (1 + s)^2 / 2, (1 - s)^2 / 2.
        """
        means = (Indicator(), 1.0), (ShiftedSquare(), 1.0), (ShiftedSquare(), -1.0)
        y, weight = self.rows
        every = [] if self.model.in_memory else means
        return [average(function, np.full(len(y), sign), weight) for function, sign in every]

    def shape(self, at: Evaluation) -> tuple[bool, float]:
        """Return whether the same class is predicted for every row, and the spread of scores.

        Of several scores of a row it is that about their mean.
        """
        if not self.model.in_memory:
            means = map(at.statistics_of, self.decisions.constraints[-3:])
            share, above, below = (mean.item() for mean in means)
            variance = above + below - 1.0 - (0.5 * (above - below)) ** 2
            return min(share, 1.0 - share) <= ROUNDING, max(variance, 0.0) ** 0.5
        scores, weight = at.model_pass(self.model).scores, self.rows[1]
        several = scores.ndim > 1
        predicted = scores.argmax(axis=1) if several else scores > 0.0
        centred = scores - (scores.mean(axis=1, keepdims=True) if several else 0.0)
        centred -= weight @ centred / weight.sum()
        spread = np.sqrt(weight @ centred**2 / weight.sum()).mean()
        return bool(predicted.min() == predicted.max()), float(spread)

    def _shifts(self, unit: Array) -> list[tuple[Array, Any]]:
        """Return the directions of intercepts, and what they add to the scores of a row."""
        return [(unit, 1.0)]

    def _constants(self) -> Iterator[Array]:
        """Yield the constant models, the one that predicts the majority first."""
        share = float(np.average(self.rows[0] > 0, weights=self.rows[1]))
        level = np.clip(abs(float(logit(share))), 1.0, _MOST_CONSTANT)
        for sign in (1.0, -1.0) if share > 0.5 else (-1.0, 1.0):
            yield self._zero(*(sign * level * direction for direction, _ in self.shifts))

    def _zero(self, *shifts: Array) -> Array:
        """Return the model whose coefficients are zero, moved by shifts."""
        w = self.problem.start()
        w[: self.model.n_parameters] = 0.0
        return self.problem.domain.project(sum(shifts, w))

    def evaluate(self, w: Array) -> Candidate:
        """Return the candidate: a pass over the data."""
        return Candidate(self, w)

    def outputs(self, candidate: Candidate) -> list[Array]:
        """Return the constraints on decisions, then the estimates for new rows, part by part."""
        each = zip(self.parts[1:], candidate.statistics[1:], strict=True)
        return [part.term.head(statistics) + part.level for part, statistics in each]

    def figures(self, outputs: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return accuracy, violation and excess, (n_points,), from outputs of the parts."""
        right, *others = outputs
        strict, estimates = others[: self.n_strict], others[self.n_strict :]
        violation = np.vstack([right[:0], *strict]).max(axis=0, initial=-np.inf)
        excess = np.vstack([right[:0], *estimates]).max(axis=0, initial=0.0)
        return right.sum(axis=0), violation, excess

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

    def add(self, candidate: Candidate) -> Candidate:
        """Offer a candidate and all intercepts of it; return the best of these."""
        self.offer(candidate)
        return self.sweep_intercept(candidate)

    def _best_on(
        self, line: Line, reach: tuple[float, float] = (-np.inf, np.inf), center: float | None = 0.0
    ) -> tuple[Array, bool]:
        """Return the best model on a line, and whether it may be better than the best candidate.

        It is at a point between those where decisions change.
        """
        affordable = int(_EVALUATED_SCORES / max(self.parts[0].term.n_rows, 1))
        many = _N_POINTS if self.counted else int(np.clip(affordable, _LEAST_POINTS, _N_POINTS))
        points = np.clip(points_between(line.flips(reach), many, center), *reach)
        accuracy, violation, excess = self.figures(line.outputs(points))
        merit, met = accuracy - _PRICE * excess, at_most(violation)
        near = _ACCURACY_WEIGHT * merit - violation
        k = int(np.argmax(np.where(met, merit, -np.inf) if met.any() else near))
        may = met[k] if met[k] != self.best.met else violation[k] < self.best.violation
        if met[k] and self.best.met:
            may = merit[k] > self.best.merit + ROUNDING
        return line.model(points[k]), bool(may)

    def sweep_intercept(self, candidate: Candidate) -> Candidate:
        """Return the best candidate among all intercepts; the outermost ones are constant.

        Of several classes the intercepts are changed one after another.
        """
        for shift in self.shifts:
            candidate = self.evaluate(self._best_on(self.line(candidate, *shift))[0])
            self.offer(candidate)
        return candidate

    def line(
        self, start: Candidate, direction: Array, step: Any = 1.0, *, to: Candidate | None = None
    ) -> Line:
        """Return a line, along which a step is added to the scores of every row.

        With another start they change to its scores.
        """
        rows: dict[Model, Rows] = {}
        for model in self.decisions.models:
            if isinstance(model, ShardedLinearModel):
                ends = start.w[: model.n_parameters], direction[: model.n_parameters]
                rows[model] = ShardedScores(model, *ends, self._count)
            elif to is None:
                at = start.scores[model]
                rows[model] = self.rows_on_shift(at, np.broadcast_to(step, at.shape))
            else:
                at = start.scores[model]
                rows[model] = self.rows_on_line(at, to.scores[model] - at)
        return Line(self.parts, start.w, direction, rows)

    def _count(self, n_rows: int) -> None:
        """Count a read of rows in shards."""
        self.problem.counter.rows += n_rows

    def towards_constant(self, start: Candidate, shares: Sequence[float]) -> Iterator[Candidate]:
        """Yield the model with other intercepts: shares of its decisions against the constant."""
        for shift in self.shifts:
            line = self.line(start, *shift)
            positive = self.constant.w @ line.direction > 0.0
            flips = line.flips((0.0, np.inf) if positive else (-np.inf, 0.0))
            for share in shares if len(flips) else ():
                t = np.quantile(flips, 1.0 - share if positive else share)
                yield self.evaluate(line.model(t))

    def sweep_between(self, start: Candidate, other: Candidate) -> None:
        """Offer the best candidate on the line through two, for models with linear scores."""
        if self.model.linear:
            line = self.line(start, other.w - start.w, to=other)
            reach = _REACH if self.problem.domain.whole_space else (0.0, 1.0)
            w, may_be_better = self._best_on(line, reach, None)
            if may_be_better:
                self.offer(self.evaluate(w))


class ClassCandidateSearch(CandidateSearch):
    """Keeps the best candidate, for models with one score per class; y are the classes 0, 1, ..."""

    rows_on_line, rows_on_shift = ClassScores, ClassIntercept

    def _correct(self) -> ByClass:
        """Return the shares of all rows that are of a class and predicted so."""
        labels, weight = self.rows
        assert isinstance(self.model, LinearModel)
        terms = [
            CellMeans(sp.csc_array((weight * (labels == k) / weight.sum())[None, :]), Indicator())
            for k in range(self.model.n_outputs)
        ]
        return ByClass(tuple(terms), ("",) * len(terms))

    def _constants(self) -> Iterator[Array]:
        """Yield the constant models, the one that predicts the largest class first."""
        every = [[direction] for direction, _ in self.shifts[: len(self.shifts) // _CYCLES]] or [[]]
        return (self._zero(*some) for some in every)

    def _shifts(self, unit: Array) -> list[tuple[Array, Any]]:
        """Return the directions of the classes' intercepts, twice, that of the largest class first.

        Of equal classes that of the first row is first. The order is not that of their names, on
        which nothing should depend.
        """
        shares = np.bincount(self.rows[0].astype(int), self.rows[1])
        classes, first = np.unique(self.rows[0].astype(int), return_index=True)
        every = np.eye(len(unit))[np.flatnonzero(unit[: self.model.n_parameters])]
        order = classes[np.lexsort((first, -shares[classes]))]
        return [(every[k], np.eye(len(every))[k]) for k in order] * _CYCLES


def _strict(part: CompositeFunction) -> CompositeFunction:
    """Return a constraint on decisions; one from a histogram is tightened by its resolution."""
    strict, model = part.zero_one(), part.model
    if not (isinstance(model, ShardedLinearModel) and of_distribution(strict.term)):
        return strict
    bounds = strict.gap_bounds(strict.term.gap_bounds)
    return strict.shifted(np.minimum(1.0 / BINS, 0.1 * bounds))


def correct_predictions(y: Array, sample_weight: Array) -> CellMeans:
    """Return the share of correct predictions: for y = -1 those with scores of at most 0."""
    mean = average(Indicator(), y, sample_weight)
    cells = sp.csc_array(mean.cells.multiply(y))
    negative = float(np.average(y < 0, weights=sample_weight))
    return replace(mean, cells=cells, signs=None, constant=negative)
