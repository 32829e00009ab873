r"""A lower bound on a convex function of the parameters from any point: Fenchel duality.

For several classes, with the multinomial loss and average soft-max probabilities p, the Lagrangian
is a penalty plus a sum over rows,

.. math:: \varphi_i(s) = n_i \Big(\log \sum_k e^{s_k} - s_{y_i}\Big) + \sum_k c_{ik} p_k(s).

The second derivative of the second part along v is :math:`E[(c - E c) (v - E v)^2]` under p, that
of the first :math:`n E[(v - E v)^2]`: a row is convex if :math:`\max_k c_k - \min_k c_k \le n`.
Multipliers are scaled down until this holds in all rows. Then Fenchel's inequality bounds the
minimum from below at any point, see :func:`_bound`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr

from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.models.linear import LinearModel, Pullback
from fairconstrained.problem import CompositeFunction, Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.classes import ByClass, MultinomialLoss
from fairconstrained.utils.arrays import Array

ROUNDING = 1e-12  # of the sum of all magnitudes: far more than sums of doubles lose
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Box:
    """Intervals of the parameters, (n_parameters,) each."""

    low: Array
    high: Array

    @property
    def width(self) -> Array:
        """The lengths of the intervals."""
        return self.high - self.low

    def scores(self, model: LinearModel) -> tuple[Array, Array]:
        """Return the least and the largest score of every point."""
        middle = model.scores(0.5 * (self.low + self.high))
        coef, intercept = model.coefficients(0.5 * self.width)
        shift = np.broadcast_to(0.0 if model.shift is None else model.shift, coef[0].shape)
        room = np.abs(model.X - shift) @ coef[0] + intercept + coef @ shift
        room *= 1.0 + 1e-9  # more than rounding
        return middle - room, middle + room


def least_of_penalty(
    gradient: Array, net: Any, low: Array | float = -np.inf, high: Array | float = np.inf
) -> Array:
    """Return the least value of a slope times each coefficient plus its penalty, in an interval.

    The penalty is given by `Penalty.elastic_net`; the interval is that of the distance from its
    centre.
    """
    l1, l2, center = net
    away = -np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0) / l2
    away = np.clip(away, low, high)
    return gradient * (center + away) + l1 * np.abs(away) + 0.5 * l2 * away**2


@dataclass(frozen=True, eq=False)
class RelaxedPoint:
    r"""What is known of a relaxation from one point w, above all a bound on its least value.

    A kind of relaxation adds about what the second derivatives of its functions are (`curvatures`,
    with a floor where these are straight), a supergradient of the least value in lambda if the
    point is a minimiser (`gradient`), and how that moves with w, and with lambda as it moves the
    points where the functions are touched (`moves`).
    """

    # the relaxation: a penalty plus a sum over points of functions of one score, each at most that
    # of the Lagrangian
    relaxed: Any
    w: Array  # the point, (n_parameters,)
    scores: Array  # the scores there, (n_points,)
    pullback: Pullback  # weights of the scores -> gradient
    values: Array  # the relaxed functions, (n_points,)
    slopes: Array  # their derivatives, theta, (n_points,)
    # a lower bound on the Lagrangian's functions less theta s: at most -psi*(theta), (n_points,)
    least: Array

    @cached_property
    def _shrunk(self) -> Array:
        """By which slopes are multiplied for no slope in a free intercept to be left."""
        theta = self.slopes
        if self.relaxed.box is not None or not self.relaxed.lagrangian.model.fit_intercept:
            return np.ones(len(theta))
        fall, rise = -np.minimum(theta, 0.0).sum(), np.maximum(theta, 0.0).sum()
        excess = rise - fall + np.ravel(self.relaxed.tilt)[-1]
        of_falls = (fall + min(excess, 0.0)) / max(fall, TINY)
        return np.where(theta < 0.0, of_falls, (rise - max(excess, 0.0)) / max(rise, TINY))

    @cached_property
    def _gradient(self) -> Array:
        """The derivatives in the parameters of all but the penalty, of slopes so multiplied."""
        return self.pullback(self._shrunk * self.slopes) + self.relaxed.tilt

    @cached_property
    def bound(self) -> float:
        r"""A lower bound on the relaxed Lagrangian at all parameters, whatever the point.

        For slopes :math:`\theta` of the envelopes :math:`\psi`,

        .. math::
            \min_w \sum_i \psi_i(s_i) + \alpha_1 \|w\|_1 + \tfrac{\alpha_2}{2} \|w\|_2^2 \ge
            -\sum_i \psi_i^*(\theta_i) - \sum_j \frac{\max\{0, |d_j| - \alpha_1\}^2}{2 \alpha_2},

        with the derivatives d of :math:`\langle \theta, s \rangle` in the coefficients, and
        :math:`-\psi^*(\theta) = \psi(s) - \theta s`. The intercept has no penalty, so that slopes
        must sum to zero: those of the heavier sign are multiplied by some r <= 1, for which
        :math:`-\psi^*(r \theta) \ge r (\psi(s) - \theta s) + (1 - r) \inf \psi`, as
        :math:`\psi^*` is convex. In a box the sum over j is that of the least values of
        :math:`d_j w_j` plus penalty in an interval, also for the intercept, and no slope is
        multiplied. Rounding is counted as 1e-12 of the sum of all magnitudes.
        """
        at, shrunk = self.relaxed, self._shrunk
        # a loss that is subtracted is not bounded below, nor is a slope that no loss balances
        if not at.bounded_below or shrunk.min() < 0.0:
            return -np.inf
        parts = shrunk * self.least
        if at.box is None:
            parts += (1.0 - shrunk) * at.least
        rest = self._least_of_parameters()
        # values and slopes times scores, whose differences the parts are, may cancel
        total = sum(float(np.abs(each).sum()) for each in (self.values, parts, rest, at.level))
        return float(parts.sum()) + float(rest.sum()) + at.level - ROUNDING * total

    def _least_of_parameters(self) -> Array:
        """Return the least value of the gradient times each parameter plus its penalty."""
        net, box = self.relaxed.lagrangian.strengths, self.relaxed.box
        gradient, n = self._gradient, self.relaxed.lagrangian.model.n_coefficients
        if box is None:
            return least_of_penalty(gradient[:n], net)
        ends = np.minimum(gradient[n:] * box.low[n:], gradient[n:] * box.high[n:])
        sides = box.low[:n] - net[2], box.high[:n] - net[2]
        return np.append(least_of_penalty(gradient[:n], net, *sides), ends)

    @cached_property
    def value(self) -> float:
        """The relaxed Lagrangian at the point."""
        penalty = self.relaxed.lagrangian.penalty.value(self.w)
        rest = float(np.sum(self.relaxed.tilt * self.w)) + self.relaxed.level
        return float(self.values.sum()) + penalty + rest

    @cached_property
    def slope(self) -> Array:
        """About the gradient of the value: exact where no slope is shrunk, as at a minimiser."""
        lagrangian = self.relaxed.lagrangian
        n, (l1, *_) = lagrangian.model.n_coefficients, lagrangian.strengths
        tilts = np.broadcast_to(self.relaxed.tilt, len(self.w))
        of_loss = np.append(self._gradient[:n], self.slopes.sum() + tilts[n:])
        kinks = (self.w == 0.0) & (np.arange(len(self.w)) < n)
        shortest = np.sign(of_loss) * np.maximum(np.abs(of_loss) - l1, 0.0)
        return np.where(kinks & (l1 > 0.0), shortest, of_loss + lagrangian.penalty.gradient(self.w))


def of_probabilities(part: CompositeFunction) -> bool:
    """Return whether a part is affine in averages of soft-max probabilities."""
    term = part.term
    if not isinstance(term, ByClass) or term.sharpness != 1.0:
        return False
    return all(averages_unit(each, Sigmoid) for each in term.terms)


def averages_unit(term: Any, *functions: type[Any]) -> bool:
    """Return whether a term is affine in averages of one of some functions, of unit scale."""
    if not isinstance(term, CellMeans) or type(term.function) not in functions or term.shift:
        return False
    return getattr(term.function, "scale", 1.0) == 1.0


def class_bound(
    at: Evaluation, multipliers: Array, most: float, over: Callable[[float], bool]
) -> tuple[float, float]:
    """Return a lower bound on the objective of all models that violate no more, and its passes.

    The multipliers are the given ones, scaled down until all rows are convex. The Lagrangian is
    minimised, in at most `most` data passes, until the bound from a point suffices (`over`).
    """
    weights, level = _weights(at, multipliers)
    share = float((np.ptp(weights, axis=1) / _row_weights(at)).max())
    factor = 1.0 / max(share * (1.0 + 1e-12), 1.0)
    scaled = factor * multipliers
    terms = factor * weights, factor * level
    best, passes = _bound(at, scaled, *terms, at.violation), 1.0
    if over(best):
        return best, passes

    def lagrangian(w: Array) -> tuple[float, Array]:
        nonlocal best, passes
        there = at.problem.at(w)
        passes += 1.0
        best = max(best, _bound(there, scaled, *terms, at.violation))
        if over(best) or passes >= most:
            raise StopIteration
        return there.objective + float(scaled @ there.constraints), there.gradient(scaled)

    with suppress(StopIteration):
        minimize(lagrangian, at.w, jac=True, method="L-BFGS-B", options={"ftol": 0.0})
    return best, passes


def _row_weights(at: Evaluation) -> Array:
    """Return the weights n of the rows in the loss."""
    return cast("MultinomialLoss", at.problem.objective.term)._spread(np.ones(1))


def _weights(at: Evaluation, multipliers: Array) -> tuple[Array, float]:
    """Return c, (n_rows, n_classes), and what the constraints are where no row is of a class."""
    model = cast("LinearModel", at.problem.models[0])
    weights, level = np.zeros((model.n_rows, model.n_outputs)), 0.0
    for part, place in zip(at.problem.constraints, at.problem.places, strict=True):
        term, of_part = cast("ByClass", part.term), multipliers[place]
        level += float(of_part @ (term.head(np.zeros(term.n_statistics)) + part.level))
        on_statistics = term.head_vjp(np.zeros(term.n_statistics), of_part)
        ends = np.cumsum([each.n_statistics for each in term.by_class])[:-1]
        of_classes = zip(term.by_class, np.split(on_statistics, ends), strict=True)
        for k, (each, of_cells) in enumerate(of_classes):
            on_rows = each._spread(of_cells)
            if each.signs is not None:  # sigmoid(-t) = 1 - sigmoid(t)
                level += float(on_rows[each.signs < 0.0].sum())
                on_rows = on_rows * each.signs
            weights[:, k] += on_rows
    return weights, level


def _bound(
    at: Evaluation, multipliers: Array, weights: Array, level: float, violation: float
) -> float:
    r"""Return a lower bound on the Lagrangian at all parameters, from any point.

    With slopes :math:`\theta_i = \nabla \varphi_i(s_i)` it is the sum of :math:`\varphi_i(s_i) -
    \langle \theta_i, s_i \rangle` and of the least value of :math:`\sum_i \langle \theta_i, s_i
    \rangle` plus the penalty. Intercepts have no penalty, so that slopes must sum to zero. They are
    averaged, with a share epsilon, with those of a constant model of probabilities q, :math:`n_i (q
    - e_{y_i})`, whose conjugate is at most :math:`-n_i H(q) - \min_k c_{ik}`; q makes the sum zero.
    """
    problem, n = at.problem, _row_weights(at)
    objective, model = problem.objective, cast("LinearModel", problem.models[0])
    scores = at.scores_of(objective)
    slopes = np.zeros(scores.shape)
    ends = [place.stop for place in problem.places]
    parts = zip(problem.parts, [np.ones(1), *np.split(multipliers, ends)], strict=False)
    for part, of_part in parts:
        slopes += part.term.vjp(scores, of_part)[0]
    level = level - violation * float(multipliers.sum())
    loss = at.objective - objective.penalty.value(at.w)
    total = loss + float(multipliers @ (at.constraints - violation)) - level
    labels = cast("MultinomialLoss", objective.term).labels
    shares = np.bincount(labels, n, minlength=model.n_outputs)
    left = slopes.sum(axis=0) if model.fit_intercept else np.zeros(model.n_outputs)
    most = max(float((left / np.maximum(shares, TINY)).max()), 0.0)
    share = most / (1.0 + most)  # the least epsilon for which no probability is negative
    q = np.maximum(shares - left / max(most, TINY), 0.0)
    constant = np.tile(q, (len(n), 1))
    constant[np.arange(len(n)), labels] -= 1.0
    mean = (1.0 - share) * slopes + share * n[:, None] * constant
    products = slopes * scores
    of_constant = float(n.sum() * entr(q).sum() + weights.min(axis=1).sum())
    on_parameters = model.vjp(at.w, mean)[: model.n_coefficients]
    rest = least_of_penalty(on_parameters, objective.penalty.elastic_net)
    bound = (1.0 - share) * (total - products.sum()) + share * of_constant + rest.sum() + level
    size = np.abs(products).sum() + abs(total) + np.abs(rest).sum() + abs(level) + abs(of_constant)
    return float(bound - ROUNDING * size)
