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
from itertools import product
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
from common import Row, write_table
from real_problems import CONSTRAINTS, DATA, RealProblem
from runs import draw, first_at, is_stochastic, run

from fairconstrained.solvers import SOLVERS, Result

OUT = Path(__file__).resolve().parent / "results"
VERDICT = "1% (stochastic 2%), 1e-3, 60 s"
COLUMNS = (
    "data", "constraint", "solver", "seed", "status", "objective", "relative gap", "violation",
    "KKT residual", "passes", "passes to 1%", "CPU seconds", VERDICT,
)  # fmt: skip


def judge(name: str, row: Row, result: Result, reference: float) -> Row:
    """Return what the figures say next to the reference objective."""
    gap = result.objective / reference - 1.0
    near = gap <= (0.02 if is_stochastic(name) else 0.01)
    good = near and result.violation <= 1e-3 and row["CPU seconds"] <= 60.0
    return {
        "relative gap": gap,
        "passes to 1%": first_at(result, 1.01 * reference)[0],
        VERDICT: "met" if good else "not met",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--solver", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    rows: list[Row] = []
    for data, constraint in product(given.data, CONSTRAINTS):
        problem = RealProblem(data, constraint)
        reference, results = problem.reference().objective, {}
        for name in given.solver:
            for seed in given.seeds if is_stochastic(name) else given.seeds[:1]:
                row, result = run(name, problem.build(), seed)
                row = {**row, "data": data, "constraint": constraint}
                if result is not None:
                    row.update(judge(name, row, result, reference))
                    results.setdefault(name, result)
                rows.append({column: row.get(column, "") for column in COLUMNS})
                print(*rows[-1].values(), flush=True)
        draw(results, reference, f"e6-{data}-{constraint[:-5]}".replace(" ", "-"), given.out)
    write_table(rows, "e6", "E6: every solver with its defaults, from 0", given.out)


if __name__ == "__main__":
    main()
