"""The papers' figures about parameters and progress, as curves over the iterations.

3S-Econ figure 1 (beta and nu), PLADA figures 4 and 5 (alpha and beta, and delta as well), PLADA
figure 6 (the two kinds of multipliers), IDCA figures 9 and 10 (IDCA against SSG), and the figures
that compare methods: IPC 1 and 2, 3S-Econ 2 to 4, PLADA 1 and 2. Every run has the settings of
`paper()`. It is ended after `--steps` iterations (IDCA and SSG: data passes), and where methods are
compared after the data passes that the figure names. Runs are kept by the content of the library's
code; `--docs docs` writes the page and its figures.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness.options import Default
from benchmarks.harness.paper_setup import SVIO_TOL, Setup
from benchmarks.harness.sensitivity_lines import (
    FIGURES,
    Figure,
    Run,
    multipliers_of_plada,
    runs_of,
)
from benchmarks.harness.sensitivity_page import write_pages
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, write_table
from fairconstrained.solvers.base import Measured
from fairconstrained.utils.typing import Array

_POINTS = 60  # measured points of a curve
_STATIONARITY_POINTS = 6  # of these, the ones whose near-stationarity is computed
_SAME_RUNS = {"ipc-2": "ipc-1"}  # figures of the same runs


def add_options(parser: ArgumentParser) -> None:
    """Add figures, budgets and the folder of the page."""
    parser.add_argument(
        "--only", nargs="+", choices=list(FIGURES), default=list(FIGURES), help="figures"
    )
    parser.add_argument("--data", nargs="+", metavar="NAME", help="run these data sets only")
    parser.add_argument(
        "--steps",
        type=int,
        default=Default(30_000, 300),
        help="iterations of a run; for IDCA and SSG, whose steps differ, data passes",
    )
    parser.add_argument(
        "--any-version", action="store_true", help="take results of other versions as well"
    )
    parser.add_argument("--only-known", action="store_true", help="run nothing, show what is known")
    parser.add_argument("--docs", type=Path, help="folder of the page sensitivity.md")


def curve(run: Run, setup: Setup, options: Namespace) -> Row:
    """Return the measured points of a run, near-stationarity at some, and the multipliers."""
    figure, problem = FIGURES[run.figure], setup.problem.uncounted()
    steps = steps_of(figure, options)
    every = 1 if figure.multipliers else max(steps // _POINTS, 1)
    solver = run.solver(setup, steps, every)
    points: list[tuple[int, Array]] = []
    values = [problem.at(setup.start).constraints]

    def keep(measured: Measured) -> None:
        points.append((measured.iterate.iteration, measured.iterate.at.w))
        values.append(measured.iterate.at.constraints)

    limit = None if figure.against == "iteration" else steps
    clock = time.process_time()
    result = solver.minimize(
        problem, setup.start, max_data_passes=limit, random_state=0, callback=keep
    )
    trace = result.trace
    row: Row = {
        "iteration": list(trace.iteration),
        "passes": list(trace.data_passes),
        "objective": list(trace.objective),
        "violation": list(trace.violation),
        "clock": list(trace.seconds),
        "status": result.status.value,
        "seconds": time.process_time() - clock,
    }
    if figure.stationarity:
        row |= {"stationarity": list(_stationarity(setup, points)), "SVio tolerance": SVIO_TOL}
    if not figure.multipliers:
        first = problem.at(setup.start)
        start = {"objective": first.objective, "violation": first.violation}
        for name in ("iteration", "passes", "objective", "violation", "clock"):
            row[name].insert(0, start.get(name, 0))
    if figure.multipliers:
        row |= multipliers_of_plada(solver, np.array(values))
        row = _thinned(row)
    return row


def steps_of(figure: Figure, options: Namespace) -> int:
    """Return the iterations or data passes of the runs of a figure."""
    own = figure.passes is not None and not options.quick
    return int(figure.passes if own else options.steps)  # type: ignore[arg-type]


def _stationarity(setup: Setup, points: list[tuple[int, Array]]) -> Iterator[tuple[int, float]]:
    """Yield near-stationarity at a few of the points, geometrically spaced."""
    at = np.unique(np.geomspace(1, len(points), _STATIONARITY_POINTS).astype(int)) - 1
    for k in at:
        iteration, w = points[k]
        yield iteration, setup.near_stationarity(w, SVIO_TOL)


def _thinned(row: Row) -> Row:
    """Return curves with a number of entries that can be drawn."""
    n_entries = len(row["iteration"])
    at = np.unique(np.geomspace(1, n_entries, 5 * _POINTS).astype(int)) - 1
    return {
        name: [value[k] for k in at] if isinstance(value, list) else value
        for name, value in row.items()
    }


def found_for(figure: Figure, options: Namespace, store: Store) -> list[tuple[Run, Row]]:
    """Return the runs of a figure with their curves: from the store, or made now."""
    out = []
    for run in runs_of(figure):
        steps = steps_of(figure, options)
        kind = _SAME_RUNS.get(figure.name, figure.name)
        key = ("sensitivity", kind, run.data, run.panel, run.label, str(steps))
        known = store.get(key, any_version=options.any_version)
        chosen = options.data is None or run.data in options.data
        if known is None and chosen and not options.only_known:
            with np.errstate(all="ignore"):
                known = store.put(key, curve(run, run.setup(options.quick), options))
            print(*key[1:-1], known["status"], f"{known['seconds']:.1f} s", flush=True)
        if known is not None:
            out.append((run, known))
    return out


def _shown(row: Row) -> float | str:
    """Return the last near-stationarity, "none" if its subproblem is not solved."""
    if not row.get("stationarity"):
        return ""
    found = float(row["stationarity"][-1][1])
    return found if np.isfinite(found) else "none"


def last_point(run: Run, row: Row) -> Row:
    """Return the figures of the last point of a run."""
    end: Row = {
        "figure": run.figure,
        "data": run.data,
        "panel": run.panel,
        "run": run.label,
        "iterations": row["iteration"][-1],
        "data passes": row["passes"][-1],
        "objective": row["objective"][-1],
        "violation": row["violation"][-1],
        "SVio": _shown(row),
        "|lambda - mu|": row["difference"][-1] if "difference" in row else "",
        "CPU seconds": row["seconds"],
    }
    return end


def run(options: Namespace) -> None:
    """Run what is not known, write sensitivity.md, and the page."""
    store = Store(options.out / "sensitivity", options.docs)
    found = {name: found_for(FIGURES[name], options, store) for name in options.only}
    rows = [last_point(one, row) for runs in found.values() for one, row in runs]
    if not rows:
        print("No run is known.")
        return
    write_table(rows, "sensitivity", "Parameters and progress: the last points", options.out)
    if options.docs is not None:
        write_pages(options.docs, found, rows, options.steps)
        store.publish()
