"""Speed of this checkout against another one: fits and paths of 30 points, in alternation.

Each checkout has one long-lived process, and they run the same task in turns, after a first run
that is not timed. Without --base the checkout is compared with itself, which shows the noise.
The ratio is the median of the ratios of neighbouring runs; above 1 this checkout is slower. For
paths, the objective is the sum over the points, and the violation the largest. Only public names
of the library are used, so that older versions can be compared with.
"""

import multiprocessing
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.harness.options import ROOT, Default, add_choice, add_numbers
from benchmarks.harness.processes import ratio
from benchmarks.harness.results import Row, at_most, write_table

CONSTRAINTS = ("demographic_parity", "equalized_odds")
DATA = ("a9a", "bank", "compas", "law_school")  # workers import no library before `begin`
SIDES = ("base", "current")


def begin(checkout: Path) -> None:
    """Import the library of a checkout in a process that has imported none."""
    sys.path.insert(0, str(checkout.resolve()))
    import fairconstrained

    if not Path(fairconstrained.__file__).is_relative_to(checkout.resolve()):
        raise ImportError(f"{checkout} has no package fairconstrained")
    warnings.simplefilter("ignore")


def perform(task: Row) -> Row:
    """Return the figures of a task and its CPU seconds."""
    from benchmarks.harness.data import load
    from fairconstrained import FairLogisticClassifier, fairness_path

    X, y, groups = load(task["data"])
    clock = time.process_time()
    if task["kind"] == "fit":
        clf = FairLogisticClassifier(task["constraint"], task["kappa"])
        result = clf.fit(X, y, sensitive_features=groups).result_
        figures = result.data_passes, result.objective, result.violation
    else:
        clf = FairLogisticClassifier(task["constraint"])
        path = fairness_path(clf, X, y, sensitive_features=groups)
        figures = path.data_passes.sum(), path.objectives.sum(), path.violations.max()
    seconds = time.process_time() - clock
    names = ("passes", "objective", "violation")
    return {**dict(zip(names, map(float, figures), strict=True)), "CPU seconds": seconds}


def tasks(options) -> list[Row]:
    """Return the tasks of the tables that are asked for."""
    fits = product(["fit"], ["a9a"], options.constraints, options.kappas)
    paths = product(["path"], options.data, options.constraints, [""])
    chosen = [task for task in (*fits, *paths) if f"{task[0]}s" in options.tables]
    names = ("kind", "data", "constraint", "kappa")
    return [dict(zip(names, task, strict=True)) for task in chosen]


def compare(task: Row, workers: dict[str, ProcessPoolExecutor], repeats: int) -> Row:
    """Return a row of the table: medians of alternating runs."""
    runs = {side: [worker.submit(perform, task).result()] for side, worker in workers.items()}
    order = list(SIDES)
    for _ in range(repeats):
        for side in order:
            runs[side].append(workers[side].submit(perform, task).result())
        order.reverse()  # base, current, current, base, ...: neither is always second
    seconds = {side: [run["CPU seconds"] for run in runs[side][1:]] for side in SIDES}
    base, current = (runs[side][0] for side in SIDES)
    slower = ratio(seconds["current"], seconds["base"])
    return {
        **task,
        "passes, base": base["passes"],
        "passes": current["passes"],
        "CPU seconds, base": median(seconds["base"]),
        "CPU seconds": median(seconds["current"]),
        "ratio": slower,
        "objective / base - 1": current["objective"] / base["objective"] - 1.0,
        "violation, base": base["violation"],
        "violation": current["violation"],
        "ratio <= 1.05": at_most(slower, 1.05),
    }


def add_options(parser) -> None:
    """Add the checkouts and the tasks."""
    parser.add_argument("--base", type=Path, default=ROOT, help="the checkout to compare with")
    add_choice(parser, "--tables", ("fits", "paths"), quick=["fits", "paths"], help="tables")
    add_choice(parser, "--constraints", CONSTRAINTS, quick=CONSTRAINTS[:1], help="constraints")
    add_numbers(parser, "--kappas", [0.1, 0.05, 0.02, 0.01], [0.05], "of fits")
    add_choice(parser, "--data", DATA, quick=["compas"], help="data sets of paths")
    parser.add_argument("--repeats", type=int, default=Default(7, 1), help="timed runs of each")


def run(options) -> None:
    """Write compare.md and compare.csv."""
    context = multiprocessing.get_context("spawn")
    sides = dict(zip(SIDES, (options.base, ROOT), strict=True))
    workers = {k: ProcessPoolExecutor(1, context, begin, (side,)) for k, side in sides.items()}
    try:
        rows = (compare(task, workers, options.repeats) for task in tasks(options))
        write_table(rows, "compare", f"This checkout against {options.base}", options.out)
    finally:
        for worker in workers.values():
            worker.shutdown()
