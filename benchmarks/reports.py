"""Seconds of a fairness report against the number of groups.

Generated rows, two models, one constraint. Measures `fairness_report` and `to_html` in CPU seconds,
and the size of the page.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from statistics import median

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness.options import Default
from benchmarks.harness.tables import Row, write_table
from fairconstrained import DemographicParity, fairness_report

N_GROUPS = (2, 20, 200)


def measure(n_groups: int, n_rows: int, repeats: int) -> Row:
    """Return the row of a number of groups."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, n_rows)
    X = rng.normal(size=(n_rows, 4)) + rng.normal(0.0, 0.5, n_groups)[groups, None]
    y = (X.sum(axis=1) + 2.0 * rng.logistic(size=n_rows) > 0.0).astype(int)
    names = np.array([f"region {k:03d}" for k in range(n_groups)])[groups]
    models = {
        "before": LogisticRegression().fit(X, y),
        "after": LogisticRegression(C=1e-3).fit(X, y),
    }
    seconds: dict[str, list[float]] = {"report": [], "page": []}
    for _ in range(repeats):
        start = time.process_time()
        report = fairness_report(models, X, y, names, constraint=DemographicParity(0.05))
        between = time.process_time()
        page = report.to_html()
        seconds["report"].append(between - start)
        seconds["page"].append(time.process_time() - between)
    return {
        "groups": n_groups,
        "rows": n_rows,
        "CPU seconds, report": median(seconds["report"]),
        "CPU seconds, page": median(seconds["page"]),
        "page, kB": len(page) / 1e3,
    }


def add_options(parser: ArgumentParser) -> None:
    """Add --rows and --repeats."""
    parser.add_argument("--rows", type=int, default=Default(20_000, 2_000), help="rows")
    parser.add_argument("--repeats", type=int, default=Default(5, 1), help="runs of each report")


def run(options: Namespace) -> None:
    """Write reports.md and reports.csv."""
    rows = [measure(n, options.rows, options.repeats) for n in N_GROUPS]
    write_table(rows, "reports", "What a report costs, by the number of groups", options.out)
