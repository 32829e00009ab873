"""The templates of reports, which hold pages, tables and pictures, and what they print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from fairconstrained.utils.rounding import at_most


@dataclass(frozen=True)
class Table:
    """A table of text.

    Parameters
    ----------
    columns : list of str
        The heads of the columns; that of the names is not among them.
    rows : list of (str, list of str)
        The name of each row and its cells.
    """

    columns: list[str]
    rows: list[tuple[str, list[str]]]

    @classmethod
    def of(cls, table: pd.DataFrame) -> Table:
        """Return the text of a table; names of several levels are joined by colons."""
        names = [
            ": ".join(map(str, name)) if isinstance(name, tuple) else str(name)
            for name in table.index
        ]
        cells = [[str(cell) for cell in row] for row in table.to_numpy()]
        return cls([str(name) for name in table.columns], list(zip(names, cells, strict=True)))

    @property
    def numeric(self) -> list[bool]:
        """Whether all cells of a column are numbers, with or without intervals."""
        columns = zip(*(cells for _, cells in self.rows), strict=True)
        return [all(map(_is_number, column)) for column in columns] or [False] * len(self.columns)

    @property
    def lines(self) -> list[list[str]]:
        """The heads and the rows, the names first."""
        return [["", *self.columns], *([name, *cells] for name, cells in self.rows)]


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.lstrip("+-")[:1].isdigit()


def number(value: float) -> str:
    """Return a number as text; "-" for nan."""
    return "-" if pd.isna(value) else f"{value:.3f}"


def aligned(table: Table) -> str:
    """Return a table as left-aligned text; a table with a single column has no header."""
    lines = table.lines[len(table.columns) == 1 :]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join(line.rstrip() for line in padded)


def markdown_table(table: Table) -> str:
    """Return a table of Markdown."""
    head, *rows = table.lines
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(markdown_text, line)) + " |" for line in lines)


def markdown_text(text: str) -> str:
    """Return text that neither ends a cell of a table of Markdown nor is read as HTML."""
    for character, safe in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(character, safe)
    return text


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("fairconstrained.reporting"),
    autoescape=lambda name: name is not None and ".html" in name,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_ENVIRONMENT.filters |= {
    "number": number, "aligned": aligned, "markdown_table": markdown_table,
    "markdown_text": markdown_text,
}  # fmt: skip
_ENVIRONMENT.tests |= {
    "finite": lambda value: value is not None and bool(np.isfinite(value)),
    "zero": lambda value: at_most(value, 0.0),
}


def render(template: str, **content: Any) -> str:
    """Return a template with its content; what ends in ".html.j2" escapes all text."""
    return _ENVIRONMENT.get_template(template).render(content)
