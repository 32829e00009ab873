"""The HTML page of a report: what its template shows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fairconstrained.inspection.chosen_groups import MOST_GROUPS
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.reporting._dots import accuracy_plot, gap_plots, rate_plots
from fairconstrained.reporting._evidence import Evidence
from fairconstrained.reporting._scores import (
    calibration_plot,
    frontier_plot,
    rows_of_groups,
    score_plot,
)
from fairconstrained.reporting._templates import level_of, render
from fairconstrained.reporting._text import Content, gaps_as_text, groups_as_text
from fairconstrained.reporting._verdict import costs_in_words
from fairconstrained.reporting.text_tables import Table, number

_MOST_OPEN = 4  # the number of classes whose parts are all open


def as_html(report: Content, evidence: Evidence, *, whole: bool = True) -> str:
    """Return a report as an HTML page, or as a fragment for notebooks.

    Parameters
    ----------
    report : FairnessReport
        The report.
    evidence : Evidence
        Its numbers.
    whole : bool, default=True
        Return a complete page; if False, a fragment.
    """
    groups = report.groups
    return render(
        "page.html.j2" if whole else "report.html.j2",
        tag="main" if whole else "div",
        report=report,
        names=evidence.names,
        level=level_of(evidence.confidence),
        several_classes=evidence.several_classes,
        n_groups=len(evidence.rows.groups.listed),
        most_groups=MOST_GROUPS,
        few_rows=FEW_ROWS,
        summary=_summary(report),
        costs=costs_in_words(evidence),
        gaps=gap_plots(evidence),
        frontier=frontier_plot(evidence),
        accuracy=accuracy_plot(evidence) if evidence.several_classes else [],
        classes=_classes(evidence),
        groups=Table.of(groups_as_text(groups)),
        searched=[str(one[-1] if isinstance(one, tuple) else one) for one in groups.index],
        largest_gaps=Table.of(gaps_as_text(report.gaps)),
        fits=_fits(report, evidence),
        on_scores=_on_scores(report),
    )


def _summary(report: Content) -> Table:
    """Return the measures of all models, and the change from the first to the last."""
    table = report.summary.map(number)
    if table.shape[1] > 1:
        change = report.summary.iloc[:, -1] - report.summary.iloc[:, 0]
        table["change"] = ["-" if pd.isna(one) else f"{one:+.3f}" for one in change]
    return Table.of(table.rename(index=lambda name: str(name).replace("_", " ")))


def _classes(evidence: Evidence) -> list[dict[str, Any]]:
    """Return rates and scores of every class; of many classes only the decisive ones are open."""
    found = evidence.findings[evidence.names[-1]]
    decisive = {one.of_class for one in found} or {next(iter(evidence.classes))}
    shown, confidence = [], evidence.confidence
    for label, one in evidence.classes.items():
        groups = rows_of_groups(one, confidence)
        content = {
            "label": label,
            "open": len(evidence.classes) <= _MOST_OPEN or label in decisive,
            "rates": rate_plots(one, confidence),
            "scores": score_plot(one, groups),
            "calibration": calibration_plot(one, groups, confidence),
        }
        shown.append(content)
    return shown


def _fits(report: Content, evidence: Evidence) -> dict[str, Table]:
    """Return parameters, solver and certificate of the models of this library."""
    if not len(report.model) or evidence.names == [""]:
        return {"": Table.of(report.model)} if len(report.model) else {}
    tables = report.model.groupby(level=0, sort=False)
    return {str(name): Table.of(table.droplevel(0)) for name, table in tables}


def _on_scores(report: Content) -> Table:
    """Return the gaps on scores and their tolerances."""
    shown = report.constraints[["tolerance", "scores"]].map(number)
    return Table.of(shown.rename(columns={"scores": "gap on scores"}))
