"""Seconds of a fit on a9a against scikit-learn's LogisticRegression, in turns.

LogisticRegression has the same penalty, and runs with the default threads and with one. The first
row is our fit without constraints: what the layers cost against a compiled loop.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from typing import Any

from sklearn.linear_model import LogisticRegression

from benchmarks.harness.data import Data, load
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.tables import Row, at_most, write_table
from benchmarks.harness.timing import in_turns, ratio
from fairconstrained import FairLogisticClassifier

ALPHA = 1e-4
KAPPAS = (0.1, 0.05, 0.02, 0.01)
CONSTRAINTS = ("demographic_parity", "equalized_odds")


def add_options(parser: ArgumentParser) -> None:
    """Add the fits, on how many rows, and --repeats."""
    add_choice(parser, "--constraints", CONSTRAINTS, quick=CONSTRAINTS, help="constraints")
    parser.add_argument(
        "--kappas", type=float, nargs="+", default=Default(list(KAPPAS), [0.05]), help="tolerances"
    )
    parser.add_argument(
        "--rows", type=int, default=Default(None, 3000), help="the first so many rows of a9a"
    )
    parser.add_argument("--repeats", type=int, default=Default(9, 3), help="timed runs of each")


def rows_of(options: Namespace) -> Data:
    """Return the rows of a9a that the options ask for."""
    X, y, groups = load("a9a")
    return X[: options.rows], y[: options.rows], groups[: options.rows]


def fit(X: Any, y: Any, groups: Any, constraint: Any, kappa: float) -> FairLogisticClassifier:
    """Return our fit with everything else at its default."""
    clf = FairLogisticClassifier(constraint, kappa, alpha=ALPHA)
    return clf.fit(X, y, sensitive_features=groups)


def logistic_regression(n_rows: int) -> LogisticRegression:
    """Return scikit-learn's estimator with the same penalty (its loss is a sum, ours a mean)."""
    return LogisticRegression(solver="lbfgs", tol=1e-4, C=1.0 / (n_rows * ALPHA), max_iter=1000)


def run(options: Namespace) -> None:
    """Write speed.md and speed.csv."""
    X, y, sex = rows_of(options)
    logistic = logistic_regression(len(y))
    n_iter = logistic.fit(X, y).n_iter_[0]
    cases: list[tuple[Any, float]] = [(None, 1.0)]
    cases += product(options.constraints, options.kappas)
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
    where = "a9a" if options.rows is None else f"The first {options.rows:,} rows of a9a"
    write_table(rows, "speed", f"{where}: seconds against LogisticRegression", options.out)
