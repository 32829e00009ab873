"""The least ROC unfairness for a hinge loss of 1.001 times the best (3S-Econ, Problem 1).

All start at x*, the model of the least loss, as in the paper. "smoothing" runs without the ball,
which its answer is checked to lie in. On COMPAS the paper's features are not
named, so that the published objectives there are not those of this problem.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.data import PARTS, parts
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.problems import signs
from benchmarks.harness.runs import draw_convergence, select, stop_after
from benchmarks.harness.runs import run as run_solver
from benchmarks.harness.tables import Row, write_table
from fairconstrained.constraints import ROCParity
from fairconstrained.domains import L2Ball, WholeSpace
from fairconstrained.functions.losses import Hinge
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Smoothing
from fairconstrained.terms.cell_means import average

INCREASE, RADII = 0.001, 5.0

# 3S-Econ's Table 2: objective, passes over g, seconds (MATLAB on an M1).
PUBLISHED = {
    ("a9a", "ssg"): (9.26e-2, 2.0e5, 1380.0),
    ("a9a", "ipp-ssg"): (1.03e-1, 2.0e5, 1370.0),
    ("a9a", "ipp-conex"): (9.70e-2, 2.0e5, 3700.0),
    ("a9a", "3s-econ"): (8.47e-2, 3.0e4, 582.0),
    ("a9a", "ssg-stochastic"): (8.08e-2, 2.0e5, 1030.0),
    ("a9a", "3s-econ-stochastic"): (8.48e-2, 910.0, 537.0),
    ("compas", "ssg"): (6.91e-3, 2.0e5, 285.0),
    ("compas", "ipp-ssg"): (6.79e-3, 2.0e5, 178.0),
    ("compas", "ipp-conex"): (6.85e-3, 2.0e5, 236.0),
    ("compas", "3s-econ"): (6.31e-3, 7.4e4, 127.0),
    ("compas", "ssg-stochastic"): (6.49e-3, 2.0e5, 273.0),
    ("compas", "3s-econ-stochastic"): (6.41e-3, 1850.0, 32.9),
}
COMPARED = ("smoothing", "3s-econ", "3s-econ-stochastic", "ssg", "ssg-stochastic")
COLUMNS = (
    "data", "solver", "status", "least loss", "unfairness at x*", "unfairness", "violation",
    "KKT residual", "passes", "seconds", "published unfairness", "published passes",
    "published seconds",
)  # fmt: skip


def least_loss(data: str) -> tuple[np.ndarray, float]:
    """Return x* and the least hinge loss."""
    problem = Problem(_loss(data))
    best = Smoothing(tol=3e-5).minimize(problem)
    return best.w, best.objective


def sampled_loss(data: str, seeds: Sequence[int] = range(5)) -> tuple[np.ndarray, float]:
    """Return the last point of single-row subgradient steps of 0.01, and its hinge loss.

    The paper takes x* and the bound from "a stochastic subgradient method"; its loss is a few per
    cent above the least one, which leaves room for fairness. Seeds differ much (on a9a by 1.2 to
    6.9 per cent above): the point of the median loss is taken.
    """
    found = [sampled_point(data, seed) for seed in seeds]
    return sorted(found, key=lambda one: one[1])[len(found) // 2]


def sampled_point(data: str, seed: int, steps: int = 300_000) -> tuple[np.ndarray, float]:
    """Return the last of the steps with one seed, and its hinge loss."""
    (X, y, _), _ = parts(data)
    rows, labels = sp.csr_array(X), signs(y)
    w = np.zeros(rows.shape[1])
    starts, columns, values = rows.indptr, rows.indices, rows.data
    for i in np.random.RandomState(seed).randint(len(labels), size=steps):
        at = slice(starts[i], starts[i + 1])
        if labels[i] * (values[at] @ w[columns[at]]) < 1.0:
            w[columns[at]] += 0.01 * labels[i] * values[at]
    return w, Problem(_loss(data)).at(w).objective


def _loss(data: str) -> CompositeFunction:
    (X, y, _), _ = parts(data)
    model = LinearModel(X, fit_intercept=False)
    return CompositeFunction(model, average(Hinge(), signs(y), np.ones(len(y))))


def base_problem(data: str, n_thresholds: int, best: np.ndarray) -> Problem:
    r"""Return the problem that 3S-Econ's Problem 1 (equation 5) swaps, x* being `best`.

    .. math::
        \min_{\|x\| \le 5 \|x^*\|} \max_\theta \Big|\frac1{n_p} \sum_p \sigma(x^\top a_i - \theta)
        - \frac1{n_u} \sum_u \sigma(x^\top a_i - \theta)\Big|
        \quad\text{s.t.}\quad \Phi(x) \le 1.001\, \Phi(x^*),

    Phi the hinge loss on two thirds of the rows, the groups p and u in the other third.
    """
    _, (X_fair, y_fair, groups) = parts(data)
    loss = _loss(data)
    assert loss.model is not None
    scores = loss.model.scores(best)
    low, high = scores.min(), scores.max()
    half = 0.5 * (high - low)
    grid = np.linspace(low - half, high + half, n_thresholds)
    roc = ROCParity(0.0, thresholds=grid).bind(y_fair, groups, np.ones(len(groups)))
    fair = CompositeFunction(LinearModel(X_fair, fit_intercept=False), roc)
    return Problem(loss, (fair,), L2Ball(RADII * float(np.linalg.norm(best))))


def without_ball(problem: Problem) -> Problem:
    """Return the problem in the whole space, which quasi-Newton steps need.

    A solution that lies in the ball solves the problem with it; `solve` checks that it does.
    """
    return replace(problem, domain=WholeSpace())


def solve(data: str, options: Namespace) -> list[Row]:
    """Return the rows of a data set, and draw its figure."""
    best, least = least_loss(data)
    base, bound = base_problem(data, options.thresholds, best), (1.0 + INCREASE) * least
    problem = base.epigraph(bound)
    start = np.append(best, base.uncounted().at(best).constraints.max())
    rows, traces = [], {}
    for name in options.solver:
        free = without_ball(base) if name == "smoothing" else base
        free = free.epigraph(bound).uncounted()
        row, result = run_solver(name, free, start=start, callback=stop_after(options.seconds))
        if result is not None:
            assert np.allclose(problem.domain.project(result.w), result.w)
            traces[name] = result.trace
        row |= {"unfairness": row.get("objective"), "least loss": least, "data": data}
        row["unfairness at x*"] = float(start[-1])
        published = ("published unfairness", "published passes", "published seconds")
        row |= zip(published, PUBLISHED.get((data, name), ("",) * 3), strict=True)
        rows.append(select(row, COLUMNS))
    draw_convergence(traces, f"roc_fairness-{data}", options.out, x="seconds")
    return rows


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, solvers, and what they may use."""
    add_choice(parser, "--data", PARTS, quick=["compas"], help="data sets")
    parser.add_argument(
        "--solver",
        nargs="+",
        choices=list(SOLVERS),
        metavar="NAME",
        default=Default(list(COMPARED), ["smoothing", "3s-econ"]),
        help="solvers",
    )
    parser.add_argument(
        "--seconds", type=float, default=Default(120.0, 5.0), help="the most for a solver"
    )
    parser.add_argument("--thresholds", type=int, default=Default(400, 50), help="how many")


def run(options: Namespace) -> None:
    """Write roc_fairness.md and roc_fairness.csv, and a figure per data set."""
    rows = [row for data in options.data for row in solve(data, options)]
    title = "ROC unfairness subject to 1.001 times the best loss"
    write_table(rows, "roc_fairness", title, options.out)
