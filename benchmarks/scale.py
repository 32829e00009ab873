"""Fits on dask collections: overhead of a round, seconds and CPU per row, memory, two workers.

Generated float32 rows, 20 features, two groups, demographic parity 0.02, in Parquet files of at
most a million rows each, which are written once, into `scale-data`. Every measurement is kept in a
folder as soon as it is made, with the load of the machine, so that a run that was ended goes on
where it was. A fit on each number of rows is followed by rounds at random points: objective,
constraints and a gradient.

- "overhead": rounds of tiny shards. The target is at most 25 ms.
- "seconds per round" against the number of rows, with one worker process. The target for the slope
  of their logarithms is 1, for seconds beyond the overhead.
- "CPU per row": the slope of the CPU seconds of a round in the number of rows, of the threads that
  compute, against that of the same evaluations in memory, in turns. What does not depend on the
  rows, such as messages and heartbeats, is no part of it.
- "memory" of a worker beyond its shards. The target is 250 MB.
- Seconds per round with one and with two worker processes. The target is 1.7 times.

For 1e8 rows, 8 GB of Parquet:
``python -m benchmarks scale --rows 1000000 10000000 100000000 --out FOLDER``, with ``--disk`` if
the workers are to keep them in files.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from benchmarks.harness.options import add_numbers
from benchmarks.harness.results import Row, Store, at_most, write_table
from fairconstrained import FairLogisticClassifier
from fairconstrained.dask import estimators
from fairconstrained.problem.problem import Problem

TINY = 4000  # rows, in four files
MOST_IN_MEMORY = 10_000_000
MANY = [100_000, 1_000_000, 4_000_000, 10_000_000]
FEATURES = [f"x{k}" for k in range(20)]
BLOCK = 1_000_000  # rows of a file: 80 MB, about what dask recommends for a partition
ROW_BYTES = 4 * len(FEATURES) + 1  # with the atom
# Arrow's default allocator keeps memory that it does not use.
CLUSTER = {"threads_per_worker": 1, "env": {"ARROW_DEFAULT_MEMORY_POOL": "system"}}
CLUSTER |= {"dashboard_address": None, "memory_limit": 0}
ROUND, COMPUTING = "seconds per round", "CPU per round (s)"
IN_MEMORY = "CPU per round in memory (s)"


def _block(seed: int, n: int) -> pd.DataFrame:
    """Return rows of features, label and group."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(FEATURES)), dtype=np.float32)
    table = pd.DataFrame(X, columns=FEATURES)
    group = rng.integers(0, 2, n)
    table["x0"] += np.float32(0.7) * group.astype(np.float32)
    score = table[FEATURES[:5]].sum(axis=1) + 0.8 * group + rng.logistic(size=n)
    return table.assign(label=(score > 0.4).astype(np.int8), group=group.astype(np.int8))


