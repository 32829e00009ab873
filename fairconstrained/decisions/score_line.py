"""Decisions along a line of models, counted for all points of the line at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import numpy as np

from fairconstrained.functions.base import Indicator
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, rates_on_line, zeros_on_line
from fairconstrained.terms.class_losses import ErrorRates
from fairconstrained.terms.class_scores import ByClass
from fairconstrained.utils.typing import Array

Scores = tuple[Array, ...]
_MOST_FLIPS = 50_000
_MIN_GAP = 1e-9  # relative: rows whose decisions change closer together have equal scores


@dataclass(frozen=True, eq=False)
class Measure:
    """A term of the scores of one of several models."""

    term: Term  # the term
    position: int  # which model's scores it takes
    auxiliary: slice = field(default_factory=lambda: slice(0, 0))  # its own variables among all
    # whether it estimates a constraint on new rows; the others are constraints on these rows
    estimate: bool = False
    level: Array | float = 0.0  # what is added to its outputs, (n_outputs,)

    @classmethod
    def all_of(
        cls, parts: Sequence[CompositeFunction], models: Sequence[object], *, estimate: bool = False
    ) -> list[Measure]:
        """Return the measures of composite functions whose models are among the given ones."""
        return [
            cls(part.term, next(k for k, one in enumerate(models) if one is part.model),
                part.auxiliary, estimate, part.level)
            for part in parts
        ]  # fmt: skip

    @property
    def counted(self) -> bool:
        """Whether it is an affine function of the shares of predictions in cells of rows."""
        if isinstance(self.term, CellMeans):
            return isinstance(self.term.function, Indicator)
        return counts_classes(self.term)

    def value(self, scores: Scores, w: Array) -> Array:
        """Return the outputs, shape (n_outputs,)."""
        return self.term.value(scores[self.position], w[self.auxiliary]) + self.level

    def outputs(self, statistics: Array) -> Array:
        """Return the outputs, (n_outputs, n_points), for statistics of shape (n_points, ...)."""
        return np.column_stack([self.term.head(one) + self.level for one in statistics])

    def outputs_at(self, rates: Any) -> Array:
        """Return the outputs, (n_outputs, n_points), for what `counted` terms count."""
        return cast("CellMeans", self.term).outputs_at(rates) + np.reshape(self.level, (-1, 1))

    def largest_at(self, rates: Any) -> Array:
        """Return some of these outputs, (n_some, n_points), the largest among them."""
        if not isinstance(self.term, CellMeans) or np.size(self.level) > 1:
            return self.outputs_at(rates)
        return self.term.largest_at(rates) + self.level


class ScoresOnLine:
    """The scores at + t by of rows in memory, for many t.

    Parameters
    ----------
    at, by : ndarray of shape (n_rows,)
        The scores at t = 0, and what they change by.
    """

    def __init__(self, at: Array, by: Array):
        self.at, self.by = at, by

    def scores(self, t: float) -> Array:
        """Return the scores at t."""
        return self.at + t * self.by

    def zeros(self, reach: tuple[float, float]) -> Array:
        """Return the t within reach at which predictions for some of many rows change, sorted."""
        t = self._zeros(slice(None, None, max(len(self.at) // _MOST_FLIPS, 1)))
        return np.sort(t[np.isfinite(t) & (t >= reach[0]) & (t <= reach[1])])

    def _zeros(self, rows: slice) -> Array:
        """Return the t at which predictions for rows change, in any order."""
        return zeros_on_line(self.at[rows], self.by[rows])

    def rates(self, terms: Sequence[Any], points: Array) -> list[Any]:
        """Return the rates of decisions in the cells of terms, (n_cells, n_points) each.

        The decision on a row changes at one t, and one histogram gives the counts at all t.
        """
        return rates_on_line(terms, self.at, self.by, points)

    def statistics(self, requests: Sequence[tuple[Term, Array]], points: Array) -> list[Array]:
        """Return the statistics of terms, (n_points, n_statistics), evaluated at every t.

        They come with the values of their own variables at the points.
        """
        return [
            np.array(
                [term.forward(self.scores(t), own)[0] for t, own in zip(points, each, strict=True)]
            )
            for term, each in requests
        ]


class Line:
    """The predictions of the models w + t d, for many t at once.

    Parameters
    ----------
    measures : sequence of Measure
        The share of correct predictions, then the constraints, all with the indicator.
    w, direction : ndarray of shape (n_variables,)
        The line.
    rows : sequence of ScoresOnLine or ShardedScores
        The rows of every model.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import average
    >>> from fairconstrained.decisions.score_line import Line, Measure, ScoresOnLine
    >>> from fairconstrained.functions.base import Indicator
    >>> rate = Measure(average(Indicator(), np.ones(4), np.ones(4)), 0)
    >>> rows = ScoresOnLine(np.array([-3.0, -2.0, -1.0, 1.0]), np.ones(4))
    >>> line = Line([rate, rate], np.zeros(1), np.ones(1), [rows])
    >>> line.flips()
    array([-1.,  1.,  2.,  3.])
    >>> line.values(np.array([-1.5, 0.0, 1.5, 2.5, 3.5]))[0]  # the selection rate
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    def __init__(
        self, measures: Sequence[Measure], w: Array, direction: Array, rows: Sequence[Any]
    ):
        self.measures, self.w, self.direction, self.rows = measures, w, direction, rows
        self.exact = all(measure.counted for measure in measures)

    def flips(self, reach: tuple[float, float] = (-np.inf, np.inf)) -> Array:
        """Return the t within reach at which the first measure's predictions change, sorted."""
        zeros: Array = self.rows[self.measures[0].position].zeros(reach)
        return zeros

    def values(self, points: Array) -> tuple[Array, Array, Array]:
        """Return the first output, the largest constraint and the positive part of the estimates.

        All are of shape (n_points,), for sorted points.
        """
        first, *others = self.outputs(self.measures, points, largest=True)
        sides: tuple[list[Array], list[Array]] = ([], [])
        for one, values in zip(self.measures[1:], others, strict=True):
            sides[one.estimate].append(values)
        violation, excess = (_largest(side, points) for side in sides)
        return first[0], violation, np.maximum(excess, 0.0)

    def outputs(
        self, measures: Sequence[Measure], points: Array, *, largest: bool = False
    ) -> list[Array]:
        """Return the outputs of measures, or some with the largest, (n_outputs, n_points) each.

        In shards this is a read for rates at many points, and one for others.
        """
        variables = np.array([self.model(t) for t in points])
        outputs: dict[Measure, Array] = {}
        for position, rows in enumerate(self.rows):
            here = [one for one in measures if one.position == position]
            counted = [one for one in here if one.counted and len(points) > 1]
            others = [one for one in here if one not in counted]
            rates = rows.rates([one.term for one in counted], points)
            for one, values in zip(counted, rates, strict=True):
                outputs[one] = one.largest_at(values) if largest else one.outputs_at(values)
            asked = [(one.term, variables[:, one.auxiliary]) for one in others]
            for one, values in zip(others, rows.statistics(asked, points), strict=True):
                outputs[one] = one.outputs(values)
        return [outputs[one] for one in measures]

    def model(self, t: float) -> Array:
        """Return the variables at t."""
        return self.w + t * self.direction

    def scores(self, t: float) -> Scores:
        """Return the scores at t, without another pass over the data; none in shards."""
        return tuple(one.scores(t) for one in self.rows if isinstance(one, ScoresOnLine))


