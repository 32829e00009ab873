"""Candidates for a bound on predictions of several classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Line
from fairconstrained.terms.class_scores import ByClass, ErrorRate, correct_share
from fairconstrained.utils.typing import Array

_CYCLES = 2  # how often the intercepts of all classes are changed one after another


class ClassLine(Line):
    """A line of models with one score per class; the class of the largest score is predicted.

    Measures are evaluated at every point.
    """

    def flips(self) -> Array:
        """Return the t at which a class gets as large a score as the one that is predicted at 0."""
        position = self.measures[0].position
        at, by = self.at[position], self.by[position]
        rows, best = np.arange(len(at)), at.argmax(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = (at[rows, best][:, None] - at) / (by - by[rows, best][:, None])
        return np.sort(t[np.isfinite(t)])


class ClassCandidateSearch(CandidateSearch):
    """Keeps the best candidate, for models with one score per class.

    Parameters
    ----------
    problem, budget
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

    line: ClassVar[type[Line]] = ClassLine

    def _correct(self, y: Array, sample_weight: Array) -> ErrorRate:
        """Return the share of correct predictions."""
        return correct_share(y.astype(int), sample_weight)

    def _is_counted(self) -> bool:
        """Return whether all constraints are on rates of predictions."""
        terms = [measure.term for measure in self.measures[1:]]
        return all(isinstance(term, ByClass) and term.counts_predictions for term in terms)

    def _is_constant(self, scores: Array) -> bool:
        """Return whether the same class is predicted for every row."""
        return len(np.unique(scores.argmax(axis=1))) == 1

    def _constants(self, y: Array, sample_weight: Array) -> Iterator[Array]:
        """Yield the constant models, the one that predicts the largest class first."""
        w = self.problem.start()
        w[: self.model.n_parameters] = 0.0
        shares = np.bincount(y.astype(int), sample_weight)
        for k in np.argsort(-shares, kind="stable"):
            constant = w.copy() if self.offset is None else w + self._raises(k)
            yield self.problem.domain.project(constant)

    def _raises(self, k: int) -> Array:
        """Return the direction that adds 1 to the scores of class k."""
        assert self.offset is not None
        direction = np.zeros(self.problem.n_variables)
        direction[np.flatnonzero(self.offset)[k]] = 1.0
        return direction

    def sweep_intercept(self, one: Candidate) -> Candidate:
        """Return the best candidate found by changing the intercept of one class after another."""
        if self.offset is None:
            return one
        n_classes = one.scores[0].shape[1]
        for k in np.tile(np.arange(n_classes), _CYCLES):
            by = tuple(np.zeros_like(scores) for scores in one.scores)
            for direction in by:
                direction[:, k] = 1.0
            line = self.line(self.measures, one.w, self._raises(k), one.scores, by)
            found = self.follow(line, self.points_on(line, (-np.inf, np.inf), 0.0))
            one = found if found.better_than(one) else one
        return one
