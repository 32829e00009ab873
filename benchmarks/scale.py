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
- "memory" of a worker beyond its shards. The target is 250 MB.
- Seconds per round with one and with two worker processes. The target is 1.7 times.

For 1e8 rows, 8 GB of Parquet:
``python -m benchmarks scale --rows 1000000 10000000 100000000 --out FOLDER``, with ``--disk`` if
the workers are to keep them in files.
"""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from benchmarks.harness.options import add_numbers
from benchmarks.harness.scale_runs import ROW_BYTES, Figures, on_workers
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, at_most, write_table

TINY = 4000  # rows, in four files
MOST_IN_MEMORY = 10_000_000
MANY = [100_000, 1_000_000, 4_000_000, 10_000_000]


def add_options(parser: ArgumentParser) -> None:
    """Add the sizes."""
    add_numbers(parser, "--rows", MANY, [10_000, 20_000], "numbers of rows; at least two")
    parser.add_argument("--disk", action="store_true", help="workers keep their rows in files")
    parser.add_argument("--data", type=Path, help="folder of the Parquet files; default: in --out")
    parser.add_argument("--delete", action="store_true", help="delete the Parquet files at the end")


def run(options: Namespace) -> None:
    """Write scale (figures and targets) and scale_rows (figures by the number of rows)."""
    store = Store(options.out / "scale")
    folder = options.data or options.out / "scale-data"

    def workers(n_rows: int, n_workers: int, *, compare: bool = False) -> Figures:
        key = ("disk" if options.disk else "memory", str(n_rows), str(n_workers))
        figures = store.get(key)
        if figures is None:
            measured = on_workers(folder, n_rows, n_workers, disk=options.disk, compare=compare)
            figures = store.put(key, measured)
            print(key, measured, flush=True)
        return figures

    sizes = sorted(options.rows)
    fits = {n: workers(n, 1, compare=n <= MOST_IN_MEMORY) for n in sizes}
    two, tiny = workers(sizes[-1], 2), workers(TINY, 1)
    write_table(_targets(fits, tiny, two), "scale", "Rows in shards, on dask workers", options.out)
    details = [_details(n, 1, figures) for n, figures in fits.items()]
    details.append(_details(sizes[-1], 2, two))
    write_table(details, "scale_rows", "By the number of rows", options.out)
    if options.delete:
        shutil.rmtree(folder, ignore_errors=True)


def _slope(cpu: dict[int, float]) -> float:
    """Return the slope of CPU seconds in rows; small sizes count as much as large ones."""
    sizes = np.array(list(cpu), dtype=float)
    return float(np.polyfit(sizes, np.array(list(cpu.values())), 1, w=1.0 / sizes)[0])


def _targets(fits: dict[int, Figures], tiny: Figures, two: Figures) -> list[Row]:
    most, overhead = max(fits), 1000.0 * tiny["round"]
    memory = max(one["resident"] - n * ROW_BYTES for n, one in fits.items()) / 1e6
    local = {n: one["in memory"] for n, one in fits.items() if "in memory" in one}
    ours, theirs = 1e9 * _slope({n: fits[n]["computing"] for n in local}), 1e9 * _slope(local)
    times = fits[most]["round"] / two["round"]
    rows = [
        ("overhead of a round (ms)", TINY, overhead, 25.0, at_most(overhead, 25.0)),
        ("CPU ns per row and round, slope in rows; target: in memory", f"{min(local):g} to "
         f"{max(local):g}", ours, theirs, at_most(ours, 1.05 * theirs)),
        ("memory of a worker beyond its shards (MB), largest", "", memory, 250.0,
         at_most(memory, 250.0)),
        ("seconds per round: one worker over two", most, times, 1.7, at_least(times, 1.7)),
    ]  # fmt: skip
    many = {n: one["round"] for n, one in fits.items() if one["round"] > 2.0 * tiny["round"]}
    if len(many) > 1:
        beyond = np.log(np.array(list(many.values())) - tiny["round"])
        slope = float(np.polyfit(np.log(list(many)), beyond, 1)[0])
        what = "slope of log seconds per round beyond the overhead in log rows"
        met = at_most(abs(slope - 1.0), 0.05)
        rows.append((what, f"{min(many):g} to {max(many):g}", slope, 1.0, met))
    load = max(figures["load"] for figures in (*fits.values(), tiny, two))
    names = ("what", "rows", "value", "target", "met")
    return [{**dict(zip(names, row, strict=True)), "load": load} for row in rows]


def _details(n_rows: int, n_workers: int, figures: Figures) -> Row:
    return {
        "rows": n_rows,
        "workers": n_workers,
        "data passes": figures["passes"],
        "seconds to prepare": figures["preparation"],
        "seconds altogether": figures["seconds"],
        "seconds per round": figures["round"],
        "CPU ns per row and round": 1e9 * figures["computing"] / n_rows,
        "other CPU of workers per round (ms)": 1000.0 * (figures["cpu"] - figures["computing"]),
        "memory of a worker (MB)": figures["resident"] / 1e6,
        "load": figures["load"],
    }
