r"""Bounds for other losses and rates: convex minorants of tables of functions of one score.

Rows of one kind (the same label and cells) have the same function of their score up to the weight
of the row,

.. math:: \varphi(s) = \sum_k a_k g_k(s), \qquad g_k(s) = f_k(\pm (s + t_k)),

with convex losses and bounded, increasing surrogates f. It is tabulated on a grid that contains all
kinks, see :mod:`~fairconstrained.bounds.table_relaxation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.bounds.lagrangian import Lagrangian
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.losses import Loss
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import as_array
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.numerics import unique_codes
from fairconstrained.utils.typing import Array

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
    if not isinstance(term, CellMeans) and (not isinstance(term, ThresholdRates) or term.free):
        return False
    convex = isinstance(term.function, Loss) and term.function.convex
    return convex or type(term.function) in (Sigmoid, Ramp)


@dataclass(frozen=True)
class Basis:
    """The functions g_k: f(sign (s + shift))."""

    functions: tuple[ScalarFunction, ...]
    signs: Array
    shifts: Array

    @cached_property
    def convex(self) -> Array:
        """Which are losses, (n_functions,)."""
        return np.array([isinstance(f, Loss) for f in self.functions])

    @cached_property
    def kinks(self) -> Array:
        """Where their slopes jump."""
        each = zip(self.functions, self.signs, self.shifts, strict=True)
        kinks = [sign * at - shift for f, sign, shift in each for at, _ in f.kinks]
        return np.array(kinks, dtype=float)

    @cached_property
    def curvature(self) -> Array:
        """Bounds on their second derivatives between the points of a grid, (n_functions, 2)."""
        return np.array([(0.0, 0.0) if f.kinks else f.curvature for f in self.functions])

    def at(self, points: Array) -> tuple[Array, Array]:
        """Return the values and derivatives, (n_functions, n_points)."""
        values, slopes = np.empty((2, len(self.functions), len(points)))
        for k, f in enumerate(self.functions):
            margins = self.signs[k] * (points + self.shifts[k])
            values[k] = f.value(margins)
            slopes[k] = self.signs[k] * f.derivative(margins, values[k])
        return values, slopes


@dataclass(frozen=True, eq=False)
class Tables:
    """The objective and constraints by kinds of rows."""

    model: LinearModel  # of the rows
    penalty: Penalty  # an elastic net on the coefficients
    weight: Array  # what the functions of the kind of a row are multiplied by, (n_rows,)
    kind: Array  # the kind of every row, (n_rows,)
    # the weights of the functions of the basis in each function, the objective first, (1 +
    # n_constraints, n_functions, n_kinds)
    coefficients: Array
    level: Array  # what is added to each, (1 + n_constraints,)
    basis: Basis  # the functions
    points: Array  # the grid of scores, (n_points,)

    @classmethod
    def of(cls, at: Evaluation, chosen: Array, *, exact: bool = False) -> Tables | None:
        """Return those of the objective and some constraints, less the violation at a point.

        None if the rows are of too many kinds.
        """
        problem, model = at.problem, cast("LinearModel", at.problem.models[0])
        terms = [cast("Any", part.term) for part in problem.parts]
        weight = np.sum([np.asarray(term.cells.sum(axis=0)).ravel() for term in terms], axis=0)
        kind = np.zeros(model.n_rows, dtype=np.int64)
        for term in terms:
            signs = _signs(term)
            for codes in (unique_codes(term.strata())[1], signs > 0.0):
                kind = unique_codes(kind * (int(codes.max()) + 1) + codes)[1]
        _, first = np.unique(kind, return_index=True)
        unit = np.maximum(weight, np.finfo(float).tiny)
        same = (_same(term.cells, unit, kind, first) for term in terms)
        if len(first) > _MOST_KINDS or not all(same):
            return None
        each = []
        for part, place in zip(problem.parts, problem.places, strict=True):
            outputs = chosen[(chosen >= place.start) & (chosen < place.stop)] - place.start
            outputs = np.zeros(1, int) if part is problem.objective else outputs
            each.append(_of_kinds(part, outputs, first, unit))
        levels, blocks, bases = zip(*each, strict=True)
        ends = np.cumsum([(0, 0), *(block.shape[:2] for block in blocks)], axis=0)
        coefficients = np.zeros((*ends[-1], len(first)))
        for block, (row, column) in zip(blocks, ends, strict=False):
            coefficients[row : row + block.shape[0], column : column + block.shape[1]] = block
        used = np.any(coefficients, axis=(0, 2))
        functions, signs, shifts = map(np.concatenate, zip(*bases, strict=True))
        basis = Basis(tuple(functions[used]), signs[used], shifts[used])
        level = np.concatenate(levels)
        level[1:] -= at.violation
        sizes = np.abs(model.scores(at.w)).max(), np.abs(basis.shifts).max(initial=0.0)
        reach = max(_ROOM * sum(sizes), _LEAST_ROOM, *(_ROOM * np.abs(basis.kinks)))
        points = np.linspace(-reach, reach, _EXACT_POINTS if exact else _POINTS)
        if len(basis.kinks):
            away = np.abs(points[:, None] - basis.kinks).min(axis=1)
            points = np.union1d(points[away >= 2.0 * _NEAR_KINK], basis.kinks)
        points = np.concatenate([[-_FAR * reach], points, [_FAR * reach]])
        penalty = problem.objective.penalty
        return cls(model, penalty, weight, kind, coefficients[:, used], level, basis, points)

    @property
    def cost(self) -> int:
        """About how many rows can be read in the time of a relaxation."""
        return self.coefficients.shape[2] * len(self.points)

    strengths = Lagrangian.strengths  # of the same penalty

    def pooled(self) -> Tables:
        """Return the same: pooled rows would be of as many kinds as there are."""
        return self

    @cached_property
    def values(self) -> tuple[Array, Array]:
        """The functions of the basis on the grid and their derivatives, (n_functions, n_points)."""
        return self.basis.at(self.points)


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
