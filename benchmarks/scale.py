"""Fits on dask collections: overhead of a round, seconds and CPU per row, memory, two workers.

Generated float32 rows, 20 features, two groups, demographic parity 0.02, in Parquet files of at
most a million rows each, which are written once. Every measurement is kept in a folder as soon as
it is made, with the load of the machine, so that a run that was ended goes on where it was. A fit
on each number of rows is followed by rounds at random points: objective, constraints and a
gradient.

- "overhead": rounds of tiny shards. The target is at most 25 ms.
- "seconds per round" against the number of rows, with one worker process. The target for the slope
  of their logarithms is 1, for seconds beyond the overhead.
- "CPU per row": the slope of the CPU seconds of a round in the number of rows, of the threads that
  compute, against that of the same evaluations in memory, in turns. What does not depend on the
  rows, such as messages and heartbeats, is no part of it.
- "memory" of a worker beyond its shards. The target is 250 MB, an empty worker included.
- Seconds per round with one and with two worker processes. The target is 1.7 times.

For 1e8 rows, 8 GB of Parquet:
``python -m benchmarks scale --rows 1000000 10000000 100000000 --out FOLDER``, with ``--disk`` if
the workers are to keep them in files.
"""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import numpy as np

from benchmarks.harness.options import Default
from benchmarks.harness.scale_runs import ROW_BYTES, Figures, on_workers
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, at_most, write_table

TINY = 4000  # rows, in four files
MOST_IN_MEMORY = 10_000_000
COLUMNS = ("what", "rows", "workers", "value", "target", "met", "load")


def add_options(parser: ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=Default([100_000, 1_000_000, 4_000_000, 10_000_000], [10_000, 20_000]),
        help="numbers of rows; at least two",
    )
    parser.add_argument("--disk", action="store_true", help="workers keep their rows in files")
    parser.add_argument(
        "--data", type=Path, help="folder of the Parquet files; in --out if not given"
    )
    parser.add_argument("--delete", action="store_true", help="delete the Parquet files at the end")
    parser.add_argument(
        "--any-version", action="store_true", help="take stored figures of other versions as well"
    )


def run(options: Namespace) -> None:
    """Write scale.md, scale_rows.md and scale_memory.md."""
    store = Store(options.out / "scale")
    folder = options.data or options.out / "scale-data"

    def kept(key: tuple[str, ...], measure: Callable[[], Figures]) -> Figures:
        found = store.get(key, any_version=options.any_version)
        if found is None:
            found = store.put(key, measure())
            print(key, {name: one for name, one in found.items() if name != "key"}, flush=True)
        return found

    def workers(n_rows: int, n_workers: int, **how: bool) -> Figures:
        kind = "disk" if options.disk else "memory"
        return kept(
            ("workers", kind, str(n_rows), str(n_workers)),
            lambda: on_workers(folder, n_rows, n_workers, disk=options.disk, **how),
        )

    sizes = sorted(options.rows)
    fits = {n: workers(n, 1, compare=n <= MOST_IN_MEMORY) for n in sizes}
    two = workers(sizes[-1], 2)
    tiny = workers(TINY, 1)
    rows = [*_targets(fits, tiny), _two(sizes[-1], fits[sizes[-1]], two)]
    details = [_details(n, 1, one) for n, one in fits.items()] + [_details(sizes[-1], 2, two)]
    shown = [{name: row.get(name, "") for name in COLUMNS} for row in rows]
    write_table(shown, "scale", "Rows in shards, on dask workers", options.out)
    write_table(details, "scale_rows", "By the number of rows", options.out)
    write_table(_memory(fits), "scale_memory", "Memory of a worker", options.out)
    if options.delete:
        shutil.rmtree(folder, ignore_errors=True)


def _slope(cpu: dict[int, float]) -> float:
    """Return the slope of CPU seconds in rows, by least squares of relative errors."""
    sizes = np.array(list(cpu), dtype=float)
    return float(np.polyfit(sizes, np.array(list(cpu.values())), 1, w=1.0 / sizes)[0])


def _targets(fits: dict[int, Figures], tiny: Figures) -> list[Row]:
    """Return the figures that have a target."""
    load = max(one["load"] for one in fits.values())
    overhead = 1e3 * tiny["round"]
    found: list[Row] = [
        {
            "what": "overhead of a round (ms)",
            "rows": TINY,
            "workers": 1,
            "value": overhead,
            "target": 25.0,
            "met": at_most(overhead, 25.0),
            "load": tiny["load"],
        }
    ]
    many = {n: one for n, one in fits.items() if one["round"] > 2.0 * tiny["round"]}
    if len(many) > 1:
        beyond = np.log([one["round"] - tiny["round"] for one in many.values()])
        slope = float(np.polyfit(np.log(list(many)), beyond, 1)[0])
        what = {"what": "slope of log seconds per round beyond the overhead in log rows"}
        met = "met" if abs(slope - 1.0) <= 0.05 else "not met"
        given = {"rows": f"{min(many):g} to {max(many):g}", "workers": 1, "load": load}
        found.append({**what, **given, "value": slope, "target": 1.0, "met": met})
    found.append(_cpu(fits, load))
    for what, empty in (("beyond its shards", 0), ("beyond an empty worker and its shards", 1)):
        most = max(
            (one["resident"] - n * ROW_BYTES - empty * one["empty"]) for n, one in fits.items()
        )
        row = {"what": f"memory of a worker {what} (MB), largest", "workers": 1, "load": load}
        found.append(
            {**row, "value": most / 1e6, "target": 250.0, "met": at_most(most / 1e6, 250.0)}
        )
    return found


def _cpu(fits: dict[int, Figures], load: float) -> Row:
    """Return the CPU per row of workers, with that in memory as the target."""
    local = {n: one["in memory"] for n, one in fits.items() if "in memory" in one}
    ours = 1e9 * _slope({n: fits[n]["computing"] for n in local})
    theirs = 1e9 * _slope(local)
    return {
        "what": "CPU ns per row and round, slope in rows; target: in memory",
        "rows": f"{min(local):g} to {max(local):g}",
        "workers": 1,
        "value": ours,
        "target": theirs,
        "met": at_most(ours, 1.05 * theirs),
        "load": load,
    }


def _memory(fits: dict[int, Figures]) -> list[Row]:
    """Return what the memory of a worker consists of."""
    one, beyond = max(
        ((one, one["resident"] - n * ROW_BYTES) for n, one in fits.items()), key=itemgetter(1)
    )
    steps = {
        "a worker of dask": one["bare"],
        "pandas, dask.dataframe and Arrow": one["collections"] - one["bare"],
        "the modules of this library that read rows": one["empty"] - one["collections"],
        "a fit, without its shards: memory that allocators keep": beyond - one["empty"],
        "total": beyond,
        "not part of it: scikit-learn and the estimators": one["estimators"],
    }
    return [{"what": what, "MB": size / 1e6} for what, size in steps.items()]


def _details(n_rows: int, n_workers: int, one: Figures) -> Row:
    """Return the figures of a number of rows."""
    return {
        "rows": n_rows,
        "workers": n_workers,
        "data passes": one["passes"],
        "seconds to prepare": one["preparation"],
        "seconds altogether": one["seconds"],
        "seconds per round": one["round"],
        "CPU ns per row and round": 1e9 * one["computing"] / n_rows,
        "other CPU of workers per round (ms)": 1e3 * (one["cpu"] - one["computing"]),
        "memory of a worker (MB)": one["resident"] / 1e6,
        "load": one["load"],
    }


def _two(n_rows: int, one: Figures, two: Figures) -> Row:
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
