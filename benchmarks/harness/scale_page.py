"""The measured figures in the page on shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.harness.tables import Row, as_markdown, environment

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write_page(
    path: Path, targets: list[Row], details: list[Row], memory: list[Row], facts: dict[str, Any]
) -> None:
    """Write the figures into the page, between two comments.

    Parameters
    ----------
    path : Path
        The page.
    targets, details, memory : list of dict
        The tables.
    facts : dict
        Seconds per round of tiny shards and per further worker, CPU seconds per row by the number
        of features, bytes of a worker beyond its shards, and data passes of a fit.
    """
    per_row = facts["per_row"]
    overhead = facts["overhead"] + 99.0 * facts["per_worker"]
    seconds = overhead + 1e7 * per_row[100]
    text = (
        Path(__file__)
        .with_suffix(".md")
        .read_text()
        .format(
            environment=environment(),
            targets=as_markdown(targets),
            details=as_markdown(details),
            memory_table=as_markdown(memory),
            bytes=8 * 3 * 102 / 1e3,
            all_bytes=100 * 8 * 3 * 102 / 1e3,
            per_row=1e9 * per_row[100],
            per_row_20=1e9 * per_row[20],
            overhead=1e3 * facts["overhead"],
            per_worker=1e3 * facts["per_worker"],
            n_many=facts["n_many"],
            total_overhead=overhead,
            round=seconds,
            passes=facts["passes"],
            fit=seconds * facts["passes"],
            memory=facts["memory"] / 1e6,
            worker=(facts["memory"] + 1e7 * 401) / 1e9,
        )
    )
    page = path.read_text()
    start, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    path.write_text(page[:start] + "\n" + text + "\n" + page[end:])
