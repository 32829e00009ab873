"""What pictures of groups show; displays draw it with matplotlib, reports as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fairconstrained.inspection.chosen_groups import Choice, choose_groups
from fairconstrained.utils.typing import Array


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
    if rate == "true_positive_rate":
        return positive
    if rate == "false_positive_rate":
        return rows - positive
    return selected if rate == "precision" else rows
