"""What constraints ask of scores and of decisions, written from their published formulas.

What all constraints share: rows and their groups, means of groups, and what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.fuzz.formulas import positive, surrogate_of

Array = np.ndarray


class NotMeasured(Exception):
    """There is no independent formula for this setting (it depends on another fit)."""


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

    def take(self, rows: Array) -> Rows:
        """Return some of the rows."""
        return replace(self, y=self.y[rows], weight=self.weight[rows], codes=self.codes[rows])

    def groupings(self) -> Iterator[tuple[Array, Array]]:
        """Yield, for every grouping, the rows whose group is known and their groups."""
        if self.combine == "marginal" and self.codes.shape[1] > 1:
            for column in self.codes.T:
                yield np.flatnonzero(column >= 0), column[column >= 0]
            return
        known = np.flatnonzero((self.codes >= 0).all(axis=1))
        yield known, intersections(self.codes[known])


def intersections(codes: Array) -> Array:
    """Return one code per row for rows that agree in all columns."""
    return np.ravel(np.unique(codes, axis=0, return_inverse=True)[1])


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
        own = getattr(self.constraint, "kappa", None)
        return float(self.rows.kappa if own is None else own)

    def decide(self, *, sharp: bool = False) -> Callable[[Array], Array]:
        """Return the surrogate, or the decision."""
        own = getattr(self.constraint, "surrogate", None)
        value = self.rows.surrogate if own is None else own
        return positive if self.decisions else surrogate_of(value, sharp=sharp)

    def averages(self, values: Array, event: Array | None = None) -> tuple[Array, Array]:
        """Return the mean of every group that has rows in an event, and its weight there."""
        event = np.ones(len(values), dtype=bool) if event is None else event
        names = np.unique(self.groups[event])
        inside = [event & (self.groups == name) for name in names]
        mass = np.array([self.rows.weight[i].sum() for i in inside])
        sums = np.array([self.rows.weight[i] @ values[i] for i in inside])
        return sums / mass, mass


def joined(parts: list[Measured]) -> Measured:
    """Return several constraints as one."""
    gaps = [one.gap for one in parts if not np.isnan(one.gap)]
    excess = np.concatenate([one.excess for one in parts]) if parts else np.zeros(0)
    return Measured(excess, max(gaps) if gaps else np.nan)
