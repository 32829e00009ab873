"""What benchmarks leave: results that are kept, tables, and pages of the documentation."""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from benchmarks.harness.options import ROOT

Row = dict[str, Any]
Rows = Iterator[Row]
_LOADER = jinja2.FileSystemLoader(ROOT / "benchmarks" / "pages")
TEXTS = jinja2.Environment(loader=_LOADER, trim_blocks=True, undefined=jinja2.StrictUndefined)
BLUE, ORANGE, GREY = "#175cd3", "#b54708", "#98a2b3"


@cache
def commit() -> str:
    """Return the commit of the checkout, with a + if files differ from it."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def stamp(result: dict[str, Any]) -> dict[str, str]:
    """Return the commit and the date of a result, by default those of now."""
    now = {"commit": commit(), "date": time.strftime("%Y-%m-%d")}
    return {name: result.get(name) or default for name, default in now.items()}


class Store:
    """Results in a folder, one file each, named by its key: delete files to run them again."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _path(self, key: tuple[str, ...]) -> Path:
        name = re.sub(r"[^\w.+-]+", "_", " ".join(key))
        return self.folder / f"{name}.json"

    def get(self, key: tuple[str, ...]) -> dict[str, Any] | None:
        """Return a result, or None if there is none."""
        path = self._path(key)
        return json.loads(path.read_text()) if path.exists() else None

    def of(self, key: tuple[str, ...], run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a result; if there is none it is measured, written and printed."""
        result = self.get(key)
        if result is None:
            result = self.put(key, run())
            print(*key, *result.values(), flush=True)
        return result

    def put(self, key: tuple[str, ...], result: dict[str, Any]) -> dict[str, Any]:
        """Write a result, with the commit and the date, and return it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        result = {**result, **stamp({})}
        path = self._path(key)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(result))
        temporary.replace(path)  # an interrupted run leaves no half of a file
        return result


def constants(name: str, *index: str) -> pd.DataFrame:
    """Return a table of published or chosen figures in this folder, with index columns."""
    return pd.read_csv(Path(__file__).with_name(f"{name}.csv"), index_col=list(index))


def at_most(value: float, limit: float) -> str:
    """Return "met" if value <= limit, else "not met"."""
    return "met" if value <= limit else "not met"


def ended(result: Any) -> Row:
    """Return how a run of a solver ended."""
    return {
        "status": result.status.value,
        "objective": result.objective,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "steps": result.n_iter,
        "solver": type(result.solver).__name__,
    }


def environment() -> str:
    """Return the commit, versions, processors and their load, for the head of a table."""
    packages = [f"{name} {version(name)}" for name in ("NumPy", "SciPy", "scikit-learn")]
    used = ", ".join([f"Commit {commit()}", f"Python {platform.python_version()}", *packages])
    return (
        f"{used}, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, "
        f"{time.strftime('%Y-%m-%d %H:%M')}"
    )


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def as_markdown(rows: list[Row]) -> str:
    """Return the rows as a Markdown table with aligned columns."""
    columns = list(rows[0])
    cells = [columns] + [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in cells)
    lines = [f"| {' | '.join(line)} |" for line in padded]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines) + "\n"


def _shown(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        print(*row.values(), flush=True)
        yield row


def write_table(rows: Iterable[Row], name: str, title: str, out: Path) -> list[Row]:
    """Print the rows, write them to `name`.md (rounded) and `name`.csv, and return them.

    The CSV has all digits, and the commit and the date of every row. Rows that are still to be
    measured are printed as they come.
    """
    rows = rows if isinstance(rows, list) else list(_shown(rows))
    out.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame([{**row, **stamp(row)} for row in rows])
    frame.to_csv(out / f"{name}.csv", index=False)
    text = f"## {title}\n\n{environment()}\n\n{as_markdown(rows)}"
    (out / f"{name}.md").write_text(text)
    print(text, flush=True)
    return rows


@dataclass(frozen=True)
class Page:
    """A page whose figures all come from its tables.

    Its text in benchmarks/pages has the names `tables` (all of them), `rows` (the first one),
    `table` (what is shown) and `measured` (commits and date).

    Attributes
    ----------
    name : str
        Of the page, of its text and of its picture.
    table : callable
        Returns what is shown, from the tables.
    draw : callable
        Draws the tables on two axes.
    tables : tuple of str
        The CSV files in docs/results.
    height : float
        Of the picture, in inches.
    """

    name: str
    table: Callable[..., pd.DataFrame]
    draw: Callable[..., None]
    tables: tuple[str, ...]
    height: float = 3.8

    def write(self, docs: Path, out: Path | None = None) -> None:
        """Write text and picture; with `out` the tables of a run there are published first."""
        files = [docs / "results" / f"{name}.csv" for name in self.tables]
        for file in files:
            measured_again = out is not None and (out / file.name).exists()
            table = pd.read_csv(out / file.name if measured_again else file)
            table.to_csv(file, index=False, float_format="%.6g")
        tables = [pd.read_csv(file) for file in files]
        shown = as_markdown(self.table(*tables).to_dict("records")).rstrip()
        facts = {"rows": tables[0], "tables": tables, "table": shown, "measured": measured(tables)}
        text = TEXTS.get_template(f"{self.name}.md").render(facts)
        (docs / f"{self.name}.md").write_text(text + "\n")
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        with rc_context({"svg.hashsalt": "fairconstrained", "font.size": 8}):
            figure = Figure((8.0, self.height), layout="constrained")
            axes = figure.subplots(1, 2)
            for ax in axes:
                ax.spines[["top", "right"]].set_visible(False)
            self.draw(*axes, *tables)
            figure.savefig(docs / "_static" / f"{self.name}.svg", metadata={"Date": None})


def measured(tables: list[pd.DataFrame]) -> str:
    """Return the commits and the last date of the figures."""
    rows = pd.concat([table[["commit", "date"]] for table in tables])
    commits = ", ".join(rows.commit.astype(str).unique())
    changed = " (+: with changes that were not committed)" if "+" in commits else ""
    return f"commit {commits}{changed} on {rows.date.max()}"


def boxes(ax, figures: pd.Series, by: pd.Series, label: str, marked: Collection[str] = ()) -> None:
    """Draw a box for every name in `by`, with lines over the whole range."""
    names = list(dict.fromkeys(by))[::-1]
    style = {"orientation": "horizontal", "patch_artist": True, "medianprops": {"color": "black"}}
    some = [figures[by == name] for name in names]
    drawn = ax.boxplot(some, whis=(0, 100), tick_labels=names, **style)
    for name, box in zip(names, drawn["boxes"], strict=True):
        box.set_facecolor(BLUE if name in marked else GREY)
    ax.set_xlabel(label)
