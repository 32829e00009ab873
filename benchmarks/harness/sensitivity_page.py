"""The page and the figures about parameters and progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.paper_setup import SVIO_TOL
from benchmarks.harness.rank_figures import COLOURS, plt
from benchmarks.harness.sensitivity_lines import FIGURES, Run, runs_of
from benchmarks.harness.tables import Row, as_markdown, environment

_STYLES = ("-", "--", ":", "-.")
_FEASIBLE = 1e-3  # the violation up to which the last points are compared
_FLOOR = 1e-8  # what is drawn on a logarithmic axis in place of zero
_AXES = {"iteration": "iteration", "passes": "data passes", "clock": "seconds"}
_LINEAR = {"passes": 1.0, "clock": 0.01}  # up to here a logarithmic axis is linear
_MEASURES = {"objective": "objective", "violation": "violation", "stationarity": "SVio"}


def _series(row: Row, measure: str, against: str) -> tuple[list[float], list[float]]:
    """Return the points of a curve."""
    if measure == "stationarity":
        x_of = dict(zip(row["iteration"], _abscissae(row, against), strict=True))
        points = [(x_of[k], y) for k, y in row["stationarity"] if np.isfinite(y)]
        return [x for x, _ in points], [y for _, y in points]
    return _abscissae(row, against), row[measure]


def _abscissae(row: Row, against: str) -> list[float]:
    """Return where the points of a curve are; elapsed seconds are scaled to the CPU seconds."""
    if against != "clock":
        return row[against]
    elapsed = max(row["clock"][-1], 1e-9)
    return [one * row["seconds"] / elapsed for one in row["clock"]]


def _draw_multipliers(axes: Any, row: Row) -> None:
    x = row["iteration"]
    axes[0].plot(x, row["difference"], color=COLOURS[0])
    for axis, name in zip(axes[1:], ("lambda", "mu"), strict=True):
        for k, line in enumerate(np.array(row[name]).T):
            axis.plot(x, line, _STYLES[k % 4], color=COLOURS[k % 6])
    axes[0].set_yscale("log")


def _legend_above(axis: Any) -> None:
    """Put the legend between a panel and its title, where it hides no curve."""
    labels = axis.get_legend_handles_labels()[1]
    short = sum(map(len, labels)) < 30
    axis.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2, frameon=False,
        fontsize=7 if short else 6, ncols=len(labels), columnspacing=1.0, handlelength=1.8,
    )  # fmt: skip


def draw(name: str, found: list[tuple[Run, Row]], path: Path) -> None:
    """Draw a figure: a column for every panel, a row for every measure."""
    figure_of_paper = FIGURES[name]
    panels = list(dict.fromkeys(run.panel for run, _ in found))
    rows = ["|lambda - mu|", "lambda", "mu"] if figure_of_paper.multipliers else list(_MEASURES)
    if not (figure_of_paper.multipliers or figure_of_paper.stationarity):
        rows.remove("stationarity")
    figure, axes = plt().subplots(
        len(rows), len(panels), squeeze=False,
        figsize=(3.6 * len(panels) + 0.6, 2.3 * len(rows) + 0.5),
    )  # fmt: skip
    for column, panel in enumerate(panels):
        own = [(run, row) for run, row in found if run.panel == panel]
        if figure_of_paper.multipliers:
            _draw_multipliers(axes[:, column], own[0][1])
        else:
            for axis, measure in zip(axes[:, column], rows, strict=True):
                for k, (run, row) in enumerate(own):
                    x, y = _series(row, measure, figure_of_paper.against)
                    shown = y if measure == "objective" else np.maximum(y, _FLOOR)
                    axis.plot(
                        x, shown, _STYLES[k % 4], color=COLOURS[k % 6], label=run.label,
                        marker="o" if measure == "stationarity" else None, markersize=3,
                    )  # fmt: skip
                if measure != "objective":
                    axis.set_yscale("log")
            _legend_above(axes[0][column])
        axes[0][column].set_title(panel, fontsize=10, pad=22)
        if figure_of_paper.passes is not None:  # some methods end a hundred times earlier
            for axis in axes[:, column]:
                axis.set_xscale("symlog", linthresh=_LINEAR[figure_of_paper.against])
                axis.set_xlim(left=0.0)
        axes[-1][column].set_xlabel(_AXES[figure_of_paper.against], fontsize=9)
    for axis, label in zip(axes[:, 0], rows, strict=True):
        axis.set_ylabel(_MEASURES.get(label, label), fontsize=9)
    for axis in axes.ravel():
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt().close(figure)


def write_pages(
    folder: Path, found: dict[str, list[tuple[Run, Row]]], rows: list[Row], steps: int
) -> None:
    """Write sensitivity.md, curves.md and their figures: the pages with runs that are known."""
    for page, head in _HEADS.items():
        some = {name: runs for name, runs in found.items() if runs and _page_of(name) == page}
        if some:
            svio = _SVIO.format(tol=SVIO_TOL)
            text = head.format(environment=environment(), steps=steps, svio=svio)
            absent = [
                FIGURES[name].title
                for name, runs in found.items()
                if not runs and _page_of(name) == page
            ]
            if absent:
                text += f"\nNot run: {'; '.join(absent)}.\n"
            (folder / f"{page}.md").write_text(text + _sections(folder, some, rows))


def _page_of(name: str) -> str:
    """Return the page of a figure: methods side by side have one of their own."""
    return "sensitivity" if FIGURES[name].passes is None else "curves"


def _sections(folder: Path, found: dict[str, list[tuple[Run, Row]]], rows: list[Row]) -> str:
    """Return the sections of a page, and draw their figures."""
    text = ""
    for name, runs in found.items():
        picture = f"sensitivity-{name}.png"
        draw(name, runs, folder / "_static" / picture)
        own = [
            {key: value for key, value in row.items() if key != "figure" and value != ""}
            for row in rows
            if row["figure"] == name
        ]
        passes = FIGURES[name].passes
        ends = ""
        known = {(run.panel, run.label) for run, _ in runs}
        absent = [
            f"{run.label} ({run.panel})"
            for run in runs_of(FIGURES[name])
            if (run.panel, run.label) not in known
        ]
        if passes is not None:
            ends = f" A run ends at its first iterate after {passes:,} data passes. {_lowest(runs)}"
        if absent:
            ends += f" Not run: {'; '.join(absent)}."
        text += (
            f"\n## {FIGURES[name].title}\n\nThe paper: {FIGURES[name].claim}{ends}\n\n"
            f"![{FIGURES[name].title}](_static/{picture})\n\n{as_markdown(own)}"
        )
    return text


def _lowest(runs: list[tuple[Run, Row]]) -> str:
    """Return which method ends at the lowest objective, for every problem of a figure."""
    best: dict[str, tuple[float, str]] = {}
    for run, row in runs:
        if row["violation"][-1] <= _FEASIBLE:
            found = row["objective"][-1], run.label
            best[run.panel] = min(best.get(run.panel, found), found)
    shown = "; ".join(f"{label} ({panel})" for panel, (_, label) in best.items())
    return (
        f"Here the lowest objectives with a violation of at most {_FEASIBLE:g} at the end are "
        f"those of: {shown or 'no method'}."
    )


_SVIO = """SVio is near-stationarity, the distance to the solution of the proximal subproblem. The
subproblem is solved to a tolerance of {tol:g}. Points where it is not solved are left out."""
_PARAMETERS = """# Parameters and progress of the papers' methods

