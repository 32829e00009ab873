"""What constraints ask of scores and of decisions, written from their published formulas.

Also the rows that they see, and what is returned of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.fuzz.formulas import Array, Function, loss_of, pair_mean, surrogate_of

_MOST_PAIRS = 65536  # beyond, the library estimates means over pairs


class NotMeasured(Exception):
    """There is no independent formula for this setting (it depends on another fit)."""


@dataclass(frozen=True, eq=False)
class Measured:
    """How far outputs are above their bounds, and the largest gap (nan where there is none)."""

    excess: Array
    gap: float

    @property
    def violation(self) -> float:
        """The largest excess, at least 0."""
        return float(np.max(self.excess, initial=0.0))


NOTHING = Measured(np.zeros(0), np.nan)


def joined(parts: list[Measured]) -> Measured:
    """Return several constraints as one."""
    gaps = [part.gap for part in parts if not np.isnan(part.gap)]
    excess = np.concatenate([[], *(part.excess for part in parts)])
    return Measured(excess, max(gaps, default=np.nan))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of positive weight: labels -1 and +1, weights, and codes of the sensitive columns.

    A code of -1 is a row that is in no group. `kappa`, `surrogate` and `loss` are the estimator's,
    for constraints that have none of their own.
    """

    y: Array
    weight: Array
    codes: Array
    combine: str = "intersection"
    kappa: float = 0.05
    surrogate: Any = "sigmoid"
    loss: Any = "logistic"

    @property
    def marginal(self) -> bool:
        """Whether every column is a grouping of its own."""
        return self.combine == "marginal" and self.codes.shape[1] > 1

    def groupings(self, *, crossed: bool) -> Iterator[tuple[Array, Array]]:
        """Yield, for every grouping, the rows whose group is known and their groups."""
        if self.marginal and not crossed:
            for column in self.codes.T:
                yield np.flatnonzero(column >= 0), column[column >= 0]
        else:
            known = self.codes >= 0  # of groups of all columns in any, of crossed ones in all
            rows = np.flatnonzero(known.any(axis=1) if self.marginal else known.all(axis=1))
            yield rows, np.unique(self.codes[rows], axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class Bound:
    """A constraint, the rows of one grouping with their groups, and which version is measured."""

    constraint: Any
    rows: Rows
    groups: Array
    decisions: bool

    @property
    def kappa(self) -> float:
        """The tolerance."""
        given = getattr(self.constraint, "kappa", None)
        return float(self.rows.kappa if given is None else given)

    def decide(self, *, sharp: bool = False) -> Function:
        """Return the surrogate, or the decision 1{t > 0}."""
        if self.decisions:
            return lambda t: (np.asarray(t) > 0.0).astype(float)
        given = getattr(self.constraint, "surrogate", None)
        return surrogate_of(self.rows.surrogate if given is None else given, sharp=sharp)

    def averages(self, values: Array, event: Array | None = None) -> tuple[Array, Array]:
        """Return the mean of every group that has rows in an event, and its weight there."""
        event = np.ones(len(values), dtype=bool) if event is None else event
        inside = [event & (self.groups == name) for name in np.unique(self.groups[event])]
        mass = np.array([self.rows.weight[i].sum() for i in inside])
        sums = np.array([self.rows.weight[i] @ values[i] for i in inside])
        return sums / mass, mass

    def compare(self, gaps: Any) -> Measured:
        """Return differences less kappa, and the largest of them."""
        gaps = np.asarray(gaps)
        return Measured(gaps - self.kappa, float(gaps.max())) if gaps.size else NOTHING


def _compared(bound: Bound, means: Array, mass: Array) -> Measured:
    """Return what a constraint asks of every two groups, or of groups and all rows.

    That is a difference of two rates, a ratio or a balance.
    """
    n, rule = len(means), bound.constraint
    if n < 2:
        return NOTHING
    if rule.against == "overall":
        overall = np.full(n, means @ mass / mass.sum())
        first, second = np.append(means, overall), np.append(overall, means)
    else:
        first, second = (means[k] for k in np.nonzero(~np.eye(n, dtype=bool)))
    if type(rule).__name__ == "BalancedRate":
        limit = rule.beta + bound.kappa if rule.r is None else rule.r
        value = first + rule.beta * (1.0 - second)
        return Measured(value - limit, float(value.max()))
    if (ratio := getattr(rule, "ratio", None)) is not None:
        gaps = np.where(second > 0.0, 1.0 - first / np.where(second > 0.0, second, 1.0), 0.0)
        return Measured(ratio * second - first, float(gaps.max()))
    return bound.compare(first - second)


_BOTH = (-1, 1)
_EVENTS = {  # the labels of the rows whose rates are compared, where not all of them
    "EqualOpportunity": ((1,),),
    "PredictiveEquality": ((-1,),),
    "EqualizedOdds": ((1,), (-1,)),
}


def _rates(bound: Bound, scores: Array) -> Measured:
    """Return what is asked of rates: of decisions, of errors, or of decisions less labels."""
    kind, levels = type(bound.constraint).__name__, getattr(bound.constraint, "thresholds", [0.0])
    if levels is None:
        raise NotMeasured
    favourable, decide, parts = bound.rows.y > 0, bound.decide(), []
    for level, labels in product(levels, _EVENTS.get(kind, (_BOTH,))):
        values = decide(scores - level)
        if kind == "ErrorRateParity":
            values = np.where(favourable, 1.0 - values, values)
        elif kind == "CalibrationParity":
            values = values - favourable
        parts.append(_compared(bound, *bound.averages(values, np.isin(bound.rows.y, labels))))
    return joined(parts)


def _precisions(bound: Bound, scores: Array) -> Measured:
    values = bound.decide()(scores)
    selected, mass = bound.averages(values)
    right, _ = bound.averages(values * (bound.rows.y > 0))
    if not selected.any():
        selected = np.ones(len(mass))
    overall = right @ mass / (selected @ mass)
    means = np.where(selected > 0.0, right / np.where(selected > 0.0, selected, 1.0), overall)
    return _compared(bound, means, selected * mass)


def _losses(bound: Bound, loss, scores: Array) -> Array:
    """Return the loss of every row, or whether its decision is wrong."""
    if bound.decisions:
        return ((scores > 0.0) != (bound.rows.y > 0)).astype(float)
    return loss_of(loss)(bound.rows.y * scores)


def _group_loss(bound: Bound, scores: Array) -> Measured:
    rule, rows = bound.constraint, bound.rows
    means, _ = bound.averages(_losses(bound, rule.loss or rows.loss, scores))
    limit = rows.kappa if rule.bound is None else rule.bound
    return Measured(means - limit, float(means.max()))


def _minority(bound: Bound, scores: Array) -> Measured:
    rule, every = bound.constraint, bound.rows.weight.sum()
    if rule.minority is not None or rule.reference is not None or bound.rows.marginal:
        raise NotMeasured
    means, mass = bound.averages(bound.decide()(scores))
    if len(mass) < 2:
        return NOTHING
    least = int(np.argmin(mass))
    c = mass[least] / every if rule.c is None else rule.c
    selected, some = means @ mass / every, means[least] * mass[least] / every
    gap = 1.0 - some / selected if selected > 0.0 else 0.0
    return Measured(np.array([c * selected - some]), float(gap))


def _coverage(bound: Bound, scores: Array) -> Measured:
    rows, rule = bound.rows, bound.constraint
    share = np.average(rows.y > 0, weights=rows.weight) if rule.rate is None else rule.rate
    excess = np.average(bound.decide()(scores), weights=rows.weight) - share
    return bound.compare([excess, -excess])


def _members(bound: Bound) -> Iterator[Array]:
    """Yield the rows of every group of an intersectional constraint."""
    rule, codes = bound.constraint, bound.rows.codes
    if rule.membership == "columns":
        yield from (column == 1 for column in codes.T)
    elif rule.membership != "crossed":
        raise NotMeasured
    else:
        columns = codes.T if bound.rows.marginal else [bound.groups]
        yield from (column == k for column in columns for k in np.unique(column[column >= 0]))


def _intersectional(bound: Bound, scores: Array) -> Measured:
    rule, weight = bound.constraint, bound.rows.weight
    values = _losses(bound, rule.loss, scores)
    large = [rows for rows in _members(bound) if weight[rows].sum() > rule.min_share * weight.sum()]
    means = [np.average(values[rows], weights=weight[rows]) for rows in large]
    gaps = [mean - np.average(values, weights=weight) for mean in means]
    return bound.compare([np.mean(gaps)] if rule.average and gaps else gaps)


def _pairs(bound: Bound, scores: Array, first, second, up: int = 0, down: int = 0) -> float:
    """Return the mean over pairs of rows of two sides, each of some groups and a label, or of any.

    Of decisions, ties count half.
    """
    cells = []
    for names, label in ((first, up), (second, down)):
        inside = np.isin(bound.groups, names) & (bound.rows.y * label >= 0)
        cells.append((scores[inside], bound.rows.weight[inside]))
    surrogate = bound.constraint.surrogate
    if bound.decisions:
        return pair_mean(lambda t: 0.5 * (np.sign(t) + 1.0), *cells)
    if surrogate != "quadratic" and len(cells[0][0]) * len(cells[1][0]) > _MOST_PAIRS:
        raise NotMeasured
    return pair_mean(surrogate_of(surrogate), *cells)


def _sides(bound: Bound, *, by_label: bool = True) -> Iterator[tuple[list, list]]:
    """Yield both sides of every comparison, each a list of groups."""
    y, groups = bound.rows.y, bound.groups
    names = np.unique(groups).tolist()
    names = [a for a in names if not by_label or len(np.unique(y[groups == a])) == 2]
    if bound.constraint.against == "pairs":
        yield from (([a], [b]) for a in names for b in names if a != b)
    elif len(names) > 1:
        for a in names if len(names) > 2 else names[:1]:
            others = [b for b in names if b != a]
            yield from (([a], others), (others, [a]))


def _group_auc(bound: Bound, scores: Array) -> Measured:
    sides = _sides(bound, by_label=False)
    return bound.compare([_pairs(bound, scores, a, b) - 0.5 for a, b in sides])


def _inter_group(bound: Bound, scores: Array) -> Measured:
    both = [[_pairs(bound, scores, a, b, up, -up) for up in (1, -1)] for a, b in _sides(bound)]
    return bound.compare(np.reshape(both, (-1, 2)).sum(axis=1) - 1.0)


def _intra_group(bound: Bound, scores: Array) -> Measured:
    def within(side: list, up: int) -> float:
        means = [_pairs(bound, scores, a, a, up, -up) for a in side]
        mass = [bound.rows.weight[bound.groups == a].sum() for a in side]
        return float(np.average(means, weights=mass))

    return bound.compare(np.array([within(a, 1) + within(b, -1) for a, b in _sides(bound)]) - 1.0)


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
    return bound.compare([np.ptp(np.clip(rates, low, high) / (high - low))])


def _partial(bound: Bound, scores: Array) -> Measured:
    low, high = _ranks(bound)
    if len(np.unique(bound.groups)) < 2:
        return NOTHING
    if bound.decisions:
        return bound.compare([_range_gap(bound, scores, low, high)])
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
        at = rates(theta)
        if low - at.min() < at.max() - high:
            below = theta
        else:
            over = theta
    return min(max(low - rates(theta).min(), rates(theta).max() - high) for theta in (below, over))


def _range_gap(bound: Bound, scores: Array, low: float, high: float) -> float:
    """Return how far apart the decisions are, at any threshold, among those in a range."""
    points = np.append(np.unique(scores), np.inf)
    shares = []
    for name in np.unique(bound.groups):
        inside = bound.groups == name
        values, places = np.unique(scores[inside], return_inverse=True)
        mass = np.bincount(places, bound.rows.weight[inside] / bound.rows.weight[inside].sum())
        rank = mass[::-1].cumsum()[::-1] - mass
        chosen = (rank >= low - 1e-12) & (rank < high - 1e-12)
        if not chosen.any():
            chosen[np.flatnonzero(rank <= low + 1e-12)[0]] = True
        shares.append((values[chosen][:, None] >= points).T @ mass[chosen] / mass[chosen].sum())
    return min(float(np.ptp(shares, axis=0).max()), 1.0)


_MEASURES: dict[str, Callable[[Bound, Array], Measured]] = {
    **dict.fromkeys((*_EVENTS, "DemographicParity", "DisparateImpact", "BalancedRate"), _rates),
    **dict.fromkeys(("ErrorRateParity", "CalibrationParity", "ROCParity"), _rates),
    "PredictiveParity": _precisions,
    "BoundedGroupLoss": _group_loss,
    "Coverage": _coverage,
    "MinorityRate": _minority,
    "IntersectionalLossParity": _intersectional,
    "GroupAUCParity": _group_auc,
    "InterGroupAUCParity": _inter_group,
    "IntraGroupAUCParity": _intra_group,
    "WeakPartialDemographicParity": _weak_partial,
    "PartialDemographicParity": _partial,
}


def measures(constraints: list, rows: Rows, scores: Array, *, decisions: bool = False) -> Measured:
    """Return how far constraints are from being met by scores, for all groupings."""
    parts = []
    for rule in constraints:
        kind = type(rule).__name__
        # Intersectional losses read all columns themselves.
        for some, groups in rows.groupings(crossed=kind == "IntersectionalLossParity"):
            y, weight, codes = rows.y[some], rows.weight[some], rows.codes[some]
            taken = replace(rows, y=y, weight=weight, codes=codes)
            parts.append(_MEASURES[kind](Bound(rule, taken, groups, decisions), scores[some]))
    return joined(parts)
