"""Runs of solvers on a problem: one row of a table each, and pictures of several together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from common import Row

from fairconstrained.plotting import ConvergenceDisplay
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Result, Solver

PER_FIGURE = 6  # lines that one can tell apart


def is_stochastic(name: str) -> bool:
    """Return whether a solver's result depends on the seed."""
    return name.endswith("stochastic")


def run(
    name: str,
    problem: Problem,
    seed: int = 0,
    *,
    solver: Solver | None = None,
    start: Any = None,
) -> tuple[Row, Result | None]:
    """Return a solver's figures, by default with its defaults, and its result if it can do this."""
    solver = solver or SOLVERS[name]()
    row: Row = {"solver": name, "seed": seed if is_stochastic(name) else ""}
    missing = solver.missing(problem)
    if missing:
        return {**row, "status": f"needs {' and '.join(missing)}"}, None
    clock = time.process_time()
    result = solver.minimize(problem, start, random_state=seed)
    cpu = time.process_time() - clock
    measures = {
        "status": result.status.value,
        "objective": result.objective,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "CPU seconds": cpu,
    }
    return {**row, **measures}, result


def first_at(result: Result, objective: float, violation: float = 1e-3) -> tuple[float, float]:
    """Return passes and seconds until a measured point is feasible and good enough, or nan."""
    trace = result.trace.to_frame()
    good = trace[(trace.objective <= objective) & (trace.violation <= violation)]
    if good.empty:
        return float("nan"), float("nan")
    return float(good.data_passes.iloc[0]), float(good.seconds.iloc[0])


def draw(results: Mapping[str, Result], reference: float, stem: str, out: Path) -> None:
    """Write figures of at most `PER_FIGURE` lines, against passes, the quickest solvers first."""
    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    names = sorted(results, key=lambda name: results[name].data_passes)
    for k in range(0, len(names), PER_FIGURE):
        chosen = {name: results[name] for name in names[k : k + PER_FIGURE]}
        display = ConvergenceDisplay.from_results(chosen, reference=reference)
        number = f"-{k // PER_FIGURE + 1}" if len(names) > PER_FIGURE else ""
        display.figure_.savefig(out / f"{stem}{number}.png", dpi=130)
        matplotlib.pyplot.close(display.figure_)
