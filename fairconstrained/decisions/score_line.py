"""Decisions along a line of models, counted for all points of the line at once."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from fairconstrained.models.linear import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.shards.scores import ShardedScores
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, rates_on_line, zeros_on_line
from fairconstrained.terms.classes import class_terms, counts_predictions
from fairconstrained.utils.arrays import Array

Scores = Mapping[Model, Array]
_MOST_FLIPS = 50_000
_MIN_GAP = 1e-9  # relative: rows whose decisions change closer together have equal scores


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
        t = self._changes[:: max(len(self._changes) // _MOST_FLIPS, 1)]
        return np.sort(t[np.isfinite(t) & (t >= reach[0]) & (t <= reach[1])])

    @cached_property
    def _changes(self) -> Array:
        """The t at which predictions change, in any order."""
        return zeros_on_line(self.at, self.by)

    def rates(self, terms: Sequence[Any], points: Array) -> list[Any]:
        """Return the rates of decisions in the cells of terms, (n_cells, n_points) each.

        The decision on a row changes at one t, and one histogram gives the counts at all t.
        """
        return rates_on_line(terms, self.at, self.by, points)

    def statistics(self, requests: Sequence[tuple[Term, Array]], points: Array) -> list[Array]:
        """Return the statistics of terms, (n_points, n_statistics), evaluated at every t.

        They come with the values of their own variables at the points. Where all scores change by
        the same number, outputs of differences stay the same, and their terms are evaluated once.
        """
        every = []
        for term, variables in requests:
            same = term.of_differences and np.ptp(self.by) == 0.0
            some = zip(points[:1] if same else points, variables, strict=False)
            values = np.array([term.forward(self.scores(t), v)[0] for t, v in some])
            every.append(np.broadcast_to(values, (len(points), values.shape[1])))
        return every


class ClassScores(ScoresOnLine):
    """The scores of rows on a line, one for every class; that of the largest is predicted.

    A class is predicted for a row in one interval of t, so that two histograms give its counts at
    all t.
    """

    @cached_property
    def _intervals(self) -> list[tuple[Array, Array]]:
        """Where each class has the largest score, the first class of several: both ends."""
        intervals, order = [], np.arange(self.at.shape[1])
        for k in order:
            lead, slope = self.at[:, [k]] - self.at, self.by[:, [k]] - self.by
            t = zeros_on_line(lead, slope)
            low = np.where(slope > 0.0, t, -np.inf).max(axis=1)
            high = np.where(slope < 0.0, t, np.inf).min(axis=1)
            behind = (slope == 0.0) & ((lead < 0.0) | ((lead == 0.0) & (order < k)))
            never = behind.any(axis=1) | (low >= high)
            low[never] = high[never] = np.inf
            intervals.append((low, high))
        return intervals

    @cached_property
    def _changes(self) -> Array:
        """The t at which predictions change, in any order."""
        return np.concatenate([low for low, _ in self._intervals])

    def rates(self, terms: Sequence[Any], points: Array) -> list[Any]:
        """Return the shares of predictions in the cells of every class of the terms."""
        by_class = [class_terms(term) for term in terms]
        each = [
            self._shares([term[k] for term in by_class], *ends, points)
            for k, ends in enumerate(self._intervals)
        ]
        return list(zip(*each, strict=True))

    def _shares(self, terms: Sequence[Any], low: Array, high: Array, points: Array) -> list[Array]:
        """Return the shares of one class, those of t > low and of t < high less those of all."""
        ones = np.ones(len(low))
        above = rates_on_line(terms, -low, ones, points)
        below = rates_on_line(terms, high, -ones, points)
        whole = [term.cells @ (ones if term.signs is None else term.signs > 0.0) for term in terms]
        return [a + b - c[:, None] for a, b, c in zip(above, below, whole, strict=True)]


class ClassIntercept(ScoresOnLine):
    """The scores of rows where t is added to the scores of one class.

    Each row has a value of t above which this class is predicted. Below it, the best of the other
    classes is predicted.
    """

    def __init__(self, at: Array, by: Array):
        super().__init__(at, by)
        self.moved = int(np.argmax(by[0]))
        self.others = at.copy()
        self.others[:, self.moved] = -np.inf

    @cached_property
    def _changes(self) -> Array:
        """The t at which the prediction of each row changes."""
        return self.others.max(axis=1) - self.at[:, self.moved]

    def rates(self, terms: Sequence[Any], points: Array) -> list[Any]:
        """Return the shares of predictions in the cells of every class of the terms."""
        by_class: list[Any] = [class_terms(term) for term in terms]
        best, each = self.others.argmax(axis=1), []
        for k in range(self.at.shape[1]):
            slope = np.ones(len(best)) if k == self.moved else np.where(best == k, -1.0, 0.0)
            at = np.where(slope == 0.0, -1.0, -slope * self._changes)
            each.append(rates_on_line([term[k] for term in by_class], at, slope, points))
        return list(zip(*each, strict=True))


Rows = ScoresOnLine | ShardedScores


class Line:
    """The predictions of the models w + t d, for many t at once.

    Parameters
    ----------
    parts : sequence of CompositeFunction
        Functions with the indicator.
    w, direction : ndarray of shape (n_variables,)
        The line.
    rows : mapping from Model to Rows
        The rows of every model.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import average
    >>> from fairconstrained.decisions.score_line import Line, ScoresOnLine
    >>> from fairconstrained.functions.base import Indicator
    >>> from fairconstrained.problem.composite import CompositeFunction
    >>> rate = CompositeFunction(term=average(Indicator(), np.ones(4), np.ones(4)))
    >>> rows = ScoresOnLine(np.array([-3.0, -2.0, -1.0, 1.0]), np.ones(4))
    >>> line = Line([rate], np.zeros(1), np.ones(1), {rate.model: rows})
    >>> line.flips()
    array([-1.,  1.,  2.,  3.])
    >>> line.outputs(np.array([-1.5, 0.0, 1.5, 2.5, 3.5]))[0]  # the selection rate
    array([[0.  , 0.25, 0.5 , 0.75, 1.  ]])
    """

    def __init__(
        self,
        parts: Sequence[CompositeFunction],
        w: Array,
        direction: Array,
        rows: Mapping[Model, Rows],
    ):
        self.parts, self.w, self.direction, self.rows = parts, w, direction, rows

    def flips(self, reach: tuple[float, float] = (-np.inf, np.inf)) -> Array:
        """Return the t within reach at which the first part's predictions change, sorted."""
        return self.rows[self.parts[0].model].zeros(reach)

    def outputs(self, points: Array) -> list[Array]:
        """Return outputs of the parts, the largest among them, (n_some, n_points) each.

        The points are sorted. In shards this is a read for rates, and one for others.
        """
        variables = self.w + np.outer(points, self.direction)
        outputs: dict[CompositeFunction, Array] = {}
        for model, rows in self.rows.items():
            here = [part for part in self.parts if part.model is model]
            counted = [part for part in here if is_counted(part.term)]
            others = [part for part in here if part not in counted]
            rates = rows.rates([part.term for part in counted], points)
            outputs |= zip(counted, map(outputs_at, counted, rates), strict=True)
            asked = [(part.term, variables[:, part.auxiliary]) for part in others]
            for part, values in zip(others, rows.statistics(asked, points), strict=True):
                outputs[part] = np.column_stack([part.term.head(v) + part.level for v in values])
        return [outputs[part] for part in self.parts]

    def model(self, t: float) -> Array:
        """Return the variables at t."""
        return self.w + t * self.direction


def is_counted(term: Term) -> bool:
    """Return whether a term is an affine function of the shares of predictions in cells of rows."""
    return all(map(counts_predictions, class_terms(term)))


def largest_outputs(part: CompositeFunction, statistics: Array) -> Array:
    """Return outputs of a part for statistics, the largest among them, (n_some, 1)."""
    if isinstance(part.term, CellMeans):
        return outputs_at(part, statistics[:, None])
    return np.asarray(part.term.head(statistics) + part.level)[:, None]


def outputs_at(part: CompositeFunction, rates: Any) -> Array:
    """Return outputs of a counted part for rates, the largest among them, (n_some, n_points)."""
    term = cast("CellMeans", part.term)
    if isinstance(term, CellMeans) and np.size(part.level) == 1:
        return term.largest_at(rates) + part.level
    return term.outputs_at(rates) + np.reshape(part.level, (-1, 1))


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
