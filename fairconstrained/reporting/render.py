"""How a report looks: as text, and as a page with its pictures inside."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from html import escape
from importlib.util import find_spec
from typing import Any

import pandas as pd

from fairconstrained.metrics.rates import DEFAULT_RATES, RATES
from fairconstrained.plotting import (
    ConvergenceDisplay,
    GroupMetricsDisplay,
    GroupRateDisplay,
    ScoreDensityDisplay,
)

_DPI = 120
_COUNTS = {
    "rows": "rows",
    "positive_labels": "positive labels",
    "positive_decisions": "positive decisions",
}

_STYLE = """
.fairness-report { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 62rem; margin: 0 auto; padding: 1rem; }
.fairness-report h1 { font-size: 1.5rem; margin: 0 0 .2rem; }
.fairness-report h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ccc; }
.fairness-report .scroll { overflow-x: auto; }
.fairness-report table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.fairness-report th, .fairness-report td { padding: .25rem .8rem .25rem 0; text-align: left;
  vertical-align: top; border: none; background: none; }
.fairness-report thead th { border-bottom: 1px solid #888; font-weight: 600; }
.fairness-report tbody th { font-weight: 400; white-space: nowrap; }
.fairness-report td.number { text-align: right; white-space: nowrap; }
.fairness-report thead th.number { text-align: right; }
.fairness-report .interval { color: #595959; }
.fairness-report figure { margin: 1rem 0; }
.fairness-report img { max-width: 100%; height: auto; }
.fairness-report figcaption { color: #404040; max-width: 45rem; }
@media print { .fairness-report h2, .fairness-report figure { break-inside: avoid; } }
""".strip()

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body>
{body}
</body>
</html>
"""


def tables_of(report: Any) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of a report with their headings, cells as text."""
    if len(report.model):
        yield "What was asked, and how it was solved", report.model
    if len(report.constraints):
        yield "Constraints on these rows", _constraints(report.constraints)
    if len(report.gaps):
        yield "Largest gaps of the decisions between groups", _gaps(report.gaps)
    yield "Groups", _groups(report.groups)


def _constraints(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "at most": table["tolerance"].map(_number),
            "gap on scores": table["scores"].map(_number),
            "gap of decisions": _with_intervals(table, "decisions", "low", "high"),
            "largest for": table["worst"],
            "verdict": table["verdict"],
        }
    )


def _gaps(table: pd.DataFrame) -> pd.DataFrame:
    shown = pd.DataFrame(
        {
            "gap": _with_intervals(table, "gap", "low", "high"),
            "highest": table["highest"],
            "lowest": table["lowest"],
        }
    )
    return shown.rename(index=lambda name: str(name).replace("_", " "))


def _groups(table: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, Any] = {title: table[name].map(str) for name, title in _COUNTS.items()}
    for name in DEFAULT_RATES:
        columns[RATES[name].title] = _with_intervals(table, name, f"{name}_low", f"{name}_high")
    return pd.DataFrame(columns)


def _with_intervals(table: pd.DataFrame, value: str, low: str, high: str) -> list[str]:
    """Return numbers with their intervals: "0.12 [0.08, 0.17]"."""
    rows = zip(table[value], table[low], table[high], strict=True)
    return [
        _number(v) if pd.isna(v) or pd.isna(a) else f"{_number(v)} [{a:.3f}, {b:.3f}]"
        for v, a, b in rows
    ]


def _number(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.3f}"


def as_text(report: Any) -> str:
    """Return a report as text."""
    parts = [f"Fairness report: {report.title}"]
    for heading, table in tables_of(report):
        parts.append(f"{heading}\n{_aligned(table)}")
    level = f"In brackets: {100.0 * report.confidence:g}% confidence intervals."
    parts.append("\n".join([level, *report.notes]))
    return "\n\n".join(parts)


def _aligned(table: pd.DataFrame) -> str:
    """Return a table as lines, all cells to the left; no heading for a single column."""
    head = ["", *map(str, table.columns)]
    lines = [] if len(table.columns) == 1 else [head]
    lines += [[name, *row] for name, row in _rows(table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join(line.rstrip() for line in padded)


def as_html(report: Any, pictured: Mapping[str, Any], *, whole: bool = True) -> str:
    """Return a report as a page, or as the part of one that a notebook shows.

    Parameters
    ----------
    report : FairnessReport
        The report.
    pictured : mapping
        What pictures are made of.
    whole : bool, default=True
        Whether it is a page of its own.
    """
    parts = ["<h1>Fairness report</h1>", f"<p>{escape(report.title)}.</p>"]
    for heading, table in tables_of(report):
        parts += [f"<h2>{escape(heading)}</h2>", _html_table(table)]
    level = f"In brackets: {100.0 * report.confidence:g}% confidence intervals."
    parts += [f"<p>{escape(note)}</p>" for note in (level, *report.notes)]
    parts += ["<h2>Pictures</h2>", *_pictures(pictured, report.confidence)]
    body = "\n".join(parts)
    body = f'<div class="fairness-report">\n<style>\n{_STYLE}\n</style>\n{body}\n</div>'
    if not whole:
        return body
    return _HEAD.format(title=escape(f"Fairness report: {report.title}"), body=body)


def _rows(table: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of a table as text."""
    for name, row in zip(table.index, table.to_numpy(), strict=True):
        yield str(name), [str(cell) for cell in row]


def _html_table(table: pd.DataFrame) -> str:
    numeric = [all(_is_figure(cell) for cell in table[column]) for column in table.columns]
    kinds = [' class="number"' if one else "" for one in numeric]
    lines = ['<div class="scroll"><table>']
    if len(table.columns) > 1:
        heads = zip(table.columns, kinds, strict=True)
        cells = "".join(f'<th scope="col"{kind}>{escape(str(name))}</th>' for name, kind in heads)
        lines.append(f"<thead><tr><td></td>{cells}</tr></thead>")
    lines.append("<tbody>")
    for name, row in _rows(table):
        cells = "".join(
            f"<td{kind}>{_html_cell(cell, bool(kind))}</td>"
            for cell, kind in zip(row, kinds, strict=True)
        )
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _is_figure(cell: Any) -> bool:
    """Return whether a cell is a number, with or without an interval."""
    return str(cell) == "-" or str(cell)[:1].isdigit()


def _html_cell(text: str, numeric: bool) -> str:
    number, bracket, interval = text.partition(" [")
    if not (numeric and bracket):
        return escape(text)
    return f'{escape(number)} <span class="interval">[{escape(interval)}</span>'


def _pictures(pictured: Mapping[str, Any], confidence: float) -> Iterator[str]:
    """Yield figures with captions, or a line that says what they would need."""
    if find_spec("matplotlib") is None:
        yield (
            '<p>There are no pictures: they need matplotlib, <code>pip install "fairconstrained'
            '[plot]"</code>.</p>'
        )
        return
    for caption, draw in _drawings(pictured, confidence):
        yield (
            f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{_png(draw)}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )


def _drawings(pictured: Mapping[str, Any], confidence: float) -> Iterator[tuple[str, Any]]:
    """Yield captions, and what draws into axes of a new figure."""
    scored, decisions, ranks = pictured["scored"], pictured["decisions"], pictured["ranks"]
    table = decisions.table(DEFAULT_RATES, confidence).iloc[:-1]
    bars = GroupMetricsDisplay({"": table}, confidence=confidence)
    yield "What the decisions do in every group.", (bars, {}, bars.figsize)
    if scored is not None:
        densities = ScoreDensityDisplay.from_scored(scored, ranks)
        yield "How the scores of the groups are distributed.", (densities, {}, (5.8, 4.2))
    if scored is not None and len(table) > 1:
        rates = GroupRateDisplay.from_scored(scored, ranks=ranks)
        caption = "Rates of positive decisions at all thresholds, group against group."
        yield caption, (rates, {}, (4.8, 5.2))
    result = pictured["result"]
    if result is not None and len(result.trace):
        runs = ConvergenceDisplay({type(result.solver).__name__: result.trace})
        yield "How the solver converged.", (runs, {"panels": 3}, (11.0, 3.6))


def _png(drawing: tuple[Any, Mapping[str, Any], tuple[float, float]]) -> str:
    """Return a picture as base64; pyplot's figures and backend are left alone."""
    from matplotlib.figure import Figure

    display, options, size = drawing
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, options.get("panels", 1))
    display.plot(**({"axes": axes} if options else {"ax": axes}))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
