"""Speed of this checkout against another one: fits and paths of 30 points, in alternation.

Each checkout has one long-lived process, and they run the same task in turns, after a first run
that is not timed. Without --base the checkout is compared with itself, which shows the noise.
The ratio is the median of the ratios of neighbouring runs; above 1 this checkout is slower. For
paths, the objective is the sum over the points, and the violation the largest.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.tables import Row, at_most, write_table
from benchmarks.harness.timing import ratio
from benchmarks.harness.worker import ROOT, Task, Worker

CONSTRAINTS = ("demographic_parity", "equalized_odds")
PATH_DATA = ("a9a", "bank", "compas", "law_school")
KAPPAS = (0.1, 0.05, 0.02, 0.01)
SIDES = ("base", "current")


def tasks(options: Namespace) -> list[Task]:
    """Return what is run."""
    fits = [
        {"kind": "fit", "data": "a9a", "constraint": constraint, "kappa": kappa}
        for constraint, kappa in product(options.constraints, options.kappas)
    ]
    paths = [
        {"kind": "path", "data": data, "constraint": constraint, "kappa": ""}
        for data, constraint in product(options.data, options.constraints)
    ]
    chosen = {"fits": fits, "paths": paths}
    return [task for name in options.tables for task in chosen[name]]


def compare(task: Task, workers: dict[str, Worker], repeats: int) -> Row:
    """Return a row of the table: medians of alternating runs."""
    found = {side: [worker.ask(task)] for side, worker in workers.items()}
    order = list(SIDES)
    for _ in range(repeats):
        for side in order:
            found[side].append(workers[side].ask(task))
        order.reverse()  # base, current, current, base, ...: neither is always second
    timed = {side: [one["CPU seconds"] for one in found[side][1:]] for side in SIDES}
    base, current = (found[side][0] for side in SIDES)
    slower = ratio(timed["current"], timed["base"])
    row = {
        **task,
        "passes, base": base["passes"],
        "passes": current["passes"],
        "CPU seconds, base": median(timed["base"]),
        "CPU seconds": median(timed["current"]),
        "ratio": slower,
        "objective / base - 1": current["objective"] / base["objective"] - 1.0,
        "violation, base": base["violation"],
        "violation": current["violation"],
        "ratio <= 1.05": at_most(slower, 1.05),
    }
    print(*row.values(), flush=True)
    return row


def add_options(parser: ArgumentParser) -> None:
    """Add the checkouts and the tasks."""
    parser.add_argument("--base", type=Path, default=ROOT, help="the checkout to compare with")
    add_choice(parser, "--tables", ("fits", "paths"), quick=["fits", "paths"], help="tables")
    add_choice(parser, "--constraints", CONSTRAINTS, quick=CONSTRAINTS[:1], help="constraints")
    parser.add_argument(
        "--kappas", type=float, nargs="+", default=Default(list(KAPPAS), [0.05]), help="of fits"
    )
    add_choice(parser, "--data", PATH_DATA, quick=["compas"], help="data sets of paths")
    parser.add_argument("--repeats", type=int, default=Default(7, 1), help="timed runs of each")


def run(options: Namespace) -> None:
    """Write compare.md and compare.csv."""
    workers = dict(zip(SIDES, (Worker(options.base), Worker(ROOT)), strict=True))
    try:
        rows = [compare(task, workers, options.repeats) for task in tasks(options)]
    finally:
        for worker in workers.values():
            worker.close()
    write_table(rows, "compare", f"This checkout against {options.base}", options.out)
