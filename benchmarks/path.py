"""Measure what a frontier of 30 points costs: `python benchmarks/path.py [--quick]`.

The yardstick is the hardest of the 30 single fits, each from scratch by the estimator's own `fit`:
the one that takes the most passes.
"""

import argparse
from pathlib import Path

import numpy as np
from common import Row, at_most, in_turns, write_table
from real_problems import DATA

from fairconstrained import FairLogisticClassifier, fairness_path

HERE = Path(__file__).resolve().parent
CONSTRAINTS = ("demographic_parity", "equalized_odds")


def measure(name: str, constraint: str, repeats: int) -> Row:
    """Return a row of the table: passes, and CPU seconds as medians of runs in turns."""
    X, y, groups = DATA[name]()
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
        "hardest": passes,
        "ratio": ratios[0],
        "seconds": clocks["path"],
        "hardest, s": clocks["single"],
        "ratio, s": ratios[1],
        "sum of 30 fits, passes": sum(clf.result_.data_passes for clf in singles),
        "worst objective / single": float((found.objectives / objectives).max() - 1.0),
        "violation": found.violations.max(),
        "both <= 3": at_most(max(ratios), 3.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="COMPAS and law school only")
    parser.add_argument("--data", choices=list(DATA), action="append", help="may be repeated")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args()
    names = options.data or (["compas", "law school"] if options.quick else list(DATA))
    repeats = 3 if options.quick else 5
    rows = [measure(name, constraint, repeats) for name in names for constraint in CONSTRAINTS]
    write_table(rows, "path", "Frontiers of 30 points against the hardest single fit", options.out)


if __name__ == "__main__":
    main()
