"""Tables and legends of the HTML page of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from fairconstrained.reporting import _svg as svg
from fairconstrained.reporting._text import rows_of_table


def keys(names: Sequence[str], *, single: str = "") -> str:
    """Return a legend of the models; of a single model only if it gets a name."""
    if len(names) == 1 and not single:
        return ""
    shown = [single] if len(names) == 1 else names
    items = "".join(
        f"<li>{svg.key(k, len(names))}{escape(name)}</li>" for k, name in enumerate(shown)
    )
    return f'<ul class="keys">{items}</ul>'


def dots_table(
    title: str,
    subtitle: str,
    head: str,
    scale: svg.Scale,
    rows: Sequence[str],
    values: str,
    *,
    counts: str = "",
    foot: str = "",
) -> str:
    """Return a table with a row of dots in each row, below an axis.

    Parameters
    ----------
    title, subtitle : str
        The caption.
    head, values, counts : str
        The heads of the columns of names, of values and of numbers of rows; without the last one,
        there is no such column.
    scale : Scale
        The axis.
    rows : sequence of str
        The rows, see `row_of`.
    foot : str, default=""
        The last row.
    """
    count = f'<th scope="col" class="number">{counts}</th>' if counts else ""
    below = f"<tfoot>{foot}</tfoot>" if foot else ""
    return (
        f'<table class="dots"><caption>{escape(title)}<span>{escape(subtitle)}</span></caption>'
        f'<thead><tr><th scope="col">{head}</th>{count}<td class="plot">{svg.axis(scale)}</td>'
        f'<th scope="col" class="number">{values}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody>{below}</table>"
    )


def row_of(
    head: str,
    count: str,
    picture: str,
    values: Sequence[str],
    *,
    group: str | None = None,
    hidden: bool = False,
    others: bool = False,
) -> str:
    """Return a row of a table of dots.

    Parameters
    ----------
    head, picture : str
        The name and the picture, as HTML.
    count : str
        The number of rows; empty if the table has no such column.
    values : sequence of str
        The values, one below the other.
    group : str or None, default=None
        The name by which the search finds the row.
    hidden : bool, default=False
        Whether it is shown only when it is searched for.
    others : bool, default=False
        Whether it stands for the groups that are not shown.
    """
    found = "" if group is None else f' data-group="{escape(group.lower())}"'
    cells = f'<td class="number rows">{count}</td>' if count else ""
    lines = "<br>".join(map(escape, values))
    kind = ' class="others"' if others else ""
    return (
        f"<tr{found}{' hidden' * hidden}{kind}>"
        f'<th scope="row">{head}</th>{cells}'
        f'<td class="plot">{picture}</td><td class="number">{lines}</td></tr>'
    )


def html_table(table: pd.DataFrame, head: str, *, searched: Sequence[str] | None = None) -> str:
    """Return a table of text in a box that scrolls where the page is narrow.

    Parameters
    ----------
    table : DataFrame
        Text, or numbers as text.
    head : str
        The head of the names.
    searched : sequence of str or None, default=None
        The names by which the search finds each row.
    """
    numeric = [all(_is_number(cell) for cell in table[column]) for column in table.columns]
    kinds = [' class="number"' if one else "" for one in numeric]
    heads = zip(table.columns, kinds, strict=True)
    cells = "".join(f'<th scope="col"{kind}>{escape(str(name))}</th>' for name, kind in heads)
    lines = [
        f'<div class="scroll" tabindex="0" role="group" aria-label="Table: {escape(head)}"><table>',
        f'<thead><tr><th scope="col">{escape(head)}</th>{cells}</tr></thead><tbody>',
    ]
    for k, (name, row) in enumerate(rows_of_table(table)):
        found = "" if searched is None else f' data-group="{escape(searched[k].lower())}"'
        cells = "".join(
            f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)
        )
        lines.append(f'<tr{found}><th scope="row">{escape(name)}</th>{cells}</tr>')
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _is_number(cell: object) -> bool:
    """Return whether a cell holds a number, with or without an interval."""
    text = str(cell)
    return text == "-" or text.lstrip("+-")[:1].isdigit()
