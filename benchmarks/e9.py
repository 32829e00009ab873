"""E9 and E10 (IDCA, section 7): accuracy against fairness in a range of ranks, over five splits.

python benchmarks/e9.py                        # partial demographic parity, all data and methods
python benchmarks/e10.py                       # the same for weak partial demographic parity
python benchmarks/e9.py --quick                # one split, no regularisation: a few minutes
python benchmarks/e9.py --data a9a --seeds 0 1 --method ours unconstrained
python benchmarks/e9.py --idca                 # with the ramp and IDCA, as in the paper, beside it
python benchmarks/e9.py --out some/folder      # default: benchmarks/results

Linear models with cross terms (1, x, z, z x), the paper's data, ranges and kappas (D.1, D.2). Ours
takes the solver that "auto" does. Writes e9.md (means and 95% intervals over the splits, as the
paper's figure 1), e9-fits.csv (every fit), e9-frontiers.png, and for every data set the rates of
one group against the other's over all thresholds (figure 2) and the densities of scores (D.5).
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
import numpy as np
from common import Row, write_table
from partial_fairness import (
    OUT,
    RANKS,
    Measure,
    Method,
    draw_densities,
    draw_frontiers,
    draw_rates,
    measured,
    regularized,
    summary,
)

from fairconstrained.constraints import (
    Constraint,
    GroupAUCParity,
    InterGroupAUCParity,
    IntraGroupAUCParity,
    PartialDemographicParity,
    WeakPartialDemographicParity,
)
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Surrogate
from fairconstrained.metrics import (
    partial_demographic_parity_difference,
    weak_partial_demographic_parity_difference,
)
from fairconstrained.solvers import IDCA
from fairconstrained.solvers.interior_point import InteriorPoint

KAPPAS = {
    "e9": {
        "a9a": (0.01, 0.05, 0.1, 0.2, 0.28),
        "bank": (0.01, 0.08, 0.22, 0.3),
        "law school": (0.005, 0.08, 0.1, 0.15, 0.2),
    },
    "e10": {
        "a9a": (0.005, 0.03, 0.05, 0.1, 0.15),
        "bank": (0.01, 0.03, 0.05, 0.07, 0.1),
        "law school": (0.005, 0.04, 0.06, 0.1, 0.15),
    },
}
NOTIONS = {"e9": PartialDemographicParity, "e10": WeakPartialDemographicParity}
TITLES = {"e9": "partial demographic parity", "e10": "weak partial demographic parity"}
WHAT = {"e9": "DP^I", "e10": "WDP^I"}
PAIRWISE = {
    "group AUC": GroupAUCParity,
    "inter-group": InterGroupAUCParity,
    "intra-group": IntraGroupAUCParity,
}
SCALE = 0.1  # with cross terms groups differ in finer ways than the default, 0.25, can see
PAIRWISE_KAPPAS = (0.01, 0.05, 0.1, 0.2, 0.4)
STRENGTHS = (0.03, 0.1, 0.3, 1.0)


def methods_for(experiment: str, data: str, *, quick: bool, idca: bool) -> list[Method]:
    """Return the methods in the figure."""
    kappas, notion = KAPPAS[experiment][data], NOTIONS[experiment]

    def ours(surrogate: Surrogate, kappa: float) -> Constraint:
        return notion(kappa, surrogate=surrogate, ranks=RANKS[data])

    methods = [
        Method("ours", kappas, partial(ours, Sigmoid(SCALE))),
        Method("unconstrained", (1.0,), lambda level: None),
    ]
    if idca:
        solver = IDCA(InteriorPoint(max_iter=1), max_iter=60)
        methods.append(Method("IDCA, ramp", kappas, partial(ours, Ramp()), lambda level: solver))
    methods += [Method(name, PAIRWISE_KAPPAS, kind) for name, kind in PAIRWISE.items()]
    if not quick:
        exact = partial(ours, Sigmoid(SCALE), 0.0)
        methods.append(Method("regularisation", STRENGTHS, lambda strength: exact(), regularized))
    return methods


def unfairness_of(experiment: str) -> Measure:
    """Return DP^I or WDP^I of scores."""
    metric = {
        "e9": partial_demographic_parity_difference,
        "e10": weak_partial_demographic_parity_difference,
    }[experiment]

    def unfairness(scores: np.ndarray, groups: np.ndarray, ranks: tuple[float, float]) -> float:
        none = np.zeros(len(scores))
        return float(metric(none, scores, sensitive_features=groups, ranks=ranks))

    return unfairness


def main(experiment: str = "e9") -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=RANKS, default=list(RANKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--idca", action="store_true")
    parser.add_argument("--method", nargs="+", help="names as in the figure; default: all")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    seeds = given.seeds[:1] if given.quick else given.seeds
    rows: list[Row] = []
    for data in given.data:
        shown: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        methods = methods_for(experiment, data, quick=given.quick, idca=given.idca)
        methods = [one for one in methods if given.method is None or one.name in given.method]
        for row, scores, groups in measured(data, methods, seeds, unfairness_of(experiment)):
            rows.append(row)
            if row["method"] in ("ours", "unconstrained") and row["seed"] == seeds[0]:
                name = f"kappa = {row['level']:g}" if row["method"] == "ours" else "unconstrained"
                shown[name] = (scores, groups)
        kappas = sorted(KAPPAS[experiment][data], reverse=True)
        names = [
            f"kappa = {kappa:g}" for kappa in (kappas[0], kappas[len(kappas) // 2], kappas[-1])
        ]
        pictured = {name: shown[name] for name in ("unconstrained", *names) if name in shown}
        stem = f"{experiment}-{data}".replace(" ", "-")
        if pictured:
            draw_rates(pictured, data, given.out / f"{stem}-rates.png")
            draw_densities(pictured, data, given.out / f"{stem}-densities.png")
    table = summary(rows)
    draw_frontiers(table, WHAT[experiment], given.out / f"{experiment}-frontiers.png")
    write_table(rows, f"{experiment}-fits", f"{experiment.upper()}: every fit", given.out)
    title = f"{experiment.upper()}: {TITLES[experiment]}, means and 95% intervals over splits"
    write_table(table, experiment, title, given.out)


if __name__ == "__main__":
    main()
