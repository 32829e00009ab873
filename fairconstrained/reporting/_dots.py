"""Dots with intervals: the gaps of constraints, and the rates of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.inspection.deciding import FEW_ROWS, GroupDots
from fairconstrained.metrics.rates import DEFAULT_RATES
from fairconstrained.reporting._evidence import ClassEvidence, Evidence
from fairconstrained.reporting._tables import decided_by, gaps_table, groups_table, meaning_of
from fairconstrained.utils.rounding import at_most

_PADDING = 4.0  # percent of the width left and right of the axis


@dataclass(frozen=True)
class Scale:
    """A linear axis from `low` to `high` with numbers at round `ticks`."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Any, *, within: tuple[float, float] | None = None) -> Scale:
        """Return an axis that contains all finite values, with three to six round ticks."""
        finite = np.asarray(values, dtype=float)
        finite = finite[np.isfinite(finite)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        if high - low < 1e-9:
            low, high = low - 0.05, high + 0.05
        steps = [m * 10.0**e for e in range(-8, 9) for m in (1.0, 2.0, 2.5, 5.0)]
        step = next(step for step in steps if (high - low) / step <= 4.0 + 1e-9)
        first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
        low, high = first * step, last * step
        if within is not None:
            low, high = max(low, within[0]), min(high, within[1])
        places = np.round(np.arange(first, last + 1.0) * step, 10)
        inside = places[(places >= low - 1e-9) & (places <= high + 1e-9)]
        return cls(float(low), float(high), tuple(inside.tolist()))

    def share(self, value: float) -> float:
        """Return the place of a value, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def x(self, value: float) -> str:
        """Return the horizontal place of a value, in percent of the width."""
        return f"{_PADDING + (100.0 - 2.0 * _PADDING) * self.share(value):.2f}%"

    def width(self, low: float, high: float) -> str:
        """Return the visible width between two values, in percent of the width."""
        width = (100.0 - 2.0 * _PADDING) * (self.share(high) - self.share(low))
        return f"{max(width, 0.4):.2f}%"


@dataclass(frozen=True)
class Dot:
    """A value of a model with its interval; nan where unknown.

    Parameters
    ----------
    model : int
        The position of the model, which determines colour and shape.
    value, low, high : float
        The value and its interval.
    few : bool, default=False
        Whether it is computed from few rows: the line is dashed.
    bound : float, default=nan
        A bound on the value, marked by a vertical line.
    verdict : str, default=""
        Whether the value is within the bound.
    equal : bool, default=False
        Whether the value is a gap of rates that are all equal.
    """

    model: int
    value: float
    low: float
    high: float
    few: bool = False
    bound: float = np.nan
    verdict: str = ""
    equal: bool = False


@dataclass(frozen=True)
class DotRow:
    """The dots of the models for a group, a model or a class.

    A `hidden` row is shown only when it is searched for. A row that stands for the groups that are
    not shown has their lowest and highest rate in `others`.
    """

    name: str
    dots: list[Dot] = field(default_factory=list)
    n_rows: int = 0
    few: bool = False
    hidden: bool = False
    others: tuple[float, float] | None = None


@dataclass(frozen=True)
class GapPlot:
    """The gaps of a constraint, a row for each model or, of several classes, for each class."""

    name: str
    description: str
    scale: Scale
    rows: list[DotRow]
    texts: list[str]


def gap_plots(evidence: Evidence) -> list[GapPlot]:
    """Return a picture of every constraint."""
    last = {f.assessment.name: f for found in evidence.findings.values() for f in found}
    of_class = ", each class against all others" if evidence.several_classes else ""
    plots = []
    for name, finding in last.items():
        rows = [
            DotRow(label, _gap_dots(one, name, evidence.confidence))
            for label, one in evidence.classes.items()
        ]
        if not evidence.several_classes:
            rows = [DotRow(evidence.names[dot.model], [dot]) for row in rows for dot in row.dots]
        dots = [dot for row in rows for dot in row.dots]
        ends = [(dot.value, dot.low, dot.high, dot.bound) for dot in dots]
        tolerance = finding.assessment.tolerance
        texts = [decided_by(finding), meaning_of(finding, evidence.confidence)]
        plots.append(
            GapPlot(
                name.replace("_", " "),
                f"{finding.constraint.gap_title}{of_class}",
                Scale.of([0.0, tolerance, *np.ravel(ends)]),
                rows,
                [text for text in texts if text],
            )
        )
    return plots


def _gap_dots(evidence: ClassEvidence, name: str, confidence: float) -> list[Dot]:
    return [
        Dot(
            model,
            gap.on_predictions,
            gap.low,
            gap.high,
            bound=np.nan if finding.minimized else gap.tolerance,
            verdict=finding.verdict(confidence),
            equal=bool(finding.constraint.rates_compared) and at_most(gap.on_predictions, 0.0),
        )
        for model, findings in enumerate(evidence.findings.values())
        for finding in findings
        for gap in [finding.assessment]
        if gap.name == name
    ]


@dataclass(frozen=True)
class RatePlot:
    """A rate of all groups and models, sorted by the rates of the last model.

    Parameters
    ----------
    rate : str
        The name of the rate.
    gaps : list of dict of str to float
        The largest gap of each model; with marginal groups, for each attribute.
    scale : Scale
        The axis.
    rows : list of DotRow
        The groups.
    whole : DotRow
        All rows.
    """

    rate: str
    gaps: list[dict[str, float]]
    scale: Scale
    rows: list[DotRow]
    whole: DotRow


def rate_plots(
    evidence: ClassEvidence, confidence: float, rates: Sequence[str] = DEFAULT_RATES
) -> list[RatePlot]:
    """Return the rates of a positive class that these rows have."""
    tables = [groups_table(evidence, name, confidence) for name in evidence.names]
    gaps = [gaps_table(evidence, name, confidence) for name in evidence.names]
    return [
        _rate_plot(tables, rate, [_largest_gaps(table, rate) for table in gaps])
        for rate in rates
        if rate in tables[0]
    ]


def accuracy_plot(evidence: Evidence) -> list[RatePlot]:
    """Return the accuracy on all of several classes; nothing without labels."""
    rows = evidence.rows
    if rows.labels is None:
        return []
    outputs = {
        name: replace(one, labels=np.asarray(one.labels == rows.labels), positive=True)
        for name, one in rows.outputs.items()
    }
    right = replace(rows, labels=np.ones(len(rows.labels), dtype=bool), outputs=outputs)
    return rate_plots(ClassEvidence(right, {}), evidence.confidence, ["accuracy"])


def _rate_plot(tables: Sequence[pd.DataFrame], rate: str, gaps: list[dict[str, float]]) -> RatePlot:
    """Return the picture of a rate; the last row of the tables is that of all rows."""
    whole = _group_row(GroupDots.of([table.iloc[-1:] for table in tables], rate), 0, few_rows=0)
    groups = GroupDots.of([table.iloc[:-1] for table in tables], rate)
    choice = groups.choice
    shown = [_group_row(groups, k) for k in choice.shown]
    rows = shown + [replace(_group_row(groups, k), hidden=True) for k in choice.others]
    if len(choice.others):
        size = int(groups.sizes[0, choice.others].sum())
        others = DotRow(choice.label, n_rows=size, others=groups.range_of(choice.others))
        # Below the shown groups with higher rates than the median of the others.
        values = groups.values[-1, choice.others]
        middle = np.nanmedian(values) if np.isfinite(values).any() else -np.inf
        rows.insert(int(np.sum(groups.values[-1, choice.shown] >= middle)), others)
    drawn = [dot for row in (*shown, whole) for dot in row.dots if not np.isnan(dot.value)]
    ends = np.array([[dot.low, dot.high] for dot in drawn])
    return RatePlot(rate, gaps, Scale.of(ends, within=(0.0, 1.0)), rows, whole)


def _group_row(groups: GroupDots, k: int, few_rows: int = FEW_ROWS) -> DotRow:
    size = int(groups.sizes[0, k])
    few = 0 < size < few_rows
    ends = zip(groups.values[:, k], groups.low[:, k], groups.high[:, k], strict=True)
    dots = [Dot(m, float(v), float(a), float(b), few) for m, (v, a, b) in enumerate(ends)]
    return DotRow(groups.groups[k], dots, size, few)


def _largest_gaps(table: pd.DataFrame, rate: str) -> dict[str, float]:
    """Return the largest gap of a rate; with marginal groups, that of each attribute."""
    parts = [str(name).rpartition(": ") for name in table.index]
    gaps = zip(parts, table["gap"], strict=True)
    return {title: gap for (title, _, key), gap in gaps if key == rate and not pd.isna(gap)}
