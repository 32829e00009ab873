"""E6 (PLADA, sections 5.1 and 5.2): logistic loss under demographic parity and equalized odds.

python benchmarks/e6.py                               # all solvers on all eight problems
python benchmarks/e6.py --data a9a --solver ipc ssg   # some of them
python benchmarks/e6.py --seeds 0 1 2                 # of the stochastic solvers; default: 0
python benchmarks/e6.py --out some/folder             # default: benchmarks/results

From w = 0, with the solvers' defaults; the law school data are added to the paper's three. Writes
e6.md and e6.csv, a row per solver, problem and seed, and figures per problem.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
import matplotlib
from common import Row, write_table
from real_problems import CONSTRAINTS, DATA, RealProblem

from fairconstrained.plotting import ConvergenceDisplay
from fairconstrained.solvers import SOLVERS, Result

OUT = Path(__file__).resolve().parent / "results"
COLUMNS = (
    "data", "constraint", "solver", "seed", "status", "objective", "relative gap", "violation",
    "KKT residual", "passes", "passes to 1%", "CPU seconds", "1%/2%, 1e-3, 60 s",
)  # fmt: skip
PER_FIGURE = 6  # lines that one can tell apart


def is_stochastic(name: str) -> bool:
    """Return whether a solver's result depends on the seed."""
    return name.endswith("stochastic")


def measure(
    problem: RealProblem, name: str, reference: float, seed: int
) -> tuple[Row, Result | None]:
    """Return the table's row of a solver, and its result unless the problem is not for it."""
    row: Row = {"data": problem.data, "constraint": problem.constraint, "solver": name}
    row["seed"] = seed if is_stochastic(name) else ""
    solver, built = SOLVERS[name](), problem.build()
    missing = solver.missing(built)
    if missing:
        return {**row, "status": f"needs {' and '.join(missing)}"}, None
    clock = time.process_time()
    result = solver.minimize(built, random_state=seed)
    cpu = time.process_time() - clock
    gap = result.objective / reference - 1.0
    good = gap <= (0.02 if is_stochastic(name) else 0.01) and result.violation <= 1e-3
    measures = {
        "status": result.status.value,
        "objective": result.objective,
        "relative gap": gap,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "passes to 1%": passes_to(result, 1.01 * reference),
        "CPU seconds": cpu,
        COLUMNS[-1]: "met" if good and cpu <= 60.0 else "not met",
    }
    return {**row, **measures}, result


def passes_to(result: Result, objective: float, violation: float = 1e-3) -> float:
    """Return the passes until a measured point is feasible and good enough, nan if never."""
    trace = result.trace
    for passes, value, violated in zip(
        trace.data_passes, trace.objective, trace.violation, strict=True
    ):
        if value <= objective and violated <= violation:
            return passes
    return float("nan")


def draw(results: dict[str, Result], reference: float, stem: str, out: Path) -> None:
    """Write figures of at most `PER_FIGURE` lines, against passes, the quickest solvers first."""
    out.mkdir(parents=True, exist_ok=True)
    names = sorted(results, key=lambda name: results[name].data_passes)
    for k in range(0, len(names), PER_FIGURE):
        chosen = {name: results[name] for name in names[k : k + PER_FIGURE]}
        display = ConvergenceDisplay.from_results(chosen, reference=reference)
        number = f"-{k // PER_FIGURE + 1}" if len(names) > PER_FIGURE else ""
        display.figure_.savefig(out / f"e6-{stem}{number}.png", dpi=130)
        matplotlib.pyplot.close(display.figure_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--solver", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    matplotlib.use("Agg")
    empty: Row = dict.fromkeys(COLUMNS, "")
    rows: list[Row] = []
    for data, constraint in product(given.data, CONSTRAINTS):
        problem = RealProblem(data, constraint)
        reference, results = problem.reference().objective, {}
        for name, seed in product(given.solver, given.seeds):
            if seed != given.seeds[0] and not is_stochastic(name):
                continue
            row, result = measure(problem, name, reference, seed)
            rows.append({**empty, **row})
            if result is not None and seed == given.seeds[0]:
                results[name] = result
            print(*row.values(), flush=True)
        stem = f"{problem.data}-{problem.constraint.split(' 0')[0]}".replace(" ", "-")
        draw(results, reference, stem, given.out)
    write_table(rows, "e6", "E6: every solver with its defaults, from 0", given.out)


if __name__ == "__main__":
    main()
