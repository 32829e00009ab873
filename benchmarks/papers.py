"""Reproducing the papers: every line of their tables with `paper()`, by default, and as published.

E1, E2 (IPC), E3 to E5 (3S-Econ), E6 (PLADA), E7 (PLADA, a network with hundreds of groups), E8
(PLADA, a ranker), E9, E10 (IDCA). `--quick` runs every line with a fraction of the data passes.
Results are kept by the content of the library's code: a table is redone alone with `--only`.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace

import numpy as np

from benchmarks.harness import e7, e8, rank_parity
from benchmarks.harness.options import Default, add_seeds
from benchmarks.harness.paper_grids import best_of
from benchmarks.harness.paper_lines import Line, all_lines, solver_of_line
from benchmarks.harness.paper_setup import SVIO_TOL, Setup
from benchmarks.harness.rank_parity import RANKS
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, write_table
from fairconstrained.solvers import Solver
from fairconstrained.utils.typing import Array

EXPERIMENTS = tuple(f"E{k}" for k in range(1, 11))
FORMS = ("full", "quick")
KINDS = ("paper", "default")
DEFAULT_PASSES = 5000.0  # a run with the library's defaults ends after these at the latest
TRIAL_PASSES = 5000.0  # of each setting of a grid: the paper's 5,000 iterations
_POINT = 1000  # the most variables of a solution that is stored


def add_options(parser: ArgumentParser) -> None:
    """Add experiments, budgets and splits."""
    parser.add_argument(
        "--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="experiments"
    )
    parser.add_argument(
        "--data", nargs="+", metavar="NAME", help="run lines of E1 to E6 on these data only"
    )
    parser.add_argument(
        "--methods",
        dest="chosen_methods",
        nargs="+",
        metavar="NAME",
        help="run lines of E1 to E6 of these methods only",
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=list(KINDS),
        help="run lines of E1 to E6 with paper(), with the library's defaults, or both",
    )
    parser.add_argument(
        "--passes",
        type=float,
        default=Default(np.inf, 100.0),
        help="the most data passes of a run, below those that the paper names",
    )
    parser.add_argument(
        "--rank-data",
        nargs="+",
        choices=list(RANKS),
        default=Default(list(RANKS), ["law_school"]),
        help="data sets of E9 and E10",
    )
    add_seeds(parser, range(5))
    parser.add_argument(
        "--any-version", action="store_true", help="take results of other versions as well"
    )
    parser.add_argument("--only-known", action="store_true", help="run nothing, show what is known")


def solve(setup: Setup, own: bool, solver: Solver, passes: float, options: Namespace) -> Row:
    """Return the figures of a run and, if it is short, the solution.

    Parameters
    ----------
    setup : Setup
        The problem.
    own : bool
        Whether the solver takes `setup.default` in place of the paper's form of the problem.
        Near-stationarity is always that of the paper's form.
    solver : Solver
        The solver.
    passes : float
        The most data passes.
    options : Namespace
        The options of the command.
    """
    problem, start = (setup.default, setup.first) if own else (setup.problem, setup.start)
    missing = solver.missing(problem)
    if missing:
        return {"status": f"needs {' and '.join(missing)}"}
    limit = min(options.passes, passes)
    clock = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result = solver.minimize(problem.uncounted(), start, max_data_passes=limit, random_state=0)
    row: Row = {
        "status": result.status.value,
        "objective": result.objective,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "seconds": time.process_time() - clock,
        "solver": type(result.solver).__name__,
    }
    point = result.w[: setup.problem.n_variables]
    row |= svio(setup, point)
    return {**row, "point": list(point)} if len(point) <= _POINT else row


def svio(setup: Setup, point: Array) -> Row:
    """Return near-stationarity at a point, and the tolerance of its subproblem."""
    found = setup.near_stationarity(point, SVIO_TOL) if np.all(np.isfinite(point)) else np.nan
    return {"SVio": found, "SVio tolerance": SVIO_TOL}


def figures(line: Line, kind: str, options: Namespace, store: Store) -> Row | None:
    """Return the figures of a line with "paper" or "default"; full ones where they are known."""
    keys = {form: (line.experiment, line.data, line.method, kind, form) for form in FORMS}
    wanted = "quick" if options.quick else "full"
    for form in FORMS if options.quick else ("full",):
        known = store.get(keys[form], any_version=options.any_version)
        if known is not None:
            return known
    chosen = options.data is None or line.data.split(",")[0] in options.data
    chosen &= options.chosen_methods is None or line.method in options.chosen_methods
    chosen &= kind in options.kinds
    if options.only_known or not chosen:
        return store.get(keys["quick"], any_version=options.any_version)
    found = store.put(keys[wanted], {**_run(line, kind, options), "form": wanted})
    shown = [found.get(name) for name in ("status", "objective", "violation", "SVio", "seconds")]
    print(line.experiment, line.data, line.method, kind, *shown, flush=True)
    return found


def _run(line: Line, kind: str, options: Namespace) -> Row:
    setting = _setting(line, options) if kind == "paper" else None
    setup = line.setup(options.quick)
    if kind == "paper":
        assert line.paper is not None
        solver, own, passes = line.paper(setup).unpolished(), False, line.passes
        if line.grid is not None and setting is not None:
            solver = line.grid(setup)[setting].unpolished()
    else:
        solver, own = solver_of_line(line, setup)
        passes = min(line.passes, DEFAULT_PASSES)
    row = solve(setup, own, solver, passes, options)
    words = {"setting": setting, "remark": setup.remark}
    return {**row, **{name: one for name, one in words.items() if one}}


def _setting(line: Line, options: Namespace) -> str | None:
    """Return which solver of the paper's grid is the best one on the small form of the problem.

    Quick runs take the first one.
    """
    if line.grid is None or options.quick:
        return None
    setup = line.setup(True)
    return best_of(line.grid(setup), setup, min(options.passes, line.passes, TRIAL_PASSES))


def _flat(row: Row) -> Row:
    line = row["line"]
    names = ("experiment", "data", "method", "published")
    flat: Row = {name: getattr(line, name) for name in names}
    for kind in KINDS:
        for name in ("form", "status", "objective", "violation", "SVio", "passes", "seconds"):
            flat[f"{kind}: {name}"] = (row.get(kind) or {}).get(name, "")
    return flat


def ranks(name: str, options: Namespace, store: Store) -> None:
    """Run what is not known of E9 or E10, and write its means and comparisons."""
    experiment, rows = rank_parity.EXPERIMENTS[name], []
    options.idca, options.methods = not options.quick, rank_parity.METHODS
    for data in options.rank_data:
        methods = rank_parity.methods_for(experiment, data, options)
        rows += rank_parity.measured(
            experiment,
            data,
            methods,
            options.seeds,
            store,
            any_version=options.any_version,
            only_known=options.only_known,
        )
    table = rank_parity.summary(rows)
    shown = [{k: v for k, v in row.items() if k != "by split"} for row in table]
    if table:
        write_table(shown, f"papers-{name}", f"{name}: means over splits", options.out)
        compared = rank_parity.dominance(table)
        title = f"{name}: ours at the fairness of others"
        write_table(compared, f"papers-{name}-compared", title, options.out)


def run(options: Namespace) -> None:
    """Run what is not known; write papers.md, and a table for E7 to E10."""
    store, table = Store(options.out / "papers"), []
    for line in all_lines():
        if line.experiment in options.only:
            row: Row = {"line": line}
            if line.paper is not None:
                row["paper"] = figures(line, "paper", options, store)
            row["default"] = figures(line, "default", options, store)
            table.append(_flat(row))
    if table:
        write_table(table, "papers", "The papers' tables", options.out)
    for name, module in (("E7", e7), ("E8", e8)):
        if name in options.only and not options.only_known:
            module.run(options)
    for name in rank_parity.EXPERIMENTS:
        if name in options.only:
            ranks(name, options, Store(options.out / "rank_parity"))
