"""What reports have in common: texts and tables from templates, and the class of all reports."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jinja2
import numpy as np
import pandas as pd

from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.impact import FOUR_FIFTHS
from fairconstrained.metrics.rates import RATES
from fairconstrained.utils.arguments import check_option
from fairconstrained.utils.arrays import at_most
from fairconstrained.utils.execution import whole_file
from fairconstrained.utils.meta_estimators import final_estimator


def distinct(value: float, others: Sequence[float], formats: Sequence[str]) -> str:
    """Return a number in the first format that tells it from others, else in the last."""
    apart = [other for other in others if abs(value - other) > 1e-9]  # nan is no other value
    return next(
        (text for form in formats if (text := form % value) not in {form % each for each in apart}),
        formats[-1] % value,
    )


def number(value: Any, *others: float) -> str:
    """Return a number as text, "-" for nan; whole numbers and other values as they are.

    It has three decimals, or enough to tell a small one from 0, a share from 1, and from others.
    """
    if not isinstance(value, float):
        return str(value)
    formats = ["%.3f", "%.4f", "%.5f", "%.1g"]
    value = 0.0 if at_most(abs(value)) else value  # no "-0.000"
    return "-" if pd.isna(value) else distinct(value, [0.0, -0.0, 1.0, *others], formats)


@dataclass(frozen=True)
class Table:
    """A table of text."""

    columns: list[str]  # the heads of the columns; that of the names is not among them
    rows: list[tuple[str, list[str]]]  # the name of each row and its cells

    @classmethod
    def of(
        cls, table: pd.DataFrame, heads: Mapping[str, str] | None = None, interval: str = ""
    ) -> "Table":
        """Return the text of a table; names of several levels are joined by colons.

        `heads` has those of the columns to show, if the table has them; None shows all by their
        names. Values have the intervals in the columns with the suffixes ``_low`` and ``_high``, as
        "0.12 [0.08, 0.17]"; those of the column `interval` are called "low" and "high".
        """
        if interval:
            table = table.rename(columns={end: f"{interval}_{end}" for end in ("low", "high")})
        shown: Mapping[Any, str] = {name: str(name) for name in table} if heads is None else heads
        shown = {name: head for name, head in shown.items() if name in table}
        columns = []
        for name in shown:
            cells = list(map(number, table[name]))
            if heads is not None and f"{name}_low" in table:
                ends = zip(cells, table[f"{name}_low"], table[f"{name}_high"], strict=True)
                cells = [
                    text
                    if text == "-" or pd.isna(low)
                    else f"{text} [{number(low)}, {number(high)}]"
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


def spaced(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose names, of several levels the last ones, have spaces."""
    return table.rename(index=lambda name: str(name).replace("_", " "), level=-1)


def parts(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the parts of a table by all levels of its index but the last, with their titles."""
    above = [*range(table.index.nlevels - 1)]
    titles = [": ".join(map(str, np.atleast_1d(name[:-1]))) for name in table.index]
    by_title: Any = table.groupby(titles, sort=False)
    return [(title, part.droplevel(above)) for title, part in by_title]


def with_p_values(table: pd.DataFrame) -> pd.DataFrame:
    """Return impact ratios with whole numbers of selections, and as text where digits matter.

    A p-value that would be rounded to zero is "<0.001". Ratios have enough digits to differ from
    four fifths.
    """
    ratios = [number(ratio, FOUR_FIFTHS[0] / FOUR_FIFTHS[1]) for ratio in table["ratio"]]
    texts = ["-" if pd.isna(p) else f"{p:.3f}" for p in table["p_value"]]
    texts = ["<0.001" if text == "0.000" else text for text in texts]
    missing = table[["to_four_fifths", "to_parity"]]
    whole = missing.astype("Int64").astype(object).where(missing.notna(), np.nan)
    return table.assign(ratio=ratios, p_value=texts, **whole)


def with_change(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the change from the first of several columns to the last."""
    change = (table.iloc[:, -1] - table.iloc[:, 0]).map("{:+.3f}".format, na_action="ignore")
    return table if table.shape[1] < 2 else table.assign(change=change.fillna("-"))


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.lstrip("+-<")[:1].isdigit()


def figure(value: float, *others: float) -> str:
    """Return a value with three digits, but enough to tell it from other values."""
    return distinct(value, others, ["%.3g", "%.4g", "%.5g", "%.6g"])


def percent(value: float, other: float = np.nan) -> str:
    """Return 100 times a value with few decimals, but enough to tell it from another, 0 and 100."""
    if at_most(abs(value - round(value, 2)), 0.0):
        return f"{abs(100.0 * value):.0f}" if at_most(abs(value), 0.0) else f"{100.0 * value:.0f}"
    formats = ["%.1f", "%.2f", "%.3f", "%.4f", "%.7g"]
    return distinct(100.0 * value, [100.0 * other, 0.0, -0.0, 100.0], formats)


def kind(output: Outputs) -> str:
    """Return the name of the class of a model."""
    return "predictions" if output.model is None else type(final_estimator(output.model)).__name__


def line(value: Any) -> str:
    """Return a value as text in a single line."""
    return " ".join(str(value).split())


def level_of(confidence: float) -> str:
    """Return a confidence level as text."""
    return f"{100.0 * confidence:g}%"


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("fairconstrained.reporting"),
    autoescape=lambda name: name is not None and ".html" in name,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    auto_reload=False,  # templates do not change while a program runs
)
_ENVIRONMENT.filters.update(number=number, figure=figure, percent=percent, markdown=markdown)
_ENVIRONMENT.filters.update(table=Table.of, spaced=spaced, with_change=with_change, line=line)
_ENVIRONMENT.filters.update(parts=parts, with_p_values=with_p_values, kind=kind)
_ENVIRONMENT.tests |= {
    "finite": lambda value: value is not None and bool(np.isfinite(value)),
    "zero": lambda value: at_most(abs(value), 0.0),
}
_PLURALS = {name: f"{rate.title}s" for name, rate in RATES.items()}
_PLURALS |= {"accuracy": "accuracies", "base_rate": "rates of positive labels"}
_SENTENCES = _ENVIRONMENT.get_template("sentences.j2", globals={"titles": _PLURALS}).module


