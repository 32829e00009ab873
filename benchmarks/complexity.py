"""Evaluations that the papers' methods need for an accuracy, with the slopes of their theory.

A logistic model with demographic parity at .02 on generated rows. For each accuracy eps a method
has parameters of the order that its theory asks for, and runs until the KKT conditions hold to eps.
Constants are choices of ours. Objective, constraint and constraint-gradient evaluations are counted
apart. From the first accuracy on that takes more than --passes, a method is left out.
"""

from math import ceil

import numpy as np
import pandas as pd

from benchmarks.harness.options import Default, add_numbers
from benchmarks.harness.results import Page, Rows, at_most, write_table
from fairconstrained import FairLogisticClassifier, make_biased_classification, solvers
from fairconstrained.problem import Problem

PRINTED = {"polish": False, "max_iter": 10**7}  # the limit is --passes
RHO = 1.0  # rho^ of IPC


def methods(eps: float) -> dict[str, tuple[float, solvers.Solver]]:
    """Return the exponent of the theory, and the method for an accuracy."""
    steps, rule = ceil(0.1 / eps**2), solvers.StronglyConvexSteps(0.5 * RHO, epsilon=eps**2)
    switching = solvers.SwitchingSubgradient(rule, max_iter=steps, check_every=steps, polish=False)
    lagrangian = solvers.AugmentedLagrangian(tol=0.1 * eps)
    ipc = {"rho": RHO, "safeguard": False, **PRINTED}
    return {
        "IPC, SSG": (4.0, solvers.IPC(switching, **ipc)),
        "IPC, augmented Lagrangian": (3.0, solvers.IPC(lagrangian, **ipc)),
        "3S-Econ-D": (4.0, solvers.ThreeSEcon(nu=eps, alpha=10 * eps**2, check_every=5, **PRINTED)),
        # Its steps decrease by themselves.
        "3S-Econ-S": (4.0, solvers.ThreeSEcon.stochastic(nu=eps, alpha=0.05, **PRINTED)),
        "PLADA": (2.0, solvers.PLADA(exact=True, check_every=1, **PRINTED)),
        "IDCA": (4.0, solvers.IDCA.paper(steps=steps, epsilon=eps**2, max_iter=10**7)),
    }


def add_options(parser) -> None:
    """Add accuracies, rows and the limit."""
    parser.add_argument("--rows", type=int, default=Default(500, 200), help="rows of X")
    text = "accuracies, in units of 0.001"
    add_numbers(parser, "--eps", [28, 20, 14, 10, 7, 5], [28, 20], text)
    most = "the most data passes of a run"
    parser.add_argument("--passes", type=float, default=Default(25_000.0, 500.0), help=most)


def rows_of(problem: Problem, options) -> Rows:
    """Yield the evaluations of every method and accuracy."""
    made = {0.001 * number: methods(0.001 * number) for number in options.eps}
    for method in next(iter(made.values())):
        for eps, of in made.items():
            exponent, solver = of[method]
            limits = {"tol": eps, "max_data_passes": options.passes}
            result = solver.minimize(problem.uncounted(), random_state=0, **limits)
            if not result.converged:
                break
            figures = {"method": method, "theory": exponent, "eps": eps, **result.evaluations}
            yield {**figures, "iterations": result.n_iter}


def run(options) -> None:
    """Write complexity.md and complexity.csv."""
    X, y, groups = make_biased_classification(options.rows, gap=0.3, random_state=0)
    fit = FairLogisticClassifier(kappa=0.02).bind(X, y, sensitive_features=groups)
    rows = rows_of(fit.problem, options)
    write_table(rows, "complexity", "Evaluations for an accuracy", options.out)


KINDS = ("constraints", "constraint_gradients")


def slope(lines: pd.DataFrame, kind: str) -> float:
    """Return the exponent p of evaluations that grow as eps^-p, by least squares of logarithms."""
    return -float(np.polyfit(np.log(lines.eps), np.log(lines[kind]), 1)[0])


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return exponents, and the evaluations for the smallest accuracy that a method reaches."""
    shown = []
    for (method, theory), lines in rows.groupby(["method", "theory"], sort=False):
        last = lines.iloc[-1]
        slopes = {f"measured, {kind}": slope(lines, kind) for kind in KINDS}
        within = at_most(max(slopes.values()), theory)
        counts = {kind: f"{last[kind]:.0f}" for kind in ("objective", *KINDS)}
        head = {"method": method, "theory": f"{theory:.0f}", **slopes, "bound": within}
        shown.append({**head, "eps": last.eps, **counts})
    return pd.DataFrame(shown).rename(columns=lambda name: name.replace("_", " "))


def draw(left, right, rows: pd.DataFrame) -> None:
    """Draw evaluations against accuracy; dotted lines have the slopes of the theory."""
    for ax, kind in zip((left, right), KINDS, strict=True):
        for (method, theory), lines in rows.groupby(["method", "theory"], sort=False):
            (line,) = ax.loglog(1.0 / lines.eps, lines[kind], "o-", markersize=3, label=method)
            first = lines.iloc[0]
            bound = first[kind] * (first.eps / lines.eps) ** theory
            ax.loglog(1.0 / lines.eps, bound, ":", color=line.get_color(), linewidth=0.9)
        ax.minorticks_off()
        ax.set_xticks([50, 100, 200], ["50", "100", "200"])
        ax.set_xlabel("1 / eps")
        ax.set_title(f"{kind.replace('_', ' ')}, evaluations", fontsize=8)
    right.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


PAGES = (Page("complexity", table, draw, ("complexity",)),)
