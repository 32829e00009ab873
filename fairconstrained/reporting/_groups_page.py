"""The part of the page that shows the rates of the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import pandas as pd

from fairconstrained.inspection.chosen_groups import MOST_GROUPS, Choice, choose_groups
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.metrics.rates import RATES
from fairconstrained.reporting import _svg as svg
from fairconstrained.reporting._evidence import ClassEvidence, Evidence
from fairconstrained.reporting._html import dots_table, keys, row_of
from fairconstrained.reporting._tables import gaps_table, groups_table
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

_OF = {
    "selection_rate": "share of the rows with a positive prediction",
    "true_positive_rate": "share of the rows with a positive label that are selected",
    "false_positive_rate": "share of the rows with a negative label that are selected",
    "accuracy": "share of the rows that are predicted correctly",
}
_OF_CLASS = {
    "selection_rate": "share of the rows that are predicted as {}",
    "true_positive_rate": "share of the rows of class {} that are predicted as {}",
    "false_positive_rate": "share of the rows of other classes that are predicted as {}",
    "accuracy": "share of the rows whose prediction is right about being {} or not",
}


@dataclass(frozen=True, eq=False)
class Panel:
    """A rate of all groups and models.

    Parameters
    ----------
    rate : str
        The name of the rate.
    groups : list of str
        The groups.
    sizes : ndarray of shape (n_groups,)
        The numbers of rows in the denominator.
    values, low, high : ndarray of shape (n_models, n_groups + 1)
        The rates and their intervals; the last column is for all rows.
    gaps : list of str
        The largest gap of each model, in words.
    of : str
        What the rate is the share of.
    """

    rate: str
    groups: list[str]
    sizes: Array
    values: Array
    low: Array
    high: Array
    gaps: list[str]
    of: str


def panels_of(evidence: ClassEvidence, of: dict[str, str], confidence: float) -> list[Panel]:
    """Return the panels of some of the default rates; `of` says what each is the share of."""
    tables = [groups_table(evidence, name, confidence) for name in evidence.names]
    gaps = [gaps_table(evidence, name, confidence) for name in evidence.names]
    first = tables[0]
    rows, sizes = first["rows"].to_numpy(), {}
    if "positive_labels" in first:
        positive = first["positive_labels"].to_numpy()
        sizes = {"true_positive_rate": positive, "false_positive_rate": rows - positive}
    groups = [str(name) for name in first.index[:-1]]

    def stack(column: str) -> Array:
        return np.array([table[column].to_numpy(dtype=float) for table in tables])

    return [
        Panel(
            rate,
            groups,
            sizes.get(rate, rows),
            stack(rate),
            stack(f"{rate}_low"),
            stack(f"{rate}_high"),
            [_gap_in_words(table, rate) for table in gaps],
            text,
        )
        for rate, text in of.items()
        if rate in first
    ]


def _gap_in_words(table: pd.DataFrame, rate: str) -> str:
    """Return the largest gap of a rate; with marginal groups, that of each attribute."""
    parts = []
    for name, gap in zip(table.index, table["gap"], strict=True):
        title, _, key = str(name).rpartition(": ")
        if key != rate or pd.isna(gap):
            continue
        text = "all equal" if at_most(gap, 0.0) else f"{gap:.3f}"
        parts.append(f"{title} {text}" if title else text)
    return ", ".join(parts) or "no gap: fewer than two groups have rows"


def search_box(evidence: Evidence) -> Iterator[str]:
    """Yield the legend, and a box that finds groups where not all are shown."""
    n_groups = len(evidence.rows.groups.listed)
    if n_groups > MOST_GROUPS:
        yield (
            f"<p>Of {n_groups} groups these are shown: those with the highest and the lowest rate, "
            "those that are most certainly high or low, and the largest. The grey bars span the "
            "rates of the others.</p>"
            '<p class="search"><label>Find a group <input type="search" autocomplete="off">'
            '</label> <span class="count" role="status"></span></p>'
        )
    yield keys(evidence.names)


def group_section(evidence: Evidence, one: ClassEvidence, label: str) -> Iterator[str]:
    """Yield the panels of a positive class, or of one of several classes by its name."""
    of = {rate: text.format(label, label) for rate, text in (_OF_CLASS if label else _OF).items()}
    yield from _panels(evidence, panels_of(one, of, evidence.confidence))


def accuracy_section(evidence: Evidence) -> Iterator[str]:
    """Yield the panel of the accuracy on all of several classes."""
    rows = evidence.rows
    any_class = next(iter(evidence.classes.values()))
    if rows.labels is None:
        return
    outputs = {
        name: replace(one, labels=np.asarray(one.labels == rows.labels), positive=True)
        for name, one in rows.outputs.items()
    }
    right = replace(rows, labels=np.ones(len(rows.labels), dtype=bool), outputs=outputs)
    of = {"accuracy": _OF["accuracy"]}
    panels = panels_of(ClassEvidence(right, any_class.findings), of, evidence.confidence)
    yield from _panels(evidence, panels)


def _panels(evidence: Evidence, panels: list[Panel]) -> Iterator[str]:
    """Yield panels and what their marks mean."""
    yield '<div class="panels">'
    for panel in panels:
        yield _panel(panel, evidence.names)
    yield "</div>"
    few = any(((panel.sizes < FEW_ROWS) & (panel.sizes > 0))[:-1].any() for panel in panels)
    level = f"{100.0 * evidence.confidence:g}%"
    yield (
        f'<p class="muted">Lines are {level} confidence intervals (Clopper-Pearson). The dotted '
        f"line is the rate of all rows{_of_last(evidence)}. Groups are sorted by their rates.</p>"
    )
    if few:
        yield (
            f'<p class="muted">† Fewer than {FEW_ROWS} rows (dashed line): the rate of such a '
            "group may be far from its rate on new rows, and large gaps arise by chance.</p>"
        )


def _of_last(evidence: Evidence) -> str:
    return f" of {escape(evidence.names[-1])}" if len(evidence.names) > 1 else ""


def _panel(panel: Panel, names: list[str]) -> str:
    """Return the table of a rate."""
    sizes = panel.sizes[:-1]
    choice = choose_groups(
        panel.values[-1, :-1], sizes, low=panel.low[-1, :-1], high=panel.high[-1, :-1]
    )
    shown = set(choice.shown.tolist())
    drawn = [*choice.shown, len(sizes)]
    ends = np.concatenate([part[:, drawn].ravel() for part in (panel.low, panel.high)])
    empty = np.isnan(np.concatenate([panel.values[:, drawn].ravel()] * 2))
    scale = svg.Scale.of(np.where(empty, np.nan, ends), within=(0.0, 1.0))
    order = np.concatenate([choice.shown, choice.others])
    rows = [_row(panel, int(k), scale, names, hidden=int(k) not in shown) for k in order]
    if len(choice.others):
        rows.insert(_middle(panel, choice), _others(panel, choice, scale))
    gaps = [
        f"{name}: {text}" if len(names) > 1 else text
        for name, text in zip(names, panel.gaps, strict=True)
    ]
    foot = _row(panel, len(sizes), scale, names, hidden=False)
    title = RATES[panel.rate].title.capitalize()
    subtitle = f"{panel.of}; largest gap: {'; '.join(gaps)}"
    return dots_table(title, subtitle, "Group", scale, rows, "Rate", counts="Rows", foot=foot)


def _middle(panel: Panel, choice: Choice) -> int:
    """Return the row of the others: below the shown groups with higher rates than their median."""
    values = panel.values[-1, :-1]
    if np.isnan(values[choice.others]).all():
        return len(choice.shown)
    median = np.nanmedian(values[choice.others])
    return int(np.sum(values[choice.shown] >= median))


def _row(panel: Panel, k: int, scale: svg.Scale, names: list[str], *, hidden: bool) -> str:
    """Return the row of a group; of all rows if it is the last one."""
    whole = k == len(panel.groups)
    group, size = "all rows" if whole else panel.groups[k], int(panel.sizes[k])
    few = 0 < size < FEW_ROWS and not whole
    columns = zip(panel.values[:, k], panel.low[:, k], panel.high[:, k], strict=True)
    row, values, texts = [], [], []
    for m, (value, low, high) in enumerate(columns):
        if np.isnan(value):
            values.append("-")
            continue
        row.append(svg.Dot(value, low, high, m, few))
        values.append(f"{value:.3f}")
        of = f"{names[m]} " if names[m] else ""
        texts.append(f"{of}{value:.3f}, interval {low:.3f} to {high:.3f}")
    title = f"{group}, {size} rows: {'; '.join(texts) or 'no such rows'}"
    picture = svg.dots(title, row, scale, len(names), reference=panel.values[-1, -1])
    sign = '<abbr title="few rows">†</abbr>' if few else ""
    return row_of(
        escape(group) + sign, str(size), picture, values, group=None if whole else group,
        hidden=hidden,
    )  # fmt: skip


def _others(panel: Panel, choice: Choice, scale: svg.Scale) -> str:
    """Return the row of the groups that are not shown."""
    values = panel.values[-1, :-1][choice.others]
    size = int(panel.sizes[:-1][choice.others].sum())
    if np.isnan(values).all():
        return row_of(choice.label, str(size), "", ["-"], others=True)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    title = f"{choice.label}, {size} rows: rates from {low:.3f} to {high:.3f}"
    picture = svg.span(title, low, high, scale)
    return row_of(choice.label, str(size), picture, [f"{low:.2f}–{high:.2f}"], others=True)
