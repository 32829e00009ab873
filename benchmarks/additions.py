"""What the library's defaults add to the printed algorithms, and what it buys.

Logistic regression on COMPAS under demographic parity 0.02: every solver with its defaults, without
the second-order steps that finish a run, and with the constants of its paper. IDCA has a second
problem with kinks, partial demographic parity 0.02 of ramps, and three times as many data passes.
Runs end at the same number of data passes; the figure is the gap of the best feasible objective to
the solution. Figures are medians over seeds, which matter to solvers that draw rows. "CPU seconds"
are of the run with measurements. The docstrings of IPC, IDCA and ExactPenalty quote this table.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np

from benchmarks.harness.data import load
from benchmarks.harness.options import Default, add_choice, add_seeds
from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.tables import Row, write_table
from fairconstrained.constraints import Constraint, DemographicParity, PartialDemographicParity
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import (
    IDCA,
    IPC,
    PLADA,
    AugmentedLagrangian,
    ConEx,
    ExactPenalty,
    OnlineStochastic,
    Regularization,
    Smoothing,
    Solver,
    StochasticSwitchingSubgradient,
    SwitchingSubgradient,
    ThreeSEcon,
)
from fairconstrained.solvers.lagrangian import LagrangianDescentAscent
from fairconstrained.solvers.step_rules import StaticTolerance

KAPPA = 0.02
FEASIBLE = 1e-4

Variants = dict[str, Solver]


def _ipc() -> Variants:
    return {
        "default": IPC(),
        "switching subgradient in place of the augmented Lagrangian": IPC(
            SwitchingSubgradient(max_iter=100, check_every=100), polish=False
        ),
        "without safeguard": IPC(AugmentedLagrangian(), safeguard=False, polish=False),
        "paper(), 100 steps per subproblem": IPC.paper(steps=100),
    }


def _plada() -> Variants:
    return {
        **_first_order(PLADA, PLADA.paper()),
        "proximal step exact": PLADA(exact=True, polish=False),
        "paper(), linearised": PLADA.paper(exact=False),
    }


def _idca() -> Variants:
    return {
        "default, not polished": IDCA(polish=False),
        "without safeguard": IDCA(AugmentedLagrangian(), safeguard=False, polish=False),
        "algorithm 2 in place of the augmented Lagrangian": IDCA(
            SwitchingSubgradient(StaticTolerance(), max_iter=30, check_every=30), polish=False
        ),
        "paper(), 30 steps per subproblem": IDCA.paper(steps=30),
    }


def _idca_with_kinks() -> Variants:
    idca = IDCA(max_iter=1000, polish=False)
    smoothing = Smoothing(AugmentedLagrangian(polish=False))
    return {
        "default (exact penalty), not polished": idca,
        "augmented Lagrangian in place of exact penalty": idca.with_options(oracle=smoothing),
        "ConEx in place of exact penalty": idca.with_options(oracle=ConEx(max_iter=100)),
        "paper(), 30 steps per subproblem": IDCA.paper(steps=30),
    }


def _lagrangian_descent_ascent() -> Variants:
    return {
        **_first_order(LagrangianDescentAscent, LagrangianDescentAscent.paper()),
        "no extrapolation": LagrangianDescentAscent(extrapolation=0.0, polish=False),
        "zero-one rates in the dual": LagrangianDescentAscent(
            dual="zero_one", extrapolation=0.0, polish=False
        ),
    }


def _exact_penalty() -> Variants:
    return {
        "default": ExactPenalty(),
        "linear model in a ball (no curvature)": ExactPenalty(memory=0),
        "paper()": ExactPenalty.paper(),
    }


def _first_order(make: Callable[..., Solver], paper: Solver | None = None) -> Variants:
    """Return the default, the method alone and, where it is printed, with the paper's constants."""
    printed: Variants = {} if paper is None else {"paper()": paper}
    return {"default": make(), "default, not polished": make(polish=False), **printed}


