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

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from fairconstrained.bounds.lagrangian import Lagrangian
from fairconstrained.models.base import Pullback
from fairconstrained.utils.typing import Array

_ROUNDING = 1e-12  # of the sum of all magnitudes: far more than sums of doubles lose
_FLOOR = 0.02  # of the curvature of the loss: envelopes are straight where they replace rates
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A convex function of the parameters below the Lagrangian at some multipliers.

    Attributes
    ----------
    lagrangian : Lagrangian
        Its functions.
    multipliers : ndarray of shape (n_functions - 1,)
        lambda.
    p, q, c : ndarray of shape (n_points,)
        The weights of l(s), l(-s) and sigmoid(s).
    level : float
        What is added.
    """

    lagrangian: Lagrangian
    multipliers: Array
    p: Array
    q: Array
    c: Array
    level: float

    @classmethod
    def of(cls, lagrangian: Lagrangian, multipliers: Array) -> Relaxation:
        """Return the relaxation at some multipliers."""
        return cls(lagrangian, multipliers, *lagrangian.combined(multipliers))

    @cached_property
    def n(self) -> Array:
        """N, the sum of p and q."""
        return self.p + self.q

    @cached_property
    def _tangent(self) -> tuple[Array, Array, Array]:
        """On which side of t the envelope is straight (0: nowhere), t, and its slope there."""
        n = self.n
        side = np.where(self.c > n, 1.0, np.where(self.c < -n, -1.0, 0.0))
        share = np.full(len(n), 0.5)  # sigmoid(t)
        np.divide(n, self.c, out=share, where=side != 0.0)
        share = np.where(side < 0.0, 1.0 + share, share)
        with np.errstate(divide="ignore"):
            t = np.log(share) - np.log1p(-share)
        return side, t, np.where(side > 0.0, self.q, -self.p)

    def at(self, w: Array) -> RelaxedPoint:
        """Return the relaxation at a point: one forward pass."""
        side, t, slope = self._tangent
        scores, pullback = self.lagrangian.model.forward(w)
        beyond = side * (scores - t) > 0.0
        touching = np.where(beyond, t, scores)
        return RelaxedPoint(self, w, scores, pullback, beyond, touching, slope)


@dataclass(frozen=True, eq=False)
class RelaxedPoint:
    r"""What is known of a relaxation from one point w, above all a bound on its least value.

    Attributes
    ----------
    relaxed : Relaxation
        The relaxation.
    w : ndarray of shape (n_parameters,)
        The point.
    scores : ndarray of shape (n_points,)
        The scores there.
    pullback : callable
        Weights of the scores -> gradient.
    beyond : ndarray of bool of shape (n_points,)
        Where scores are beyond t, where the envelope is straight.
    touching : ndarray of shape (n_points,)
        t there, else the scores.
    straight : ndarray of shape (n_points,)
        The slopes of the straight parts.
    """

    relaxed: Relaxation
    w: Array
    scores: Array
    pullback: Pullback
    beyond: Array
    touching: Array
    straight: Array

    @cached_property
    def _losses(self) -> tuple[Array, Array, Array]:
        """l(t), l(-t) and the sigmoid where envelopes touch the functions."""
        small = np.exp(-np.abs(self.touching))
        loss, rest = np.log1p(small), 1.0 / (1.0 + small)
        up, down = loss - np.minimum(self.touching, 0.0), loss + np.maximum(self.touching, 0.0)
        return up, down, np.where(self.touching < 0.0, small * rest, rest)

    @cached_property
    def _values(self) -> Array:
        """The envelopes, (n_points,)."""
        at, (up, down, share) = self.relaxed, self._losses
        value = at.p * up + at.q * down + at.c * share
        value[self.beyond] += self.straight[self.beyond] * self._after[self.beyond]
        return value

    @cached_property
    def _after(self) -> Array:
        """How far scores are beyond t, with their sign; 0 elsewhere."""
        return np.where(self.beyond, self.scores - self.touching, 0.0)

    @cached_property
    def _slopes(self) -> Array:
        """The derivatives of the envelopes, (n_points,)."""
        at, share = self.relaxed, self._losses[2]
        inner = at.n * share - at.p + at.c * share * (1.0 - share)
        return np.where(self.beyond, self.straight, inner)

    @cached_property
    def _shrunk(self) -> Array:
        """By which slopes are multiplied for their sum to be zero, if there is an intercept."""
        theta = self._slopes
        if not self.relaxed.lagrangian.model.fit_intercept:
            return np.ones(len(theta))
        fall, rise = -np.minimum(theta, 0.0).sum(), np.maximum(theta, 0.0).sum()
        return min(fall, rise) / np.where(theta < 0.0, max(fall, _TINY), max(rise, _TINY))

    @cached_property
    def _gradient(self) -> Array:
        """The derivatives in the parameters of the scores weighted by the slopes so multiplied."""
        return self.pullback(self._shrunk * self._slopes)

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
        :math:`\psi^*` is convex. A centre of the penalty adds its product with d. Rounding is
        counted as 1e-12 of the sum of all magnitudes.
        """
        at, shrunk = self.relaxed, self._shrunk
        if min(at.p.min(), at.q.min()) < 0.0:  # of a loss that is subtracted: not bounded below
            return -np.inf
        least = xlogy(at.n, at.n) - xlogy(at.p, at.p) - xlogy(at.q, at.q) + np.minimum(at.c, 0.0)
        parts = shrunk * (self._values - self._slopes * self.scores) + (1.0 - shrunk) * least
        l1, l2, center = at.lagrangian.strengths
        gradient = self._gradient[: at.lagrangian.model.n_coefficients]
        excess = np.maximum(np.abs(gradient) - l1, 0.0)
        conjugate = 0.5 * float(excess @ excess) / l2 - float(np.sum(gradient * center))
        total = float(np.abs(parts).sum()) + abs(conjugate) + abs(at.level)
        return float(parts.sum()) - conjugate + at.level - _ROUNDING * total

    @cached_property
    def value(self) -> float:
        """The relaxed Lagrangian at the point."""
        penalty = self.relaxed.lagrangian.penalty.value(self.w)
        return float(self._values.sum()) + penalty + self.relaxed.level

    @cached_property
    def slope(self) -> Array:
        """About the gradient of the value: exact where no slope is shrunk, as at a minimiser."""
        lagrangian = self.relaxed.lagrangian
        n, (l1, *_) = lagrangian.model.n_coefficients, lagrangian.strengths
        of_loss = np.append(self._gradient[:n], np.full(len(self.w) - n, self._slopes.sum()))
        kinks = (self.w == 0.0) & (np.arange(len(self.w)) < n)
        shortest = np.sign(of_loss) * np.maximum(np.abs(of_loss) - l1, 0.0)
        return np.where(kinks & (l1 > 0.0), shortest, of_loss + lagrangian.penalty.gradient(self.w))

    @cached_property
    def curvatures(self) -> Array:
        """The second derivatives in the scores, with a floor where envelopes are straight."""
        at, share = self.relaxed, self._losses[2]
        bend = share * (1.0 - share)
        exact = np.where(self.beyond, 0.0, bend * (at.n + at.c * (1.0 - 2.0 * share)))
        return np.maximum(exact, _FLOOR * at.n * bend)

    @cached_property
    def gradient(self) -> Array:
        """A supergradient of the least value in lambda, if the point is a minimiser."""
        (up, down, share), c = self._losses, self.relaxed.c
        up = up - np.where(c < 0.0, self._after, 0.0)
        down = down + np.where(c > 0.0, self._after, 0.0)
        return self.relaxed.lagrangian.values(up, down, share)

    def moves(self) -> tuple[Array, Array]:
        """Return how `gradient` moves with w, and with lambda as it moves the touching points."""
        at, share = self.relaxed, self._losses[2]
        on_up = np.where(self.beyond, np.where(at.c > 0.0, 0.0, -1.0), share - 1.0)
        on_down = np.where(self.beyond, np.where(at.c > 0.0, 1.0, 0.0), share)
        on_share = np.where(self.beyond, 0.0, share * (1.0 - share))
        rows, rates = at.lagrangian.slopes(on_up, on_down, on_share)
        turned = np.zeros(len(share))
        np.divide(-at.n, at.c**2, out=turned, where=self.beyond)
        moves = np.reshape([self.pullback(row) for row in rows], (len(rows), len(self.w)))
        return moves, (rates * turned) @ rates.T
