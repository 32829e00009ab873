"""Tables of text, printed as text and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd


def number(value: Any) -> str:
    """Return a number as text, "-" for nan; whole numbers and other values as they are."""
    if not isinstance(value, float):
        return str(value)
    return "-" if pd.isna(value) else f"{value:.3f}"


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
    def of(cls, table: pd.DataFrame, heads: Mapping[str, str] | None = None) -> Table:
        """Return the text of a table; names of several levels are joined by colons.

        Parameters
        ----------
        table : DataFrame
            The values.
        heads : mapping of str to str or None, default=None
            The heads of the columns to show, those that the table has. Their values have the
            intervals in the columns with the suffixes ``_low`` and ``_high``, as "0.12 [0.08,
            0.17]". None shows all columns by their names.
        """
        shown = dict(zip(table, map(str, table), strict=True)) if heads is None else heads
        shown = {name: head for name, head in shown.items() if name in table}
        columns = []
        for name in shown:
            cells = list(map(number, table[name]))
            if heads is not None and f"{name}_low" in table:
                ends = zip(cells, table[f"{name}_low"], table[f"{name}_high"], strict=True)
                cells = [
                    text if text == "-" or pd.isna(low) else f"{text} [{low:.3f}, {high:.3f}]"
                    for text, low, high in ends
                ]
            columns.append(cells)
        names = [
            ": ".join(map(str, name)) if isinstance(name, tuple) else str(name)
            for name in table.index
        ]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return cls(list(shown.values()), list(zip(names, rows, strict=True)))

    @property
    def numeric(self) -> list[bool]:
        """Whether all cells of a column are numbers, with or without intervals."""
        columns = zip(*(cells for _, cells in self.rows), strict=True)
        return [all(map(_is_number, column)) for column in columns] or [False] * len(self.columns)

    def lines(self) -> list[list[str]]:
        """Return the heads and the rows, the names first."""
        return [["", *self.columns], *([name, *cells] for name, cells in self.rows)]

    def text(self) -> str:
        """Return left-aligned text; a table with a single column has no heads."""
        lines = self.lines()[len(self.columns) == 1 :]
        return "\n".join(f"  {line}" for line in aligned(lines, n_left=len(lines[0])))

    def markdown(self) -> str:
        """Return a table of Markdown."""
        head, *rows = self.lines()
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join("| " + " | ".join(map(markdown, line)) + " |" for line in lines)


def aligned(lines: list[list[str]], n_left: int) -> list[str]:
    """Return lines of cells as text; the first columns are aligned to the left, others right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < n_left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def markdown(text: str) -> str:
    """Return text that neither ends a cell of a table of Markdown nor is read as HTML."""
    for character, safe in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(character, safe)
    return text


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.lstrip("+-")[:1].isdigit()
