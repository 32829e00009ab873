"""The page of the benchmark of boosted trees: figure, tables, and how the targets are met."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.boosted_peers import FREE, METHODS, ON_SCORES, OTHERS
from benchmarks.harness.dominance import Outcome, by_outcome
from benchmarks.harness.names import TITLES
from benchmarks.harness.rank_figures import focus, plt
from benchmarks.harness.tables import Row, as_markdown, environment


def draw(rows: list[Row], path: Path) -> None:
    """Draw accuracy against the gap on test rows; points far below ours are counted."""
    panels = list(dict.fromkeys((row["data"], row["constraint"]) for row in rows))
    n_columns = len({constraint for _, constraint in panels})
    n_rows = -(-len(panels) // n_columns)
    size = (5.0 * n_columns, 3.2 * n_rows + 0.6)
    figure, axes = plt().subplots(n_rows, n_columns, figsize=size, squeeze=False)
    handles = {}
    for panel, ax in zip(panels, axes.ravel(), strict=False):
        _panel(ax, [row for row in rows if (row["data"], row["constraint"]) == panel])
        ax.set(title=", ".join(TITLES[name] for name in panel))
        ax.set(xlabel="gap (test rows)", ylabel="accuracy (test rows)")
        ax.grid(alpha=0.3)
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    shown = [name for name in METHODS if name in handles]
    lines = [handles[name] for name in shown]
    figure.legend(lines, shown, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.6 / size[1], 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt().close(figure)


def _panel(ax: Any, rows: list[Row]) -> None:
    """Draw the lines of a data set and a constraint; a method has one colour in all panels."""
    for k, (method, one) in enumerate(METHODS.items()):
        points = [(r["test gap"], r["accuracy"]) for r in rows if r["method"] == method]
        if points:
            width = 2.0 if one.ours else 1.0
            x, y = np.transpose(sorted(points))
            ax.plot(x, y, lw=width, color=f"C{k}", label=method, marker=one.marker, ms=6)
    ours = [row["accuracy"] for row in rows if row["method"] not in OTHERS]
    points = [(row["test gap"], row["accuracy"]) for row in rows]
    focus(ax, ours or [one for _, one in points], points)


def _kappa(row: Row) -> str:
    return f"{row['kappa']:g}" if METHODS[row["method"]].has_tolerance else ""


def _measure(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def _lines(rows: list[Row]) -> str:
    """Return the table of a data set and a constraint."""
    head = "| method | kappa | splits | test gap | accuracy | AUC | log loss | CPU seconds |"
    head += " x LightGBM | advantage |"
    lines = [head, "|---" * 10 + "|"]
    for row in rows:
        lead = "" if np.isnan(row["advantage"]) else f"{row['advantage']:+.4f}"
        spread = f" +- {row['+-']:.4f}" if np.isfinite(row["+-"]) else ""
        cells = [row["method"], _kappa(row), str(row["splits"]), f"{row['test gap']:.3f}"]
        cells += [f"{row['accuracy']:.4f}", _measure(row["AUC"], 4), _measure(row["log loss"], 4)]
        cells += [f"{row['seconds']:.2f}", _measure(row["x LightGBM"], 1), lead + spread]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _comparisons(rows: list[Row]) -> str:
    """Return how the points of every method compare with ours, and where ours is behind."""
    found = []
    for method in OTHERS:
        counts = Counter(row["ours is"] for row in rows if row["method"] == method)
        n = sum(counts[one] for one in Outcome if one is not Outcome.FEW)
        if n:
            found.append({"method": method, "points": n, **by_outcome(counts)})
    text = as_markdown(found) if found else "There are too few splits for a comparison.\n"
    behind = [row for row in rows if row["ours is"] == Outcome.BEHIND]
    text += "\nWhere ours is behind:\n\n" if behind else ""
    for row in behind:
        place = f"{TITLES[row['data']]}, {TITLES[row['constraint']]}"
        named = f"{row['method']} {_kappa(row)}".strip()
        text += f"- {place}: {named}, by {-row['advantage']:.4f} +- "
        text += f"{row['+-']:.4f} at a gap of {row['test gap']:.3f}\n"
    return text


def _seconds(rows: list[Row]) -> str:
    """Return the CPU seconds of bounds on scores in units of LightGBM's, by data set."""
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        some = [row for row in rows if row["data"] == data]
        ratios = [row["x LightGBM"] for row in some if row["method"] == ON_SCORES]
        alone = next((row["seconds"] for row in some if row["method"] == FREE), np.nan)
        if ratios:
            lines.append(
                f"- {TITLES[data]}: {min(ratios):.1f} to {max(ratios):.1f} times LightGBM's "
                f"{alone:.2f} seconds"
            )
    return "\n".join(lines)


def write_page(rows: list[Row], folder: Path, versions: str = "") -> None:
    """Write boosters.md and its figure.

    Parameters
    ----------
    rows : list of dict
        The table.
    folder : Path
        The folder of the documentation.
    versions : str, default=""
        A sentence on the versions of the code that the results are of.
    """
    draw(rows, folder / "_static" / "boosters.png")
    tables = []
    for name, constraint in dict.fromkeys((row["data"], row["constraint"]) for row in rows):
        some = [row for row in rows if (row["data"], row["constraint"]) == (name, constraint)]
        tables.append(f"### {TITLES[name]}, {TITLES[constraint]}\n\n{_lines(some)}")
    fields = {
        "environment": environment(),
        "versions": versions,
        "comparisons": _comparisons(rows),
        "seconds": _seconds(rows),
        "tables": "\n".join(tables),
    }
    page = Path(__file__).with_suffix(".md").read_text().format(**fields)
    (folder / "boosters.md").write_text(page)
