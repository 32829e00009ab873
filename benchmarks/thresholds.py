"""What many thresholds cost: an evaluation in units of demographic parity, and whole fits on a9a.

cost: an evaluation is the objective, all constraints and one gradient of the Lagrangian, at a point
that no evaluation has seen; medians of neighbouring runs in one process, against demographic
parity. fits: partial parity, kappa 0.05, ranks 5% to 30%, no cross terms: the solver that "auto"
takes, and IDCA with the ramp from w = 0.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.data import load, parts
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.tables import Row, at_least, at_most, write_table
from benchmarks.harness.timing import in_turns, ratio
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import (
    Constraint,
    DemographicParity,
    PartialDemographicParity,
    ROCParity,
)
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.metrics import partial_demographic_parity_difference
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import IDCA

RANKS = (0.05, 0.30)
PLAIN = "demographic parity"
LIMITS: dict[str, tuple[Constraint, float]] = {
    PLAIN: (DemographicParity(0.05), 1.0),
    "ROC parity, 400 thresholds, sigmoid": (ROCParity(0.05), 15.0),
    "ROC parity, 400 thresholds, sigmoid of scale 0.25": (
        ROCParity(0.05, surrogate=Sigmoid(0.25)),
        15.0,
    ),
    "ROC parity, 400 thresholds, ramp": (ROCParity(0.05, surrogate=Ramp()), 15.0),
    "partial parity, 10 ranks, sigmoid": (PartialDemographicParity(0.05, ranks=RANKS), 6.0),
    "partial parity, 10 ranks, ramp": (
        PartialDemographicParity(0.05, ranks=RANKS, surrogate="ramp"),
        6.0,
    ),
}
ROUTES: dict[str, tuple[str, Any, float]] = {
    'sigmoid, solver="auto"': ("sigmoid", "auto", 4.0),
    "ramp, IDCA, 40 majorants": ("ramp", IDCA(max_iter=40), 60.0),
}


def _evaluation(problem: Problem) -> Callable[[], None]:
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


def cost(options: Namespace) -> list[Row]:
    """Return what evaluations cost in units of one with demographic parity."""
    rows = load("a9a")
    problems = {name: logistic_problem(rows, one) for name, (one, _) in LIMITS.items()}
    runs = {name: _evaluation(problem) for name, problem in problems.items()}
    seconds = in_turns(runs, options.repeats)
    table = []
    for name, (_, limit) in LIMITS.items():
        times = ratio(seconds[name], seconds[PLAIN])
        table.append(
            {
                "constraint": name,
                "outputs": problems[name].n_constraints,
                "milliseconds": 1e3 * median(seconds[name]),
                "times demographic parity": times,
                "limit": limit,
                "verdict": at_most(times, limit),
            }
        )
    return table


def fits(options: Namespace) -> list[Row]:
    """Return quality and time of whole fits with partial parity on a9a."""
    train, (X_test, y_test, groups_test) = parts("a9a")
    X, y, groups = (one[: options.rows] for one in train)
    rows = []
    for name, (surrogate, solver, limit) in ROUTES.items():
        constraint = PartialDemographicParity(0.05, surrogate=surrogate, ranks=RANKS)
        model = FairLogisticClassifier(constraint, solver=solver)
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the run ended with is in the table
            model.fit(X, y, sensitive_features=groups)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        scores = model.decision_function(X_test)
        gap = partial_demographic_parity_difference(
            y_test, scores, sensitive_features=groups_test, ranks=RANKS
        )
        accuracy = model.score(X_test, y_test)
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
    "cost": (cost, "Evaluations with many thresholds against demographic parity, a9a"),
    "fits": (fits, "Partial parity on a9a, kappa 0.05, ranks 5% to 30%, no cross terms"),
}


def add_options(parser: ArgumentParser) -> None:
    """Add the tables, and how much they measure."""
    add_choice(parser, "--tables", TABLES, quick=TABLES, help="tables")
    parser.add_argument("--repeats", type=int, default=Default(61, 3), help="timed evaluations")
    parser.add_argument(
        "--rows", type=int, default=Default(None, 3000), help="the first so many rows in a fit"
    )


def run(options: Namespace) -> None:
    """Write thresholds-cost and thresholds-fits."""
    for name in options.tables:
        measure, title = TABLES[name]
        write_table(measure(options), f"thresholds-{name}", title, options.out)
