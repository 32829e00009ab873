"""Tables of text, printed as text and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


def number(value: float) -> str:
    """Return a number as text; "-" for nan."""
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
