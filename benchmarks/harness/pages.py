"""Pages of the documentation that a benchmark writes: a text, a picture and tables as CSV."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from benchmarks.harness.options import ROOT
from benchmarks.harness.tables import as_markdown

TEXTS = jinja2.Environment(
    loader=jinja2.FileSystemLoader(ROOT / "benchmarks" / "pages"),
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)
BLUE, ORANGE, GREY = "#175cd3", "#b54708", "#98a2b3"


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
            if out is not None and (out / file.name).exists():
                pd.read_csv(out / file.name).to_csv(file, index=False, float_format="%.6g")
        tables = [pd.read_csv(file) for file in files]
        shown = as_markdown(self.table(*tables).to_dict("records")).rstrip()
        facts = {"rows": tables[0], "tables": tables, "table": shown, "measured": measured(tables)}
        text = TEXTS.get_template(f"{self.name}.md").render(facts)
        (docs / f"{self.name}.md").write_text(text + "\n")
        self._picture(tables, docs / "_static" / f"{self.name}.svg")

    def _picture(self, tables: list[pd.DataFrame], path: Path) -> None:
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        with rc_context({"svg.hashsalt": "fairconstrained", "font.size": 8}):
            figure = Figure((8.0, self.height), layout="constrained")
            axes = figure.subplots(1, 2)
            for ax in axes:
                ax.spines[["top", "right"]].set_visible(False)
            self.draw(*axes, *tables)
            figure.savefig(path, metadata={"Date": None})


def measured(tables: list[pd.DataFrame]) -> str:
    """Return the commits and the last date of the figures."""
    rows = pd.concat([table[["commit", "date"]] for table in tables])
    commits = ", ".join(rows.commit.astype(str).unique())
    changed = " (+: with changes that were not committed)" if "+" in commits else ""
    return f"commit {commits}{changed} on {rows.date.max()}"


def boxes(
    ax: Any, figures: pd.Series, by: pd.Series, label: str, marked: Collection[str] = ()
) -> None:
    """Draw a box for every name in `by`, with lines over the whole range."""
    names = list(dict.fromkeys(by))[::-1]
    drawn = ax.boxplot(
        [figures[by == name] for name in names],
        orientation="horizontal",
        whis=(0, 100),
        tick_labels=names,
        patch_artist=True,
        medianprops={"color": "black"},
    )
    for name, box in zip(names, drawn["boxes"], strict=True):
        box.set_facecolor(BLUE if name in marked else GREY)
    ax.set_xlabel(label)
