"""How far constraints are from being met: `measured` for one, `all_measured` for several."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.fuzz.measures import (
    Array,
    Bound,
    Measured,
    NotMeasured,
    Rows,
    intersections,
    joined,
)
from benchmarks.fuzz.ranks import BY_RANK
from benchmarks.fuzz.rates import BY_ROW

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
