"""What each addition of the library's defaults to the printed algorithms buys.

Logistic regression on COMPAS under demographic parity 0.02: every solver with its defaults, and
with one of its additions taken away. IDCA has a second problem with kinks, partial demographic
parity 0.02 of ramps, and three times as many data passes.
Runs end at the same number of data passes; the figure is the gap of the best feasible objective to
the solution. Figures are medians over seeds, which matter to solvers that draw rows. "CPU seconds"
are of the run with measurements. The docstrings of the solvers quote this table.
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
from fairconstrained.solvers.switching_subgradient import PolyakSteps, StaticTolerance

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


def _online_stochastic() -> Variants:
    online = {"V": 300**0.5, "alpha": 300.0}
    return {
        "default, not polished": OnlineStochastic(polish=False),
        "queue: linearisation, not the new value": OnlineStochastic(linearized=True, polish=False),
        "average of all points": OnlineStochastic(average="all", polish=False),
        "alpha not adapted": OnlineStochastic(adapt=False, polish=False),
        "answer not repaired": OnlineStochastic(repair=False, polish=False),
        "V = sqrt(K), alpha = K in place of measured ones": OnlineStochastic(
            **online, polish=False
        ),
        "paper()": OnlineStochastic.paper(max_iter=300, check_every=50),
    }


def _three_s_econ() -> Variants:
    econ = ThreeSEcon(polish=False)
    return {
        "default, not polished": econ,
        "no margins": econ.with_options(margin_rate=0.0),
        "no momentum": econ.with_options(accelerate=False),
        "no repair": econ.with_options(repair=False),
        "nu = 1e-5": econ.with_options(nu=1e-5),
        "steps of 0.01 in place of measured ones": econ.with_options(
            steps=ThreeSEcon.paper().steps
        ),
        "paper()": ThreeSEcon.paper(),
    }


def _three_s_econ_stochastic() -> Variants:
    sampled = ThreeSEcon.stochastic(polish=False)
    return {
        "default, not polished": sampled,
        "no averages, sampled gradients at checkpoints": sampled.with_options(accelerate=False),
        "no repair": sampled.with_options(repair=False),
        "no margins": sampled.with_options(margin_rate=0.0),
        "steps of the paper in place of measured ones": sampled.with_options(
            steps=ThreeSEcon.paper(stochastic=True).steps
        ),
        "paper()": ThreeSEcon.paper(stochastic=True),
    }


def _plada() -> Variants:
    return {
        "default, not polished": PLADA(polish=False),
        "proximal step exact": PLADA(exact=True, polish=False),
        "eta = 1e-3 in place of the measured one": PLADA(eta=1e-3, polish=False),
        "alpha = 10, tau = gamma_0 = 0.1": PLADA(tau=0.1, alpha=10.0, gamma_0=0.1, polish=False),
        "paper()": PLADA.paper(),
        "paper(), linearised": PLADA.paper(exact=False),
    }


def _plada_stochastic() -> Variants:
    batches = PLADA.stochastic(polish=False)
    return {
        "default, not polished": batches,
        "no variance reduction": batches.with_options(variance_reduction=False),
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


def _switching_subgradient() -> Variants:
    return {
        "default, not polished": SwitchingSubgradient(polish=False),
        "no margin": SwitchingSubgradient(PolyakSteps(margin=0.0), polish=False),
        "paper()": SwitchingSubgradient.paper(check_every=50),
    }


def _lagrangian_descent_ascent() -> Variants:
    return {
        "default, not polished": LagrangianDescentAscent(polish=False),
        "no extrapolation": LagrangianDescentAscent(extrapolation=0.0, polish=False),
        "zero-one rates in the dual": LagrangianDescentAscent(
            dual="zero_one", extrapolation=0.0, polish=False
        ),
    }


def _lagrangian_on_batches() -> Variants:
    batches = LagrangianDescentAscent(batch_size=256, max_iter=1500, check_every=50, polish=False)
    return {
        "default, not polished": batches,
        "no variance reduction": batches.with_options(variance_reduction=False),
    }


def _conex() -> Variants:
    return {
        "default, not polished": ConEx(polish=False),
        "linearisations, not values": ConEx(linearized=True, polish=False),
        "average of all points": ConEx(average="all", polish=False),
        "steps not adapted": ConEx(adapt=False, polish=False),
        "c1 = 20, c2 = 0.01 in place of measured ones": ConEx(20.0, 0.01, polish=False),
        "paper()": ConEx.paper(),
    }


def _exact_penalty() -> Variants:
    return {
        "default": ExactPenalty(),
        "linear model in a ball (no curvature)": ExactPenalty(memory=0),
        "paper()": ExactPenalty.paper(),
    }


def _regularization() -> Variants:
    return {
        "default, not polished": Regularization(polish=False, max_iter=300),
        "strength = 1 in place of a growing one": Regularization(1.0, polish=False, max_iter=300),
        "constant steps": Regularization(decay=0.0, polish=False, max_iter=300),
        "paper()": Regularization.paper(max_iter=300),
    }


def _stochastic_switching_subgradient() -> Variants:
    plain = StochasticSwitchingSubgradient(polish=False)
    return {
        "default": StochasticSwitchingSubgradient(),
        "default, not polished": plain,
        "no variance reduction": plain.with_options(variance_reduction=False),
        "average of all points": plain.with_options(average="all"),
        "no repair": plain.with_options(repair=False),
        "none of these": plain.with_options(variance_reduction=False, average="all", repair=False),
    }


_VARIANTS: dict[str, Callable[[], Variants]] = {
    "IPC": _ipc,
    "OnlineStochastic": _online_stochastic,
    "ThreeSEcon": _three_s_econ,
    "ThreeSEcon.stochastic": _three_s_econ_stochastic,
    "PLADA": _plada,
    "PLADA.stochastic": _plada_stochastic,
    "IDCA": _idca,
    "IDCA, kinks": _idca_with_kinks,
    "SwitchingSubgradient": _switching_subgradient,
    "LagrangianDescentAscent": _lagrangian_descent_ascent,
    "LagrangianDescentAscent, batches": _lagrangian_on_batches,
    "ConEx": _conex,
    "ExactPenalty": _exact_penalty,
    "Regularization": _regularization,
    "StochasticSwitchingSubgradient": _stochastic_switching_subgradient,
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
    """Return, for every solver, its default and the default without one addition each."""
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
