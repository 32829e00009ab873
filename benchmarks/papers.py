"""Reproducing the papers: every line of their tables with `paper()`, by default, and as published.

E1, E2 (IPC), E3 to E5 (3S-Econ), E6 (PLADA), E7 (PLADA, a network with hundreds of groups), E8
(PLADA, a ranker), E9, E10 (IDCA). `--quick` runs every line with a fraction of the data passes.
Results are kept: what is known is not run again.
"""

from __future__ import annotations

import re
import time
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import e7, e8, rank_parity
from benchmarks.harness.frontier import draw_differences
from benchmarks.harness.options import Default, add_choice, add_numbers
from benchmarks.harness.pages import BLUE, ORANGE, Page
from benchmarks.harness.paper_lines import FEASIBLE, Line, all_lines, best_of
from benchmarks.harness.paper_problems import SVIO_TOL, Setup, minimized, solver_for
from benchmarks.harness.store import Store, stamp
from benchmarks.harness.tables import Row, write_table
from fairconstrained.solvers import SOLVERS, Solver

EXPERIMENTS = tuple(f"E{k}" for k in range(1, 11))
KINDS = ("paper", "default")
FIGURES = (
    "objective", "violation", "SVio", "passes", "steps", "seconds", "status", "solver", "setting",
    "remark",
)  # fmt: skip
DEFAULT_PASSES = 5000.0  # a run with the library's defaults ends after these at the latest
TRIAL_PASSES = 5000.0  # of each setting of a grid: the paper's 5,000 iterations


def add_options(parser: ArgumentParser) -> None:
    """Add experiments, budgets and splits."""
    add_choice(parser, "--only", EXPERIMENTS, quick=EXPERIMENTS, help="experiments")
    text = 'E1 to E6: lines that a pattern is found in, such as "a9a, x.* SSG default"'
    parser.add_argument("--lines", default="", metavar="PATTERN", help=text)
    most = "the most data passes of a run, below those that the paper names"
    parser.add_argument("--passes", type=float, default=Default(np.inf, 100.0), help=most)
    ranks = rank_parity.RANKS
    add_choice(parser, "--rank-data", ranks, quick=["law_school"], help="data sets of E9 and E10")
    add_numbers(parser, "--seeds", [0, 1, 2, 3, 4], [0], "of the splits of E7, E9 and E10")


def solve(setup: Setup, solver: Solver | None, passes: float) -> Row:
    """Return the figures of a run; None is the library's default, for its form of the problem.

    Near-stationarity is always that of the paper's form.
    """
    problem, start = (setup.problem, setup.start) if solver else setup.default()
    solver = solver or solver_for(problem)
    missing = solver.missing(problem)
    if missing:
        return {"status": f"needs {' and '.join(missing)}"}
    clock = time.process_time()
    result = minimized(solver, problem, start, passes)
    seconds, w = time.process_time() - clock, result.w[: setup.problem.n_variables]
    return {
        "status": result.status.value,
        "objective": result.objective,
        "violation": result.violation,
        "SVio": setup.near_stationarity(w, SVIO_TOL) if np.all(np.isfinite(w)) else np.nan,
        "passes": result.data_passes,
        "steps": result.n_iter,
        "seconds": seconds,
        "solver": type(result.solver).__name__,
        "remark": setup.remark,
    }


def figures(line: Line, kind: str, options: Namespace, store: Store) -> Row:
    """Return the figures of a line with "paper" or "default"."""
    form = "quick" if options.quick else "full"
    key = (line.experiment, line.data, line.method, kind, form)
    row = store.get(key)
    if row is None:
        row = store.put(key, _run(line, kind, options))
        print(*key, *(row.get(name) for name in FIGURES), flush=True)
    return row


def _run(line: Line, kind: str, options: Namespace) -> Row:
    setup, passes = line.setup(options.quick), min(options.passes, line.passes)
    if kind == "default":
        solver = None if line.of is None else SOLVERS[line.of.default]()
        return solve(setup, solver, min(passes, DEFAULT_PASSES))
    solvers = line.paper(setup)
    setting = next(iter(solvers))  # quick runs take the first one of the grid
    if len(solvers) > 1 and not options.quick:
        small = line.setup(True)
        setting = best_of(line.paper(small), small, min(passes, TRIAL_PASSES))
    return {**solve(setup, solvers[setting].unpolished(), passes), "setting": setting}


def run(options: Namespace) -> None:
    """Run what is not known; write papers.md, and tables for E7 to E10."""
    store, table = Store(options.out / "papers"), []
    for line in all_lines():
        if line.experiment in options.only:
            names = ("experiment", "data", "method")
            head: Row = {name: getattr(line, name) for name in names}
            runs = {"published": line.published} if line.published else {}
            for kind in ("default",) if line.of is None else KINDS:
                if re.search(options.lines, " ".join((*head.values(), kind))):
                    runs[kind] = figures(line, kind, options, store)
            for kind, known in runs.items():
                shown = {name: known.get(name, "") for name in FIGURES}
                table.append({**head, "run": kind, **shown, **stamp(known)})
    if table:
        write_table(table, "papers", "The papers' tables", options.out)
    for name, module in (("E7", e7), ("E8", e8)):
        if name in options.only:
            module.run(options)
    for name in rank_parity.EXPERIMENTS:
        if name in options.only:
            rank_parity.run(name, options, Store(options.out / "rank_parity"))


MAIN = "a9a, x* by batches"  # the problem of E3 whose methods all have a row


def table(lines: pd.DataFrame, *ranks: pd.DataFrame) -> pd.DataFrame:
    """Return the lowest objective of every kind of run for each problem, and the lines of E3."""
    some = lines[lines.objective.notna() & ~(lines.violation > FEASIBLE)]
    some = some.assign(of=some.method.where(some.data == MAIN, ""))
    head = ["experiment", "data", "of", "run"]
    best = some.loc[some.groupby(head, sort=False).objective.idxmin()].set_index(head)
    words = best.objective.map("{:.4g}".format) + " (" + best.method + ")"
    shown = words.unstack("run").fillna("")[["published", *KINDS]].droplevel("of").reset_index()
    excess = lines.groupby("data").remark.first().str.extract(r"([\d.]+%)", expand=False).fillna("")
    shown.insert(2, "loss of x*", shown.data.map(excess))
    names = {"data": "problem", "paper": "with paper()", "default": "by default"}
    return shown.rename_axis(columns=None).rename(columns=names)


def draw(left: Any, right: Any, lines: pd.DataFrame, e9: pd.DataFrame, e10: pd.DataFrame) -> None:
    """Draw objectives over the published ones, and who is ahead in E9 and E10."""
    head = ["experiment", "data", "method"]
    some = lines[lines.data.isin([MAIN, "a9a"])]
    some = some.pivot(index=head, columns="run", values="objective").dropna().reset_index()
    for kind, colour in zip(KINDS, (ORANGE, BLUE), strict=True):
        label = "with paper()" if kind == "paper" else "by default"
        names = some.experiment + ", " + some.method
        left.plot(some[kind] / some.published, names, "o", color=colour, label=label)
    left.axvline(1.0, color="black", linewidth=0.8)
    left.invert_yaxis()
    left.set_xlabel("objective over the published one, a9a")
    left.legend()
    ranks = pd.concat([e9.assign(of="E9"), e10.assign(of="E10")])
    draw_differences(right, ranks.assign(method=ranks.of + ", " + ranks.method))


PAGES = (Page("papers", table, draw, ("papers", "papers-E9", "papers-E10")),)
