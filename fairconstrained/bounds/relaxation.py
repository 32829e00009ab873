r"""How far a point is from the best one that meets the constraints: a lower bound that is proved.

For any multipliers :math:`\lambda \ge 0`, the least value of the Lagrangian is below the objective
of every point that meets the constraints (weak duality). With the logistic loss l and rates of
sigmoids it is a sum over rows of functions of one score,

.. math:: \varphi(s) = p\, l(s) + q\, l(-s) + c\, \sigma(s), \qquad l(s) = \log(1 + e^{-s}),

plus the penalty. Rows with the same features have the same score in every model and are pooled.
:math:`\varphi` is convex where :math:`|c| \le N = p + q`. Elsewhere it is replaced by its convex
envelope: for c > N it is :math:`\varphi` up to the point t with :math:`\sigma(t) = N / c`, then the
line of slope q; for c < -N it is the mirror image, from :math:`\sigma(t) = 1 + N / c` with the
slope -p. What is then minimised is convex, and Fenchel duality bounds its minimum from below at any
point, whether or not a minimiser has been found: see :attr:`RelaxedPoint.bound`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from fairconstrained.bounds.fenchel import Box, RelaxedPoint
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem import CompositeFunction, Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import as_array
from fairconstrained.utils.arrays import Array, SparseMatrix

Pieces = tuple[Array, Array, Array, Array, Array]
_MOSTLY_DIFFERENT = 0.9  # of the rows: to pool so few that are equal gains little


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """The objective and constraints, as sums over points of l(s), l(-s) and sigmoid(s)."""

    model: LinearModel  # of the points: rows, or rows with the same features together
    # which functions, the objective first, are sums of l; the others are sums of the sigmoid, (1 +
    # n_constraints,)
    of_loss: Array
    up: Array  # the weights of l(s) and l(-s) in these, (n_of_loss, n_points)
    down: Array
    share: Array  # the weights of sigmoid(s) in the others, (n_others, n_points)
    level: Array  # what is added to each function, (1 + n_constraints,)
    penalty: Penalty  # an elastic net on the coefficients

    cost = 0

    @classmethod
    def of(cls, at: Evaluation, chosen: Array) -> "Lagrangian":
        """Return that of the objective and of some constraints, less the violation at a point."""
        each = [_weights(*part) for part in outputs_of(at, chosen)]
        of_loss, up, down, share, level = map(np.concatenate, zip(*each, strict=True))
        level[1:] -= at.violation
        model, penalty = cast("LinearModel", at.problem.models[0]), at.problem.objective.penalty
        return cls(model, of_loss, up, down, share, level, penalty)

    @property
    def strengths(self) -> tuple[float, float, Array | float]:
        """Those of the L1 norm and of half the squared distance, and the centre."""
        assert self.penalty.elastic_net is not None
        return self.penalty.elastic_net

    def pooled(self) -> "Lagrangian":
        """Return the same with rows of equal features pooled."""
        pooled = pooled_rows(self.model)
        if pooled is None:
            return self
        first, place = pooled
        shares = sp.csr_array((np.ones(len(place)), place, np.arange(len(place) + 1)))
        return self.spread(self.model.batch(first), shares)

    def spread(self, model: LinearModel, shares: SparseMatrix) -> "Lagrangian":
        """Return the same with every point spread over those of a model, (n_points, n_others)."""
        up, down, share = (each @ shares for each in (self.up, self.down, self.share))
        return replace(self, model=model, up=up, down=down, share=share)

    def combined(self, multipliers: Array) -> tuple[Array, Array, Array, float]:
        """Return the weights of l(s), l(-s) and sigmoid(s) by point, and what is added."""
        each = np.append(1.0, multipliers)
        on_loss, on_share = each[self.of_loss], each[~self.of_loss]
        return on_loss @ self.up, on_loss @ self.down, on_share @ self.share, self.level @ each

    def price(self, multipliers: Array) -> Array | float:
        """Return G: half of G times the squared parameters is to be subtracted."""
        return 0.0

    def relaxed(self, multipliers: Array, box: Box | None = None) -> "Relaxation":
        """Return the relaxation at some multipliers."""
        p, q, c, level = self.combined(multipliers)
        if box is None:
            return Relaxation(self, multipliers, p, q, c, level)
        half = 0.5 * self.price(multipliers)
        tilt, level = -half * (box.low + box.high), level + float(np.sum(half * box.low * box.high))
        return Relaxation(self, multipliers, p, q, c, level, tilt, box)

    def values(self, up: Array, down: Array, share: Array) -> Array:
        """Return the constraints where points have these values of l(s), l(-s), sigmoid(s)."""
        values = self.level.copy()
        values[self.of_loss] += self.up @ up + self.down @ down
        values[~self.of_loss] += self.share @ share
        return values[1:]

    def slopes(self, on_up: Array, on_down: Array, on_share: Array) -> Array:
        """Return derivatives of the constraints in the scores, from those of their summands."""
        slopes = np.empty((len(self.level), len(on_up)))
        slopes[self.of_loss] = self.up * on_up + self.down * on_down
        slopes[~self.of_loss] = self.share * on_share
        return slopes[1:]

    @property
    def rates(self) -> Array:
        """The weights of sigmoid(s) in the constraints, zero for those on losses."""
        none = np.zeros(self.model.n_rows)
        return self.slopes(none, none, none + 1.0)


def outputs_of(at: Evaluation, chosen: Array) -> list[tuple[CompositeFunction, Array]]:
    """Return the objective and the parts that have some constraints, with their outputs."""
    bounded = [(part, outputs) for part, _, outputs in at.by_part(chosen)]
    return [(at.problem.objective, np.zeros(1, int)), *bounded]


def _weights(part: CompositeFunction, outputs: Array) -> tuple[Array, ...]:
    """Return, for outputs of a part, the attributes of a Lagrangian from `of_loss` to `level`."""
    term = cast("CellMeans", part.term)
    zero, none = np.zeros(term.n_statistics), np.zeros((0, term.n_rows))
    weights = term._spread(as_array(term.rows_of(zero, outputs)))
    level = term.values_of(zero, outputs) + part.level_of(outputs)
    positive = np.ones(term.n_rows) if term.signs is None else (term.signs > 0.0).astype(float)
    up, down = weights * positive, weights * (1.0 - positive)
    if isinstance(term.function, Logistic):
        return np.ones(len(outputs), bool), up, down, none, level
    # sigmoid(-s) = 1 - sigmoid(s)
    return np.zeros(len(outputs), bool), none, none, up - down, level + down.sum(axis=1)


def pooled_rows(model: LinearModel) -> tuple[Array, Array] | None:
    """Return the positions of rows with different features, and which of them every row is.

    None if few rows have equal features. Such rows have the same score for random parameters; that
    they are equal is then checked.
    """
    scores = model.scores(np.random.default_rng(0).standard_normal(model.n_parameters))
    if np.count_nonzero(np.diff(np.sort(scores))) > _MOSTLY_DIFFERENT * len(scores):
        return None
    _, first, place = np.unique(scores, return_index=True, return_inverse=True)
    different = model.X[first][place] != model.X
    unlike = different.any() if isinstance(different, np.ndarray) else different.nnz
    return None if unlike else (first, place)


_FLOOR = 0.02  # of the curvature of the loss: envelopes are straight where they replace rates
_TANGENTS = 6  # steps to the tangent of an envelope in an interval


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A convex function of the parameters below the Lagrangian at some multipliers, in a box."""

    lagrangian: Lagrangian  # its functions
    multipliers: Array  # lambda, (n_functions - 1,)
    p: Array  # the weights of l(s), l(-s) and sigmoid(s), (n_points,)
    q: Array
    c: Array
    level: float  # what is added
    # the slopes of a linear function of the parameters, which is added too, (n_parameters,)
    tilt: Array | float = 0.0
    box: Box | None = None  # where it is below the Lagrangian; None stands for the whole space

    @cached_property
    def n(self) -> Array:
        """N, the sum of p and q."""
        return self.p + self.q

    @property
    def bends(self) -> Array:
        """The largest share of rates in a function, from 1 on it is not convex, (n_functions,).

        The first one is that of the Lagrangian, others of each constraint with a multiplier of one.
        """
        return np.abs(np.vstack([self.c, self.lagrangian.rates]) / self.n).max(axis=1)

    @cached_property
    def bounded_below(self) -> bool:
        """Whether no loss is subtracted."""
        return min(self.p.min(), self.q.min()) >= 0.0

    @cached_property
    def least(self) -> Array:
        """A lower bound on each function, (n_points,)."""
        least = xlogy(self.n, self.n) - xlogy(self.p, self.p) - xlogy(self.q, self.q)
        return least + np.minimum(self.c, 0.0)

    @cached_property
    def pieces(self) -> Pieces:
        """The straight parts of envelopes: side, t, slope, end and chord, (n_points,) each.

        An envelope is straight on a side of t (0: nowhere), from t to the end where it meets the
        function again, infinity in the whole space; with a chord it is straight everywhere.
        """
        side = np.where(np.abs(self.c) > self.n, np.sign(self.c), 0.0)
        share = np.full(len(side), 0.5)  # sigmoid(t), mirrored for side = -1
        np.divide(self.n, np.abs(self.c), out=share, where=side != 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # where losses are subtracted
            t = np.log(share) - np.log1p(-share)
        if self.box is not None:
            return self._pieces_in_box(self.box, side, t)
        slope, infinite = np.where(side > 0.0, self.q, -self.p), np.full(len(side), np.inf)
        return side, side * t, slope, infinite, np.zeros(len(side), bool)

    def _pieces_in_box(self, box: Box, side: Array, first: Array) -> Pieces:
        """Return the pieces for scores in an interval, where lines end at the function.

        The function is convex, then concave. A tangent that ends below it is therefore below it in
        the whole interval. Newton's method goes from such tangents to the best one, from `first`.
        If all tangents in the interval end above the function, its chord is the envelope.
        """
        bent = np.flatnonzero(side)
        sign, n, c = side[bent], self.n[bent], np.abs(self.c[bent])
        low, high = (sign * each[bent] for each in box.scores(self.lagrangian.model))
        low, high = np.minimum(low, high), np.maximum(low, high)
        p, q = np.where(sign > 0.0, self.p[bent], self.q[bent]), self.n[bent]
        q = q - p

        def function(s: Array) -> Array:
            up, down, share = logistic(s)
            bend = share * (1.0 - share)
            slope = n * share - p + c * bend
            curvature = bend * (n + c * (1.0 - 2.0 * share))
            return np.array([p * up + q * down + c * share, slope, curvature])

        def above(s: Array, at: Array) -> Array:
            return at[0] + at[1] * (high - s) - top

        top, share = function(high)[0], (n + c) / (2.0 * c)
        at = function(low)
        chord = above(low, at) >= 0.0
        t, last = np.maximum(first[bent], low), np.log(share) - np.log1p(-share)
        t, last = np.where(chord, low, t), np.minimum(last, high)
        at = function(t)
        failed = np.zeros(len(bent), bool)
        for _ in range(_TANGENTS):
            newton = at[2] * (high - t)
            np.divide(-above(t, at), newton, out=newton, where=newton > 0.0)
            other = np.where(failed, 0.5 * (t + last), np.minimum(t + newton, last))
            there = function(other)
            failed = chord | (above(other, there) > 0.0)
            t, last = np.where(failed, t, other), np.where(failed, other, last)
            at = np.where(failed, at, there)
        slope = at[1]
        np.divide(top - at[0], high - t, out=slope, where=chord & (high > t))
        every = np.zeros((4, len(side)))
        every[:, bent] = sign * t, sign * slope, sign * high, chord
        return side, every[0], every[1], every[2], every[3] > 0.0

    def at(self, w: Array) -> "EnvelopePoint":
        """Return the relaxation at a point: one forward pass."""
        side, t, slope, _, chord = self.pieces
        scores, pullback = self.lagrangian.model.forward(w)
        beyond = (side * (scores - t) > 0.0) | chord
        touching = np.where(beyond, t, scores)
        up, down, share = touched = logistic(touching)
        values = self.p * up + self.q * down + self.c * share
        values[beyond] += slope[beyond] * (scores - touching)[beyond]
        slopes = np.where(beyond, slope, self.n * share - self.p + self.c * share * (1.0 - share))
        envelopes = values, slopes, values - slopes * scores
        return EnvelopePoint(self, w, scores, pullback, *envelopes, beyond, touching, touched)


def logistic(s: Array) -> tuple[Array, Array, Array]:
    """Return l(s), l(-s) and the sigmoid of s."""
    small = np.exp(-np.abs(s))
    loss, rest = np.log1p(small), 1.0 / (1.0 + small)
    return (
        loss - np.minimum(s, 0.0),
        loss + np.maximum(s, 0.0),
        np.where(s < 0.0, small * rest, rest),
    )


@dataclass(frozen=True, eq=False)
class EnvelopePoint(RelaxedPoint):
    r"""A point of a relaxation by envelopes."""

    beyond: Array  # where scores are beyond t, where the envelope is straight, (n_points,)
    touching: Array  # t there, else the scores, (n_points,)
    touched: tuple[Array, Array, Array]  # l, l of the other sign and the sigmoid there

    @property
    def losses(self) -> Array:
        """How far envelopes are below the functions, (n_points,)."""
        at, (up, down, share) = self.relaxed, logistic(self.scores)
        return at.p * up + at.q * down + at.c * share - self.values

    @cached_property
    def curvatures(self) -> Array:
        """The second derivatives in the scores, with a floor where envelopes are straight."""
        at, share = self.relaxed, self.touched[2]
        bend = share * (1.0 - share)
        exact = np.where(self.beyond, 0.0, bend * (at.n + at.c * (1.0 - 2.0 * share)))
        return np.maximum(exact, _FLOOR * at.n * bend)

    @cached_property
    def gradient(self) -> Array:
        """A supergradient of the least value in lambda, if the point is a minimiser."""
        (up, down, share), c = self.touched, self.relaxed.c
        after = self.scores - self.touching  # 0 where the envelope is the function
        if self.relaxed.box is not None:
            return self._gradient_in_box(after)
        up = up - np.where(c < 0.0, after, 0.0)
        down = down + np.where(c > 0.0, after, 0.0)
        return self.relaxed.lagrangian.values(up, down, share)

    def _gradient_in_box(self, after: Array) -> Array:
        """Return the same of lines that end at the function: values are averages of both ends."""
        *_, end, _ = self.relaxed.pieces
        part = np.zeros(len(end))
        inside = self.beyond & (end != self.touching)
        np.divide(after, end - self.touching, out=part, where=inside)
        ends = zip(self.touched, logistic(end), strict=True)
        averages = ((1.0 - part) * a + part * b for a, b in ends)
        return self.relaxed.lagrangian.values(*averages)

    def moves(self) -> tuple[Array, Array]:
        """Return how `gradient` moves with w, and with lambda as it moves the touching points."""
        at, share = self.relaxed, self.touched[2]
        on_up = np.where(self.beyond, np.where(at.c > 0.0, 0.0, -1.0), share - 1.0)
        on_down = np.where(self.beyond, np.where(at.c > 0.0, 1.0, 0.0), share)
        on_share = np.where(self.beyond, 0.0, share * (1.0 - share))
        slopes = at.lagrangian.slopes(on_up, on_down, on_share)
        moves: Any = at.lagrangian.model.rows_times(slopes)  # rows have one score
        turned = np.zeros(len(share))
        np.divide(-at.n, at.c**2, out=turned, where=self.beyond)
        rates = at.lagrangian.rates
        return moves, (rates * turned) @ rates.T