`python -m benchmarks sensitivity --steps {steps} --docs docs` writes this page ({environment}).
All runs have the settings of `paper()`, except for the parameter that is varied and for what the
text of a figure names. They end after {steps} iterations; those of IDCA and SSG, whose steps
differ, after {steps} data passes. Runs in the papers are longer: SSG makes 50,000 steps in
figures 9 and 10, with the best of eight tolerances, so that the curves of the papers may differ.
With a diminishing tolerance the answer of SSG is, as in the printed algorithm, the best point that
met the tolerance of its own step, which may be one of the first points.
Tables show the last points. On logarithmic axes a violation of 0 is drawn at 1e-8.

{svio}
"""
_CURVES = """# The papers' figures that compare methods

`python -m benchmarks sensitivity --only ipc-1 ipc-2 3s-econ-2 3s-econ-3 3s-econ-4 plada-1 plada-2
--docs docs` writes this page ({environment}). All runs have the settings of `paper()`; SSG
and IPP-SSG have steps of 0.001, IPP-ConEx has c1 = 20 and c2 = 0.01. They end earlier than those of
the papers; [](papers.md) has longer ones, without curves. An iterate of IPC is the solution of a
subproblem, which takes up to 10,000 data passes. Tables show the last points. Seconds in
figures are elapsed ones, scaled so that a run ends at its CPU seconds: other processes run on the
machine. On logarithmic axes a violation of 0 is drawn at 1e-8.

{svio}
"""
_HEADS = {"sensitivity": _PARAMETERS, "curves": _CURVES}
