"""Seconds of a fit on a9a against scikit-learn's LogisticRegression, in turns.

LogisticRegression has the same penalty, and runs with the default threads and with one. The first
row is our fit without constraints: what the layers cost against a compiled loop.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from benchmarks.harness.fits import add_grid, fit, grid, logistic_regression, rows_of, where
from benchmarks.harness.options import Default
from benchmarks.harness.tables import Row, at_most, write_table
from benchmarks.harness.timing import in_turns, ratio


def add_options(parser: ArgumentParser) -> None:
    """Add the fits and --repeats."""
    add_grid(parser)
    parser.add_argument("--repeats", type=int, default=Default(9, 3), help="timed runs of each")


def run(options: Namespace) -> None:
    """Write speed.md and speed.csv."""
    X, y, sex = rows_of(options)
    logistic = logistic_regression(len(y))
    n_iter = logistic.fit(X, y).n_iter_[0]
    cases: list[tuple[Any, float]] = [(None, 1.0), *grid(options)]
    rows: list[Row] = []
    for constraint, kappa in cases:
        runs: dict[str, Callable[[], Any]] = {
            "ours": partial(fit, X, y, sex, constraint, kappa),
            "LR": partial(logistic.fit, X, y),
            "LR, 1 thread": partial(logistic.fit, X, y),
        }
        passes = runs["ours"]().result_.data_passes
        seconds = in_turns(runs, options.repeats, threads={"LR, 1 thread": 1})
        ours = seconds["ours"]
        worst = max(ratio(ours, seconds["LR"]), ratio(ours, seconds["LR, 1 thread"]))
        rows.append(
            {
                "constraint": constraint or "none",
                "kappa": kappa if constraint else "",
                "seconds": median(ours),
                "LR": median(seconds["LR"]),
                "LR, 1 thread": median(seconds["LR, 1 thread"]),
                "ratio": ratio(ours, seconds["LR"]),
                "ratio, 1 thread": ratio(ours, seconds["LR, 1 thread"]),
                "data passes": passes,
                "ms per pass": 1e3 * median(ours) / passes,
                "LR iterations": n_iter,
                "LR ms per iteration": 1e3 * median(seconds["LR, 1 thread"]) / n_iter,
                "both ratios <= 3": at_most(worst, 3.0),
            }
        )
    write_table(rows, "speed", f"{where(options)}: seconds against LogisticRegression", options.out)
