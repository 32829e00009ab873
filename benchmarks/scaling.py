"""Seconds of a fit against the number of rows: generated dense data, 10 features.

Demographic parity 0.02, to the same tolerance for every size. "slope" is that of the line through
(log rows, log seconds).
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.fits import fit, logistic_regression
from benchmarks.harness.options import Default
from benchmarks.harness.tables import Row, at_most, write_table
from benchmarks.harness.timing import in_turns
from fairconstrained import make_biased_classification


def add_options(parser: ArgumentParser) -> None:
    """Add the sizes and --repeats."""
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=Default([10_000, 100_000, 1_000_000], [10_000, 50_000]),
        help="sizes of the data, at least two",
    )
    parser.add_argument("--repeats", type=int, default=Default(3, 1), help="timed runs of each")


def run(options: Namespace) -> None:
    """Write scaling.md, scaling.csv and scaling.png."""
    rows: list[Row] = []
    for n in options.rows:
        X, y, groups = make_biased_classification(n, n_features=10, gap=0.3, random_state=0)
        result = fit(X, y, groups, "demographic_parity", 0.02).result_
        runs: dict[str, Callable[[], Any]] = {
            "ours": partial(fit, X, y, groups, "demographic_parity", 0.02),
            "LR": partial(logistic_regression(n).fit, X, y),
        }
        seconds = {name: median(times) for name, times in in_turns(runs, options.repeats).items()}
        rows.append(
            {
                "rows": n,
                "status": result.status.value,
                "data passes": result.data_passes,
                "seconds": seconds["ours"],
                "seconds per pass": seconds["ours"] / result.data_passes,
                "LR": seconds["LR"],
            }
        )
    slopes: Row = {"rows": "slope", "status": "", "data passes": ""}
    for name in ("seconds", "seconds per pass", "LR"):
        slopes[name] = np.polyfit(
            np.log([r["rows"] for r in rows]), np.log([r[name] for r in rows]), 1
        )[0]
    table = [{**row, "slope <= 1.1": ""} for row in rows]
    table.append({**slopes, "slope <= 1.1": at_most(slopes["seconds"], 1.1)})
    write_table(table, "scaling", "Cost against rows: generated data, 10 features", options.out)
    draw_scaling(rows, slopes, options.out / "scaling.png")


def draw_scaling(rows: list[Row], slopes: Row, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    n = np.array([row["rows"] for row in rows], dtype=float)
    figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
    labels = {"seconds": "FairLogisticClassifier", "LR": "LogisticRegression"}
    for (name, label), marker in zip(labels.items(), "os", strict=True):
        values = [row[name] for row in rows]
        axes.loglog(n, values, marker=marker, label=f"{label}, slope {slopes[name]:.2f}")
    start = rows[0]["seconds"]
    axes.loglog(n, start * n / n[0], "k--", linewidth=0.8, label="slope 1")
    axes.set(xlabel="rows", ylabel="seconds ", title="Cost of a fit, 10 features")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
