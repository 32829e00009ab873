"""Reports as text, as Markdown and as dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import pandas as pd

from fairconstrained.inspection.chosen_groups import choose_groups
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.inspection.proxies import proxies_in_words
from fairconstrained.metrics.rates import DEFAULT_RATES, RATES
from fairconstrained.reporting._evidence import Evidence
from fairconstrained.reporting._templates import (
    Table,
    aligned,
    markdown_table,
    markdown_text,
    number,
)
from fairconstrained.reporting._verdict import Verdict, cost_in_words, decided_by, meaning_of

COUNTS = {
    "rows": "rows",
    "positive_labels": "positive labels",
    "positive_decisions": "positive predictions",
}
_HELD_OUT_ROWS = (
    "The intervals are valid for rows that were not used in training. On training rows they are "
    "too optimistic: use held-out rows."
)


class Report(Protocol):
    """The content of a report: see :class:`~fairconstrained.reporting.report.FairnessReport`."""

    @property
    def title(self) -> str:
        """The models, the number of rows and the positive class."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the last model."""

    @property
    def model(self) -> pd.DataFrame:
        """The parameters of the models and the results of their fits."""

    @property
    def constraints(self) -> pd.DataFrame:
        """The gaps of the constraints."""

    @property
    def gaps(self) -> pd.DataFrame:
        """The largest gap of each rate."""

    @property
    def groups(self) -> pd.DataFrame:
        """Counts and rates by group."""

    @property
    def summary(self) -> pd.DataFrame:
        """The measures on all rows."""

    @property
    def frontier(self) -> pd.DataFrame:
        """The models of the path."""

    @property
    def confidence(self) -> float:
        """The confidence level of the intervals."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on how to read the values."""


def with_intervals(table: pd.DataFrame, value: str, low: str, high: str) -> list[str]:
    """Return values with their intervals as text, for example "0.12 [0.08, 0.17]"."""
    rows = zip(table[value], table[low], table[high], strict=True)
    return [
        number(v) if pd.isna(v) or pd.isna(a) else f"{number(v)} [{a:.3f}, {b:.3f}]"
        for v, a, b in rows
    ]


def shown_tables(report: Report) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the headings and the tables of a report, with text in the cells."""
    if report.summary.shape[1] > 1:
        yield "Models side by side", report.summary.map(number)
    if len(report.constraints):
        yield "Constraints on these rows", constraints_as_text(report.constraints)
    if len(report.gaps):
        yield "Largest gaps between groups", gaps_as_text(report.gaps)
    yield "Groups", groups_as_text(report.groups)
    if len(report.model):
        yield "Model and fit", report.model


def constraints_as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of constraints with text in the cells."""
    return pd.DataFrame(
        {
            "tolerance": table["tolerance"].map(number),
            "gap on scores": table["scores"].map(number),
            "gap of predictions": with_intervals(table, "decisions", "low", "high"),
            "largest gap": table["worst"],
            "verdict": table["verdict"],
        }
    )


def gaps_as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of gaps with text in the cells."""
    shown = pd.DataFrame(
        {
            "gap": with_intervals(table, "gap", "low", "high"),
            "highest": table["highest"],
            "lowest": table["lowest"],
        }
    )
    if isinstance(shown.index, pd.MultiIndex):
        return shown.rename(index=lambda name: str(name).replace("_", " "), level=-1)
    return shown.rename(index=lambda name: str(name).replace("_", " "))


def groups_as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of groups with text in the cells."""
    columns: dict[str, list[str]] = {
        title: [str(count) for count in table[name]]
        for name, title in COUNTS.items()
        if name in table
    }
    for name in (one for one in DEFAULT_RATES if one in table):
        columns[RATES[name].title] = with_intervals(table, name, f"{name}_low", f"{name}_high")
    return pd.DataFrame(columns, index=table.index)


def as_text(report: Report, evidence: Evidence) -> str:
    """Return a report as text."""
    parts = [f"Fairness report: {report.title}"]
    parts.append("\n".join([report.verdict.sentence, *report.verdict.details]))
    sentences = _sentences(evidence)
    if sentences:
        parts.append("\n".join(sentences))
    for heading, table in shown_tables(report):
        parts.append(f"{heading}\n{aligned(Table.of(table))}")
    level = f"Intervals in brackets have {100.0 * report.confidence:g}% confidence."
    parts.append("\n".join([level, *report.notes]))
    return "\n\n".join(parts)


def _sentences(evidence: Evidence) -> list[str]:
    """Return what decides the constraints, and what the models cost."""
    found = evidence.findings[evidence.names[-1]]
    sentences = [text for one in found if (text := decided_by(one))]
    return sentences + [cost_in_words(evidence, name) for name in evidence.costs]


