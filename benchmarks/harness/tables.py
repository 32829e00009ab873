"""Tables of results: printed, and written as Markdown and CSV."""

import os
import platform
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness.store import stamp

Row = dict[str, Any]


def at_most(value: float, limit: float) -> str:
    """Return "met" if value <= limit, else "not met"."""
    return "met" if value <= limit else "not met"


def environment() -> str:
    """Return the versions, the processors and their load, for the head of a table."""
    packages = [f"{name} {version(name)}" for name in ("NumPy", "SciPy", "scikit-learn")]
    return (
        f"Python {platform.python_version()}, {', '.join(packages)}, {os.cpu_count()} processors, "
        f"load average {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d %H:%M')}"
    )


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def as_markdown(rows: list[Row]) -> str:
    """Return the rows as a Markdown table with aligned columns."""
    columns = list(rows[0])
    cells = [columns] + [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in cells
    ]
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
