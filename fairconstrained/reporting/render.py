"""Rendering of fairness reports as text and as HTML pages with embedded figures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from fairconstrained.inspection.scores import GroupScores
from fairconstrained.metrics.rates import DEFAULT_RATES, RATES, Predictions
from fairconstrained.plotting import (
    ConvergenceDisplay,
    GroupMetricsDisplay,
    GroupRateDisplay,
    ScoreDensityDisplay,
)
from fairconstrained.solvers.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 120
_COUNTS = {
    "rows": "rows",
    "positive_labels": "positive labels",
    "positive_decisions": "positive predictions",
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


class Report(Protocol):
    """The content of a report: see :class:`~fairconstrained.reporting.report.FairnessReport`."""

    @property
    def title(self) -> str:
        """The model, the number of rows and the positive class."""

    @property
    def model(self) -> pd.DataFrame:
        """The parameters of the model and the results of its fit."""

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
    def confidence(self) -> float:
        """The confidence level of the intervals."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on how to read the values."""


@dataclass(frozen=True, eq=False)
class FigureData:
    """The data of the figures of a report.

    Parameters
    ----------
    predictions : Predictions
        Labels and predictions.
    scores : GroupScores or None
        The scores, if the model has any.
    ranks : tuple of float or None
        The range of ranks of the model's constraint, if it has one.
    result : Result or None
        The result of the solver, for classifiers of this library.
    """

    predictions: Predictions
    scores: GroupScores | None
    ranks: tuple[float, float] | None
    result: Result | None


class Display(Protocol):
    """A display of one panel."""

    def plot(self, *, ax: Axes) -> object:
        """Draw on axes."""


def tables_of(report: Report) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the headings and the tables of a report, with text in the cells."""
    if len(report.model):
        yield "Model and fit", report.model
    if len(report.constraints):
        yield "Constraints on these rows", _constraints(report.constraints)
    if len(report.gaps):
        yield "Largest gaps between groups", _gaps(report.gaps)
    yield "Groups", _groups(report.groups)


def _constraints(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "tolerance": table["tolerance"].map(_number),
            "gap on scores": table["scores"].map(_number),
            "gap of predictions": _with_intervals(table, "decisions", "low", "high"),
            "largest gap": table["worst"],
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
    columns: dict[str, list[str]] = {
        title: [str(count) for count in table[name]] for name, title in _COUNTS.items()
    }
    for name in DEFAULT_RATES:
        columns[RATES[name].title] = _with_intervals(table, name, f"{name}_low", f"{name}_high")
    return pd.DataFrame(columns, index=table.index)


def _with_intervals(table: pd.DataFrame, value: str, low: str, high: str) -> list[str]:
    """Return values with their intervals as text, for example "0.12 [0.08, 0.17]"."""
    rows = zip(table[value], table[low], table[high], strict=True)
    return [
        _number(v) if pd.isna(v) or pd.isna(a) else f"{_number(v)} [{a:.3f}, {b:.3f}]"
        for v, a, b in rows
    ]


def _number(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.3f}"


def as_text(report: Report) -> str:
    """Return a report as text."""
    parts = [f"Fairness report: {report.title}"]
    for heading, table in tables_of(report):
        parts.append(f"{heading}\n{_aligned(table)}")
    level = f"Intervals in brackets have {100.0 * report.confidence:g}% confidence."
    parts.append("\n".join([level, *report.notes]))
    return "\n\n".join(parts)


def _aligned(table: pd.DataFrame) -> str:
    """Return a table as left-aligned text; a table with a single column has no header."""
    head = ["", *map(str, table.columns)]
    lines = [] if len(table.columns) == 1 else [head]
    lines += [[name, *row] for name, row in _rows(table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join(line.rstrip() for line in padded)


def as_html(report: Report, data: FigureData, *, whole: bool = True) -> str:
    """Return a report as an HTML page, or as a fragment for notebooks.

    Parameters
    ----------
    report : FairnessReport
        The report.
    data : FigureData
        The data of the figures.
    whole : bool, default=True
        Return a complete page; if False, a fragment.
    """
    parts = ["<h1>Fairness report</h1>", f"<p>{escape(report.title)}.</p>"]
    for heading, table in tables_of(report):
        parts += [f"<h2>{escape(heading)}</h2>", _html_table(table)]
    level = f"Intervals in brackets have {100.0 * report.confidence:g}% confidence."
    parts += [f"<p>{escape(note)}</p>" for note in (level, *report.notes)]
    parts += ["<h2>Figures</h2>", *_figures(data, report.confidence)]
    body = "\n".join(parts)
    body = f'<div class="fairness-report">\n<style>\n{_STYLE}\n</style>\n{body}\n</div>'
    if not whole:
        return body
    return _HEAD.format(title=escape(f"Fairness report: {report.title}"), body=body)


def _rows(table: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of the rows of a table and their cells as text."""
    for name, row in zip(table.index, table.to_numpy(), strict=True):
        yield str(name), [str(cell) for cell in row]


def _html_table(table: pd.DataFrame) -> str:
    numeric = [all(_is_number(cell) for cell in table[column]) for column in table.columns]
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


def _is_number(cell: object) -> bool:
    """Return whether a cell holds a number, with or without an interval."""
    return str(cell) == "-" or str(cell)[:1].isdigit()


def _html_cell(text: str, numeric: bool) -> str:
    number, bracket, interval = text.partition(" [")
    if not (numeric and bracket):
        return escape(text)
    return f'{escape(number)} <span class="interval">[{escape(interval)}</span>'


def _figures(data: FigureData, confidence: float) -> Iterator[str]:
    """Yield the figures with captions; without matplotlib, a paragraph on how to install it."""
    if find_spec("matplotlib") is None:
        yield (
            '<p>The figures need matplotlib: <code>pip install "fairconstrained[plot]"</code>.</p>'
        )
        return
    for caption, image in _images(data, confidence):
        yield (
            f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{image}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )


def _images(data: FigureData, confidence: float) -> Iterator[tuple[str, str]]:
    """Yield captions and PNG images in base64."""
    scores, result = data.scores, data.result
    table = data.predictions.table(DEFAULT_RATES, confidence).iloc[:-1]
    bars = GroupMetricsDisplay({"": table}, confidence=confidence)
    yield "Rates of the predictions by group.", _panel(bars, bars.figsize)
    if scores is not None:
        densities = ScoreDensityDisplay.from_group_scores(scores, data.ranks)
        yield "Distribution of the scores by group.", _panel(densities, (5.8, 4.2))
    if scores is not None and len(table) > 1:
        rates = GroupRateDisplay.from_group_scores(scores, ranks=data.ranks)
        yield "Selection rates by group at all thresholds.", _panel(rates, (4.8, 5.2))
    if result is not None and len(result.trace):
        runs = ConvergenceDisplay({type(result.solver).__name__: result.trace})
        figure = _new_figure((11.0, 3.6))
        runs.plot(axes=figure.subplots(1, 3))
        yield "Convergence of the solver.", _png(figure)


def _panel(display: Display, size: tuple[float, float]) -> str:
    """Draw a display of one panel and return the image."""
    figure = _new_figure(size)
    display.plot(ax=figure.subplots())
    return _png(figure)


def _new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure that is unknown to pyplot, whose state does not change."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _png(figure: Figure) -> str:
    """Return a figure as a PNG image in base64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
