"""Reproducing the papers: every line of their tables with `paper()`, by default, and as published.

E1, E2 (IPC), E3 to E5 (3S-Econ), E6 (PLADA), E9, E10 (IDCA); E7 and E8 are benchmarks of their own.
`--quick` runs every line with a fraction of the data passes. Results are kept by the content of the
library's code: a table is redone alone with `--only`. `--docs docs` writes the page.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from benchmarks import partial_parity, weak_partial_parity
from benchmarks.harness import rank_parity
from benchmarks.harness.options import Default, add_seeds
from benchmarks.harness.paper_grids import best_of
from benchmarks.harness.paper_lines import Line, all_lines, solver_of_line
from benchmarks.harness.paper_setup import SVIO_TOL, Setup
from benchmarks.harness.papers_page import write_page
from benchmarks.harness.rank_data import RANKS
from benchmarks.harness.rank_page import Ranks
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, write_table
from fairconstrained.solvers import Solver
from fairconstrained.utils.typing import Array

EXPERIMENTS = ("E1", "E2", "E3", "E4", "E5", "E6", "E9", "E10")
RANK_EXPERIMENTS = {"E9": partial_parity.EXPERIMENT, "E10": weak_partial_parity.EXPERIMENT}
FORMS = ("full", "quick")
KINDS = ("paper", "default")
DEFAULT_PASSES = 5000.0  # a run with the library's defaults ends after these at the latest
TRIAL_PASSES = 5000.0  # of each setting of a grid: the paper's 5,000 iterations
_POINT = 1000  # the most variables of a solution that is stored


def add_options(parser: ArgumentParser) -> None:
    """Add experiments, budgets, splits and the folder of the page."""
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
    parser.add_argument("--docs", type=Path, help="folder of the page papers.md and its figures")


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


def rank_tables(name: str, options: Namespace, store: Store) -> Ranks:
    """Return the means over the splits of E9 or E10, and draw its figure."""
    experiment = RANK_EXPERIMENTS[name]
    options.idca, options.methods = not options.quick, rank_parity.METHODS
    rows: list[Row] = []
    shown: dict[str, rank_parity.ScoresOf] = {}
    for data in options.rank_data:
        methods = rank_parity.methods_for(experiment, data, options)
        found = rank_parity.measured(
            experiment,
            data,
            methods,
            options.seeds,
            store,
            any_version=options.any_version,
            only_known=options.only_known,
        )
        for row, scores, groups in found:
            rows.append(row)
            shown.setdefault(data, {}).update(
                rank_parity.label_of(row, scores, groups, options.seeds[0])
            )
    return Ranks(name, experiment.symbol, rank_parity.summary(rows), shown)


def run(options: Namespace) -> None:
    """Run what is not known, write papers.md, and the page."""
    store, table = Store(options.out / "papers", options.docs), []
    rank_store = Store(options.out / "rank_parity", options.docs)
    for line in all_lines():
        if line.experiment not in options.only and options.docs is None:
            continue
        row: Row = {"line": line}
        asked = _asked(line.experiment, options)
        if line.paper is not None:
            row["paper"] = figures(line, "paper", asked, store)
        row["default"] = figures(line, "default", asked, store)
        table.append(row)
    ranks = [
        rank_tables(name, _asked(name, options), rank_store)
        for name in RANK_EXPERIMENTS
        if name in options.only or options.docs is not None
    ]
    ranks = [one for one in ranks if one.table]
    if table:
        write_table([_flat(row) for row in table], "papers", "The papers' tables", options.out)
    if options.docs is not None:
        write_page(options.docs, table, ranks, store.versions_in_words())
        store.publish()
        rank_store.publish(without=("scores",))


def _asked(experiment: str, options: Namespace) -> Namespace:
    """Return the options; of tables that are not asked for the page has what is known."""
    if experiment in options.only:
        return options
    return Namespace(**{**vars(options), "only_known": True, "any_version": True})


def _flat(row: Row) -> Row:
    line = row["line"]
    flat: Row = {"experiment": line.experiment, "data": line.data, "method": line.method}
    for kind in KINDS:
        for name in ("form", "status", "objective", "violation", "SVio", "passes", "seconds"):
            flat[f"{kind}: {name}"] = (row.get(kind) or {}).get(name, "")
    return flat
