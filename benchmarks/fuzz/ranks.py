"""Constraints on how scores rank: pairs of rows, and ranges of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz.formulas import above, pair_mean, surrogate_of
from benchmarks.fuzz.measures import NOTHING, Array, Bound, Measured, NotMeasured

_MOST_PAIRS = 65536  # beyond, the library estimates means over pairs


class _Pairs:
    """Means over pairs of rows of two cells, each a group or a group and a label."""

    def __init__(self, bound: Bound, scores: Array, *, by_label: bool):
        self.bound, self.scores = bound, scores
        self.names = []
        for name in np.unique(bound.groups):
            labels = np.unique(bound.rows.y[bound.groups == name])
            if len(labels) == 2 or not by_label:
                self.names.append(name)
        surrogate = bound.constraint.surrogate
        self.function = above if bound.decisions else surrogate_of(surrogate)
        quadratic = isinstance(surrogate, str) and surrogate == "quadratic"
        self.sampled = not quadratic and not bound.decisions

    def rows_of(self, name: Any, label: int | None) -> Array:
        """Return which rows are in a cell."""
        inside = self.bound.groups == name
        return inside if label is None else inside & (self.bound.rows.y == label)

    def mean(self, first: Any, second: Any, up: int | None, down: int | None) -> float:
        """Return the mean over pairs of the rows of two groups, with these labels."""
        a, b = self.rows_of(first, up), self.rows_of(second, down)
        if self.sampled and a.sum() * b.sum() > _MOST_PAIRS:
            raise NotMeasured
        s, w = self.scores, self.bound.rows.weight
        return pair_mean(self.function, (s[a], w[a]), (s[b], w[b]))

    def share(self, names: list[Any], label: int | None) -> Array:
        """Return the shares of groups in the weight of all of them, among rows with a label."""
        w = self.bound.rows.weight
        mass = np.array([w[self.rows_of(name, label)].sum() for name in names])
        return np.asarray(mass / mass.sum())

    def sides(self) -> list[tuple[list[Any], list[Any]]]:
        """Return both sides of every comparison, each a list of groups."""
        if len(self.names) < 2:
            return []
        if self.bound.constraint.against == "pairs":
            return [([a], [b]) for a in self.names for b in self.names if a != b]
        out = []
        for a in self.names if len(self.names) > 2 else self.names[:1]:
            others = [b for b in self.names if b != a]
            out += [([a], others), (others, [a])]
        return out

    def mixed(self, first: list[Any], second: list[Any], up: int | None, down: int | None) -> float:
        """Return the mean over pairs of rows of two sides."""
        u, v = self.share(first, up), self.share(second, down)
        means = np.array([[self.mean(a, b, up, down) for b in second] for a in first])
        return float(u @ means @ v)


def _result(bound: Bound, gaps: list[float]) -> Measured:
    if not gaps:
        return NOTHING
    return Measured(np.array(gaps) - bound.kappa, float(max(gaps)))


def _group_auc(bound: Bound, scores: Array) -> Measured:
    pairs = _Pairs(bound, scores, by_label=False)
    return _result(bound, [pairs.mixed(a, b, None, None) - 0.5 for a, b in pairs.sides()])


def _inter_group(bound: Bound, scores: Array) -> Measured:
    pairs = _Pairs(bound, scores, by_label=True)
    gaps = [pairs.mixed(a, b, 1, -1) + pairs.mixed(a, b, -1, 1) - 1.0 for a, b in pairs.sides()]
    return _result(bound, gaps)


def _intra_group(bound: Bound, scores: Array) -> Measured:
    pairs = _Pairs(bound, scores, by_label=True)

    def within(side: list[Any], up: int, down: int) -> float:
        shares = pairs.share(side, None)
        means = [pairs.mean(one, one, up, down) for one in side]
        return float(np.dot(shares, means))

    return _result(bound, [within(a, 1, -1) + within(b, -1, 1) - 1.0 for a, b in pairs.sides()])


def _ranks(bound: Bound) -> tuple[float, float]:
    """Return the range of ranks, if it does not depend on another fit."""
    if isinstance(bound.constraint.ranks, str):
        raise NotMeasured
    low, high = bound.constraint.ranks
    return float(low), float(high)


def _weak_partial(bound: Bound, scores: Array) -> Measured:
    low, high = _ranks(bound)
    rates, _ = bound.averages(bound.decide(sharp=True)(scores))
    if len(rates) < 2:
        return NOTHING
    clipped = np.clip(rates, low, high) / (high - low)
    gap = float(clipped.max() - clipped.min())
    return Measured(np.array([gap - bound.kappa]), gap)


def _partial(bound: Bound, scores: Array) -> Measured:
    low, high = _ranks(bound)
    names = np.unique(bound.groups)
    if len(names) < 2:
        return NOTHING
    if bound.decisions:
        return _range_gaps(bound, scores, names, (low, high))
    if bound.kappa == 1.0:
        return NOTHING
    count, width = bound.constraint.n_ranks, high - low
    levels = low + (np.arange(count) + 0.5) / count * (1.0 - bound.kappa) * width
    decide = bound.decide(sharp=True)

    def rates(theta: float) -> Array:
        return bound.averages(decide(scores - theta))[0]

    reach = np.abs(scores).max() + 100.0
    excess = [_least_excess(rates, p, p + bound.kappa * width, reach) / width for p in levels]
    return Measured(np.array(excess), np.nan)


def _least_excess(rates: Callable[[float], Array], low: float, high: float, reach: float) -> float:
    """Return how far rates are from [low, high] at the threshold that is best for it."""
    below, over = -reach, reach
    for _ in range(60):
        theta = 0.5 * (below + over)
        found = rates(theta)
        if low - found.min() < found.max() - high:
            below = theta
        else:
            over = theta
    return min(max(low - rates(theta).min(), rates(theta).max() - high) for theta in (below, over))


def _range_gaps(bound: Bound, scores: Array, names: Array, ranks: tuple[float, float]) -> Measured:
    """Return how far apart the decisions are, at any threshold, among those in a range."""
    points = np.append(np.unique(scores), np.inf)
    shares = []
    for name in names:
        inside = bound.groups == name
        s, w = scores[inside], bound.rows.weight[inside] / bound.rows.weight[inside].sum()
        values = np.unique(s)
        mass = np.array([w[s == v].sum() for v in values])
        rank = mass[::-1].cumsum()[::-1] - mass
        chosen = (rank >= ranks[0] - 1e-12) & (rank < ranks[1] - 1e-12)
        if not chosen.any():
            chosen[np.flatnonzero(rank <= ranks[0] + 1e-12)[0]] = True
        kept, part = values[chosen], mass[chosen] / mass[chosen].sum()
        shares.append(((kept[:, None] >= points[None, :]) * part[:, None]).sum(axis=0))
    gaps = np.ptp(np.array(shares), axis=0)
    gap = float(min(gaps.max(), 1.0))
    return Measured(np.array([gap - bound.kappa]), gap)


BY_RANK: dict[str, Callable[[Bound, Array], Measured]] = {
    "GroupAUCParity": _group_auc,
    "InterGroupAUCParity": _inter_group,
    "IntraGroupAUCParity": _intra_group,
    "WeakPartialDemographicParity": _weak_partial,
    "PartialDemographicParity": _partial,
}
