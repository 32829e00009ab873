"""Neyman-Pearson classification of MNIST's ten digits (3S-Econ, Problem 3), four solvers.

The digit 1 has priority. The paper has no table for this problem: "published" quotes its text, the
measure of stationarity SVio (to be compared within the paper only) and seconds on an M1 in MATLAB.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from benchmarks.harness.options import Default
from benchmarks.harness.runs import draw_convergence, select, stop_after
from benchmarks.harness.runs import run as run_solver
from benchmarks.harness.tables import write_table
from fairconstrained.domains import Blocks, L2Ball, Leading
from fairconstrained.functions.surrogates import Sigmoid, Stretched
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, Solver, SwitchingSubgradient, ThreeSEcon
from fairconstrained.terms.class_losses import class_losses

KAPPA, RADIUS, CLASSES = 4.5, 0.3, 10
PUBLISHED = {
    "3S-Econ-D": "SVio 1.53e-3 at 172 s",
    "3S-Econ-S": "SVio 1.29e-3 at 21.9 s",
    "SSG": "SVio 1.07e-2 at 225 s",
}
COLUMNS = (
    "solver", "loss of 1", "violation", "KKT residual", "status", "passes", "seconds",
    "test error on 1", "test error, worst other", "published",
)  # fmt: skip


def mnist(n_rows: int | None = None, part: str = "train"):
    """Return images as rows of numbers in [0, 1] (float32), and digits; 1 comes first, 0 last.

    The paper's class i holds the digit i mod 10, so that the priority class is the digit 1.
    """
    with np.load(Path(os.environ["FAIRCONSTRAINED_DATA"]) / "mnist.npz") as file:
        images, digits = file[f"x_{part}"][:n_rows], file[f"y_{part}"][:n_rows].astype(int)
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255.0), (digits - 1) % 10


def problem_of(n_rows: int | None = None) -> Problem:
    """Return 3S-Econ's Problem 3, to be started at 0: without intercepts, a ball for each digit.

    As in its equation (3), the sums are over the classes without priority, hence 0 is strictly
    feasible: the loss of a class is then 8 / 2 - 4.5 = -0.5.
    """
    X, labels = mnist(n_rows)
    function, weight = Stretched(Sigmoid()), np.ones(len(labels))
    loss = class_losses(function, labels, weight, [0], [0.0], ["loss of 1"], left_out=[0])
    others = list(range(1, CLASSES))
    names = [f"loss of {(k + 1) % 10}" for k in others]
    limits = [KAPPA] * len(others)
    bounds = class_losses(function, labels, weight, others, limits, names, left_out=[0])
    model = LinearModel(X, fit_intercept=False, n_outputs=CLASSES)
    domain = Leading(Blocks(L2Ball(RADIUS), CLASSES), model.n_coefficients)
    return Problem(CompositeFunction(model, loss), (CompositeFunction(model, bounds),), domain)


def methods() -> dict[str, Solver]:
    """Return the solvers: ours first."""
    return {
        "augmented Lagrangian (auto)": AugmentedLagrangian(),
        "3S-Econ-D": ThreeSEcon(max_iter=400),
        "3S-Econ-S": ThreeSEcon.stochastic(),
        "SSG": SwitchingSubgradient(max_iter=400),
    }


def add_options(parser: ArgumentParser) -> None:
    """Add the number of images and what a solver may use."""
    parser.add_argument(
        "--rows", type=int, default=Default(60_000, 2000), help="the first so many images"
    )
    parser.add_argument(
        "--seconds", type=float, default=Default(60.0, 5.0), help="the most for a solver"
    )


def run(options: Namespace) -> None:
    """Write neyman_pearson.md and .csv, and a figure."""
    images, digits = mnist(part="test")
    rows, traces = [], {}
    for name, solver in methods().items():
        problem, limit = problem_of(options.rows), stop_after(options.seconds)
        row, result = run_solver(name, problem, solver=solver, callback=limit)
        if result is not None:
            traces[name] = result.trace
            scores = LinearModel(images, fit_intercept=False, n_outputs=CLASSES).scores(result.w)
            wrong = scores.argmax(axis=1) != digits
            others = [float(wrong[digits == k].mean()) for k in range(1, CLASSES)]
            row |= {"loss of 1": result.objective, "published": PUBLISHED.get(name, "")}
            row |= {"test error on 1": float(wrong[digits == 0].mean())}
            row |= {"test error, worst other": max(others)}
        rows.append(select(row, COLUMNS))
    title = f"MNIST, kappa {KAPPA}, balls of radius {RADIUS}"
    write_table(rows, "neyman_pearson", title, options.out)
    draw_convergence(traces, "neyman_pearson", options.out, x="seconds")