def counts_classes(term: Term) -> TypeGuard[ErrorRates | ByClass]:
    """Return whether a term is an affine function of shares of predictions of classes."""
    return isinstance(term, ErrorRates) or (isinstance(term, ByClass) and term.counts_predictions)


def _largest(outputs: Sequence[Array], points: Array) -> Array:
    """Return the largest of all outputs at every point, minus infinity without any."""
    return np.max(np.vstack([np.empty((0, len(points))), *outputs]), axis=0, initial=-np.inf)


def points_between(flips: Array, many: int, center: float | None = None) -> Array:
    """Return sorted points between flips and beyond them, about `many` at most.

    Parameters
    ----------
    flips : ndarray of shape (n_flips,)
        Where decisions change, sorted.
    many : int
        About the largest number of points; with more gaps between flips not all get one.
    center : float or None, default=None
        The gaps nearest to it get a point each, more distant ones fewer; None spreads them evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.score_line import points_between
    >>> points_between(np.array([0.0, 0.5, 0.5, 1.0]), 10)
    array([-1.  ,  0.25,  0.75,  3.  ])
    """
    if not len(flips):
        return np.zeros(1)
    size = 1.0 + np.abs(flips)
    wide = np.flatnonzero(np.diff(flips) > _MIN_GAP * size[:-1])
    inner = 0.5 * (flips[wide] + flips[wide + 1])
    points = np.concatenate([[flips[0] - size[0]], inner, [flips[-1] + size[-1]]])
    n = len(points)
    if n <= many:
        return points
    if center is None:
        return points[np.unique(np.linspace(0, n - 1, many).astype(int))]
    middle = int(np.searchsorted(points, center))
    steps = np.unique(np.geomspace(1, n, many // 2).astype(int)) - 1
    ranks = np.unique(np.concatenate([middle - steps - 1, middle + steps, [0, n - 1]]))
    return points[ranks[(ranks >= 0) & (ranks < n)]]
