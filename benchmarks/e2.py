"""E2 (IPC, section 5): truncated logistic loss under the minority rate, in an L1 ball.

python benchmarks/e2.py                           # both data sets, the paper's c and one that binds
python benchmarks/e2.py --data bank --solver "IPC, augmented Lagrangian"
python benchmarks/e2.py --out some/folder         # default: benchmarks/results

IPC with four oracles, and the paper's baselines: the deterministic method of Yu, Neely and Wei
directly, and the exact penalty. All start where the paper does. Writes e2.md and e2.csv, a row per
solver and problem, and a figure per problem. The paper prints no figures, only plots; its loan data
are not available. Its c leaves the constraint inactive at the solution, so that a larger one is
solved as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
import numpy as np
import pandas as pd
from common import Row, write_table
from runs import draw, first_at, run
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairconstrained.constraints import MinorityRate
from fairconstrained.datasets import fetch_a9a, fetch_bank
from fairconstrained.domains import L1Ball
from fairconstrained.functions.losses import TruncatedLogistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import (
    IPC,
    AugmentedLagrangian,
    ConEx,
    ExactPenalty,
    OnlineStochastic,
    Solver,
    SwitchingSubgradient,
)
from fairconstrained.terms.cell_means import average

OUT = Path(__file__).resolve().parent / "results"
RADIUS = 20.0
COLUMNS = (
    "data", "c", "solver", "status", "objective", "relative gap", "constraint", "violation",
    "KKT residual", "minority's share", "passes", "passes to 1%", "CPU seconds",
)  # fmt: skip
SOLVERS: dict[str, Callable[[], Solver]] = {
    "IPC, switching subgradient": lambda: IPC(SwitchingSubgradient(max_iter=500), max_iter=10),
    "IPC, online stochastic": lambda: IPC(OnlineStochastic(max_iter=400), max_iter=10),
    "IPC, ConEx": lambda: IPC(ConEx(max_iter=200), max_iter=20),
    "IPC, augmented Lagrangian": lambda: IPC(AugmentedLagrangian()),
    "Yu-Neely-Wei": OnlineStochastic,
    "exact penalty": ExactPenalty,
}


@cache
def _bank():
    """Return D and S, random halves of Bank with 81 columns, and who is single in S."""
    data = fetch_bank()
    frame = data.data.assign(day=data.data["day"].astype("category"))
    numeric = frame.select_dtypes("number").columns
    columns = pd.get_dummies(frame, dtype=float)
    columns[numeric] = StandardScaler().fit_transform(frame[numeric])
    single = (data.sensitive_features["marital"] == "single").to_numpy()
    assert columns.shape[1] == 81
    X, y = columns.to_numpy(), data.target.to_numpy()
    X, Z, y, _, _, minority = train_test_split(X, y, single, test_size=0.5, random_state=0)
    return X, y, Z, minority


@cache
def _a9a():
    """Return a9a's training part as D and its test part as S, and who is female in S."""
    train, test = fetch_a9a(), fetch_a9a(subset="test")
    female = (test.sensitive_features == "Female").to_numpy()
    return train.data, train.target.to_numpy(), test.data, female


DATA = {"bank": (_bank, (0.2, 0.5)), "a9a": (_a9a, (0.08, 0.25))}


def e2_problem(data: str, c: float) -> Problem:
    r"""Return IPC's problem of section 5.

    .. math::
        \min_{\|w\|_1 \le 20} \frac{1}{|D|} \sum_{i \in D} \phi_2(\ell(y_i w^\top x_i))
        \quad \text{s.t.} \quad
        \frac{1}{|S|} \Big(c \sum_{i \in S} \sigma(w^\top x_i)
        - \sum_{i \in S_{\min}} \sigma(w^\top x_i)\Big) \le 0.

    Parameters
    ----------
    data : {"bank", "a9a"}
        The data set.
    c : float
        The minority's least share of the positive decisions.
    """
    X, y, Z, minority = DATA[data][0]()
    loss = average(TruncatedLogistic(), 2.0 * y - 1.0, np.ones(len(y)))
    rule = MinorityRate(c, minority=True).bind(None, minority, np.ones(len(minority)))
    models = [LinearModel(rows, fit_intercept=False) for rows in (X, Z)]
    return Problem(
        CompositeFunction(models[0], loss), (CompositeFunction(models[1], rule),), L1Ball(RADIUS)
    )


def solve(data: str, c: float, names: list[str], out: Path) -> list[Row]:
    """Return the rows of a problem, and draw its figure."""
    problem = e2_problem(data, c)
    start = problem.domain.project(np.ones(problem.n_variables))
    first = problem.uncounted().at(start)
    print(f"{data}, c = {c}: objective {first.objective:.4f}, g {first.constraints} at the start")
    best = AugmentedLagrangian(tol=1e-6, max_iter=300).minimize(problem.uncounted(), start)
    rows, results = [], {}
    for name in names:
        row, result = run(name, problem.uncounted(), solver=SOLVERS[name](), start=start)
        if result is not None:
            at = problem.uncounted().at(result.w)
            rule = problem.constraints[0].term
            row |= {
                "relative gap": result.objective / best.objective - 1.0,
                "constraint": float(at.constraints[0]),
                "minority's share": 1.0 - float(rule.gap(at.scores_of(problem.constraints[0]))[0]),
                "passes to 1%": first_at(result, 1.01 * best.objective)[0],
            }
            results[name] = result
        row |= {"data": data, "c": c}
        rows.append({column: row.get(column, "") for column in COLUMNS})
        print(*rows[-1].values(), flush=True)
    draw(results, best.objective, f"e2-{data}-{c}", out)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--solver", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    rows = [
        row
        for data in given.data
        for c in DATA[data][1]
        for row in solve(data, c, given.solver, given.out)
    ]
    write_table(rows, "e2", "E2: the minority rate, from the projection of ones", given.out)


if __name__ == "__main__":
    main()
