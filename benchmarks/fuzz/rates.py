"""Constraints on rates and losses of groups, written from their published formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.fuzz.formulas import errors, loss_of
from benchmarks.fuzz.measures import (
    NOTHING,
    Array,
    Bound,
    Measured,
    NotMeasured,
    Rows,
    intersections,
    joined,
)
from benchmarks.fuzz.ranks import BY_RANK


def _compared(bound: Bound, means: Array, mass: Array) -> Measured:
    """Return what a constraint asks of every two groups, or of groups and all rows."""
    n = len(means)
    if n < 2:
        return NOTHING
    if bound.constraint.against == "overall":
        overall = np.full(n, means @ mass / mass.sum())
        return _compare(bound, np.append(means, overall), np.append(overall, means))
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    return _compare(bound, means[first], means[second])


def _compare(bound: Bound, first: Array, second: Array) -> Measured:
    """Return what a constraint asks of two rates: a difference, a ratio or a balance."""
    one, kind = bound.constraint, type(bound.constraint).__name__
    ratio = getattr(one, "ratio", None)
    if kind == "BalancedRate":
        limit = one.beta + bound.kappa if one.r is None else one.r
        value = first + one.beta * (1.0 - second)
        return Measured(value - limit, float(value.max()))
    if ratio is not None:
        short = 1.0 - first / np.where(second > 0.0, second, 1.0)
        gaps = np.where(second > 0.0, short, 0.0)
        return Measured(ratio * second - first, float(gaps.max()))
    gaps = first - second
    return Measured(gaps - bound.kappa, float(gaps.max()))


_EVENTS: dict[str, tuple[tuple[int, ...], ...]] = {
    "DemographicParity": ((-1, 1),),
    "DisparateImpact": ((-1, 1),),
    "BalancedRate": ((-1, 1),),
    "EqualOpportunity": ((1,),),
    "PredictiveEquality": ((-1,),),
    "EqualizedOdds": ((1,), (-1,)),
}


def _rates(bound: Bound, scores: Array) -> Measured:
    values = bound.decide()(scores)
    events = [np.isin(bound.rows.y, labels) for labels in _EVENTS[type(bound.constraint).__name__]]
    return joined([_compared(bound, *bound.averages(values, event)) for event in events])


def _error_rates(bound: Bound, scores: Array) -> Measured:
    accepted = bound.decide()(scores)
    values = np.where(bound.rows.y > 0, 1.0 - accepted, accepted)
    return _compared(bound, *bound.averages(values))


def _calibration(bound: Bound, scores: Array) -> Measured:
    return _compared(bound, *bound.averages(bound.decide()(scores) - (bound.rows.y > 0)))


def _precisions(bound: Bound, scores: Array) -> Measured:
    values = bound.decide()(scores)
    selected, mass = bound.averages(values)
    right, _ = bound.averages(values * (bound.rows.y > 0))
    if not selected.any():
        selected = np.ones(len(mass))
    overall = right @ mass / (selected @ mass)
    means = np.where(selected > 0.0, right / np.where(selected > 0.0, selected, 1.0), overall)
    return _compared(bound, means, selected * mass)


def _losses(bound: Bound, loss: Any, scores: Array) -> Array:
    """Return the loss of every row, or whether its decision is wrong."""
    if bound.decisions:
        return errors(scores, bound.rows.y)
    return loss_of(loss)(bound.rows.y * scores)


def _group_loss(bound: Bound, scores: Array) -> Measured:
    one = bound.constraint
    loss = bound.rows.loss if one.loss is None else one.loss
    means, _ = bound.averages(_losses(bound, loss, scores))
    limit = bound.rows.kappa if one.bound is None else one.bound
    return Measured(means - limit, float(means.max()))


def _minority(bound: Bound, scores: Array) -> Measured:
    one, weight = bound.constraint, bound.rows.weight
    if one.minority is not None or one.reference is not None:
        raise NotMeasured
    names = np.unique(bound.groups)
    mass = np.array([weight[bound.groups == name].sum() for name in names])
    if len(names) < 2:
        return NOTHING
    inside = bound.groups == names[int(np.argmin(mass))]
    values = bound.decide()(scores)
    share = weight[inside].sum() / weight.sum()
    c = share if one.c is None else one.c
    every, some = weight @ values / weight.sum(), weight[inside] @ values[inside] / weight.sum()
    gap = 1.0 - some / every if every > 0.0 else 0.0
    return Measured(np.array([c * every - some]), float(gap))


def _coverage(bound: Bound, scores: Array) -> Measured:
    rows, one = bound.rows, bound.constraint
    share = np.average(rows.y > 0, weights=rows.weight) if one.rate is None else one.rate
    excess = np.average(bound.decide()(scores), weights=rows.weight) - share
    sides = np.array([excess, -excess])
    return Measured(sides - bound.kappa, float(sides.max()))


def _members(bound: Bound) -> Iterator[Array]:
    """Yield the rows of every group of an intersectional constraint."""
    one, codes = bound.constraint, bound.rows.codes
    if one.membership == "crossed":
        if bound.rows.combine == "marginal" and codes.shape[1] > 1:
            yield from (column == k for column in codes.T for k in np.unique(column))
        else:
            yield from (bound.groups == k for k in np.unique(bound.groups))
    elif one.membership == "columns":
        yield from (column == 1 for column in codes.T)
    else:
        raise NotMeasured


def _intersectional(bound: Bound, scores: Array) -> Measured:
    one, weight = bound.constraint, bound.rows.weight
    values = _losses(bound, one.loss, scores)
    overall = weight @ values / weight.sum()
    gaps = [
        weight[inside] @ values[inside] / weight[inside].sum() - overall
        for inside in _members(bound)
        if weight[inside].sum() / weight.sum() > one.min_share
    ]
    if not gaps:
        return NOTHING
    found = np.array([np.mean(gaps)]) if one.average else np.array(gaps)
    return Measured(found - bound.kappa, float(found.max()))


def _roc(bound: Bound, scores: Array) -> Measured:
    if bound.constraint.thresholds is None:
        raise NotMeasured
    decide, levels = bound.decide(), bound.constraint.thresholds
    return joined([_compared(bound, *bound.averages(decide(scores - level))) for level in levels])


BY_ROW: dict[str, Callable[[Bound, Array], Measured]] = {
    **dict.fromkeys(_EVENTS, _rates),
    "ErrorRateParity": _error_rates,
    "CalibrationParity": _calibration,
    "PredictiveParity": _precisions,
    "BoundedGroupLoss": _group_loss,
    "Coverage": _coverage,
    "MinorityRate": _minority,
    "IntersectionalLossParity": _intersectional,
    "ROCParity": _roc,
}


_MEASURES = {**BY_ROW, **BY_RANK}


def measured(constraint: Any, rows: Rows, scores: Array, *, decisions: bool = False) -> Measured:
    """Return how far a constraint is from being met by scores, for all groupings."""
    kind = type(constraint).__name__
    several = rows.combine == "marginal" and rows.codes.shape[1] > 1
    if kind == "MinorityRate" and several:
        raise NotMeasured
    if kind == "IntersectionalLossParity":  # it reads all columns itself
        known = np.flatnonzero((rows.codes >= 0).all(axis=1))
        groupings = [(known, intersections(rows.codes[known]))]
    else:
        groupings = list(rows.groupings())
    return joined(
        [
            _MEASURES[kind](Bound(constraint, rows.take(known), groups, decisions), scores[known])
            for known, groups in groupings
        ]
    )


def all_measured(
    constraints: list[Any], rows: Rows, scores: Array, *, decisions: bool = False
) -> Measured:
    """Return the same for several constraints, all of which must hold."""
    return joined([measured(one, rows, scores, decisions=decisions) for one in constraints])
