"""Fits on dask collections: overhead of a round, seconds and CPU per row, memory, two workers.

Generated float32 rows, 20 features, two groups, demographic parity 0.02, in Parquet files of at
most 250,000 rows each, which are written once. Every measurement is kept in a folder as soon as it
is made, with the load of the machine, so that a run that was ended goes on where it was.

- "rounds": tiny shards, so that a round costs its overhead. The target is at most 25 ms.
- "rows": seconds and data passes against the number of rows, and the slope of
  log(seconds per round) in log(rows), with one worker process; the memory of that worker beyond its
  shards. The targets are a slope of 1 and at most 250 MB.
- "CPU": CPU seconds per row and round of the worker, and of the estimator in memory.
- "workers": seconds per round with one and with two worker processes. The target is 1.7 times.
"""

from __future__ import annotations

import os
import resource
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness.options import Default
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, at_most, write_table
from fairconstrained import FairLogisticClassifier

N_FEATURES = 20
FEATURES = [f"x{k}" for k in range(N_FEATURES)]
BLOCK = 250_000
TINY = 4000  # rows, in four files
COLUMNS = ("what", "rows", "workers", "value", "target", "met", "load")


def _block(seed: int, n: int) -> pd.DataFrame:
    """Return rows of features, label and group."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((n, N_FEATURES), dtype=np.float32), columns=FEATURES)
    group = rng.integers(0, 2, n)
    table["x0"] += np.float32(0.7) * group.astype(np.float32)
    score = table[FEATURES[:5]].sum(axis=1) + 0.8 * group + rng.logistic(size=n)
    return table.assign(label=(score > 0.4).astype(np.int8), group=group.astype(np.int8))


def written(folder: Path, n_rows: int) -> list[Path]:
    """Return Parquet files with so many rows; files that are not there are written."""
    block = min(BLOCK, max(n_rows // 4, 1))
    sizes = np.diff(np.append(np.arange(0, n_rows, block), n_rows))
    folder = folder / str(n_rows)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{k:04d}.parquet" for k in range(len(sizes))]
    for seed, (path, n) in enumerate(zip(paths, sizes, strict=True)):
        if not path.exists():
            temporary = path.with_suffix(".tmp")
            _block(seed, int(n)).to_parquet(temporary, index=False)
            temporary.replace(path)
    return paths


def _cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident() -> int:
    """Return the resident size of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Rounds:
    """Times the rounds of a fit, through the shards of its problem."""

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


