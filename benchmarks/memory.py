"""Peak memory of a fit on a9a beyond the data, each fit in a process of its own.

"tracemalloc" is what Python and NumPy allocate; "resident size" is how far the peak resident size
of the process rises (reset before the fit, on Linux). A small fit comes first, which pays for
imports.
"""

from __future__ import annotations

import multiprocessing
import tracemalloc
from argparse import ArgumentParser, Namespace
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.fits import add_grid, fit, grid, rows_of, where
from benchmarks.harness.options import Default
from benchmarks.harness.peak_memory import peak, reset_peak
from benchmarks.harness.tables import Row, at_most, write_table

MEASURES = ("tracemalloc", "resident size")


def n_bytes(X: Any) -> int:
    """Return the size of a CSR matrix."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def increment(options: Namespace, constraint: str, kappa: float, how: str) -> int:
    """Return by how many bytes a fit raises the peak of this process."""
    X, y, sex = rows_of(options)
    groups = (sex == "Female").astype(np.int8)
    few = np.arange(500)  # imports and first calls cost memory once, whatever the data
    fit(X[few], y[few], groups[few], constraint, kappa)
    if how == "tracemalloc":
        tracemalloc.start()
        fit(X, y, groups, constraint, kappa)
        return tracemalloc.get_traced_memory()[1]
    reset_peak()
    before = peak()
    fit(X, y, groups, constraint, kappa)
    return peak() - before


def add_options(parser: ArgumentParser) -> None:
    """Add the fits and --repeats."""
    add_grid(parser)
    parser.add_argument("--repeats", type=int, default=Default(3, 1), help="processes for each")


def run(options: Namespace) -> None:
    """Write memory.md and memory.csv."""
    size = n_bytes(rows_of(options)[0])
    rows: list[Row] = []
    for constraint, kappa in grid(options):
        row: Row = {"constraint": constraint, "kappa": kappa, "X in MB": size / 1e6}
        for how in MEASURES:
            context = multiprocessing.get_context("spawn")
            with context.Pool(1, maxtasksperchild=1) as pool:
                jobs = [(options, constraint, kappa, how)] * options.repeats
                used = median(pool.starmap(increment, jobs, chunksize=1))
            row[f"{how}, MB"] = used / 1e6
            row[f"{how} / X"] = used / size
            row[f"{how} <= 2 X"] = at_most(used / size, 2.0)
        rows.append(row)
    write_table(
        rows, "memory", f"{where(options)}: peak memory of a fit beyond the data", options.out
    )