def as_markdown(report: Report, evidence: Evidence) -> str:
    """Return a report as a section of a model card."""
    parts = ["## Fairness", f"**{markdown_text(report.verdict.sentence)}**"]
    parts += [f"- {markdown_text(text)}" for text in report.verdict.details]
    parts.append(f"Measured for {markdown_text(report.title)}.")
    parts += [markdown_text(text) for text in _sentences(evidence)]
    parts += [
        markdown_text(meaning_of(one, evidence.confidence))
        for one in evidence.findings[evidence.names[-1]]
        if one.deciding
    ]
    parts += ["### Models", markdown_table(Table.of(report.summary.map(number)))]
    if len(report.constraints):
        table = constraints_as_text(report.constraints)
        parts += ["### Constraints on these rows", markdown_table(Table.of(table))]
    for label in evidence.classes:
        heading = f"### Groups, class {markdown_text(label)}" if label else "### Groups"
        parts += [heading, markdown_table(Table.of(_few_groups(report, evidence, label)))]
    level = f"Intervals in brackets have {100.0 * report.confidence:g}% confidence."
    few = f"Rates of fewer than {FEW_ROWS} rows have wide intervals."
    notes = "\n".join(f"- {markdown_text(note)}" for note in (level, few, *report.notes))
    return "\n\n".join([*parts, "### How to read it", notes]) + "\n"


def _few_groups(report: Report, evidence: Evidence, label: str) -> pd.DataFrame:
    """Return the table of groups as text; of many groups the extremes and the largest."""
    table = report.groups
    for key in (evidence.names[-1], label):
        table = table if key == "" else pd.DataFrame(table.xs(key, level=0))
    body, whole = table.iloc[:-1], table.iloc[-1:]
    choice = choose_groups(body["selection_rate"].to_numpy(float), body["rows"].to_numpy())
    shown = groups_as_text(pd.concat([body.iloc[choice.shown], whole]))
    if not len(choice.others):
        return shown
    left_out = pd.DataFrame("", index=[f"({choice.label})"], columns=shown.columns)
    left_out["rows"] = str(int(body["rows"].iloc[choice.others].sum()))
    return pd.concat([shown.iloc[:-1], left_out, shown.iloc[-1:]])


def as_dict(report: Report, evidence: Evidence, tables: Sequence[str]) -> dict[str, Any]:
    """Return a report as dictionaries, lists, strings and numbers."""
    rows = evidence.rows
    several = evidence.several_classes
    positive = None if several else evidence.classes[""].collected.positive
    return {
        "title": report.title,
        "verdict": {**asdict(report.verdict), "details": list(report.verdict.details)},
        "rows": len(rows.weight),
        "weighted": rows.weighted,
        "target": rows.target or None,
        "positive_class": _plain(positive),
        "classes": [_plain(one) for one in rows.classes],
        "confidence": report.confidence,
        "models": evidence.names,
        "sentences": _sentences(evidence),
        "notes": list(report.notes),
        "proxies": evidence.proxies,
        **{name: _records(getattr(report, name)) for name in tables},
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries, the index included."""
    keep = isinstance(table.index, pd.MultiIndex) or table.index.name is not None
    flat = table.reset_index() if keep else table
    columns = [str(name) for name in flat.columns]
    return [
        {name: _plain(value) for name, value in zip(columns, row, strict=True)}
        for row in flat.itertuples(index=False, name=None)
    ]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: None for nan, numbers without NumPy's types."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def label_of(evidence: Evidence) -> str:
    """Return the positive class, with the name of the target if it has one."""
    target, positive = evidence.rows.target, evidence.classes[""].collected.positive
    return f"{target} = {positive}" if target else str(positive)


def notes_of(evidence: Evidence) -> Iterator[str]:
    """Yield remarks on how to read the values."""
    rows = evidence.rows
    notes = [
        f"{one.assessment.name}: {one.assessment.note}."
        for found in evidence.findings.values()
        for one in found
        if one.assessment.note
    ]
    yield from dict.fromkeys(notes)
    for one in rows.groups.separate:
        unknown = int((~one.known).sum())
        if unknown and rows.groups.marginal:
            yield f"{one.title} is unknown for {unknown} rows. They are in none of its groups."
        elif unknown:
            yield (
                f"The group of {unknown} rows is unknown. They count only in the rates of all rows."
            )
    n_classes = len(rows.classes)
    if evidence.several_classes:
        yield (
            "Every class is measured against all others: a row is selected for the class that is "
            "predicted, and its label is positive for its own class."
        )
        if evidence.findings[evidence.names[-1]]:
            yield (
                "Intervals of all classes together hold for all of them at once (Bonferroni); "
                "those of a single class hold for that class."
            )
    elif n_classes > 2:
        yield (
            f"The models have {n_classes} classes: all values are of the class "
            f"{label_of(evidence)} against the others."
        )
    else:
        positive = evidence.classes[""].collected.positive
        other = next(one for one in rows.classes if one != positive)
        yield (
            f"The favourable label is {label_of(evidence)}: rows that are predicted so are "
            f"selected, and rows that have it are positive. The other label is {other}."
        )
    if evidence.proxies:
        yield (
            "The group can be guessed with an accuracy above 0.95 from each of these columns of X "
            f"alone: {proxies_in_words(evidence.proxies)}. A model that uses one of them can know "
            "the group."
        )
    if rows.weighted:
        yield "Rates are weighted, counts are not. With weights the intervals are approximate."
    yield _HELD_OUT_ROWS
