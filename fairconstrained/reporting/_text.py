"""Reports as text, as Markdown and as dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.inspection.chosen_groups import choose_groups
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.inspection.proxies import proxies_in_words
from fairconstrained.metrics.rates import DEFAULT_RATES, RATES
from fairconstrained.reporting._evidence import Evidence
from fairconstrained.reporting._templates import level_of, render, sentence
from fairconstrained.reporting._verdict import Verdict, costs_in_words, decided_by, meaning_of
from fairconstrained.reporting.text_tables import Table, number

COUNTS = {
    "rows": "rows",
    "positive_labels": "positive labels",
    "positive_decisions": "positive predictions",
}


@dataclass(frozen=True, eq=False)
class Content:
    """Sentences and tables: see :class:`~fairconstrained.reporting.report.FairnessReport`."""

    title: str
    verdict: Verdict
    model: pd.DataFrame
    constraints: pd.DataFrame
    gaps: pd.DataFrame
    groups: pd.DataFrame
    summary: pd.DataFrame
    cost: pd.DataFrame
    frontier: pd.DataFrame
    confidence: float
    notes: tuple[str, ...]


def with_intervals(table: pd.DataFrame, value: str, low: str, high: str) -> list[str]:
    """Return values with their intervals as text, for example "0.12 [0.08, 0.17]"."""
    rows = zip(table[value], table[low], table[high], strict=True)
    return [
        number(v) if pd.isna(v) or pd.isna(a) else f"{number(v)} [{a:.3f}, {b:.3f}]"
        for v, a, b in rows
    ]


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


def as_text(report: Content, evidence: Evidence) -> str:
    """Return a report as text."""
    tables = {
        "Models side by side": report.summary.map(number),
        "Constraints on these rows": constraints_as_text(report.constraints),
        "Largest gaps between groups": gaps_as_text(report.gaps),
        "Groups": groups_as_text(report.groups),
        "Model and fit": report.model,
    }
    if report.summary.shape[1] == 1:
        del tables["Models side by side"]
    text = render(
        "report.txt.j2",
        report=report,
        level=level_of(report.confidence),
        sentences=_sentences(evidence),
        tables={heading: Table.of(table) for heading, table in tables.items() if len(table)},
    )
    return text.rstrip("\n")


def _sentences(evidence: Evidence) -> list[str]:
    """Return what decides the constraints, and what the models cost."""
    found = evidence.findings[evidence.names[-1]]
    sentences = [text for one in found if (text := decided_by(one))]
    return sentences + costs_in_words(evidence)


def as_markdown(report: Content, evidence: Evidence) -> str:
    """Return a report as a section of a model card."""
    found = evidence.findings[evidence.names[-1]]
    meanings = [meaning_of(one, evidence.confidence) for one in found if one.deciding]
    return render(
        "report.md.j2",
        report=report,
        level=level_of(report.confidence),
        few_rows=FEW_ROWS,
        sentences=_sentences(evidence) + meanings,
        summary=Table.of(report.summary.map(number)),
        constraints=Table.of(constraints_as_text(report.constraints)),
        groups={
            label: Table.of(_few_groups(report, evidence, label)) for label in evidence.classes
        },
    )


def _few_groups(report: Content, evidence: Evidence, label: str) -> pd.DataFrame:
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


def as_dict(report: Content, evidence: Evidence, tables: Sequence[str]) -> dict[str, Any]:
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
        if unknown:
            yield sentence("unknown_groups", unknown, one.title, rows.groups.marginal)
    n_classes = len(rows.classes)
    if evidence.several_classes:
        yield sentence("every_class")
        if evidence.findings[evidence.names[-1]]:
            yield sentence("bonferroni")
    elif n_classes > 2:
        yield sentence("one_class", n_classes, label_of(evidence))
    else:
        positive = evidence.classes[""].collected.positive
        other = next(one for one in rows.classes if one != positive)
        yield sentence("favourable", label_of(evidence), other)
    if evidence.proxies:
        yield sentence("known_groups", proxies_in_words(evidence.proxies))
    if rows.weighted:
        yield sentence("weighted")
    yield sentence("held_out")
