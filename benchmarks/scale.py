"""Fits on dask collections: overhead of a round, seconds and CPU per row, memory, two workers.

Generated float32 rows, 20 features, two groups, demographic parity 0.02. Blocks are generated where
they are used, so that the data are never in the memory of one process.

- "rounds": tiny shards, so that a round costs its overhead. The target is at most 25 ms.
- "rows": seconds and data passes against the number of rows, and the slope of
  log(seconds per pass) in log(rows), with one worker process; the memory of that worker beyond its
  shards. The targets are a slope of 1 and at most 250 MB.
- "CPU": CPU seconds per row and pass of the worker, and of the estimator in memory.
- "workers": seconds per pass with one and with two worker processes. The target is 1.7 times.
"""

from __future__ import annotations

import os
import resource
import time
from argparse import ArgumentParser, Namespace
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.options import Default
from benchmarks.harness.tables import Row, at_least, at_most, write_table
from fairconstrained import FairLogisticClassifier

N_FEATURES = 20
BLOCK = 250_000
LEAST_BLOCK = 1000


def _block(seed: int, n: int) -> np.ndarray:
    """Return rows of features, label and group."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    group = rng.integers(0, 2, n)
    score = X[:, :5].sum(axis=1) + 0.8 * group + rng.logistic(size=n)
    return np.column_stack([X, score > 0.4, group]).astype(np.float32)


def collections(n_rows: int, block: int = BLOCK) -> tuple[Any, Any, Any]:
    """Return dask arrays of features, labels and groups."""
    import dask.array as da
    from dask import delayed

    sizes = [block] * (n_rows // block)
    parts = [
        da.from_delayed(delayed(_block)(seed, n), shape=(n, N_FEATURES + 2), dtype=np.float32)
        for seed, n in enumerate(sizes)
    ]
    table = da.concatenate(parts)
    return table[:, :N_FEATURES], table[:, N_FEATURES], table[:, N_FEATURES + 1]


def _cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident() -> int:
    """Return the resident size of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Rounds:
    """Counts and times the rounds of a fit, through the shards of its problem."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def watch(self, shards: Any) -> None:
        """Time every round of these shards."""
        gather = shards.gather

        def timed(function: Any, *arguments: Any) -> Any:
            start = time.perf_counter()
            sums = gather(function, *arguments)
            self.seconds.append(time.perf_counter() - start)
            return sums

        object.__setattr__(shards, "gather", timed)


def fit(client: Any, n_rows: int, block: int = BLOCK) -> tuple[Any, Rounds, dict[str, Any]]:
    """Return the fitted estimator, its rounds, and figures of the workers."""
    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    rounds = Rounds()
    figures: dict[str, Any] = {}

    class Watched(DaskClassifier):
        def _minimize(self, problem: Any, *args: Any, **options: Any) -> Any:
            shards = problem.objective.model.shards
            rounds.watch(shards)
            before = client.run(_cpu)
            found = super()._minimize(problem, *args, **options)
            after = client.run(_cpu)
            figures["cpu"] = sum(after[key] - before[key] for key in after)
            figures["resident"] = max(client.run(_resident).values())
            return found

    X, y, groups = collections(n_rows, block)
    model = Watched("demographic_parity", 0.02)
    model.client = client
    model.fit(X, y, sensitive_features=groups)
    return model, rounds, figures


def _cluster(n_workers: int) -> Any:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
    )
    return Client(cluster)


def in_memory(n_rows: int) -> float:
    """Return the CPU seconds per row and pass of the estimator in memory."""
    table = np.concatenate([_block(seed, BLOCK) for seed in range(n_rows // BLOCK)])
    X, y, groups = table[:, :N_FEATURES], table[:, N_FEATURES], table[:, N_FEATURES + 1]
    X = np.ascontiguousarray(X)
    before = _cpu()
    model = FairLogisticClassifier("demographic_parity", 0.02).fit(X, y, sensitive_features=groups)
    return (_cpu() - before) / n_rows / model.result_.data_passes


def add_options(parser: ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=Default([1_000_000, 3_000_000, 10_000_000], [250_000, 500_000]),
        help="numbers of rows, multiples of 250,000; at least two",
    )


def run(options: Namespace) -> None:
    """Write scale.md and scale.csv."""
    rows: list[Row] = []
    with _cluster(1) as client:
        _, rounds, _ = fit(client, 4 * LEAST_BLOCK, LEAST_BLOCK)
        overhead = 1000.0 * median(rounds.seconds)
        rows.append({"what": "overhead of a round (ms)", "value": overhead, "target": 25.0})
        rows[-1]["met"] = at_most(overhead, 25.0)
        seconds, beyond, cpu = [], [], []
        for n in options.rows:
            model, rounds, figures = fit(client, n)
            seconds.append(median(rounds.seconds))
            shard = n * (N_FEATURES * 4 + 1)
            beyond.append((figures["resident"] - shard) / 1e6)
            passes = model.result_.data_passes
            cpu.append(figures["cpu"] / n / len(rounds.seconds))
            for what, value in (
                ("data passes", passes),
                ("seconds per round", seconds[-1]),
                ("worker memory beyond its shards (MB)", beyond[-1]),
                ("CPU ns per row and round", 1e9 * cpu[-1]),
            ):
                rows.append({"what": what, "rows": n, "value": value})
            print(*rows[-4:], sep="\n", flush=True)
    slope = float(np.polyfit(np.log(options.rows), np.log(seconds), 1)[0])
    rows.append({"what": "slope of seconds per round in rows", "value": slope, "target": 1.0})
    rows[-1]["met"] = at_most(slope, 1.05)
    rows.append(
        {
            "what": "worker memory beyond its shards (MB), largest",
            "value": max(beyond),
            "target": 250.0,
            "met": at_most(max(beyond), 250.0),
        }
    )
    local = in_memory(options.rows[0])
    rows.append(
        {
            "what": "CPU ns per row and pass in memory",
            "rows": options.rows[0],
            "value": 1e9 * local,
            "target": 1e9 * cpu[0],
            "met": at_least(1.05 * local, cpu[0]),
        }
    )
    with _cluster(2) as client:
        _, rounds, _ = fit(client, options.rows[-1])
        ratio = seconds[-1] / median(rounds.seconds)
    rows.append(
        {
            "what": "seconds per round: one worker over two",
            "rows": options.rows[-1],
            "value": ratio,
            "target": 1.7,
            "met": at_least(ratio, 1.7),
        }
    )
    columns = ("what", "rows", "value", "target", "met")
    write_table(
        [{name: row.get(name, "") for name in columns} for row in rows],
        "scale",
        "Rows in shards, on dask workers",
        options.out,
    )
