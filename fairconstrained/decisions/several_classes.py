"""Candidates for a bound on predictions of several classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeGuard

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Line, Measure, Scores
from fairconstrained.decisions.smoothing import SoftErrors
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.class_losses import ErrorRates, MultinomialLoss, correct_share
from fairconstrained.terms.class_scores import ByClass
from fairconstrained.terms.decision_rates import rates_on_line, zeros_on_line
from fairconstrained.utils.typing import Array

_BLOCK = 1 << 22  # the largest number of scores that are computed at once
_MOST_COUNTS = 1 << 21  # about the largest number of predictions that are counted on a line
_LEAST_POINTS = 32
_N_POINTS = 512  # of a line at which predictions are counted
_CYCLES = 2  # how often the intercepts of all classes are changed one after another


class ClassLine(Line):
    """A line of models with one score per class; the class of the largest score is predicted.

    Predictions are found for many points at once, and measures of rates count them. Others are
    evaluated at every point.
    """

    def __init__(
        self, measures: Sequence[Measure], w: Array, direction: Array, at: Scores, by: Scores
    ):
        super().__init__(measures, w, direction, at, by)
        self.exact = all(counts_classes(measure.term) for measure in measures)
        self._known: tuple[Array, Array] | None = None

    @property
    def ends(self) -> tuple[Array, Array]:
        """The scores at t = 0 and their slopes, (n_rows, n_classes) each."""
        position = self.measures[0].position
        return self.at[position], self.by[position]

    def flips(self, reach: tuple[float, float] = (-np.inf, np.inf)) -> Array:
        """Return the t at which a class gets as large a score as the one that is predicted at 0."""
        at, by = self.ends
        rows, best = np.arange(len(at)), at.argmax(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = (at[rows, best][:, None] - at) / (by - by[rows, best][:, None])
        inside = np.isfinite(t) & (t >= reach[0]) & (t <= reach[1])
        return np.sort(t[inside])

    def _evaluated(self, measure: Measure, points: Array) -> Array:
        """Return the measure's outputs, (n_outputs, n_points)."""
        term = measure.term
        if not counts_classes(term):
            return super()._evaluated(measure, points)
        return measure.outputs_at(self._shares(term, points))

    def _shares(self, term: ErrorRates | ByClass, points: Array) -> list[Array]:
        """Return the shares of predictions in the cells of every class."""
        if self._known is None or self._known[0] is not points:
            self._known = points, _largest(*self.ends, points)
        predicted = self._known[1]
        return [one.shares((predicted == k).T) for k, one in enumerate(term.by_class)]


class OneClassLine(ClassLine):
    """A line on which the scores of one class change.

    The prediction for a row changes at one t, between that class and the best of the others, and
    one histogram gives the counts at all points.
    """

    def __init__(
        self, measures: Sequence[Measure], w: Array, direction: Array, at: Scores, by: Scores
    ):
        super().__init__(measures, w, direction, at, by)
        scores, slopes = self.ends
        self._moved = int(np.abs(slopes).max(axis=0).argmax())
        others = np.array(scores)
        others[:, self._moved] = -np.inf
        self._second = others.argmax(axis=1)
        self._lead = scores[:, self._moved] - others[np.arange(len(others)), self._second]
        self._slope = slopes[:, self._moved]

    def flips(self, reach: tuple[float, float] = (-np.inf, np.inf)) -> Array:
        """Return the t within reach at which predictions change."""
        t = zeros_on_line(self._lead, self._slope)
        inside = np.isfinite(t) & (t >= reach[0]) & (t <= reach[1])
        return np.sort(t[inside])

    def _shares(self, term: ErrorRates | ByClass, points: Array) -> list[Array]:
        """Return the shares of predictions in the cells of every class."""
        found = []
        for k, one in enumerate(term.by_class):
            at, by = self._lead, self._slope
            if k != self._moved:
                at, by = np.where(self._second == k, -at, -np.inf), -by
            found += rates_on_line([one], at, by, points)
        return found


def line_of_classes(
    measures: Sequence[Measure], w: Array, direction: Array, at: Scores, by: Scores
) -> ClassLine:
    """Return a line of models with one score per class; see :class:`Line` for the parameters."""
    single = all(np.count_nonzero(slopes.any(axis=0)) == 1 for slopes in by)
    return (OneClassLine if single else ClassLine)(measures, w, direction, at, by)


