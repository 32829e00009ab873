"""Candidates for a bound on decisions where the rows are in shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, eq=False)
class ShardedCandidate(Candidate):
    """A candidate whose scores stay with the shards.

    Attributes
    ----------
    outputs : list of ndarray
        The outputs of the search's measures.
    """

    outputs: list[Array] = field(default_factory=list, repr=False)


class ShardedLine(Line):
    """A line of models whose rows are in shards: sums for many points of it in one read.

    Parameters
    ----------
    measures : sequence of Measure
        See :class:`~fairconstrained.decisions.score_line.Line`.
    w, direction : ndarray of shape (n_variables,)
        The line.
    models : sequence of ShardedLinearModel
        They have the rows.
    count : callable
        Called with the number of rows at every read.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        w: Array,
        direction: Array,
        models: Sequence[ShardedLinearModel],
        count: Callable[[int], None],
    ):
        super().__init__(measures, w, direction, (), ())
        self.rows = [
            ShardedScores(one, w[: one.n_parameters], direction[: one.n_parameters], count)
            for one in models
        ]

    def flips(self, reach: tuple[float, float] = (-np.inf, np.inf)) -> Array:
        """Return points that stand for the t within reach at which decisions change, sorted."""
        return self.rows[self.measures[0].position].zeros(reach)

    def scores(self, t: float) -> Scores:
        """Return nothing: scores stay with the shards."""
        return ()

    def _outputs(self, measures: Sequence[Measure], points: Array) -> list[Array]:
        """Return the outputs of measures: a read for rates at many points, and one for others."""
        variables = np.array([self.model(t) for t in points])
        outputs: dict[Measure, Array] = {}
        for position, rows in enumerate(self.rows):
            here = [one for one in measures if one.position == position]
            counted = [one for one in here if one.counted and len(points) > 1]
            others = [one for one in here if one not in counted]
            rates = rows.rates([one.term for one in counted], points)
            for one, values in zip(counted, rates, strict=True):
                outputs[one] = one.outputs_at(values)
            asked = [(one.term, variables[:, one.auxiliary]) for one in others]
            for one, values in zip(others, rows.statistics(asked, points), strict=True):
                outputs[one] = one.outputs(values)
        return [outputs[one] for one in measures]


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
    _last: ShardedCandidate | None = None

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

    def scores_at(self, w: Array) -> Scores:
        """Return nothing: scores stay with the shards."""
        return ()

    def _values(self, measures: Sequence[Measure], w: Array) -> list[Array]:
        """Return the outputs of measures: one read of the rows."""
        line = self._line(w, np.zeros_like(w))
        return [outputs[:, 0] for outputs in line._outputs(measures, np.zeros(1))]

    def evaluate(self, w: Array, scores: Scores | None = None) -> ShardedCandidate:
        """Return the candidate: one read of the rows."""
        if self._last is not None and self._last.w is w:
            return self._last
        n = len(self.measures)
        values = self._values([*self.measures, *self._shares, self.objective], w)
        outputs, (positive, negative, above, below, loss) = values[:n], values[n:]
        variance = above[0] + below[0] - 1.0 - (0.5 * (above[0] - below[0])) ** 2
        whole = negative[0] == 0.0 and positive[0] > 1.0 - _WHOLE
        self._last = ShardedCandidate(
            w,
            float(outputs[0][0]),
            float(np.concatenate([np.zeros(0), *outputs[1:]]).max(initial=-np.inf)),
            float(loss[0] + self.problem.objective.penalty.value(w)),
            bool(positive[0] == 0.0 or whole),
            (),
            spread=float(np.sqrt(max(variance, 0.0))),
            outputs=outputs,
        )
        return self._last

    def values(self, measures: Sequence[Measure], one: Candidate) -> list[Array]:
        """Return the outputs of measures for a candidate: a read unless they are the search's."""
        if isinstance(one, ShardedCandidate) and list(measures) == self.measures[1:]:
            return one.outputs[1:]
        return self._values(measures, one.w)

    def _losses(self, line: Line, points: Array) -> Sequence[float]:
        """Return the problem's objective at points of a line: one read."""
        (losses,), penalty = line._outputs([self.objective], points), self.problem.objective.penalty
        return [
            float(loss + penalty.value(line.model(t)))
            for loss, t in zip(losses[0], points, strict=True)
        ]

    def _line_of_intercepts(self, one: Candidate, direction: Array) -> Line:
        """Return the line of all intercepts of a model."""
        return self._line(one.w, direction)

    def _line_between(self, one: Candidate, other: Candidate, base: Candidate) -> Line:
        """Return the line from the base in the direction from one to the other."""
        return self._line(base.w, other.w - one.w)

    def _line(self, w: Array, direction: Array) -> ShardedLine:
        """Return a line; it is read when it is searched."""
        return ShardedLine(self.measures, w, direction, sharded_models(self.problem), self._count)

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
