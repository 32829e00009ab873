"""E7's constraints (PLADA, section 5.3) on a linear model: what many overlapping groups cost.

python benchmarks/e7_cost.py                    # --out some/folder; default: benchmarks/results

Communities and Crime; groups are the communities above one of ten thresholds on each of the Black,
Hispanic and Asian percentages, those with more than 1% of the rows. The paper counts 535 and does
not name its thresholds; ten of equal distance from 0 to 0.535 make 547 here. Measures an evaluation
(objective, constraints, gradient of the Lagrangian) and a fit, in turns with those of one group.
Writes e7-cost.md and e7-cost.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import common  # noqa: F401  (first: it puts the repository on the path)
import numpy as np
from common import Row, in_turns, ratio, write_table
from sklearn.preprocessing import StandardScaler

from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.datasets import fetch_communities
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties.base import L2
from fairconstrained.penalties.separable import Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import automatic
from fairconstrained.terms.cell_means import average

OUT = Path(__file__).resolve().parent / "results"
PERCENTAGES = ["racepctblack", "racePctHisp", "racePctAsian"]
THRESHOLDS = np.linspace(0.0, 0.535, 10)
KAPPA = 0.15


def problem(loss: str, *, many: bool = True, average_of_groups: bool = False) -> Problem:
    """Return a linear model's problem with all groups, or with the largest alone."""
    data = fetch_communities()
    X = StandardScaler().fit_transform(data.data)
    labels, ones = 2.0 * data.target.to_numpy() - 1.0, np.ones(len(X))
    model = LinearModel(X)
    rule = IntersectionalLossParity(
        KAPPA,
        loss=loss,
        membership="thresholds",
        thresholds=THRESHOLDS if many else [0.1],
        average=average_of_groups,
    ).bind(labels, data.data[PERCENTAGES], ones)
    objective = CompositeFunction(
        model, average(Logistic(), labels, ones), Leading(L2(1e-3), X.shape[1])
    )
    return Problem(objective, (CompositeFunction(model, rule),))


def evaluate(one: Problem, w: np.ndarray) -> np.ndarray:
    """Return the gradient of the Lagrangian, after objective and constraints."""
    at = one.at(w)
    assert np.isfinite(at.objective + at.constraints.sum())
    return at.gradient(np.full(one.n_constraints, 1.0 / one.n_constraints))


def measure(loss: str, repeats: int) -> list[Row]:
    """Return a row for each of: one group, all groups, their average."""
    problems = {
        "one group": problem(loss, many=False),
        "each of all groups": problem(loss),
        "the average of all groups": problem(loss, average_of_groups=True),
    }
    w = 0.1 * np.random.default_rng(0).standard_normal(problems["one group"].n_variables)
    runs = {name: lambda one=one: evaluate(one, w) for name, one in problems.items()}
    seconds = in_turns(runs, repeats)
    rows = []
    for name, one in problems.items():
        result = automatic(one).minimize(one.uncounted())
        rows.append(
            {
                "loss": loss,
                "constraint": name,
                "constraints": one.n_constraints,
                "cells": one.constraints[0].term.n_statistics,
                "ms per evaluation": 1e3 * median(seconds[name]),
                "ratio": ratio(seconds[name], seconds["one group"]),
                "solver": type(result.solver).__name__,
                "status": result.status.value,
                "objective": result.objective,
                "violation": result.violation,
                "active": int(np.sum(result.multipliers > 1e-6)),
                "passes": result.data_passes,
                "seconds": result.trace.seconds[-1],
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--repeats", type=int, default=500)
    given = parser.parse_args()
    rows = [row for loss in ("logistic", "hinge") for row in measure(loss, given.repeats)]
    write_table(rows, "e7-cost", "E7: what many overlapping groups cost", given.out)


if __name__ == "__main__":
    main()
