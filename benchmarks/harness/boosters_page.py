"""The page of the benchmark of boosted trees: figure, tables, and how the targets are met."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.harness.boosted_peers import FREE, METHODS, ON_SCORES
from benchmarks.harness.rank_figures import plt
from benchmarks.harness.tables import Row, environment

TITLES = {
    "adult": "Adult",
    "bank": "bank",
    "compas": "COMPAS",
    "law_school": "law school",
    "demographic_parity": "demographic parity",
    "equalized_odds": "equalized odds",
}


def draw(rows: list[Row], path: Path) -> None:
    """Draw accuracy against the gap on test rows."""
    panels = list(dict.fromkeys((row["data"], row["constraint"]) for row in rows))
    n_columns = len({constraint for _, constraint in panels})
    n_rows = -(-len(panels) // n_columns)
    size = (5.0 * n_columns, 3.2 * n_rows)
    figure, axes = plt().subplots(n_rows, n_columns, figsize=size, squeeze=False)
    for (name, constraint), ax in zip(panels, axes.ravel(), strict=False):
        for method, one in METHODS.items():
            points = sorted(
                (row["test gap"], row["accuracy"])
                for row in rows
                if (row["data"], row["constraint"], row["method"]) == (name, constraint, method)
            )
            if points:
                ax.plot(*np.transpose(points), lw=1.0, label=method, marker=one.marker, ms=6)
        title = f"{TITLES[name]}, {TITLES[constraint]}"
        ax.set(title=title, xlabel="gap on test rows", ylabel="accuracy")
        ax.grid(alpha=0.3)
    handles = {}
    for ax in axes.ravel():
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles, loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=72)
    plt().close(figure)


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
        spread = "" if np.isnan(row["+-"]) else f" +- {row['+-']:.4f}"
        cells = [row["method"], _kappa(row), str(row["splits"]), f"{row['test gap']:.3f}"]
        cells += [f"{row['accuracy']:.4f}", _measure(row["AUC"], 4), _measure(row["log loss"], 4)]
        cells += [f"{row['seconds']:.2f}", _measure(row["x LightGBM"], 1), lead + spread]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _comparisons(rows: list[Row]) -> str:
    """Return in how many comparisons the accuracy is not below the other method's."""
    found = []
    for method in METHODS:
        some = [row for row in rows if row["method"] == method and row["+-"] == row["+-"]]
        if some:
            met = sum(row["target"] == "met" for row in some)
            found.append(f"- {method}: {met} of {len(some)}")
    below = [row for row in rows if row["target"] == "not met" and row["method"] != ON_SCORES]
    for row in below:
        place = f"{TITLES[row['data']]}, {TITLES[row['constraint']]}"
        named = f"{row['method']} {_kappa(row)}".strip()
        found.append(
            f"- below: {place}, {named}: {-100 * row['advantage']:.2f} +- {100 * row['+-']:.2f} "
            f"points at a gap of {row['test gap']:.3f}"
        )
    return "\n".join(found)


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


def write_page(rows: list[Row], folder: Path) -> None:
    """Write boosters.md and its figure.

    Parameters
    ----------
    rows : list of dict
        The table.
    folder : Path
        The folder of the documentation.
    """
    draw(rows, folder / "_static" / "boosters.png")
    tables = []
    for name, constraint in dict.fromkeys((row["data"], row["constraint"]) for row in rows):
        some = [row for row in rows if (row["data"], row["constraint"]) == (name, constraint)]
        tables.append(f"### {TITLES[name]}, {TITLES[constraint]}\n\n{_lines(some)}")
    fields = {
        "environment": environment(),
        "comparisons": _comparisons(rows),
        "seconds": _seconds(rows),
        "tables": "\n".join(tables),
    }
    page = Path(__file__).with_suffix(".md").read_text().format(**fields)
    (folder / "boosters.md").write_text(page)