@contextmanager
def _cluster(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        yield client


def on_workers(folder: Path, n_rows: int, n_workers: int) -> dict[str, Any]:
    """Return the figures of a fit on worker processes."""
    import dask.dataframe as dd

    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    rounds = Rounds()
    figures: dict[str, Any] = {"load": os.getloadavg()[0]}

    class Watched(DaskClassifier):
        def _minimize(self, problem: Any, *args: Any, **options: Any) -> Any:
            rounds.watch(problem.objective.model.shards)
            figures["preparation"] = time.perf_counter() - start
            before = client.run(_cpu)
            found = super()._minimize(problem, *args, **options)
            after = client.run(_cpu)
            figures["cpu"] = sum(after[key] - before[key] for key in after)
            figures["resident"] = max(client.run(_resident).values())
            return found

    with _cluster(n_workers) as client:
        table = dd.read_parquet(written(folder, n_rows))
        start = time.perf_counter()
        model = Watched("demographic_parity", 0.02)
        model.client = client
        model.fit(table[FEATURES], table["label"], sensitive_features=table["group"])
        figures["seconds"] = time.perf_counter() - start
    return {
        **figures,
        "passes": model.result_.data_passes,
        "rounds": len(rounds.seconds),
        "round": median(rounds.seconds),
    }


def in_memory(folder: Path, n_rows: int) -> dict[str, Any]:
    """Return the figures of the estimator in memory, by the same evaluations."""
    figures: dict[str, Any] = {"load": os.getloadavg()[0]}

    class Watched(FairLogisticClassifier):
        def _minimize(self, *args: Any, **options: Any) -> Any:
            before = _cpu()
            found = super()._minimize(*args, **options)
            figures["cpu"] = _cpu() - before
            return found

    table = pd.concat([pd.read_parquet(path) for path in written(folder, n_rows)])
    X = np.ascontiguousarray(table[FEATURES].to_numpy())
    model = Watched("demographic_parity", 0.02, solver="ipc")  # from 0, not from a sample
    model.fit(X, table["label"].to_numpy(), sensitive_features=table["group"].to_numpy())
    return {**figures, "passes": model.result_.data_passes}


def add_options(parser: ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=Default([100_000, 1_000_000, 10_000_000], [10_000, 20_000]),
        help="numbers of rows; at least two",
    )


def _measured(store: Store, key: tuple[str, ...], run: Callable[[], dict[str, Any]]) -> Row:
    """Return stored figures, or measure and store them."""
    return store.get(key) or store.put(key, run())


def run(options: Namespace) -> None:
    """Write scale.md and scale.csv."""
    store, folder = Store(options.out / "scale"), options.out / "scale-data"

    def workers(n_rows: int, n_workers: int) -> Row:
        key = ("workers", str(n_rows), str(n_workers))
        found = _measured(store, key, lambda: on_workers(folder, n_rows, n_workers))
        print({name: value for name, value in found.items() if name != "version"}, flush=True)
        return found

    rows = _overhead(workers(TINY, 1))
    fits = {n: workers(n, 1) for n in options.rows}
    for n, figures in fits.items():
        rows += _per_row(n, figures)
    rows += _targets(fits)
    least, most = min(options.rows), max(options.rows)
    local = _measured(store, ("memory", str(least)), lambda: in_memory(folder, least))
    rows.append(_against_memory(least, fits[least], local))
    rows.append(_against_two(most, fits[most], workers(most, 2)))
    table = [{name: row.get(name, "") for name in COLUMNS} for row in rows]
    write_table(table, "scale", "Rows in shards, on dask workers", options.out)


def _overhead(figures: Row) -> list[Row]:
    value = 1e3 * figures["round"]
    what = {"what": "overhead of a round (ms)", "rows": TINY, "workers": 1, "load": figures["load"]}
    return [{**what, "value": value, "target": 25.0, "met": at_most(value, 25.0)}]


def _beyond(n_rows: int, figures: Row) -> float:
    """Return the memory of a worker beyond its shards in MB."""
    return (figures["resident"] - n_rows * (N_FEATURES * 4 + 1)) / 1e6


def _cpu_per_row(n_rows: int, figures: Row) -> float:
    """Return the CPU nanoseconds of workers per row and round."""
    return 1e9 * figures["cpu"] / n_rows / figures["rounds"]


def _per_row(n_rows: int, figures: Row) -> list[Row]:
    values = {
        "data passes": figures["passes"],
        "seconds of the fit": figures["seconds"],
        "seconds of its preparation": figures["preparation"],
        "seconds per round": figures["round"],
        "worker memory beyond its shards (MB)": _beyond(n_rows, figures),
        "CPU ns per row and round": _cpu_per_row(n_rows, figures),
    }
    shared = {"rows": n_rows, "workers": 1, "load": figures["load"]}
    return [{"what": what, "value": value, **shared} for what, value in values.items()]


def _targets(fits: dict[int, Row]) -> list[Row]:
    sizes, seconds = list(fits), [figures["round"] for figures in fits.values()]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    most = max(_beyond(n, figures) for n, figures in fits.items())
    slopes = {"what": "slope of seconds per round in rows", "value": slope, "target": 1.0}
    memory = {"what": "worker memory beyond its shards (MB), largest", "value": most}
    return [
        {**slopes, "met": at_most(slope, 1.05)},
        {**memory, "target": 250.0, "met": at_most(most, 250.0)},
    ]


def _against_memory(n_rows: int, figures: Row, local: Row) -> Row:
    ours, theirs = _cpu_per_row(n_rows, figures), 1e9 * local["cpu"] / n_rows / local["passes"]
    return {
        "what": "CPU ns per row and pass in memory",
        "rows": n_rows,
        "value": theirs,
        "target": ours,
        "met": at_least(1.05 * theirs, ours),
        "load": local["load"],
    }


def _against_two(n_rows: int, one: Row, two: Row) -> Row:
    ratio = one["round"] / two["round"]
    return {
        "what": "seconds per round: one worker over two",
        "rows": n_rows,
        "workers": 2,
        "value": ratio,
        "target": 1.7,
        "met": at_least(ratio, 1.7),
        "load": two["load"],
    }