class ClassCandidateSearch(CandidateSearch):
    """Keeps the best candidate, for models with one score per class.

    Parameters
    ----------
    problem
        See :class:`~fairconstrained.decisions.candidates.CandidateSearch`.
    y : ndarray of shape (n_rows,)
        The classes of the rows, 0, 1, ...
    sample_weight : ndarray of shape (n_rows,)
        Their weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fairconstrained import FairLogisticClassifier
    >>> from fairconstrained.decisions.several_classes import ClassCandidateSearch
    >>> X, y = load_iris(return_X_y=True)
    >>> wide = X[:, 1] > 3.0
    >>> fit = FairLogisticClassifier(kappa=0.1).bind(X, y, sensitive_features=wide)
    >>> search = ClassCandidateSearch(fit.problem, fit.data.y, fit.data.sample_weight)
    >>> search.best.constant, round(search.best.accuracy, 3)
    (True, 0.333)
    """

    line = staticmethod(line_of_classes)
    least_points: ClassVar[int] = 48

    @classmethod
    def searches(cls, problem: Problem) -> bool:
        """Return whether a problem has one score per class."""
        return isinstance(problem.objective.term, MultinomialLoss)

    def _correct(self, y: Array, sample_weight: Array) -> ErrorRates:
        """Return the share of correct predictions."""
        return correct_share(y.astype(int), sample_weight)

    def _smooth_errors(self) -> SoftErrors:
        """Return the share of errors with soft-max probabilities of predictions."""
        classes, weight = self.rows
        right = correct_share(classes.astype(int), weight)
        cells = right.cells, right.labels
        sharpness = len(classes) ** 0.2
        return SoftErrors(*cells, combination=np.ones((1, 1)), sharpness=sharpness)

    def _spread(self, scores: Array) -> float:
        """Return the standard deviation of scores about the mean score of a row."""
        centred = scores - scores.mean(axis=1, keepdims=True)
        return float(np.mean([CandidateSearch._spread(self, one) for one in centred.T]))

    def _is_counted(self) -> bool:
        """Return whether all constraints are on rates of predictions."""
        return all(counts_classes(measure.term) for measure in self.measures)

    def _is_constant(self, scores: Array) -> bool:
        """Return whether the same class is predicted for every row."""
        return len(np.unique(scores.argmax(axis=1))) == 1

    def _constants(self, y: Array, sample_weight: Array) -> Iterator[Array]:
        """Yield the constant models, the one that predicts the largest class first."""
        w = self.problem.start()
        w[: self.model.n_parameters] = 0.0
        for k in self._order(y, sample_weight):
            constant = w.copy() if self.unit_shift is None else w + self._raises(k)
            yield self.problem.domain.project(constant)

    def _order(self, y: Array, sample_weight: Array) -> Array:
        """Return the classes, the largest one first; of equal ones that of the first row.

        The order is not that of their names, on which nothing should depend.
        """
        shares = np.bincount(y.astype(int), sample_weight)
        classes, first = np.unique(y, return_index=True)
        return classes[np.lexsort((first, -shares[classes.astype(int)]))].astype(int)

    def _raises(self, k: int) -> Array:
        """Return the direction that adds 1 to the scores of class k."""
        assert self.unit_shift is not None
        direction = np.zeros(self.problem.n_variables)
        direction[np.flatnonzero(self.unit_shift)[k]] = 1.0
        return direction

    def _many(self, line: Line) -> int:
        """Return about the number of points of a line that are evaluated."""
        if isinstance(line, OneClassLine) or not line.exact:
            return super()._many(line)
        n_rows = len(line.at[0])
        return int(np.clip(_MOST_COUNTS // n_rows, _LEAST_POINTS, _N_POINTS))

    def sweep_intercept(self, one: Candidate) -> Candidate:
        """Return the best candidate found by changing the intercept of one class after another."""
        if self.unit_shift is None:
            return one
        for k in np.tile(self._order(*self.rows), _CYCLES):
            by = tuple(np.zeros_like(scores) for scores in one.scores)
            for direction in by:
                direction[:, k] = 1.0
            line = self.line(self.measures, one.w, self._raises(k), one.scores, by)
            found = self.follow(line, self.points_on(line, (-np.inf, np.inf), 0.0))
            one = found if found.better_than(one) else one
        return one


def counts_classes(term: Term) -> TypeGuard[ErrorRates | ByClass]:
    """Return whether a term is an affine function of shares of predictions of classes."""
    return isinstance(term, ErrorRates) or (isinstance(term, ByClass) and term.counts_predictions)


def _largest(at: Array, by: Array, points: Array) -> Array:
    """Return the class of the largest of at + t by, the first one, (n_points, n_rows)."""
    n_rows, n_classes = at.shape
    found = np.zeros((len(points), n_rows), dtype=np.int32)
    step = max(_BLOCK // n_rows, 1)
    for start in range(0, len(points), step):
        t, place = points[start : start + step, None], found[start : start + step]
        best = at[:, 0] + t * by[:, 0]
        for k in range(1, n_classes):
            score = at[:, k] + t * by[:, k]
            larger = score > best
            place[larger] = k
            np.copyto(best, score, where=larger)
    return found
