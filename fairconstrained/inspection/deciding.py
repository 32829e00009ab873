"""The groups that decide a constraint, and those that tables and pictures show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.constraints import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.metrics.inputs import GroupedRows, group_labels
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.metrics.rates import Predictions
from fairconstrained.utils.numerics import at_most
from fairconstrained.utils.typing import Array

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
    """Return the cells that decide a constraint on rates; None for other constraints."""
    ratios = constraint.compares_ratios
    compared = [
        (_gap(cells, ratios), rate, cells)
        for part in parts
        for rate in constraint.rates_compared
        if len(cells := _cells(part, rate)) > 1
    ]
    if not compared:
        return None
    _, rate, cells = max(compared, key=lambda figures: figures[0])
    highest, lowest = (choose(cells, key=lambda cell: cell.rate) for choose in (max, min))
    everything = [(name, cell) for _, name, group in compared for cell in group]
    smallest_rate, smallest = min(everything, key=lambda cell: cell[1].effective_rows)
    changes = _changes(highest, lowest, tolerance, ratios)
    return Deciding(rate, highest, lowest, smallest, smallest_rate, changes)


def _cells(part: Predictions, name: str) -> list[Cell]:
    """Return the cells of a rate that have rows."""
    counted, rows = part.masks(name)
    counts = [part.counts(mask).tolist() for mask in (rows, rows & counted)]
    rates, sizes = (figures.tolist() for figures in part.cells(name))
    cells = map(Cell, group_labels(part.groups), rates, *counts, sizes)
    return [cell for cell in cells if cell.n_rows]


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


MOST_GROUPS = 8
"""The number of groups up to which all of them are shown."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The groups that are shown, and those that are summarized as "others".

    Parameters
    ----------
    shown : ndarray of int of shape (n_shown,)
        The groups that are shown, from the highest to the lowest value.
    others : ndarray of int of shape (n_others,)
        The other groups; empty if all are shown.
    """

    shown: Array
    others: Array

    @property
    def label(self) -> str:
        """The name of the other groups together."""
        return f"{len(self.others)} other{'s' if len(self.others) > 1 else ''}"


def choose_groups(
    values: Array,
    sizes: Array,
    limit: int = MOST_GROUPS,
    *,
    low: Array | None = None,
    high: Array | None = None,
) -> Choice:
    """Choose the groups to show: all, or the extremes and the largest of the other groups.

    Beyond `limit` groups these are the groups with the highest and with the lowest value, of shape
    (n_groups,), where nan sorts last and is never an extreme; with confidence limits, further
    groups that are most certainly high (by their lower limits) or low (by their upper limits), else
    those with the next values; and the largest of the others. The extremes on each side are three
    eighths of `limit`.
    """
    order = np.argsort(-np.asarray(values, dtype=float), kind="stable")  # nan last
    if len(order) <= limit:
        return Choice(order, np.empty(0, dtype=int))
    known = order[~np.isnan(np.asarray(values, dtype=float)[order])]
    side = max(1, 3 * limit // 8) - 1
    by_low, by_high = (
        known if limits is None else known[np.argsort(-limits[known], kind="stable")]
        for limits in (low, high)
    )
    by_low, by_high = by_low[by_low != known[:1]], by_high[by_high != known[-1:]]
    extremes = np.unique(
        np.concatenate([known[:1], by_low[:side], by_high[len(by_high) - side :], known[-1:]])
    )
    rest = np.setdiff1d(order, extremes)
    largest = rest[np.argsort(-np.asarray(sizes)[rest], kind="stable")]
    chosen = np.concatenate([extremes, largest[: limit - len(extremes)]])
    return Choice(order[np.isin(order, chosen)], order[~np.isin(order, chosen)])


def shown_groups(
    groups: Groups,
    selected: Array,
    weight: Array,
    confidence: float = 0.95,
    keep: int | None = None,
) -> Groups:
    """Return one grouping sorted by selection rates; of many groups those to show, and the others.

    The rates have exact intervals. The group `keep` is shown in any case.
    """
    rates, sizes = GroupedRows(None, selected, groups, weight).means(selected)
    limits = clopper_pearson(rates, sizes, confidence)
    totals = np.bincount(groups.codes[groups.known], weight[groups.known], len(groups))
    choice = choose_groups(rates, totals, low=limits.low, high=limits.high)
    if keep is not None and keep in choice.others:
        choice = Choice(np.append(choice.shown, keep), choice.others[choice.others != keep])
    return with_others(groups, choice)


def with_others(groups: Groups, choice: Choice) -> Groups:
    """Return groups in the order of a choice, the others as one group at the end."""
    names = [*(groups.labels[k] for k in choice.shown), *[choice.label] * bool(len(choice.others))]
    position = np.full(len(groups), len(choice.shown))
    position[choice.shown] = np.arange(len(choice.shown))
    codes = np.where(groups.known, position[groups.codes], -1)
    return Groups(codes, _objects(names), title=groups.title)


def stacked(groups: Groups) -> tuple[Array, Groups]:
    """Return rows and one grouping of them in which the marginal groups are side by side.

    With marginal groups each row is listed once for each attribute, with the group that it has
    there, so that tables and pictures of groups need no case for them. Rows of unknown group are
    left out.
    """
    rows = [np.flatnonzero(part.known) for part in groups.separate]
    starts = np.cumsum([0, *map(len, groups.separate)])
    parts = zip(groups.separate, rows, starts[:-1], strict=True)
    codes = [part.codes[known] + start for part, known, start in parts]
    names = _objects([name for part in groups.separate for name in part.labels])
    return np.concatenate(rows), Groups(np.concatenate(codes), names, title=groups.title)


def _objects(names: list[Any]) -> Array:
    """Return names as an array of one dimension, whatever they are."""
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


@dataclass(frozen=True, eq=False)
class GroupDots:
    """A rate of all groups by several models, with intervals and numbers of rows.

    Parameters
    ----------
    groups : list of str
        The groups.
    values, low, high : ndarray of shape (n_models, n_groups)
        The rates and their intervals; nan where there are no rows or no intervals.
    sizes : ndarray of int of shape (n_models, n_groups)
        The numbers of rows in the denominator of the rate.
    """

    groups: list[str]
    values: Array
    low: Array
    high: Array
    sizes: Array

    @classmethod
    def of(cls, tables: Sequence[pd.DataFrame], rate: str) -> GroupDots:
        """Return a rate from tables of :func:`~fairconstrained.metrics.group_rates`."""
        columns = [rate, f"{rate}_low", f"{rate}_high"]
        ends = [table.reindex(columns=columns).to_numpy(dtype=float).T for table in tables]
        values, low, high = np.stack(ends, axis=1)
        sizes = np.array([_denominator(table, rate) for table in tables])
        return cls([str(name) for name in tables[0].index], values, low, high, sizes)

    @cached_property
    def choice(self) -> Choice:
        """The groups that are shown, sorted by the rates of the last model, and the others."""
        return choose_groups(self.values[-1], self.sizes[-1], low=self.low[-1], high=self.high[-1])

    def range_of(self, groups: Array) -> tuple[float, float]:
        """Return the lowest and the highest rate of groups by the last model; nan without rows."""
        values = self.values[-1, groups]
        known = values[np.isfinite(values)]
        return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)


def _denominator(table: pd.DataFrame, rate: str) -> Array:
    """Return the numbers of rows in the denominator of a rate; 1 where they are not known."""
    rows, positive, selected = (
        table[name].to_numpy() if name in table else np.ones(len(table), dtype=int)
        for name in ("rows", "positive_labels", "positive_decisions")
    )
    of_rate = {"true_positive_rate": positive, "false_positive_rate": rows - positive}
    return (of_rate | {"precision": selected}).get(rate, rows)
