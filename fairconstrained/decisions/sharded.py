"""Candidates for a bound on decisions where the rows are in shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Line, Measure, Scores
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import ShiftedSquare
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import BINS, ShardedScores, are_collected, of_distribution
from fairconstrained.terms.cell_means import average
from fairconstrained.utils.typing import Array

_WHOLE = 1e-6  # the rounding of the sum of all weights, with which no row has a score of zero


class ShardedCandidateSearch(CandidateSearch):
    """Keeps the best candidate, for linear models of rows in shards.

    Candidates are evaluated in one round over the shards, and decisions at many points of a line
    in two: a histogram of the points where decisions change, of which the points of a line are
    quantiles, and the rates at these points. The rates at a point are exact; between two of them
    there may be a better model.

    Parameters
    ----------
    problem, y, sample_weight, constants
        See :class:`~fairconstrained.decisions.candidates.CandidateSearch`; with one row per atom.
    """

    @classmethod
    def searches(cls, problem: Problem) -> bool:
        """Return whether the rows of a problem are in shards."""
        return not problem.models[0].in_memory

    least_points: ClassVar[int] = 48
    _last: Candidate | None = None

    def _strict(self, part: CompositeFunction) -> CompositeFunction:
        """Return a constraint on decisions; one from a histogram is tightened by its resolution."""
        strict = part.zero_one()
        if not of_distribution(strict.term):
            return strict
        if all(are_collected(model) for model in sharded_models(self.problem)):
            return strict
        bounds = strict.gap_bounds(strict.term.gap_bounds)
        return strict.shifted(np.minimum(1.0 / BINS, 0.1 * bounds))

    @cached_property
    def _shares(self) -> list[Measure]:
        """The shares of scores s > 0 and s < 0, the means of (1 + s)^2 / 2 and (1 - s)^2 / 2."""
        signs = np.ones(self.measures[0].term.n_rows)
        terms = [
            average(function, sign * signs, self.rows[1])
            for function in (Indicator(), ShiftedSquare())
            for sign in (1.0, -1.0)
        ]
        return [replace(self.measures[0], term=term) for term in terms]

    def _values(self, measures: Sequence[Measure], w: Array) -> list[Array]:
        """Return the outputs of measures: one read of the rows."""
        line = self._line(w, np.zeros_like(w), (), ())
        return [outputs[:, 0] for outputs in line.outputs(measures, np.zeros(1))]

    def evaluate(self, w: Array, scores: Scores | None = None) -> Candidate:
        """Return the candidate: one read of the rows."""
        if self._last is not None and self._last.w is w:
            return self._last
        n = len(self.measures)
        values = self._values([*self.measures, *self._shares, self.objective], w)
        positive, negative, above, below, loss = (one[0] for one in values[n:])
        variance = above + below - 1.0 - (0.5 * (above - below)) ** 2
        constant = bool(positive == 0.0 or (negative == 0.0 and positive > 1.0 - _WHOLE))
        spread = float(np.sqrt(max(variance, 0.0)))
        self._last = self._candidate(w, values[:n], loss, (), constant, spread)
        return self._last

    def values(self, measures: Sequence[Measure], one: Candidate) -> list[Array]:
        """Return the outputs of measures at a candidate: one read of the rows."""
        return self._values(measures, one.w)

    def _line(self, w: Array, direction: Array, at: Scores, by: Scores) -> Line:
        """Return a line; it is read when it is searched."""
        rows = [
            ShardedScores(one, w[: one.n_parameters], direction[: one.n_parameters], self._count)
            for one in sharded_models(self.problem)
        ]
        return Line(self.measures, w, direction, rows)

    def _count(self, n_rows: int) -> None:
        """Count a read of rows."""
        self.problem.counter.rows += n_rows


def sharded_models(problem: Problem) -> list[ShardedLinearModel]:
    """Return the models of a problem whose rows are all in shards.

    Raises
    ------
    ValueError
        If a constraint is on other rows, in memory.
    """
    found = []
    for model in problem.models:
        if not isinstance(model, ShardedLinearModel):
            raise ValueError(
                "enforce='decision' on dask collections needs constraints on the training rows; "
                "one of them is on reference rows in memory. Use enforce='score', or the estimator "
                "of fairconstrained on data in memory."
            )
        found.append(model)
    return found
