"""Mini-batches on a million rows: data passes to within 1% of the reference objective.

python benchmarks/many_rows.py                    # 1e6 rows, three seeds
python benchmarks/many_rows.py --rows 100000 --seeds 0
python benchmarks/many_rows.py --out some/folder  # default: benchmarks/results

Each stochastic solver next to its deterministic form, with the defaults, from 0, on generated data
(10 features, logistic loss, demographic parity 0.02). A run ends when a measured point violates by
at most 1e-3 and its objective is at most 1.01 times the reference, which is solved to 1e-7.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
import numpy as np
from common import Row, at_most, write_table

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.data.groups import Groups
from fairconstrained.estimators.fit import TrainingData, build_problem
from fairconstrained.estimators.options import domain_of
from fairconstrained.functions.losses import Logistic
from fairconstrained.penalties.base import L2
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, AugmentedLagrangian, Status

OUT = Path(__file__).resolve().parent / "results"
PAIRS = {
    "ssg": "ssg-stochastic",
    "3s-econ": "3s-econ-stochastic",
    "plada": "plada-stochastic",
    "idca": "idca-stochastic",
}


def problem_of(rows: int) -> Problem:
    """Return the problem on that many generated rows."""
    X, y, groups = make_biased_classification(rows, random_state=0)
    data = TrainingData(X, 2.0 * y - 1.0, np.array([0, 1]), Groups.encode(groups), np.ones(len(y)))
    return build_problem(
        data,
        [DemographicParity(0.02)],
        loss=Logistic(),
        penalty=L2(1e-4),
        domain=domain_of(None),
        fit_intercept=True,
    )


def passes_to(name: str, problem: Problem, objective: float, seed: int) -> tuple[float, float]:
    """Return passes and seconds until a measured point is good enough; nan if there is none."""

    def good(measured) -> bool:
        return measured.violation <= 1e-3 and measured.objective <= objective

    clock = time.process_time()
    result = SOLVERS[name]().minimize(problem.uncounted(), callback=good, random_state=seed)
    seconds = time.process_time() - clock
    reached = result.status in (Status.STOPPED, Status.CONVERGED)
    return (result.data_passes if reached else float("nan")), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    problem = problem_of(given.rows)
    enough = 1.01 * AugmentedLagrangian(tol=1e-7, max_iter=300).minimize(problem).objective
    rows: list[Row] = []
    for all_rows, batches in PAIRS.items():
        whole = passes_to(all_rows, problem, enough, 0)
        runs = [passes_to(batches, problem, enough, seed) for seed in given.seeds]
        passes = [one[0] for one in runs]
        rows.append(
            {
                "method": all_rows,
                "passes": whole[0],
                "CPU seconds": whole[1],
                "on batches: passes, least": min(passes),
                "most": max(passes),
                "median CPU seconds": float(np.median([one[1] for one in runs])),
                "fewer": at_most(max(passes), whole[0]),
            }
        )
        print(*rows[-1].values(), flush=True)
    title = f"Passes to 1% of the reference objective on {given.rows:,} rows"
    write_table(rows, "many_rows", title, given.out)


if __name__ == "__main__":
    main()
