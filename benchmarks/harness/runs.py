"""Runs of solvers on a problem: a row of a table each, and figures of several together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.tables import Row
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Result, Solver, Trace

PER_FIGURE = 6  # lines that a reader can tell apart


def is_stochastic(name: str) -> bool:
    """Return whether a solver's result depends on the seed."""
    return name.endswith("stochastic")


def stop_after(seconds: float) -> Callable[[Any], bool]:
    """Return a callback that ends a run after some seconds, measuring included."""
    end = time.perf_counter() + seconds
    return lambda measured: time.perf_counter() > end


def run(
    name: str,
    problem: Problem,
    seed: int = 0,
    *,
    solver: Solver | None = None,
    start: Any = None,
    callback: Callable[[Any], bool] | None = None,
) -> tuple[Row, Result | None]:
    """Return a solver's figures, and its result unless it needs what the problem lacks.

    The solver is the registered one of this name, with its defaults, unless one is given.
    """
    solver = solver or SOLVERS[name]()
    row: Row = {"solver": name, "seed": seed if is_stochastic(name) else ""}
    missing = solver.missing(problem)
    if missing:
        return {**row, "status": f"needs {' and '.join(missing)}"}, None
    clock = time.process_time()
    result = solver.minimize(problem, start, callback=callback, random_state=seed)
    cpu = time.process_time() - clock
    measures = {
        "status": result.status.value,
        "objective": result.objective,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "seconds": result.trace.seconds[-1],
        "CPU seconds": cpu,
    }
    return {**row, **measures}, result


def first_at(trace: Trace, objective: float, violation: float = 1e-3) -> tuple[float, float]:
    """Return passes and seconds until a measured point is feasible and good enough, or nan."""
    frame = trace.to_frame()
    good = frame[(frame.objective <= objective) & (frame.violation <= violation)]
    if good.empty:
        return float("nan"), float("nan")
    return float(good.data_passes.iloc[0]), float(good.seconds.iloc[0])


def draw_convergence(
    traces: Mapping[str, Trace],
    stem: str,
    out: Path,
    *,
    reference: float | None = None,
    x: str = "data_passes",
) -> None:
    """Write figures of at most `PER_FIGURE` runs each, the shortest runs first."""
    import matplotlib

    matplotlib.use("Agg")
    from fairconstrained.plotting import ConvergenceDisplay

    out.mkdir(parents=True, exist_ok=True)
    names = sorted(traces, key=lambda name: getattr(traces[name], x)[-1])
    for k in range(0, len(names), PER_FIGURE):
        chosen = {name: traces[name] for name in names[k : k + PER_FIGURE]}
        display = ConvergenceDisplay(chosen, reference=reference, x=x).plot()
        number = f"-{k // PER_FIGURE + 1}" if len(names) > PER_FIGURE else ""
        display.figure_.savefig(out / f"{stem}{number}.png", dpi=130)
        matplotlib.pyplot.close(display.figure_)


def select(row: Row, columns: tuple[str, ...]) -> Row:
    """Return the columns of a row in order, empty where it has no value; print them."""
    chosen = {column: row.get(column, "") for column in columns}
    print(*chosen.values(), flush=True)
    return chosen