def written(folder: Path, n_rows: int) -> list[Path]:
    """Return Parquet files with so many rows; files that are not there are written."""
    size = min(BLOCK, max(n_rows // 4, 1))
    paths = []
    for seed, first in enumerate(range(0, n_rows, size)):
        n = min(size, n_rows - first)
        path = folder / f"rows-{n}" / f"part-{seed:04d}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _block(seed, n).to_parquet(path.with_suffix(".tmp"), index=False)
            path.with_suffix(".tmp").replace(path)
        paths.append(path)
    return paths


def _evaluate(problem: Problem, n: int) -> Iterator[tuple[float, float]]:
    """Yield the seconds and the CPU seconds of evaluations with a gradient, at random points."""
    random = np.random.default_rng(0)
    for w in random.normal(scale=0.3, size=(n, problem.n_variables)):
        start, before = time.perf_counter(), time.process_time()
        at = problem.at(w)
        assert np.isfinite(at.objective)
        at.gradient(np.ones(problem.n_constraints))
        yield time.perf_counter() - start, time.process_time() - before


def _in_memory(paths: list[Path]) -> Problem:
    """Return the same problem in memory."""
    table = pd.concat([pd.read_parquet(path) for path in paths])
    X = np.ascontiguousarray(table[FEATURES].to_numpy())
    y, groups = table["label"].to_numpy(), table["group"].to_numpy()
    del table
    estimator = FairLogisticClassifier("demographic_parity", 0.02)
    return estimator.bind(X, y, sensitive_features=groups).problem.uncounted()


def on_workers(paths: list[Path], n_rows: int, n_workers: int, *, disk: bool, compare: bool) -> Row:
    """Return the figures of a fit on worker processes, and of rounds at random points after it.

    With `compare` the same evaluations run in this process as well, on the same rows, in turns.
    """
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    figures: Row = {"rows": n_rows, "workers": n_workers, "load": os.getloadavg()[0]}
    problems = []

    class Watched(DaskClassifier):
        def _minimize(self, problem, *args, **options):
            problems.append(problem)
            wait(problem.objective.model.shards.futures)
            figures["seconds to prepare"] = time.perf_counter() - start
            return super()._minimize(problem, *args, **options)

    # A function of a function is sent as it is: the workers import nothing of the benchmarks, so
    # that their memory is that of a user's.
    def used() -> tuple[float, float, int]:
        """Return CPU seconds of a worker, those of its threads that compute tasks, and its size."""
        import threading

        import psutil

        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        process = psutil.Process()
        some = [t for t in process.threads() if "Dask-Default-Threads" in names.get(t.id, "")]
        tasks = sum(thread.user_time + thread.system_time for thread in some)
        times = process.cpu_times()
        return times.user + times.system, tasks, process.memory_info().rss

    with LocalCluster(n_workers=n_workers, **CLUSTER) as made, Client(made) as client:
        table = dd.read_parquet(paths)
        start = time.perf_counter()
        model = Watched("demographic_parity", 0.02)
        model.client, model.disk = client, disk
        model.fit(table[FEATURES], table["label"], sensitive_features=table["group"])
        figures["seconds altogether"] = time.perf_counter() - start
        sides = [problems[0].uncounted(), *([_in_memory(paths)] if compare else [])]
        n = int(np.clip(30_000_000 // n_rows, 8, 40))
        before = client.run(used)
        turns = list(zip(*(_evaluate(problem, n) for problem in sides), strict=True))
        after = client.run(used)
    spent = np.sum([np.subtract(after[key], before[key]) for key in after], axis=0) / n
    return figures | {
        "data passes": model.result_.data_passes,
        ROUND: median(turn[0][0] for turn in turns),
        COMPUTING: spent[1],
        "other CPU of workers per round (s)": spent[0] - spent[1],
        IN_MEMORY: sum(turn[1][1] for turn in turns) / n if compare else None,
        "memory of a worker (MB)": max(size for _, _, size in after.values()) / 1e6,
    }


def add_options(parser) -> None:
    """Add the sizes."""
    add_numbers(parser, "--rows", MANY, [10_000, 20_000], "numbers of rows; at least two")
    parser.add_argument("--disk", action="store_true", help="workers keep their rows in files")


def run(options) -> None:
    """Write scale (figures and targets) and scale_rows (figures by the number of rows)."""
    store, folder = Store(options.out / "scale"), options.out / "scale-data"
    estimators.MOST_COLLECTED = 0  # few rows stay in partitions as well

    def workers(n_rows: int, n_workers: int, *, compare: bool = False) -> Row:
        def measured() -> Row:
            paths = written(folder, n_rows)
            return on_workers(paths, n_rows, n_workers, disk=options.disk, compare=compare)

        key = ("disk" if options.disk else "memory", str(n_rows), str(n_workers))
        return store.of(key, measured)

    sizes = sorted(options.rows)
    fits = {n: workers(n, 1, compare=n <= MOST_IN_MEMORY) for n in sizes}
    two, tiny = workers(sizes[-1], 2), workers(TINY, 1)
    write_table(_targets(fits, tiny, two), "scale", "Rows in shards, on dask workers", options.out)
    write_table([*fits.values(), two], "scale_rows", "By the number of rows", options.out)


def _slope(cpu: dict[int, float]) -> float:
    """Return the slope of CPU seconds in rows; small sizes count as much as large ones."""
    sizes = np.array(list(cpu), dtype=float)
    return float(np.polyfit(sizes, np.array(list(cpu.values())), 1, w=1.0 / sizes)[0])


def _targets(fits: dict[int, Row], tiny: Row, two: Row) -> list[Row]:
    most, overhead = max(fits), 1000.0 * tiny[ROUND]
    memory = max(fit["memory of a worker (MB)"] - n * ROW_BYTES / 1e6 for n, fit in fits.items())
    local = {n: fit[IN_MEMORY] for n, fit in fits.items() if fit[IN_MEMORY]}
    ours, theirs = 1e9 * _slope({n: fits[n][COMPUTING] for n in local}), 1e9 * _slope(local)
    times = fits[most][ROUND] / two[ROUND]
    rows = [
        ("overhead of a round (ms)", TINY, overhead, 25.0, at_most(overhead, 25.0)),
        ("CPU ns per row and round, slope in rows; target: in memory", f"{min(local):g} to "
         f"{max(local):g}", ours, theirs, at_most(ours, 1.05 * theirs)),
        ("memory of a worker beyond its shards (MB), largest", "", memory, 250.0,
         at_most(memory, 250.0)),
        ("seconds per round: one worker over two", most, times, 1.7, at_most(1.7, times)),
    ]  # fmt: skip
    many = {n: fit[ROUND] for n, fit in fits.items() if fit[ROUND] > 2.0 * tiny[ROUND]}
    if len(many) > 1:
        beyond = np.log(np.array(list(many.values())) - tiny[ROUND])
        slope = float(np.polyfit(np.log(list(many)), beyond, 1)[0])
        what = "slope of log seconds per round beyond the overhead in log rows"
        met = at_most(abs(slope - 1.0), 0.05)
        rows.append((what, f"{min(many):g} to {max(many):g}", slope, 1.0, met))
    load = max(figures["load"] for figures in (*fits.values(), tiny, two))
    names = ("what", "rows", "value", "target", "met")
    return [{**dict(zip(names, row, strict=True)), "load": load} for row in rows]