def render(template: str, /, **content: Any) -> str:
    """Return a template with its content; what ends in ".html.j2" escapes all text."""
    return _ENVIRONMENT.get_template(template).render(content)


def sentence(name: str, *content: Any) -> str:
    """Return a sentence of the template of sentences with its content."""
    return str(getattr(_SENTENCES, name)(*content)).strip()


@dataclass(frozen=True, eq=False)
class Report:
    """Tables of numbers that templates show as text, Markdown and HTML, the first by default."""

    title: str  # the models and the rows
    confidence: float  # the confidence level of the intervals
    provenance: dict[str, str]  # where models and rows come from

    _tables: ClassVar[tuple[str, ...]]
    _template: ClassVar[str]

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return a table of the report as a DataFrame with numbers.

        Parameters
        ----------
        table : str or None, default=None
            The name of the attribute; None takes `groups` of classifiers, `summary` of rankers.

        Returns
        -------
        table : DataFrame
            A copy.
        """
        name = self._tables[0] if table is None else table
        check_option("table", name, self._tables)
        return getattr(self, name).copy()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dictionaries, lists, strings and numbers; nan becomes None."""
        tables = {name: _records(getattr(self, name)) for name in self._tables}
        about = {name: getattr(self, name) for name in ("title", "confidence", "provenance")}
        return about | tables

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return :meth:`to_dict` as JSON text.

        Parameters
        ----------
        path : str, PathLike or None, default=None
            A file to which the text is also written, whole or not at all.
        """
        return _written(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a section of a model card, in Markdown; see :meth:`to_json`."""
        return _written(self._render(f"{self._template}.md.j2"), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a self-contained HTML page with its pictures; see :meth:`to_json`.

        All names from the data are escaped.
        """
        return _written(self._render("page.html.j2", tag="main"), path)

    def __str__(self) -> str:
        """Return the report as text."""
        return self._render(f"{self._template}.txt.j2").rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the report as HTML for notebooks."""
        return self._render(f"{self._template}.html.j2", tag="div")

    def _render(self, name: str, **options: str) -> str:
        """Return a template with the report."""
        content = {"report": self, "level": level_of(self.confidence), **self._content()}
        return render(name, template=self._template, **content, **options)

    def _content(self) -> dict[str, Any]:
        """Return what the templates show, besides the report itself."""
        return {}


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return a text, and write it to a file if there is one."""
    if path is not None:
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return text


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries, the index included."""
    keep = isinstance(table.index, pd.MultiIndex) or table.index.name is not None
    flat = table.reset_index() if keep else table
    return [{str(k): plain(value) for k, value in row.items()} for row in flat.to_dict("records")]


def plain(value: Any) -> Any:
    """Return a value as JSON has it: None for nan, numbers without NumPy's types."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
