"""What an evaluation with many thresholds costs, and E9 on a9a: quality and time.

python benchmarks/thresholds.py                # both tables, some three minutes
python benchmarks/thresholds.py --only cost    # or e9
python benchmarks/thresholds.py --out some/folder

cost: an evaluation is the objective, all constraints and one gradient of the Lagrangian, at a point
that no evaluation has seen; medians of neighbouring runs in one process, against plain demographic
parity.
e9: a9a, kappa 0.05, ranks 5% to 30%, no cross terms, whole fits: the solver that "auto" takes, and
IDCA with the ramp from w = 0.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import common  # noqa: F401  (first: it puts the repository on the path)
import numpy as np
from common import Row, at_least, at_most, in_turns, ratio, write_table
from real_problems import training_data

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import Constraint, DemographicParity, PartialDemographicParity
from fairconstrained.constraints import ROCParity as ROC
from fairconstrained.datasets import fetch_a9a
from fairconstrained.domains import WholeSpace
from fairconstrained.estimators.fit import build_problem
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.metrics import partial_demographic_parity_difference
from fairconstrained.penalties.base import L2
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import IDCA
from fairconstrained.solvers.interior_point import InteriorPoint

OUT = Path(__file__).resolve().parent / "results"
RANKS = (0.05, 0.30)
PLAIN = "demographic parity"
LIMITS: dict[str, tuple[Constraint, float]] = {
    "ROC parity, 400 thresholds, sigmoid": (ROC(0.05), 15.0),
    "ROC parity, 400 thresholds, sigmoid of scale 0.25": (ROC(0.05, surrogate=Sigmoid(0.25)), 15.0),
    "ROC parity, 400 thresholds, ramp": (ROC(0.05, surrogate=Ramp()), 15.0),
    "partial parity, 10 ranks, sigmoid": (PartialDemographicParity(0.05, ranks=RANKS), 6.0),
    "partial parity, 10 ranks, ramp": (
        PartialDemographicParity(0.05, ranks=RANKS, surrogate="ramp"),
        6.0,
    ),
}


def _problem(constraint: Constraint) -> Problem:
    return build_problem(
        training_data("a9a"),
        [constraint],
        loss=Logistic(),
        penalty=L2(1e-4),
        domain=WholeSpace(),
        fit_intercept=True,
    )


def _evaluation(problem: Problem) -> Any:
    """Return a function that evaluates at a new point each time."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.0, 0.1, problem.n_constraints)
    start = problem.start()
    n = problem.objective.model.n_parameters

    def evaluate() -> None:
        w = start.copy()
        w[:n] += 0.3 * rng.standard_normal(n)
        at = problem.at(w)
        _ = at.objective, at.constraints
        at.gradient(weights)

    evaluate()
    return evaluate


def cost(repeats: int = 61) -> list[Row]:
    """Return what evaluations cost in units of one with demographic parity."""
    problems = {PLAIN: _problem(DemographicParity(0.05))}
    problems |= {name: _problem(constraint) for name, (constraint, _) in LIMITS.items()}
    seconds = in_turns({name: _evaluation(problem) for name, problem in problems.items()}, repeats)
    rows = []
    for name, problem in problems.items():
        limit = LIMITS[name][1] if name in LIMITS else 1.0
        times = ratio(seconds[name], seconds[PLAIN])
        rows.append(
            {
                "constraint": name,
                "outputs": problem.n_constraints,
                "milliseconds": 1e3 * median(seconds[name]),
                "times plain": times,
                "limit": limit,
                "verdict": at_most(times, limit),
            }
        )
    return rows


ROUTES: dict[str, tuple[str, Any, float]] = {
    'sigmoid, solver="auto"': ("sigmoid", "auto", 4.0),
    "ramp, IDCA, 40 majorants": ("ramp", IDCA(InteriorPoint(max_iter=1), max_iter=40), 60.0),
}


def e9() -> list[Row]:
    """Return quality and time of both routes to E9's problem on a9a."""
    train, test = fetch_a9a(), fetch_a9a(subset="test")
    rows = []
    for name, (surrogate, solver, limit) in ROUTES.items():
        constraint = PartialDemographicParity(0.05, surrogate=surrogate, ranks=RANKS)
        model = FairLogisticClassifier(constraint, solver=solver)
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the run ended with is in the table
            model.fit(train.data, train.target, sensitive_features=train.sensitive_features)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        gap = partial_demographic_parity_difference(
            test.target,
            model.decision_function(test.data),
            sensitive_features=test.sensitive_features,
            ranks=RANKS,
        )
        accuracy = model.score(test.data, test.target)
        quality = (at_least(accuracy, 0.828), at_most(gap, 0.08), at_most(cpu, limit))
        rows.append(
            {
                "route": name,
                "solver": type(model.result_.solver).__name__,
                "status": model.result_.status.value,
                "objective": model.objective_,
                "violation": model.violation_,
                "test accuracy": accuracy,
                "test DP^I": gap,
                "train DP^I": model.decision_gap_,
                "seconds": wall,
                "CPU seconds": cpu,
                "limit": limit,
                "0.828, 0.08, CPU": "met" if set(quality) == {"met"} else "not met",
            }
        )
    return rows


TABLES = {
    "cost": (cost, "Evaluations with many thresholds against plain demographic parity, a9a"),
    "e9": (e9, "E9 on a9a, kappa 0.05, ranks 5% to 30%, no cross terms"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES, action="append")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    for name in given.only or TABLES:
        measure, title = TABLES[name]
        write_table(measure(), f"thresholds-{name}", title, given.out)


if __name__ == "__main__":
    main()
