"""Mini-batches on a million rows: data passes to within 1% of the reference objective.

Each stochastic solver next to its deterministic form, with the defaults, from 0, on generated data
(10 features, logistic loss, demographic parity 0.02). A run ends when a measured point violates by
at most 1e-3 and its objective is at most 1.01 times the reference, which is solved to 1e-7.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

import numpy as np

from benchmarks.harness.options import Default, add_choice, add_seeds
from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.tables import Row, at_most, write_table
from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, AugmentedLagrangian, Status

PAIRS = {
    "ssg": "ssg-stochastic",
    "3s-econ": "3s-econ-stochastic",
    "plada": "plada-stochastic",
    "idca": "idca-stochastic",
}


def passes_to(name: str, problem: Problem, objective: float, seed: int) -> tuple[float, float]:
    """Return passes and seconds until a measured point is good enough; nan if there is none."""

    def good(measured) -> bool:
        return measured.violation <= 1e-3 and measured.objective <= objective

    clock = time.process_time()
    result = SOLVERS[name]().minimize(problem.uncounted(), callback=good, random_state=seed)
    seconds = time.process_time() - clock
    reached = result.status in (Status.STOPPED, Status.CONVERGED)
    return (result.data_passes if reached else float("nan")), seconds


def compare(name: str, problem: Problem, objective: float, seeds: list[int]) -> Row:
    """Return a row of the table: the deterministic form and the one on mini-batches."""
    passes, seconds = passes_to(name, problem, objective, 0)
    runs = [passes_to(PAIRS[name], problem, objective, seed) for seed in seeds]
    counts = [one[0] for one in runs]
    row = {
        "method": name,
        "passes": passes,
        "CPU seconds": seconds,
        "on batches: passes, least": min(counts),
        "most": max(counts),
        "median CPU seconds": float(np.median([one[1] for one in runs])),
        "fewer": at_most(max(counts), passes),
    }
    print(*row.values(), flush=True)
    return row


def add_options(parser: ArgumentParser) -> None:
    """Add the number of rows, the methods and the seeds."""
    parser.add_argument("--rows", type=int, default=Default(1_000_000, 20_000), help="rows")
    add_choice(parser, "--solver", PAIRS, quick=["ssg", "3s-econ"], help="methods")
    add_seeds(parser, range(3))


def run(options: Namespace) -> None:
    """Write many_rows.md and many_rows.csv."""
    rows = make_biased_classification(options.rows, random_state=0)
    problem = logistic_problem(rows, DemographicParity(0.02))
    reference = AugmentedLagrangian(tol=1e-7, max_iter=300).minimize(problem).objective
    table = [compare(name, problem, 1.01 * reference, options.seeds) for name in options.solver]
    title = f"Passes to 1% of the reference objective on {options.rows:,} rows"
    write_table(table, "many_rows", title, options.out)
