"""What 547 overlapping groups cost, next to one (the constraints of PLADA, section 5.3).

Linear models on Communities and Crime; groups are the communities above one of ten thresholds on
each of the Black, Hispanic and Asian percentages, those with more than 1% of the rows. The paper
counts 535 and does not name its thresholds; ten of equal distance from 0 to 0.535 make 547 here.
Measures an evaluation (objective, constraints, gradient of the Lagrangian) and a fit, in turns with
those of one group.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from statistics import median

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.options import Default
from benchmarks.harness.problems import signs
from benchmarks.harness.tables import Row, write_table
from benchmarks.harness.timing import in_turns, ratio
from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.datasets import fetch_communities
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import default_solver
from fairconstrained.terms.cell_means import average

PERCENTAGES = ["racepctblack", "racePctHisp", "racePctAsian"]
THRESHOLDS = np.linspace(0.0, 0.535, 10)
KAPPA = 0.15
LOSSES = ("logistic", "hinge")


def problem_of(loss: str, *, many: bool = True, average_of_groups: bool = False) -> Problem:
    """Return a linear model's problem with all groups, or with the largest alone."""
    data = fetch_communities()
    X = StandardScaler().fit_transform(data.data)
    labels, ones = signs(data.target.to_numpy()), np.ones(len(X))
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


def evaluate(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Return the gradient of the Lagrangian, after objective and constraints."""
    at = problem.at(w)
    assert np.isfinite(at.objective + at.constraints.sum())
    return at.gradient(np.full(problem.n_constraints, 1.0 / problem.n_constraints))


def measure(loss: str, repeats: int) -> list[Row]:
    """Return a row for each of: one group, all groups, their average."""
    problems = {
        "one group": problem_of(loss, many=False),
        "each of all groups": problem_of(loss),
        "the average of all groups": problem_of(loss, average_of_groups=True),
    }
    w = 0.1 * np.random.default_rng(0).standard_normal(problems["one group"].n_variables)
    runs = {name: lambda one=one: evaluate(one, w) for name, one in problems.items()}
    seconds = in_turns(runs, repeats)
    rows = []
    for name, problem in problems.items():
        result = default_solver(problem).minimize(problem.uncounted())
        rows.append(
            {
                "loss": loss,
                "constraint": name,
                "constraints": problem.n_constraints,
                "cells": problem.constraints[0].term.n_statistics,
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


def add_options(parser: ArgumentParser) -> None:
    """Add --repeats."""
    parser.add_argument("--repeats", type=int, default=Default(500, 20), help="timed evaluations")


def run(options: Namespace) -> None:
    """Write many_groups.md and many_groups.csv."""
    rows = [row for loss in LOSSES for row in measure(loss, options.repeats)]
    write_table(rows, "many_groups", "What many overlapping groups cost", options.out)
