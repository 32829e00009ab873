r"""Bounds for other losses and rates: convex minorants of tables of functions of one score.

Rows of one kind (the same label and cells) have the same function of their score up to the weight
of the row,

.. math:: \varphi(s) = \sum_k a_k g_k(s), \qquad g_k(s) = f_k(\pm (s + t_k)),

with convex losses and bounded, increasing surrogates f. It is tabulated on a grid that contains all
kinks.

Between points of distance h, :math:`\varphi` is above the line through its values less :math:`h^2
/ 8 \max \varphi''`. The convex minorant of values lowered by that has the slopes of an isotonic
regression. Outside of the grid the losses are above their tangents at its ends, and surrogates
above their limits: the values at the ends are lowered, and the slopes clipped, to these.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.isotonic import isotonic_regression

from fairconstrained.bounds.fenchel import TINY, RelaxedPoint
from fairconstrained.bounds.relaxation import Lagrangian, outputs_of
from fairconstrained.functions import Loss, Ramp, Sigmoid
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem import CompositeFunction, Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import as_array
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.arrays import Array, joint_codes, unique_codes

_POINTS, _EXACT_POINTS = 400, 4000  # of the grid, without kinks
_NEAR_KINK = 0.05  # where parabolas that round it end: narrower ones are hard to minimise
_ROOM = 1.5  # times the largest score: where the grid ends
_LEAST_ROOM = 15.0  # there the slope of a logistic loss is its limit to 3e-7
_FAR = 1000.0  # times that end: there are the last points, to which lines go
_MOST_KINDS = 200  # of rows
_SAME = 1e-12  # relative difference of weights of one kind


def tabulated(part: CompositeFunction) -> bool:
    """Return whether a part is affine in averages of losses and surrogates that tables cover."""
    term = part.term
    averages = isinstance(term, CellMeans) or (isinstance(term, ThresholdRates) and not term.free)
    phi: Any = getattr(term, "function", None)
    convex = isinstance(phi, Loss) and phi.convex and (phi.kinks or np.isfinite(phi.curvature[1]))
    return averages and bool(convex or type(phi) in (Sigmoid, Ramp))


@dataclass(frozen=True, eq=False)
class Tables:
    """The objective and constraints by kinds of rows."""

    model: LinearModel  # of the rows
    penalty: Penalty  # an elastic net on the coefficients
    weight: Array  # what the functions of the kind of a row are multiplied by, (n_rows,)
    kind: Array  # the kind of every row, (n_rows,)
    # the weights of the functions g_k in each function, the objective first, (1 + n_constraints,
    # n_functions, n_kinds)
    coefficients: Array
    level: Array  # what is added to each, (1 + n_constraints,)
    functions: Array  # f_k and the signs in g_k, (n_functions,)
    signs: Array
    points: Array  # the grid of scores, (n_points,)
    values: Array  # g_k on the grid, and their derivatives, (2, n_functions, n_points)

    @classmethod
    def of(cls, at: Evaluation, chosen: Array, *, exact: bool = False) -> "Tables | None":
        """Return those of the objective and some constraints, less the violation at a point.

        None if the rows are of too many kinds.
        """
        problem, model = at.problem, cast("LinearModel", at.problem.models[0])
        terms = [cast("Any", part.term) for part in problem.parts]
        weight = np.sum([np.asarray(term.cells.sum(axis=0)).ravel() for term in terms], axis=0)
        codes = [(unique_codes(term.strata())[1], _signs(term) > 0.0) for term in terms]
        kind = joint_codes([each for of_term in codes for each in of_term])
        _, first = np.unique(kind, return_index=True)
        unit = np.maximum(weight, np.finfo(float).tiny)
        same = (_same(term.cells, unit, kind, first) for term in terms)
        if len(first) > _MOST_KINDS or not all(same):
            return None
        each = [_of_kinds(*part, first, unit) for part in outputs_of(at, chosen)]
        levels, blocks, bases = zip(*each, strict=True)
        ends = np.cumsum([(0, 0), *(block.shape[:2] for block in blocks)], axis=0)
        coefficients = np.zeros((*ends[-1], len(first)))
        for block, (row, column) in zip(blocks, ends, strict=False):
            coefficients[row : row + block.shape[0], column : column + block.shape[1]] = block
        used = np.any(coefficients, axis=(0, 2))
        functions, signs, shifts = (np.concatenate(part)[used] for part in zip(*bases, strict=True))
        basis = list(zip(functions, signs, shifts, strict=True))
        kinks = np.array([sign * kink - shift for f, sign, shift in basis for kink, _ in f.kinks])
        level = np.concatenate(levels)
        level[1:] -= at.violation
        sizes = np.abs(model.scores(at.w)).max(), np.abs(shifts).max(initial=0.0)
        reach = max(_ROOM * sum(sizes), _LEAST_ROOM, *(_ROOM * np.abs(kinks)))
        points = np.linspace(-reach, reach, _EXACT_POINTS if exact else _POINTS)
        if len(kinks):
            away = np.abs(points[:, None] - kinks).min(axis=1)
            points = np.union1d(points[away >= 2.0 * _NEAR_KINK], kinks)
        points = np.concatenate([[-_FAR * reach], points, [_FAR * reach]])
        values = np.empty((2, len(basis), len(points)))
        for k, (f, sign, shift) in enumerate(basis):
            margins = sign * (points + shift)
            values[0, k] = f.value(margins)
            values[1, k] = sign * f.derivative(margins, values[0, k])
        rows = model, problem.objective.penalty, weight, kind
        return cls(*rows, coefficients[:, used], level, functions, signs, points, values)

    @cached_property
    def convex(self) -> Array:
        """Which functions are losses, (n_functions,)."""
        return np.array([isinstance(f, Loss) for f in self.functions])

    @cached_property
    def curvature(self) -> Array:
        """Bounds on their second derivatives between the points of the grid, (n_functions, 2)."""
        return np.array([(0.0, 0.0) if f.kinks else f.curvature for f in self.functions])

    @property
    def cost(self) -> int:
        """About how many rows can be read in the time of a relaxation."""
        return self.coefficients.shape[2] * len(self.points)

    strengths = Lagrangian.strengths  # of the same penalty

    def pooled(self) -> "Tables":
        """Return the same: pooled rows would be of as many kinds as there are."""
        return self

    def relaxed(self, multipliers: Array) -> "TableRelaxation":
        """Return the relaxation at some multipliers."""
        each = np.append(1.0, multipliers)
        weights = np.tensordot(each, self.coefficients, 1)
        return TableRelaxation(self, multipliers, weights, float(self.level @ each))


def _signs(term: Any) -> Array:
    signs = getattr(term, "signs", None)
    return np.ones(term.n_rows) if signs is None else signs


def _same(cells: sp.csc_array, unit: Array, kind: Array, first: Array) -> bool:
    """Return whether the weights of rows of a kind are proportional."""
    lengths = np.diff(cells.indptr)
    if np.any(lengths != lengths[first][kind]):
        return False
    rows = np.repeat(np.arange(len(kind)), lengths)
    twins = cells.indptr[first[kind[rows]]] + np.arange(len(rows)) - cells.indptr[rows]
    shares = cells.data / unit[rows]
    close = np.abs(shares - shares[twins]) <= _SAME * np.abs(shares)
    return bool(np.all(close & (cells.indices == cells.indices[twins])))


def _of_kinds(part: CompositeFunction, outputs: Array, first: Array, unit: Array) -> Any:
    """Return the level of outputs, their weights (n_outputs, n_functions, n_kinds), the basis."""
    term: Any = part.term
    thresholds = term.thresholds if isinstance(term, ThresholdRates) else np.array([-term.shift])
    zero = np.zeros(term.n_statistics)
    rows = as_array(term.rows_of(zero, outputs))
    weights = np.reshape(rows, (len(outputs), term.cells.shape[0], len(thresholds)))
    of_kinds = np.einsum("oct,cs->ots", weights, term.cells[:, first].toarray() / unit[first])
    signs = _signs(term)[first]
    both = np.concatenate([of_kinds * (signs > 0.0), of_kinds * (signs < 0.0)], axis=1)
    level = term.values_of(zero, outputs) + part.level_of(outputs)
    functions = np.full(2 * len(thresholds), term.function, dtype=object)
    return (
        level,
        both,
        (functions, np.repeat([1.0, -1.0], len(thresholds)), np.tile(-thresholds, 2)),
    )


_FLOOR = 0.005  # of the range of slopes: the least curvature, see Relaxation


@dataclass(frozen=True, eq=False)
class TableRelaxation:
    """The convex minorants of tables at some multipliers."""

    lagrangian: Tables  # the functions
    multipliers: Array  # lambda, (n_constraints,)
    weights: Array  # the weights a of the functions, (n_functions, n_kinds)
    level: float  # what is added

    box = None
    tilt = 0.0

    @property
    def bends(self) -> Array:
        """The largest share of surrogates in the function of a row, see `Relaxation.bends`."""
        convex = self.lagrangian.convex
        losses = np.maximum(self.weights[convex].sum(axis=0), TINY)
        each = np.concatenate([self.weights[None], self.lagrangian.coefficients[1:]])
        return (np.abs(each[:, ~convex]).sum(axis=1) / losses).max(axis=1)

    @cached_property
    def bounded_below(self) -> bool:
        """Whether no loss is subtracted."""
        return bool(np.all(self.weights[self.lagrangian.convex] >= 0.0))

    @cached_property
    def least(self) -> Array:
        """A lower bound on each function: losses are at least 0, surrogates between 0 and 1."""
        rates = np.minimum(self.weights[~self.lagrangian.convex], 0.0).sum(axis=0)
        return self.lagrangian.weight * rates[self.lagrangian.kind]

    @cached_property
    def minorant(self) -> tuple[Array, Array]:
        """Its values at the points, (n_kinds, n_points), and the slopes between them."""
        tables, a = self.lagrangian, self.weights
        points, convex, (of_basis, slopes_of_basis) = tables.points, tables.convex, tables.values
        steps = np.diff(points)
        values = a.T @ of_basis
        bend = np.maximum(a * tables.curvature[:, 1:], a * tables.curvature[:, :1]).sum(axis=0)
        inner = np.concatenate([[0.0], steps[1:-1], [0.0]])
        wider = np.maximum(inner[1:], inner[:-1])  # of the steps on both sides
        values[:, 1:-1] -= np.maximum(bend, 0.0)[:, None] * wider**2 / 8.0
        # beyond the grid a surrogate goes on to 0 or 1, and losses are above their tangents
        limits = np.array([tables.signs < 0.0, tables.signs > 0.0]).T - of_basis[:, [1, -2]]
        falls = np.minimum(a[:, :, None] * limits[:, None], 0.0)[~convex].sum(axis=0)
        ends = np.einsum("ks,ke->se", a[convex], slopes_of_basis[convex][:, [1, -2]])
        values[:, [1, -2]] += falls
        values[:, [0, -1]] = values[:, [1, -2]] + ends * (points[[0, -1]] - points[[1, -2]])
        lowered, slopes = values, np.diff(values, axis=1) / steps
        # one regression for all kinds, which are too far from each other to be pooled
        apart = np.arange(len(slopes))[:, None] * (2.0 * np.ptp(slopes) + 1.0)
        weights = np.tile(steps, len(slopes))
        monotone = isotonic_regression((slopes + apart).ravel(), sample_weight=weights)
        monotone = monotone.reshape(slopes.shape) - apart
        slopes = np.clip(monotone, ends[:, :1], ends[:, 1:])
        kept = np.sum(monotone < ends[:, :1], axis=1)  # to the left slopes are raised
        start, kinds = values[:, :1], np.arange(len(slopes))
        heights = np.append(start, start + np.cumsum(monotone * steps, axis=1), axis=1)[kinds, kept]
        values = np.append(0.0 * start, np.cumsum(slopes * steps, axis=1), axis=1)
        values += (heights - values[kinds, kept])[:, None]
        # sums over steps to far points lose digits
        values -= np.maximum(values - lowered, 0.0).max(axis=1, keepdims=True)
        return values, slopes

    @cached_property
    def rounded(self) -> tuple[Array, Array, Array, Array]:
        """The minorant with parabolas in place of kinks, around each point.

        Returns the middles where they begin, (n_points,), and there the values and slopes, and
        the second derivatives, (n_kinds, n_points).
        """
        points, (values, slopes) = self.lagrangian.points, self.minorant
        middles = np.concatenate([points[:1], 0.5 * (points[1:] + points[:-1]), points[-1:]])
        slopes = np.concatenate([slopes[:, :1], slopes, slopes[:, -1:]], axis=1)
        bends = np.diff(slopes, axis=1) / np.diff(middles)
        starts = np.append(values[:, :1], 0.5 * (values[:, 1:] + values[:, :-1]), axis=1)
        return middles[:-1], starts, slopes[:, :-1], bends

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """The points where the straight part that an interval is in begins and ends."""
        _, slopes = self.minorant
        places = np.arange(slopes.shape[1])
        begins = np.diff(slopes, axis=1, prepend=-np.inf) > 0.0
        first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
        closes = np.append(begins[:, 1:], np.ones((len(slopes), 1), bool), axis=1)
        last = np.where(closes, places + 1, len(places))
        return first, np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]

    def at(self, w: Array) -> "TablePoint":
        """Return the relaxation at a point: one forward pass."""
        tables, (middles, *parabolas) = self.lagrangian, self.rounded
        scores, pullback = tables.model.forward(w)
        nearest = np.maximum(np.searchsorted(middles, scores) - 1, 0)
        start, slope, bend = (each[tables.kind, nearest] for each in parabolas)
        away = scores - middles[nearest]  # from where the parabola begins
        values = tables.weight * (start + away * (slope + 0.5 * bend * away))
        slopes = tables.weight * (slope + bend * away)
        # the slopes at the nearest point are those between the slopes on both sides of it
        height = tables.weight * self.minorant[0][tables.kind, nearest]
        minorants = values, slopes, height - slopes * tables.points[nearest]
        return TablePoint(self, w, scores, pullback, *minorants, nearest, bend)


@dataclass(frozen=True, eq=False)
class TablePoint(RelaxedPoint):
    """A point of a relaxation by tables."""

    nearest: Array  # the point of the grid that is nearest to every score, (n_rows,)
    bend: Array  # the second derivatives there for a weight of one, (n_rows,)

    @property
    def curvatures(self) -> Array:
        """The second derivatives, with a floor."""
        slopes, tables = self.relaxed.minorant[1], self.relaxed.lagrangian
        floor = _FLOOR * (slopes[:, -1] - slopes[:, 0])
        return tables.weight * np.maximum(self.bend, floor[tables.kind])

    @cached_property
    def _straight(self) -> tuple[Array, Array, Array]:
        """The interval of every score, and the points where its straight part ends."""
        tables, (first, last) = self.relaxed.lagrangian, self.relaxed.ends
        before = self.scores < tables.points[self.nearest]
        interval = np.clip(self.nearest - before, 0, first.shape[1] - 1)
        return interval, first[tables.kind, interval], last[tables.kind, interval]

    @cached_property
    def gradient(self) -> Array:
        """The constraints where functions are averages of both ends of the straight parts."""
        tables, (_, first, last) = self.relaxed.lagrangian, self._straight
        points, kinds = tables.points, tables.coefficients.shape[2]
        part = np.clip((self.scores - points[first]) / (points[last] - points[first]), 0.0, 1.0)
        mass = np.zeros((kinds, len(points)))
        np.add.at(mass, (tables.kind, first), tables.weight * (1.0 - part))
        np.add.at(mass, (tables.kind, last), tables.weight * part)
        averages = tables.values[0] @ mass.T
        return tables.level[1:] + np.einsum("fks,ks->f", tables.coefficients[1:], averages)

    def moves(self) -> tuple[Array, Array]:
        """Return how the gradient moves with w; of the touching points it is not known."""
        tables, (first, last) = self.relaxed.lagrangian, self.relaxed.ends
        points, values = tables.points, tables.values[0]
        slopes = (values[:, last] - values[:, first]) / (points[last] - points[first])
        by_kind = np.einsum("fks,ksj->fsj", tables.coefficients[1:], slopes)
        by_row = tables.weight * by_kind[:, tables.kind, self._straight[0]]
        moves: Any = tables.model.rows_times(by_row)  # rows have one score
        return moves, np.zeros((len(by_row), len(by_row)))
