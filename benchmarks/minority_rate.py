"""Minority rate (IPC, section 5): truncated logistic loss in an L1 ball, six methods.

IPC with four oracles, and the paper's baselines: the deterministic method of Yu, Neely and Wei
directly, and the exact penalty. The rows of the constraint are not those of the loss, and all start
where the paper does. The paper prints plots only; its loan data are not available. Its c leaves the
constraint inactive at the solution, so that a larger one is solved as well.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.data import parts
from benchmarks.harness.options import add_choice
from benchmarks.harness.problems import signs
from benchmarks.harness.runs import draw_convergence, first_at, select
from benchmarks.harness.runs import run as run_solver
from benchmarks.harness.tables import Row, write_table
from fairconstrained.constraints import MinorityRate
from fairconstrained.datasets import fetch_bank
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

RADIUS = 20.0
COLUMNS = (
    "data", "c", "solver", "status", "objective", "relative gap", "constraint", "violation",
    "KKT residual", "minority's share", "passes", "passes to 1%", "CPU seconds",
)  # fmt: skip
METHODS: dict[str, Callable[[], Solver]] = {
    "IPC, switching subgradient": lambda: IPC(SwitchingSubgradient(max_iter=500), max_iter=10),
    "IPC, online stochastic": lambda: IPC(OnlineStochastic(max_iter=400), max_iter=10),
    "IPC, ConEx": lambda: IPC(ConEx(max_iter=200), max_iter=20),
    "IPC, augmented Lagrangian": lambda: IPC(AugmentedLagrangian()),
    "Yu-Neely-Wei": OnlineStochastic,
    "exact penalty": ExactPenalty,
}
QUICK_METHODS = ("IPC, augmented Lagrangian", "exact penalty")


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


def _a9a():
    """Return a9a's training part as D and its test part as S, and who is female in S."""
    (X, y, _), (Z, _, sex) = parts("a9a")
    return X, y, Z, sex == "Female"


DATA = {"bank": (_bank, (0.2, 0.5)), "a9a": (_a9a, (0.08, 0.25))}


def problem_of(data: str, c: float) -> Problem:
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
    loss = average(TruncatedLogistic(), signs(y), np.ones(len(y)))
    rule = MinorityRate(c, minority=True).bind(None, minority, np.ones(len(minority)))
    models = [LinearModel(rows, fit_intercept=False) for rows in (X, Z)]
    return Problem(
        CompositeFunction(models[0], loss), (CompositeFunction(models[1], rule),), L1Ball(RADIUS)
    )


def solve(data: str, c: float, names: list[str], out: Path) -> list[Row]:
    """Return the rows of a problem, and draw its figure."""
    problem = problem_of(data, c)
    start = problem.domain.project(np.ones(problem.n_variables))
    first = problem.uncounted().at(start)
    print(f"{data}, c = {c}: objective {first.objective:.4f}, g {first.constraints} at the start")
    best = AugmentedLagrangian(tol=1e-6, max_iter=300).minimize(problem.uncounted(), start)
    rows, traces = [], {}
    for name in names:
        row, result = run_solver(name, problem.uncounted(), solver=METHODS[name](), start=start)
        if result is not None:
            at = problem.uncounted().at(result.w)
            rule = problem.constraints[0].term
            row |= {
                "relative gap": result.objective / best.objective - 1.0,
                "constraint": float(at.constraints[0]),
                "minority's share": 1.0 - float(rule.gap(at.scores_of(problem.constraints[0]))[0]),
                "passes to 1%": first_at(result.trace, 1.01 * best.objective)[0],
            }
            traces[name] = result.trace
        rows.append(select({**row, "data": data, "c": c}, COLUMNS))
    draw_convergence(traces, f"minority_rate-{data}-{c}", out, reference=best.objective)
    return rows


def add_options(parser: ArgumentParser) -> None:
    """Add data sets and methods."""
    add_choice(parser, "--data", DATA, quick=["bank"], help="data sets")
    add_choice(parser, "--solver", METHODS, quick=QUICK_METHODS, help="methods")


def run(options: Namespace) -> None:
    """Write minority_rate.md and minority_rate.csv, and a figure per problem."""
    rows = [
        row
        for data in options.data
        for c in DATA[data][1]
        for row in solve(data, c, options.solver, options.out)
    ]
    write_table(rows, "minority_rate", "Minority rate, from the projection of ones", options.out)
