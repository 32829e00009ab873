"""E3 (3S-Econ, Problem 1): the least ROC unfairness for a hinge loss of 1.001 times the best.

python benchmarks/e3.py                                        # a9a and COMPAS
python benchmarks/e3.py --data a9a --solver level-search 3s-econ  # some of it
python benchmarks/e3.py --seconds 120 --out some/folder        # the most for a solver; where to

All start at x*, the model of the least loss, as in the paper. Writes e3.md and e3.csv, a row per
solver and data set next to the published figures, and a figure per data set.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
import matplotlib

matplotlib.use("Agg")

import numpy as np
from common import Row, write_table
from e4 import PARTS

from fairconstrained.constraints import ROCParity
from fairconstrained.domains import L2Ball, WholeSpace
from fairconstrained.functions.losses import Hinge
from fairconstrained.models.linear import LinearModel
from fairconstrained.plotting import ConvergenceDisplay
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Smoothing
from fairconstrained.terms.cell_means import average

OUT = Path(__file__).resolve().parent / "results"
INCREASE, RADII, THRESHOLDS = 0.001, 5.0, 400

# 3S-Econ's Table 2: objective, passes over g, seconds (MATLAB on an M1). Its COMPAS has features
# that the paper does not name, so that the objectives there are not those of our problem.
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
DEFAULT = ("level-search", "3s-econ", "3s-econ-stochastic", "ssg", "ssg-stochastic")
WITHOUT_BALL = ("level-search", "smoothing")


def e3_problem(data: str) -> tuple[Problem, np.ndarray, float]:
    r"""Return 3S-Econ's Problem 1 (equation 5), its start, and the least loss.

    .. math::
        \min_{\|x\| \le 5 \|x^*\|} \max_\theta \Big|\frac1{n_p} \sum_p \sigma(x^\top a_i - \theta)
        - \frac1{n_u} \sum_u \sigma(x^\top a_i - \theta)\Big|
        \quad\text{s.t.}\quad \Phi(x) \le 1.001\, \Phi(x^*),

    Phi the hinge loss on two thirds of the rows, the groups p and u in the other third.
    """
    (X, y, _), (X_fair, y_fair, groups) = PARTS[data]()
    signs = np.where(y == np.max(y), 1.0, -1.0)
    model = LinearModel(X, fit_intercept=False)
    loss = CompositeFunction(model, average(Hinge(), signs, np.ones(len(signs))))
    best = Smoothing(tol=3e-5).minimize(Problem(loss))
    scores = model.scores(best.w)
    low, high = scores.min(), scores.max()
    half = 0.5 * (high - low)
    grid = np.linspace(low - half, high + half, THRESHOLDS)
    roc = ROCParity(0.0, thresholds=grid).bind(y_fair, groups, np.ones(len(groups)))
    fair = CompositeFunction(LinearModel(X_fair, fit_intercept=False), roc)
    ball = L2Ball(RADII * float(np.linalg.norm(best.w)))
    problem = Problem(loss, (fair,), ball)
    level = problem.uncounted().at(best.w).constraints.max()
    is_epigraph = problem.epigraph((1.0 + INCREASE) * best.objective)
    return is_epigraph, np.append(best.w, level), best.objective


def without_ball(problem: Problem) -> Problem:
    """Return the problem in the whole space: quasi-Newton steps need it, and the ball is not met.

    A solution that lies in the ball solves the problem with it; `main` checks that it does.
    """
    made_of = problem.epigraph_of
    return replace(made_of.problem, domain=WholeSpace()).epigraph(made_of.bound)


def main() -> None:
    """Run the solvers, write the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--solver", nargs="+", default=list(DEFAULT), choices=list(SOLVERS))
    parser.add_argument("--seconds", type=float, default=120.0, help="the most for a solver")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    rows: list[Row] = []
    for data in options.data:
        problem, start, best = e3_problem(data)
        results = {}
        for name in options.solver:
            end = time.perf_counter() + options.seconds
            solver = SOLVERS[name]()
            result = solver.minimize(
                without_ball(problem) if name in WITHOUT_BALL else problem.uncounted(),
                start,
                callback=lambda _, end=end: time.perf_counter() > end,
                random_state=0,
            )
            results[name] = result
            inside = np.array_equal(problem.domain.project(result.w), result.w)
            assert inside or np.allclose(problem.domain.project(result.w), result.w)
            published = PUBLISHED.get((data, name), ("",) * 3)
            rows.append(
                {
                    "data": data,
                    "solver": name,
                    "status": result.status.value,
                    "least loss": best,
                    "unfairness at x*": float(start[-1]),
                    "unfairness": result.objective,
                    "violation": result.violation,
                    "KKT residual": result.kkt_residual,
                    "passes": result.data_passes,
                    "seconds": result.trace.seconds[-1],
                    "published unfairness": published[0],
                    "published passes": published[1],
                    "published seconds": published[2],
                }
            )
            print(rows[-1], flush=True)
        display = ConvergenceDisplay.from_results(results, x="seconds")
        options.out.mkdir(parents=True, exist_ok=True)
        display.figure_.savefig(options.out / f"e3_{data}.png", dpi=150, bbox_inches="tight")
    write_table(rows, "e3", "E3: ROC unfairness subject to 1.001 times the best loss", options.out)


if __name__ == "__main__":
    main()
