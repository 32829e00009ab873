"""E4 (3S-Econ, Problem 2): hinge loss and SCAD under demographic parity on rows of its own.

python benchmarks/e4.py                                 # all solvers that can, on both data sets
python benchmarks/e4.py --data a9a --solver 3s-econ ssg # some of them
python benchmarks/e4.py --out some/folder               # default: benchmarks/results

From w = 0, as in the paper, with the solvers' defaults, next to the published figures. Writes e4.md
and e4.csv, a row per solver and data set, and figures per data set.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import common  # noqa: F401  (first: it puts the repository on the path)
import numpy as np
from common import Row, write_table
from real_problems import encode
from runs import draw, first_at, run
from sklearn.model_selection import train_test_split

from fairconstrained import DemographicParity
from fairconstrained.datasets import fetch_a9a, fetch_compas
from fairconstrained.domains import Box
from fairconstrained.functions.losses import Hinge
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties.separable import SCAD
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Result
from fairconstrained.terms.cell_means import average

OUT = Path(__file__).resolve().parent / "results"
KAPPA, STRENGTH, BOUND = 0.02, 0.02, 5.0


def _a9a():
    """Return the two parts of a9a: the published files have 32,561 and 16,281 rows, 2 to 1."""
    parts = [fetch_a9a(subset=subset) for subset in ("train", "test")]
    return [(p.data, p.target.to_numpy(), p.sensitive_features.to_numpy()) for p in parts]


def _compas():
    """Return a random 2:1 split of COMPAS, Caucasian against all others.

    The paper's 16 features are not named, and its objective of 0.204 is out of reach of the
    features that are known before the outcome: the published figure cannot be compared with.
    """
    data = fetch_compas()
    caucasian = (data.sensitive_features["race"] == "Caucasian").to_numpy()
    X = np.column_stack([encode(data.data), np.ones(len(caucasian))])
    parts = train_test_split(X, data.target.to_numpy(), caucasian, test_size=1 / 3, random_state=0)
    return [parts[::2], parts[1::2]]


PARTS = {"a9a": _a9a, "compas": _compas}


def e4_problem(data: str) -> Problem:
    r"""Return 3S-Econ's Problem 2 (equation 42), to be started at 0.

    .. math::
        \min_{\|w\|_\infty \le 5} \frac1n \sum_{i \in D} [1 - b_i w^\top a_i]_+ + 0.02\,
        \mathrm{SCAD}(w) \quad\text{s.t.}\quad \Big|\frac1{n_p} \sum_p \sigma(w^\top a_i)
        - \frac1{n_u} \sum_u \sigma(w^\top a_i)\Big| \le 0.02,

    sigma the sigmoid, without intercept; D is two thirds of the rows, the groups p and u are in the
    other third. The absolute value is two constraints.

    Parameters
    ----------
    data : {"a9a", "compas"}
        The data set.
    """
    (X, y, _), (X_fair, y_fair, groups) = PARTS[data]()
    signs = np.where(y == np.max(y), 1.0, -1.0)
    loss = average(Hinge(), signs, np.ones(len(signs)))
    parity = DemographicParity(KAPPA).bind(y_fair, groups, np.ones(len(groups)))
    return Problem(
        CompositeFunction(LinearModel(X, fit_intercept=False), loss, SCAD(STRENGTH)),
        (CompositeFunction(LinearModel(X_fair, fit_intercept=False), parity),),
        Box(-BOUND, BOUND),
    )


# 3S-Econ's Table 2: objective, passes over g, seconds (MATLAB on an M1). On COMPAS with features
# that the paper does not name, so that the objectives there are not those of our problem.
PUBLISHED = {
    ("a9a", "ssg"): (0.511, 8.0e4, 305.0),
    ("a9a", "ipp-ssg"): (0.507, 7.2e5, 2350.0),
    ("a9a", "ipp-conex"): (0.514, 7.2e5, 7760.0),
    ("a9a", "3s-econ"): (0.505, 4.2e4, 217.0),
    ("a9a", "ssg-stochastic"): (0.507, 5.1e4, 134.0),
    ("a9a", "3s-econ-stochastic"): (0.510, 110.0, 35.6),
    ("compas", "ssg"): (0.204, 5.78e5, 60.0),
    ("compas", "ipp-ssg"): (0.204, 7.2e5, 57.5),
    ("compas", "ipp-conex"): (0.204, 6.2e5, 156.0),
    ("compas", "3s-econ"): (0.204, 3.07e5, 40.9),
    ("compas", "ssg-stochastic"): (0.206, 1.17e5, 27.3),
    ("compas", "3s-econ-stochastic"): (0.206, 4.35e3, 23.8),
}
COLUMNS = (
    "data", "solver", "seed", "status", "objective", "violation", "KKT residual", "passes",
    "CPU seconds", "published objective", "published passes", "published seconds",
    "passes to it", "seconds to it", "times faster",
)  # fmt: skip


def compare(data: str, row: Row, result: Result) -> Row:
    """Return the published figures and how soon this run is as good without any violation."""
    if (data, row["solver"]) not in PUBLISHED:
        return {}
    objective, passes, seconds = PUBLISHED[data, row["solver"]]
    our_passes, our_seconds = first_at(result, objective, violation=0.0)
    return {
        "published objective": objective,
        "published passes": passes,
        "published seconds": seconds,
        "passes to it": our_passes,
        "seconds to it": our_seconds,
        "times faster": seconds / our_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--solver", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows: list[Row] = []
    for data in given.data:
        results: dict[str, Result] = {}
        for name in given.solver:
            row, result = run(name, e4_problem(data), given.seed)
            row = {**row, "data": data}
            if result is not None:
                row.update(compare(data, row, result))
                results[name] = result
            rows.append({column: row.get(column, "") for column in COLUMNS})
            print(*rows[-1].values(), flush=True)
        feasible = [one.objective for one in results.values() if one.violation <= 1e-4]
        draw(results, min(feasible), f"e4-{data}", given.out)
    write_table(rows, "e4", "E4: every solver with its defaults, from 0", given.out)


if __name__ == "__main__":
    main()
