"""Decisions along a line of models: counted for all points of the line at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairconstrained.functions.elementary import Indicator
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array

Scores = Mapping[int, Array]
_APART = 1e-9  # rows whose decisions change closer together than this are equal but for rounding


class Line:
    """The decisions of the models w + t d, for many t at once.

    Where all constraints are averages over cells of rows, every row's decision changes at one t,
    and the counts at all t come from one histogram. Constraints of other kinds are evaluated.

    Parameters
    ----------
    parts : sequence of CompositeFunction
        The right decisions' share, then the constraints, all with the indicator.
    w, direction : ndarray of shape (n_variables,)
        The line.
    at, by : mapping from the id of a model to ndarray of shape (n_rows,)
        The scores at w, and what the direction adds to them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import average
    >>> from fairconstrained.decisions.score_line import Line
    >>> from fairconstrained.problem.composite import CompositeFunction
    >>> from fairconstrained.functions.elementary import Indicator
    >>> share = CompositeFunction("rows", average(Indicator(), np.ones(4), np.ones(4)))
    >>> at, by = {id("rows"): np.array([-3.0, -2.0, -1.0, 1.0])}, {id("rows"): np.ones(4)}
    >>> line = Line([share, share], np.zeros(1), np.ones(1), at, by)
    >>> line.flips()
    array([-1.,  1.,  2.,  3.])
    >>> line.values(np.array([-1.5, 0.0, 1.5, 2.5, 3.5]))[0]  # the decisions' rate
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    def __init__(
        self, parts: Sequence[CompositeFunction], w: Array, direction: Array, at: Scores, by: Scores
    ):
        self.parts, self.w, self.direction = parts, w, direction
        self.at, self.by = at, by
        self.exact = all(counts(part.term) for part in parts)

    def flips(self) -> Array:
        """Return the t at which decisions about the first part's rows change, sorted."""
        key = id(self.parts[0].model)
        t = _flips(self.at[key], self.by[key])
        return np.sort(t[np.isfinite(t)])

    def values(self, points: Array) -> tuple[Array, Array]:
        """Return, at each of the sorted points, the first output and the largest of the others."""
        right, *others = (self._outputs(part, points) for part in self.parts)
        return right[0], np.max(np.vstack(others), axis=0)

    def _outputs(self, part: CompositeFunction, points: Array) -> Array:
        """Return the part's outputs, (n_outputs, n_points)."""
        at, by, term = self.at[id(part.model)], self.by[id(part.model)], part.term
        assert term is not None
        if isinstance(term, CellMeans) and counts(term):
            level = term.head(np.zeros(term.n_statistics))
            return np.asarray(term.combination @ _counted(term, at, by, points) + level[:, None])
        own, step = self.w[part.auxiliary], self.direction[part.auxiliary]
        return np.column_stack([term.value(at + t * by, own + t * step) for t in points])

    def model(self, t: float) -> Array:
        """Return the variables at t."""
        return self.w + t * self.direction

    def scores(self, t: float) -> dict[int, Array]:
        """Return the scores at t, without another pass over the data."""
        return {key: at + t * self.by[key] for key, at in self.at.items()}


def counts(term: Term | None) -> bool:
    """Return whether a term is an affine function of the shares of decisions in cells."""
    return isinstance(term, CellMeans) and isinstance(term.function, Indicator)


def _flips(at: Array, by: Array) -> Array:
    """Return the t where at + t by is 0; infinite or nan where it never is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return -at / by


def _counted(term: CellMeans, at: Array, by: Array, points: Array) -> Array:
    """Return A 1{at + t by > 0} for every point t, (n_cells, n_points)."""
    if term.signs is not None:
        at, by = term.signs * at, term.signs * by
    n, flips, rises, falls = len(points), _flips(at, by), by > 0, by < 0
    first = np.full(len(at), n)  # the first point where the decision is another one
    first[rises] = np.searchsorted(points, flips[rises], side="right")
    first[falls] = np.searchsorted(points, flips[falls], side="left")
    before = np.where(by == 0, at > 0, falls)  # the decision at t = -infinity
    change = np.where(rises, 1.0, -1.0)
    cells = term.cells
    column = np.repeat(np.arange(term.n_rows), np.diff(cells.indptr))
    start = np.bincount(cells.indices, cells.data * before[column], minlength=term.n_statistics)
    place = cells.indices.astype(np.int64) * (n + 1) + first[column]
    size = term.n_statistics * (n + 1)
    changes = np.bincount(place, cells.data * change[column], minlength=size)
    return np.asarray(start[:, None] + np.cumsum(changes.reshape(-1, n + 1)[:, :n], axis=1))


def points_between(flips: Array, many: int, center: float | None = None) -> Array:
    """Return sorted points that lie between flips and beyond them, about `many` at most.

    Parameters
    ----------
    flips : ndarray of shape (n_flips,)
        Where decisions change, sorted.
    many : int
        The number of points beyond which not every gap between flips gets one.
    center : float or None, default=None
        Around it every gap gets a point, ever fewer farther away; None spreads them evenly.

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
    wide = np.flatnonzero(np.diff(flips) > _APART * size[:-1])
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


def scores_of(parts: Sequence[CompositeFunction], w: Array) -> dict[int, Any]:
    """Return the scores of every model of the parts at w."""
    models = {id(part.model): part.model for part in parts}
    return {key: model.scores(w[: model.n_parameters]) for key, model in models.items()}
