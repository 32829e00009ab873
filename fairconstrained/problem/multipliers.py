"""Lagrange multipliers, of which few are positive however many constraints there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The multipliers that are not zero.

    Attributes
    ----------
    which : ndarray of int of shape (n_active,)
        The positions of their constraints, in rising order.
    values : ndarray of shape (n_active,)
        The multipliers.
    size : int
        The number of constraints.
    """

    which: Array
    values: Array
    size: int

    @classmethod
    def of(cls, multipliers: Array | Multipliers) -> Multipliers:
        """Return the multipliers of all constraints in this form."""
        if isinstance(multipliers, Multipliers):
            return multipliers
        which = np.flatnonzero(multipliers)
        return cls(which, multipliers[which], len(multipliers))

    @classmethod
    def at(cls, which: Array, values: Array, size: int) -> Multipliers:
        """Return the multipliers of some constraints, in any order, which may be zero."""
        order = np.argsort(which)
        order = order[values[order] != 0.0]
        return cls(which[order], values[order], size)

    @property
    def total(self) -> float:
        """Their sum."""
        return float(np.add.reduce(self.values))

    def scaled(self, factor: float) -> Multipliers:
        """Return the multipliers times a factor."""
        return Multipliers(self.which, factor * self.values, self.size)

    def part(self, place: slice) -> Multipliers:
        """Return those of the constraints at a place, which has a start and a stop."""
        start, stop = place.start, place.stop
        if stop - start == self.size:
            return self
        first, last = np.searchsorted(self.which, (start, stop))
        return Multipliers(self.which[first:last] - start, self.values[first:last], stop - start)

    def of_constraints(self, which: Array) -> Array:
        """Return the multipliers of some constraints."""
        if not len(self.which):
            return np.zeros(len(which))
        places = np.minimum(np.searchsorted(self.which, which), len(self.which) - 1)
        return np.where(self.which[places] == which, self.values[places], 0.0)

    def dense(self) -> Array:
        """Return the multipliers of all constraints."""
        full = np.zeros(self.size)
        full[self.which] = self.values
        return full
