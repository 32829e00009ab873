"""What a path of 30 fits costs, next to the hardest of the 30 single fits.

The hardest fit is the one that takes the most passes, from scratch, by the estimator's `fit`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import numpy as np

from benchmarks.harness.data import DATA, QUICK_DATA, load
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.tables import Row, at_most, write_table
from benchmarks.harness.timing import in_turns
from fairconstrained import FairLogisticClassifier, fairness_path

CONSTRAINTS = ("demographic_parity", "equalized_odds")


def add_options(parser: ArgumentParser) -> None:
    """Add --data and --repeats."""
    add_choice(parser, "--data", DATA, quick=QUICK_DATA, help="data sets")
    parser.add_argument("--repeats", type=int, default=Default(5, 1), help="timed runs of each")


def measure(name: str, constraint: str, repeats: int) -> Row:
    """Return a row of the table: passes, and seconds as medians of runs in turns."""
    X, y, groups = load(name)
    estimator = FairLogisticClassifier(constraint)

    def path():
        return fairness_path(estimator, X, y, sensitive_features=groups)

    def single(kappa):
        return FairLogisticClassifier(constraint, kappa=kappa).fit(X, y, sensitive_features=groups)

    found = path()
    singles = [single(kappa) for kappa in found.kappas]
    cost = [clf.result_.data_passes for clf in singles]
    passes, hardest = max(cost), found.kappas[int(np.argmax(cost))]
    seconds = in_turns({"path": path, "single": lambda: single(hardest)}, repeats)
    clocks = {run: float(np.median(times)) for run, times in seconds.items()}
    objectives = np.array([clf.objective_ for clf in singles])
    ratios = found.data_passes.sum() / passes, clocks["path"] / clocks["single"]
    return {
        "data": name,
        "constraint": constraint,
        "converged": f"{(found.statuses == 'converged').sum()} of {len(found)}",
        "passes": found.data_passes.sum(),
        "hardest fit, passes": passes,
        "ratio of passes": ratios[0],
        "seconds": clocks["path"],
        "hardest fit, seconds": clocks["single"],
        "ratio of seconds": ratios[1],
        "30 single fits, passes": sum(cost),
        "largest objective / single fit": float((found.objectives / objectives).max() - 1.0),
        "violation": found.violations.max(),
        "both ratios <= 3": at_most(max(ratios), 3.0),
    }


def run(options: Namespace) -> None:
    """Write path.md and path.csv."""
    rows = [
        measure(name, constraint, options.repeats)
        for name in options.data
        for constraint in CONSTRAINTS
    ]
    write_table(rows, "path", "Paths of 30 points against the hardest single fit", options.out)
