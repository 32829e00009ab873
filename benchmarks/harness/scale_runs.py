"""What the benchmark of dask collections measures, on generated Parquet files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness.scale_worker import cpu, resident
from fairconstrained import FairLogisticClassifier
from fairconstrained.problem.problem import Problem

Figures = dict[str, Any]

N_FEATURES = 20
FEATURES = [f"x{k}" for k in range(N_FEATURES)]
BLOCK = 1_000_000  # rows of a file: 80 MB, about what dask recommends for a partition
# Arrow's default allocator keeps memory that it does not use.
WORKER_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
ROW_BYTES = 4 * N_FEATURES + 1  # with the atom


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
    size = min(BLOCK, max(n_rows // 4, 1))
    sizes = np.diff(np.append(np.arange(0, n_rows, size), n_rows))
    paths = []
    for seed, n in enumerate(sizes):
        path = folder / f"rows-{n}" / f"part-{seed:04d}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(".tmp")
            _block(seed, int(n)).to_parquet(temporary, index=False)
            temporary.replace(path)
        paths.append(path)
    return paths


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """Yield a client of workers with a thread each."""
    from distributed import Client, LocalCluster

    options: Figures = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    options["env"] = WORKER_ENVIRONMENT
    with LocalCluster(n_workers=n_workers, **options) as made, Client(made) as client:
        yield client


def _evaluate(problem: Problem, n: int) -> Iterator[tuple[float, float]]:
    """Yield the seconds and the CPU seconds of evaluations with a gradient, at random points."""
    random = np.random.default_rng(0)
    for w in random.normal(scale=0.3, size=(n, problem.n_variables)):
        start, before = time.perf_counter(), time.process_time()
        at = problem.at(w)
        assert np.isfinite(at.objective)
        at.gradient(np.ones(problem.n_constraints))
        yield time.perf_counter() - start, time.process_time() - before


def on_workers(
    folder: Path, n_rows: int, n_workers: int, *, disk: bool = False, compare: bool = False
) -> Figures:
    """Return the figures of a fit on worker processes, and of rounds at random points after it.

    With `compare` the same evaluations run in this process as well, on the same rows, in turns.
    """
    import dask.dataframe as dd
    from distributed import wait

    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    figures: Figures = {"load": os.getloadavg()[0]}
    problems = []

    class Watched(DaskClassifier):
        def _minimize(self, problem: Any, *args: Any, **options: Any) -> Any:
            problems.append(problem)
            wait(problem.objective.model.shards.futures)
            figures["preparation"] = time.perf_counter() - start
            return super()._minimize(problem, *args, **options)

    paths = written(folder, n_rows)
    with cluster(n_workers) as client:
        table = dd.read_parquet(paths)
        start = time.perf_counter()
        model = Watched("demographic_parity", 0.02)
        model.client, model.disk = client, disk
        model.fit(table[FEATURES], table["label"], sensitive_features=table["group"])
        figures |= {"seconds": time.perf_counter() - start, "passes": model.result_.data_passes}
        sides = [problems[0].uncounted(), *([_in_memory(folder, n_rows)] if compare else [])]
        n = int(np.clip(30_000_000 // n_rows, 8, 40))
        before = client.run(cpu)
        turns = list(zip(*(_evaluate(problem, n) for problem in sides), strict=True))
        after = client.run(cpu)
        spent = np.sum([np.subtract(after[key], before[key]) for key in after], axis=0) / n
        figures |= {"cpu": spent[0], "computing": spent[1]}
        figures["round"] = median(turn[0][0] for turn in turns)
        if compare:
            figures["in memory"] = sum(turn[1][1] for turn in turns) / n
        figures["resident"] = max(client.run(resident).values())
    return figures


def _in_memory(folder: Path, n_rows: int) -> Problem:
    """Return the same problem in memory."""
    table = pd.concat([pd.read_parquet(path) for path in written(folder, n_rows)])
    X = np.ascontiguousarray(table[FEATURES].to_numpy())
    y, groups = table["label"].to_numpy(), table["group"].to_numpy()
    del table
    estimator = FairLogisticClassifier("demographic_parity", 0.02)
    return estimator.bind(X, y, sensitive_features=groups).problem.uncounted()