_VARIANTS: dict[str, Callable[[], Variants]] = {
    "IPC": _ipc,
    "OnlineStochastic": lambda: _first_order(
        OnlineStochastic, OnlineStochastic.paper(max_iter=300, check_every=50)
    ),
    "ThreeSEcon": lambda: _first_order(ThreeSEcon, ThreeSEcon.paper()),
    "ThreeSEcon.stochastic": lambda: _first_order(ThreeSEcon.stochastic),
    "PLADA": _plada,
    "PLADA.stochastic": lambda: _first_order(PLADA.stochastic),
    "IDCA": _idca,
    "IDCA, kinks": _idca_with_kinks,
    "SwitchingSubgradient": lambda: _first_order(
        SwitchingSubgradient, SwitchingSubgradient.paper(check_every=50)
    ),
    "LagrangianDescentAscent": _lagrangian_descent_ascent,
    "ConEx": lambda: _first_order(ConEx, ConEx.paper()),
    "ExactPenalty": _exact_penalty,
    "Regularization": lambda: _first_order(Regularization, Regularization.paper(max_iter=300)),
    "StochasticSwitchingSubgradient": lambda: _first_order(StochasticSwitchingSubgradient),
}


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem, and how its solution is found.

    Attributes
    ----------
    constraint : Constraint
        The constraint of the logistic regression.
    reference : Solver
        Finds the solution.
    share : float
        The data passes of a run, in units of those asked for.
    """

    constraint: Constraint
    reference: Solver
    share: float = 1.0


_SMOOTH = Setting(DemographicParity(KAPPA), AugmentedLagrangian(tol=1e-8))
_SETTINGS = {  # of the solvers with a problem of their own
    "IDCA, kinks": Setting(
        PartialDemographicParity(KAPPA, surrogate="ramp"), IDCA(max_iter=2000, tol=1e-6), 3.0
    )
}


@cache
def _solved(setting: Setting) -> tuple[Problem, float]:
    """Return the problem on COMPAS, and the objective of its solution."""
    problem = logistic_problem(load("compas"), setting.constraint)
    return problem, setting.reference.minimize(problem.uncounted()).objective


def variants() -> dict[str, Variants]:
    """Return, for every solver, its default and what it is compared with."""
    return {name: make() for name, make in _VARIANTS.items()}


def measure(
    problem: Problem, solver: Solver, best: float, passes: float, seeds: Sequence[int]
) -> Row:
    """Return the figures of a solver: medians over the seeds, and all statuses."""
    runs = [_run(problem, solver, best, passes, seed) for seed in seeds]
    row = {name: median(run[name] for run in runs) for name in runs[0] if name != "status"}
    if not np.isfinite(row["relative gap"]):
        row["relative gap"] = "infeasible"
    return {**row, "status": ", ".join(sorted({run["status"] for run in runs}))}


def _run(problem: Problem, solver: Solver, best: float, passes: float, seed: int) -> Row:
    """Return the figures of one run; the gap is infinite if no measured point is feasible."""
    clock = time.process_time()
    result = solver.minimize(problem.uncounted(), max_data_passes=passes, random_state=seed)
    seconds = time.process_time() - clock
    frame = result.trace.to_frame()
    feasible = frame.objective[frame.violation <= FEASIBLE].to_numpy()
    return {
        "relative gap": float(feasible.min(initial=np.inf)) / best - 1.0,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "CPU seconds": seconds,
        "status": result.status.value,
    }


def add_options(parser: ArgumentParser) -> None:
    """Add the solvers, the data passes of a run, and the seeds."""
    add_choice(parser, "--solvers", variants(), quick=["PLADA"], help="solvers")
    parser.add_argument(
        "--passes", type=float, default=Default(300.0, 50.0), help="data passes of a run"
    )
    add_seeds(parser, range(5))


def run(options: Namespace) -> None:
    """Write additions.md and additions.csv."""
    rows = []
    for name, solvers in variants().items():
        if name in options.solvers:
            setting = _SETTINGS.get(name, _SMOOTH)
            problem, best = _solved(setting)
            passes = setting.share * options.passes
            for label, solver in solvers.items():
                figures = measure(problem, solver, best, passes, options.seeds)
                rows.append({"solver": name, "variant": label, **figures})
    title = f"Additions on COMPAS, demographic parity {KAPPA}, {options.passes:g} passes"
    write_table(rows, "additions", title, options.out)
