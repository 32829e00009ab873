"""Dots with intervals: the gaps of constraints, and the rates of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.inspection.pictures import GroupDots
from fairconstrained.metrics.rates import DEFAULT_RATES
from fairconstrained.reporting._axes import Scale
from fairconstrained.reporting._evidence import ClassEvidence, Evidence, Finding
from fairconstrained.reporting._tables import gaps_table, groups_table
from fairconstrained.reporting._verdict import decided_by, meaning_of
from fairconstrained.utils.rounding import at_most


@dataclass(frozen=True)
class Dot:
    """A value with its interval, of a model; nan where unknown.

    Parameters
    ----------
    value, low, high : float
        The value and its interval.
    model : int
        The position of the model, which determines colour and shape.
    few : bool, default=False
        Whether it is computed from few rows: the line is dashed.
    bound : float, default=nan
        A bound on the value, marked by a vertical line.
    verdict : str, default=""
        Whether the value is within the bound.
    equal : bool, default=False
        Whether the value is a gap of rates that are all equal.
    """

    value: float
    low: float
    high: float
    model: int
    few: bool = False
    bound: float = np.nan
    verdict: str = ""
    equal: bool = False


@dataclass(frozen=True)
class DotRow:
    """The dots of a group, a model or a class, one for each model.

    Parameters
    ----------
    name : str
        The group, model or class.
    dots : list of Dot
        The values of the models.
    n_rows : int, default=0
        The number of rows of a group.
    few : bool, default=False
        Whether the group has few rows.
    hidden : bool, default=False
        Whether the row is shown only when it is searched for.
    others : tuple of float or None, default=None
        The lowest and the highest rate of the groups that are not shown, if the row stands for
        them.
    """

    name: str
    dots: list[Dot]
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
    by_name: dict[str, dict[str, list[tuple[str, Finding]]]] = {}
    for label, one in evidence.classes.items():
        for model, findings in one.findings.items():
            for finding in findings:
                by_class = by_name.setdefault(finding.assessment.name, {})
                by_class.setdefault(label, []).append((model, finding))
    return [_gap_plot(evidence, name, by_class) for name, by_class in by_name.items()]


def _gap_plot(
    evidence: Evidence, name: str, by_class: dict[str, list[tuple[str, Finding]]]
) -> GapPlot:
    rows = [
        DotRow(label, [_gap(evidence, model, finding) for model, finding in findings])
        for label, findings in by_class.items()
    ]
    if not evidence.several_classes:
        rows = [DotRow(evidence.names[dot.model], [dot]) for row in rows for dot in row.dots]
    ends = [[one.value, one.low, one.high] for row in rows for one in row.dots]
    tolerances = [one.assessment.tolerance for found in by_class.values() for _, one in found]
    joint = evidence.findings[evidence.names[-1]]
    last = next(one for one in reversed(joint) if one.assessment.name == name)
    of_class = ", each class against all others" if evidence.several_classes else ""
    texts = [decided_by(last), meaning_of(last, evidence.confidence)]
    return GapPlot(
        name.replace("_", " "),
        f"{last.constraint.gap_title}{of_class}",
        Scale.of(np.concatenate([np.ravel(ends), tolerances, [0.0]])),
        rows,
        [text for text in texts if text],
    )


def _gap(evidence: Evidence, model: str, finding: Finding) -> Dot:
    one = finding.assessment
    return Dot(
        one.on_predictions,
        one.low,
        one.high,
        evidence.names.index(model),
        bound=np.nan if finding.minimized else one.tolerance,
        verdict=finding.verdict(evidence.confidence),
        equal=bool(finding.constraint.rates_compared) and at_most(one.on_predictions, 0.0),
    )


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
    reference : float
        The rate of all rows by the last model.
    rows : list of DotRow
        The groups.
    whole : DotRow
        All rows.
    """

    rate: str
    gaps: list[dict[str, float]]
    scale: Scale
    reference: float
    rows: list[DotRow]
    whole: DotRow

    @property
    def few(self) -> bool:
        """Whether a group has few rows."""
        return any(row.few for row in self.rows)


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
    whole = _group_row(GroupDots.of([table.iloc[-1:] for table in tables], rate), 0)
    whole = replace(whole, few=False, dots=[replace(dot, few=False) for dot in whole.dots])
    groups = GroupDots.of([table.iloc[:-1] for table in tables], rate)
    choice = groups.choice
    shown = [_group_row(groups, k) for k in choice.shown]
    rows = shown + [replace(_group_row(groups, k), hidden=True) for k in choice.others]
    if len(choice.others):
        others = groups.range_of(choice.others)
        size = int(groups.sizes[0, choice.others].sum())
        rows.insert(_middle(groups), DotRow(choice.label, [], size, others=others))
    drawn = [dot for row in (*shown, whole) for dot in row.dots if not np.isnan(dot.value)]
    ends = np.array([[dot.low, dot.high] for dot in drawn])
    reference = whole.dots[-1].value
    return RatePlot(rate, gaps, Scale.of(ends, within=(0.0, 1.0)), reference, rows, whole)


def _group_row(groups: GroupDots, k: int) -> DotRow:
    size = int(groups.sizes[0, k])
    few = 0 < size < FEW_ROWS
    dots = [
        Dot(float(groups.values[m, k]), float(groups.low[m, k]), float(groups.high[m, k]), m, few)
        for m in range(len(groups.values))
    ]
    return DotRow(groups.groups[k], dots, size, few)


def _middle(groups: GroupDots) -> int:
    """Return the row of the others: below the shown groups with higher rates than their median."""
    values, choice = groups.values[-1], groups.choice
    if np.isnan(values[choice.others]).all():
        return len(choice.shown)
    return int(np.sum(values[choice.shown] >= np.nanmedian(values[choice.others])))


def _largest_gaps(table: pd.DataFrame, rate: str) -> dict[str, float]:
    """Return the largest gap of a rate; with marginal groups, that of each attribute."""
    parts = [str(name).rpartition(": ") for name in table.index]
    gaps = zip(parts, table["gap"], strict=True)
    return {title: gap for (title, _, key), gap in gaps if key == rate and not pd.isna(gap)}
