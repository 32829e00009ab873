"""Which cells decide a constraint: the two groups with the largest gap, with their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.metrics.rates import RATES, Predictions, group_labels
from fairconstrained.utils.rounding import at_most

FEW_ROWS = 30
"""Rates of fewer rows than this are marked in reports: their intervals are wide."""


@dataclass(frozen=True)
class Cell:
    """A rate of a group and the rows that it is computed from.

    Parameters
    ----------
    group : str
        The group.
    rate : float
        The rate.
    n_rows : int
        The number of rows in the denominator.
    n_counted : int
        The number of rows in the numerator.
    effective_rows : float
        The effective sample size (Kish): that many rows of equal weight have a rate of the same
        variance. It is `n_rows` if the weights are equal.
    """

    group: str
    rate: float
    n_rows: int
    n_counted: int
    effective_rows: float

    @property
    def weighted(self) -> bool:
        """Whether the weights of the rows differ."""
        return not np.isclose(self.effective_rows, self.n_rows, rtol=1e-9, atol=0.0)


@dataclass(frozen=True)
class Deciding:
    """The two cells with the largest gap of a constraint, and the smallest cell that it compares.

    Parameters
    ----------
    rate : str
        The name of the rate, a key of `RATES`.
    highest, lowest : Cell
        The groups with the highest and with the lowest rate.
    smallest : Cell
        The cell with the smallest effective sample size among all that the constraint compares.
    smallest_rate : str
        The rate of the smallest cell.
    changes : int
        How many predictions of the group with the lowest rate, or of the one with the highest,
        would at least have to change for the bound to be met by them; 0 if it is met, None if
        weights differ.
    """

    rate: str
    highest: Cell
    lowest: Cell
    smallest: Cell
    smallest_rate: str
    changes: int | None


def deciding_cells(
    constraint: Constraint, tolerance: float, parts: Sequence[Predictions]
) -> Deciding | None:
    """Return the cells that decide a constraint on rates; None for other constraints.

    Parameters
    ----------
    constraint : Constraint
        The constraint.
    tolerance : float
        The largest gap, or the largest shortfall of a ratio, that is allowed.
    parts : sequence of Predictions
        Labels and predictions for each grouping.
    """
    found: list[tuple[float, str, list[Cell]]] = []
    for part in parts:
        for rate in constraint.rates_compared:
            cells = _cells(part, rate)
            if len(cells) > 1:
                found.append((_gap(cells, constraint.compares_ratios), rate, cells))
    if not found:
        return None
    _, rate, cells = max(found, key=lambda one: one[0])
    rates = [cell.rate for cell in cells]
    highest, lowest = cells[int(np.argmax(rates))], cells[int(np.argmin(rates))]
    everything = [(cell.effective_rows, name, cell) for _, name, group in found for cell in group]
    _, smallest_rate, smallest = min(everything, key=lambda one: one[0])
    changes = _changes(highest, lowest, tolerance, constraint.compares_ratios)
    return Deciding(rate, highest, lowest, smallest, smallest_rate, changes)


def _cells(part: Predictions, name: str) -> list[Cell]:
    """Return the cells of a rate that have rows."""
    rates, sizes = part.cells(name)
    rate, n = RATES[name], len(part.groups)
    rows = rate.denominator(part.labels, part.predictions) & part.groups.known
    counted = rows & rate.numerator(part.labels, part.predictions)
    n_rows = np.bincount(part.groups.codes[rows], minlength=n)
    n_counted = np.bincount(part.groups.codes[counted], minlength=n)
    return [
        Cell(label, float(rates[k]), int(n_rows[k]), int(n_counted[k]), float(sizes[k]))
        for k, label in enumerate(group_labels(part.groups))
        if n_rows[k]
    ]


def _gap(cells: list[Cell], ratios: bool) -> float:
    """Return the largest gap, or the largest shortfall of a ratio, between cells."""
    highest, lowest = (choose(cell.rate for cell in cells) for choose in (max, min))
    if ratios:
        return 1.0 - lowest / highest if highest > 0.0 else 0.0
    return highest - lowest


def _changes(highest: Cell, lowest: Cell, tolerance: float, ratios: bool) -> int | None:
    """Return the number of rows that would have to change sides in one of two cells."""
    gap = _gap([highest, lowest], ratios)
    if np.isnan(tolerance) or at_most(gap, tolerance):
        return 0
    if highest.weighted or lowest.weighted:
        return None
    if ratios:
        up, down = (1.0 - tolerance) * highest.rate, lowest.rate / max(1.0 - tolerance, 1e-300)
    else:
        up, down = highest.rate - tolerance, lowest.rate + tolerance
    rows = (up - lowest.rate) * lowest.n_rows, (highest.rate - down) * highest.n_rows
    return int(np.ceil(min(rows) - 1e-9))
