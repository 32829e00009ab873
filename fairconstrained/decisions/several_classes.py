"""Candidates for a bound on predictions of several classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Line, ScoresOnLine
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, rates_on_line, zeros_on_line
from fairconstrained.terms.class_losses import ErrorRates, correct_share
from fairconstrained.terms.class_scores import ByClass
from fairconstrained.utils.typing import Array

_BLOCK = 1 << 22  # the largest number of scores that are computed at once
_MOST_COUNTS = 1 << 21  # about the largest number of predictions that are counted on a line
_LEAST_POINTS = 32
_N_POINTS = 512  # of a line at which predictions are counted
_CYCLES = 2  # how often the intercepts of all classes are changed one after another


class ClassScores(ScoresOnLine):
    """The scores of rows on a line, one for every class; that of the largest is predicted.

    Predictions are found for many points at once, and rates count them.
    """

    def _zeros(self, rows: slice) -> Array:
        """Return the t at which a class gets as large a score as the one that is predicted at 0."""
        at, by = self.at[rows], self.by[rows]
        every, best = np.arange(len(at)), at.argmax(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray((at[every, best][:, None] - at) / (by - by[every, best][:, None]))

    def rates(self, terms: Sequence[Any], points: Array) -> list[Any]:
        """Return the shares of predictions in the cells of every class of the terms."""
        predicted = _largest(self.at, self.by, points)
        return [
            [one.shares((predicted == k).T) for k, one in enumerate(term.by_class)]
            for term in terms
        ]


class OneClassScores(ClassScores):
    """The scores of rows on a line on which those of one class change.

    The prediction for a row changes at one t, between that class and the best of the others, and
    one histogram gives the counts at all points.
    """

    def __init__(self, at: Array, by: Array):
        super().__init__(at, by)
        self._moved = int(np.abs(by).max(axis=0).argmax())
        others = np.array(at)
        others[:, self._moved] = -np.inf
        self._second = others.argmax(axis=1)
        self._lead = at[:, self._moved] - others[np.arange(len(at)), self._second]
        self._slope = by[:, self._moved]

    def _zeros(self, rows: slice) -> Array:
        """Return the t at which predictions change."""
        return zeros_on_line(self._lead[rows], self._slope[rows])

    def rates(self, terms: Sequence[Any], points: Array) -> list[Any]:
        """Return the shares of predictions in the cells of every class of the terms."""
        return [list(self._shares(term.by_class, points)) for term in terms]

    def _shares(self, by_class: Sequence[CellMeans], points: Array) -> Iterator[Array]:
        for k, one in enumerate(by_class):
            at, by = self._lead, self._slope
            if k != self._moved:
                at, by = np.where(self._second == k, -at, -np.inf), -by
            yield from rates_on_line([one], at, by, points)


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

    def _rows(self, at: Array, by: Array) -> ClassScores:
        """Return the scores of rows on a line."""
        single = np.count_nonzero(by.any(axis=0)) == 1
        return (OneClassScores if single else ClassScores)(at, by)

    def _correct(self) -> ErrorRates:
        """Return the share of correct predictions."""
        return correct_share(self.rows[0].astype(int), self.rows[1])

    @property
    def errors(self) -> ByClass:
        """The shares of all rows that are of a class and predicted to be of another one."""
        right = self._correct().by_class
        n_classes = self.best.scores[self.model].shape[1]  # the last ones may have no rows
        right += (replace(right[0], cells=0.0 * right[0].cells),) * (n_classes - len(right))
        wrong = [
            replace(one, combination=-np.ones((1, 1)), constant=one.cells.sum()) for one in right
        ]
        return ByClass(tuple(wrong), ("",) * len(wrong))

    def spread(self, one: Candidate) -> float:
        """Return the standard deviation of scores about the mean score of a row."""
        scores, weight = one.scores[self.model], self.rows[1]
        centred = scores - scores.mean(axis=1, keepdims=True)
        centred -= np.average(centred, axis=0, weights=weight)
        return float(np.sqrt(np.average(centred**2, axis=0, weights=weight)).mean())

    def _ends(self) -> list[Term]:
        """Return nothing: the scores are in memory."""
        return []

    def _is_constant(self, at: Evaluation) -> bool:
        """Return whether the same class is predicted for every row."""
        return len(np.unique(at.model_pass(self.model).scores.argmax(axis=1))) == 1

    def _constants(self) -> Iterator[Array]:
        """Yield the constant models, the one that predicts the largest class first."""
        every = [[direction] for direction, _ in self.shifts[: len(self.shifts) // _CYCLES]] or [[]]
        return (self._zero(*some) for some in every)

    def _shifts(self, unit: Array | None) -> list[tuple[Array, Any]]:
        """Return the directions of the classes' intercepts, twice, that of the largest class first.

        Of equal classes that of the first row is first. The order is not that of their names, on
        which nothing should depend.
        """
        if unit is None:
            return []
        shares = np.bincount(self.rows[0].astype(int), self.rows[1])
        classes, first = np.unique(self.rows[0].astype(int), return_index=True)
        every = np.eye(len(unit))[np.flatnonzero(unit)]
        order = classes[np.lexsort((first, -shares[classes]))]
        return [(every[k], np.eye(len(every))[k]) for k in order] * _CYCLES

    def _many(self, line: Line) -> int:
        """Return about the number of points of a line that are evaluated."""
        if isinstance(line.rows[self.model], OneClassScores) or not line.exact:
            return super()._many(line)
        return int(np.clip(_MOST_COUNTS // len(self.rows[0]), _LEAST_POINTS, _N_POINTS))


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
