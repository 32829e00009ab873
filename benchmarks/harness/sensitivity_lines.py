"""The runs of the papers' figures about parameters and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from benchmarks.harness.paper_lines import Line, all_lines, classification, roc
from benchmarks.harness.paper_setup import Setup
from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.rank_data import RANKS, split
from benchmarks.harness.tables import Row
from benchmarks.partial_parity import EXPERIMENT as PARTIAL
from benchmarks.weak_partial_parity import EXPERIMENT as WEAK
from fairconstrained.data.group_interactions import FeatureMap
from fairconstrained.data.groups import Groups
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.solvers import IDCA, PLADA, Solver, SwitchingSubgradient, ThreeSEcon
from fairconstrained.solvers.step_rules import DiminishingTolerance, StaticTolerance
from fairconstrained.utils.typing import Array

MakeSolver = Callable[[Setup, int, int], Solver]


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    Attributes
    ----------
    name : str
        What the command line calls it.
    title : str
        Its heading on the page.
    claim : str
        What the paper reads from it.
    against : str
        The horizontal axis: "iteration", "passes" or "clock", in seconds.
    stationarity : bool
        Whether near-stationarity is shown.
    multipliers : bool
        Whether the multipliers of PLADA are shown.
    passes : int or None
        The data passes of a full run; None takes what the command line says.
    """

    name: str
    title: str
    claim: str
    against: str = "iteration"
    stationarity: bool = False
    multipliers: bool = False
    passes: int | None = None


FIGURES = {
    one.name: one
    for one in (
        Figure(
            "3s-econ-1",
            "3S-Econ, figure 1: the penalty and the smoothing parameter",
            "With beta = 1 the violation remains large, large values slow down; beta = 10 is the "
            "best. The violation is close to nu.",
            stationarity=True,
        ),
        Figure(
            "plada-4-5",
            "PLADA, figures 4 and 5: alpha and beta",
            "The results do not depend on alpha, and slightly on beta. (delta is an addition: the "
            "paper has no figure about it. Steps are linearised here, one data pass each; an exact "
            "step takes some 15.)",
            stationarity=True,
        ),
        Figure(
            "plada-6",
            "PLADA, figure 6: the multipliers",
            "The difference of lambda and mu converges to zero, and both of them converge.",
            multipliers=True,
        ),
        Figure(
            "idca-9",
            "IDCA, figure 9: IDCA and SSG under partial demographic parity",
            "Both are similar on a9a and bank; on law school IDCA has a smaller objective and a "
            "smaller violation. SSG has a static tolerance (1e-3) or a diminishing one "
            "(0.5 / (k + 1)); the paper shows the better one.",
            against="passes",
        ),
        Figure(
            "idca-10",
            "IDCA, figure 10: IDCA and SSG under weak partial demographic parity",
            "Both are similar on a9a and law school; SSG is slightly better on bank.",
            against="passes",
        ),
        Figure(
            "ipc-1",
            "IPC, figure 1: the methods against data passes",
            "IPC is comparable with the exact penalty method, and the method of Yu, Neely and Wei "
            "works well too. (The data set loan is not available.)",
            against="passes",
            passes=10_000,
        ),
        Figure(
            "ipc-2",
            "IPC, figure 2: the methods against time",
            "In terms of CPU time IPC is comparable with the exact penalty method.",
            against="clock",
            passes=10_000,
        ),
        Figure(
            "3s-econ-2",
            "3S-Econ, figure 2: deterministic methods",
            "3S-Econ-D reaches lower objectives and lower SVio than SSG, IPP-SSG and IPP-ConEx.",
            against="passes",
            stationarity=True,
            passes=10_000,
        ),
        Figure(
            "3s-econ-3",
            "3S-Econ, figure 3: the deterministic and the stochastic version",
            "3S-Econ-S needs fewer data passes than 3S-Econ-D, and oscillates more.",
            against="passes",
            passes=10_000,
        ),
        Figure(
            "3s-econ-4",
            "3S-Econ, figure 4: MNIST",
            "3S-Econ reaches lower objectives and lower SVio more quickly than SSG, IPP-SSG and "
            "IPP-ConEx.",
            against="clock",
            passes=2000,
        ),
        Figure(
            "plada-1",
            "PLADA, figure 1: demographic parity",
            "PLADA has the lowest loss, and converges faster than IPP-ConEx, IPP-SSG and SSG.",
            against="clock",
            stationarity=True,
            passes=10_000,
        ),
        Figure(
            "plada-2",
            "PLADA, figure 2: equalized odds",
            "The same as figure 1, for equalized odds.",
            against="clock",
            stationarity=True,
            passes=10_000,
        ),
    )
}


@dataclass(frozen=True)
class Run:
    """A curve: its figure, data set, panel and label, the problem, and what solves it."""

    figure: str
    data: str
    panel: str
    label: str
    setup: Callable[[bool], Setup]
    solver: MakeSolver


def _econ(beta: float, nu: float) -> MakeSolver:
    return lambda setup, limit, every: ThreeSEcon.paper(
        beta=beta, nu=nu, max_iter=limit, check_every=every
    )


def _plada(**options: Any) -> MakeSolver:
    return lambda setup, limit, every: PLADA.paper(max_iter=limit, check_every=every, **options)


def _idca(setup: Setup, limit: int, every: int) -> Solver:
    return IDCA.paper(max_iter=limit)


def _ssg(rule: Any) -> MakeSolver:
    return lambda setup, limit, every: SwitchingSubgradient.paper(
        steps=rule, max_iter=limit, check_every=every
    )


@lru_cache(maxsize=1)
def ranked(experiment: str, data: str, small: bool) -> Setup:
    """Return E9 or E10 with the ramp, cross terms and the middle one of the paper's kappas."""
    (X, y, groups), _ = split(data, 0)
    coded = Groups.encode(groups)
    n_features = X.shape[1]
    expanded = FeatureMap(np.arange(n_features), n_features, len(coded)).expand(X, coded)
    setting = {"partial": PARTIAL, "weak": WEAK}[experiment]
    kappas = setting.kappas[data]
    notion = setting.notion(kappas[len(kappas) // 2], surrogate=Ramp(), ranks=RANKS[data])
    problem = logistic_problem((expanded, y, groups), notion)
    return Setup(problem, problem.start(), 1.0, problem, problem.start())


def runs_of(figure: Figure) -> Iterator[Run]:
    """Yield the curves of a figure."""
    return _RUNS[figure.name](figure.name)


def _econ_runs(figure: str) -> Iterator[Run]:
    setup = partial(roc, "a9a", False)
    for beta in (1.0, 10.0, 100.0, 1000.0):
        yield Run(figure, "a9a", "beta, with nu = 1e-5", f"{beta:g}", setup, _econ(beta, 1e-5))
    for nu in (1e-5, 1e-4, 1e-3, 1e-2):
        yield Run(figure, "a9a", "nu, with beta = 10", f"{nu:g}", setup, _econ(10.0, nu))


def _plada_runs(figure: str) -> Iterator[Run]:
    setup = partial(classification, "adult", "DP")
    for alpha in (1.0, 5.0, 10.0, 50.0):
        solver = _plada(alpha=alpha, exact=False)
        yield Run(figure, "adult", "alpha, with beta = 0.1", f"{alpha:g}", setup, solver)
    for beta in (0.01, 0.1, 0.5, 1.0):
        solver = _plada(beta=beta, exact=False)
        yield Run(figure, "adult", "beta, with alpha = 10", f"{beta:g}", setup, solver)
    for delta in (1.0, 100.0, 1000.0, 10_000.0):
        solver = _plada(delta=delta, exact=False)
        yield Run(figure, "adult", "delta, with alpha = 10", f"{delta:g}", setup, solver)


def _multiplier_runs(figure: str) -> Iterator[Run]:
    for data in ("adult", "bank", "compas"):
        yield Run(figure, data, data, "PLADA", partial(classification, data, "DP"), _plada())


def _rank_runs(experiment: str, figure: str) -> Iterator[Run]:
    methods: dict[str, MakeSolver] = {
        "IDCA": _idca,
        "SSG, static": _ssg(StaticTolerance(1e-3)),
        "SSG, diminishing": _ssg(DiminishingTolerance(0.5)),
    }
    for data in RANKS:
        for label, solver in methods.items():
            yield Run(figure, data, data, label, partial(ranked, experiment, data), solver)


def _method_runs(
    experiments: tuple[str, ...], ends: tuple[str, ...], methods: tuple[str, ...], figure: str
) -> Iterator[Run]:
    """Yield a run for every line of the tables with one of the methods.

    Parameters
    ----------
    experiments, ends : tuple of str
        Which lines: their experiments, and what their data end with.
    methods : tuple of str
        Their methods.
    figure : str
        The name of the figure.
    """
    for line in all_lines():
        right = line.experiment in experiments and line.data.endswith(ends)
        if right and line.paper is not None and line.method in methods:
            panel = f"{line.experiment}, {line.data}"
            yield Run(figure, line.data.split(",")[0], panel, line.method, line.setup, _of(line))


def _of(line: Line) -> MakeSolver:
    """Return what makes the solver of a line, measured as often as a curve needs it."""

    def make(setup: Setup, limit: int, every: int) -> Solver:
        assert line.paper is not None
        solver = line.paper(setup).unpolished()
        measured = "check_every" in solver.get_params(deep=False)
        return solver.with_options(check_every=every) if measured else solver

    return make


_ALL = ("",)
_ECON = ("a9a", "compas", "exact")
_IPC = ("IPC", "exact penalty", "Yu-Neely-Wei")
_DETERMINISTIC = ("SSG", "IPP-SSG", "IPP-ConEx", "3S-Econ-D")
_PLADA = ("PLADA", "IPP-ConEx", "IPP-SSG", "SSG")

_RUNS: dict[str, Callable[[str], Iterator[Run]]] = {
    "3s-econ-1": _econ_runs,
    "plada-4-5": _plada_runs,
    "plada-6": _multiplier_runs,
    "idca-9": partial(_rank_runs, "partial"),
    "idca-10": partial(_rank_runs, "weak"),
    "ipc-1": partial(_method_runs, ("E2",), _ALL, _IPC),
    "ipc-2": partial(_method_runs, ("E1", "E2"), _ALL, _IPC),
    "3s-econ-2": partial(_method_runs, ("E3", "E4"), _ECON, _DETERMINISTIC),
    "3s-econ-3": partial(_method_runs, ("E3", "E4"), _ECON, ("3S-Econ-D", "3S-Econ-S")),
    "3s-econ-4": partial(_method_runs, ("E5",), _ALL, (*_DETERMINISTIC, "3S-Econ-S")),
    "plada-1": partial(_method_runs, ("E6",), ("DP",), _PLADA),
    "plada-2": partial(_method_runs, ("E6",), ("EO",), _PLADA),
}


def multipliers_of_plada(solver: Solver, values: Array) -> Row:
    """Return lambda, mu and their distance at every step, from the values of the constraints.

    Algorithm 1's recursion (equations 10 to 13), with the solver's parameters.

    Parameters
    ----------
    solver : PLADA
        With a value for alpha, gamma_0 and tau.
    values : ndarray of shape (n_steps + 1, n_constraints)
        At the start and after every step.
    """
    p = solver.get_params(deep=False)
    rho = p["alpha"] / (1.0 + p["alpha"] * p["beta"])
    u = np.clip(-values[0], 0.0, p["u_max"])
    lam, mu = np.zeros_like(values[0]), np.zeros_like(values[0])
    lams, mus = [], []
    for k, value in enumerate(values[1:], start=1):
        apart = lam - mu
        gamma = min(p["gamma_0"], rho * p["delta"] / (k * (float(apart @ apart) + 1.0)))
        u = np.clip(u - p["tau"] * lam, 0.0, p["u_max"])
        mu = mu + gamma / rho * apart
        lam = mu + rho * (value + u)
        lams.append(lam)
        mus.append(mu)
    difference = np.linalg.norm(np.array(lams) - np.array(mus), axis=1)
    return {
        "lambda": [one.tolist() for one in lams],
        "mu": [one.tolist() for one in mus],
        "difference": difference.tolist(),
    }
