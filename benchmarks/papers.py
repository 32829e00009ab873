"""Reproducing the papers: every line of their tables with `paper()`, by default, and as published.

E1, E2 (IPC), E3 to E5 (3S-Econ), E6 (PLADA), E7 (PLADA, a network with hundreds of groups), E8
(PLADA, a ranker), E9, E10 (IDCA). `--quick` runs every line with a fraction of the data passes.
Results are kept: what is known is not run again. A line of E1 to E6 is a method on a problem of a
published table or figure.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.harness import networks, paper_problems, rank_parity
from benchmarks.harness.frontier import draw_differences
from benchmarks.harness.options import Default, add_choice, add_numbers
from benchmarks.harness.paper_problems import SVIO_TOL, Setup, minimized, solver_for
from benchmarks.harness.results import (
    BLUE,
    ORANGE,
    Page,
    Row,
    Store,
    constants,
    ended,
    stamp,
    write_table,
)
from fairconstrained import solvers
from fairconstrained.solvers import SOLVERS, Solver, SwitchingSubgradient
from fairconstrained.solvers.switching_subgradient import StepRule

EXPERIMENTS = tuple(f"E{k}" for k in range(1, 11))
KINDS = ("paper", "default")
FIGURES = (
    "objective", "violation", "SVio", "passes", "steps", "seconds", "status", "solver", "setting",
    "remark",
)  # fmt: skip
FEASIBLE = 1e-3  # violation of a run whose objective counts
DEFAULT_PASSES = 5000.0  # a run with the library's defaults ends after these at the latest
TRIAL_PASSES = 5000.0  # of each setting of a grid: the paper's 5,000 iterations
PASSES = {"E1": 1e5, "E2": 1e5, "E6": 1e4}  # choices of ours, as 2,000 where table 2 prints none
LONG = {"max_iter": 10_000_000}  # the published data passes are the limit
ROUND = {"max_iter": 1000, "check_every": 1000}  # of a proximal method
ECON = {"check_every": 1000, **LONG}
STOCHASTIC = {"stochastic": True, **ECON}
PUBLISHED = constants("published", "experiment", "data", "method")


class ConstantSteps(StepRule):
    """Steps of one length on the objective and on the constraints, as 3S-Econ runs SSG.

    Parameters
    ----------
    size : float
        The paper tries 2e-4, 5e-4, 1e-3 and 5e-3.
    """

    size: float = 1e-3

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return the size."""
        return self.size


@dataclass(frozen=True)
class Method:
    """A method of a table.

    Attributes
    ----------
    default : str
        The name of the solver with the library's defaults.
    paper : callable
        Makes the solver with `paper()` from a setting and rho^ of proximal methods.
    settings : tuple of tuples
        Those from which the paper chooses; where nothing is tried the first one is taken.
    """

    default: str
    paper: Callable[..., Solver]
    settings: tuple[tuple[float, ...], ...] = ((),)


def _proximal(oracle: Solver, rho: float) -> Solver:
    return solvers.IPC.paper(oracle=oracle, rho=rho, max_iter=10_000)


def _ipp_ssg(size: float, rho: float) -> Solver:
    return _proximal(SwitchingSubgradient(ConstantSteps(size), **ROUND), rho)


def _ipp_conex(c1: float, c2: float, rho: float) -> Solver:
    return _proximal(solvers.ConEx.paper(c1=c1, c2=c2, **ROUND), rho)


SIZES = ((1e-3,), (2e-4,), (5e-4,), (5e-3,))  # of the steps
FACTORS = tuple(product((20.0, 50.0, 100.0, 200.0), (0.01, 0.002, 0.005, 0.02)))  # c1 and c2
SSG = Method(
    "ssg", lambda size, rho: SwitchingSubgradient.paper(steps=ConstantSteps(size), **LONG), SIZES
)
IPP_SSG = Method("ipp-ssg", _ipp_ssg, SIZES)
IPP_CONEX = Method("ipp-conex", _ipp_conex, FACTORS)
OF_IPC = {
    "IPC": Method("ipc", lambda rho: solvers.IPC.paper(max_iter=10_000)),
    "exact penalty": Method("exact-penalty", lambda rho: solvers.ExactPenalty.paper()),
    "Yu-Neely-Wei": Method("yu-neely-wei", lambda rho: solvers.OnlineStochastic.paper()),
}
OF_ECON = {
    "SSG": SSG,
    "IPP-SSG": IPP_SSG,
    "IPP-ConEx": IPP_CONEX,
    "3S-Econ-D": Method("3s-econ", lambda rho: solvers.ThreeSEcon.paper(**ECON)),
    "SSG-S": Method("ssg-stochastic", lambda rho: SOLVERS["ssg-stochastic"](polish=False, **LONG)),
    "3S-Econ-S": Method("3s-econ-stochastic", lambda rho: solvers.ThreeSEcon.paper(**STOCHASTIC)),
}
OF_PLADA = {
    # As many steps as with the linearised one.
    "PLADA": Method("plada", lambda rho: solvers.PLADA.paper()),
    "PLADA, linearised": Method("plada", lambda rho: solvers.PLADA.paper(exact=False)),
    "IPP-SSG": replace(IPP_SSG, settings=SIZES[:1]),
    "IPP-ConEx": replace(IPP_CONEX, settings=FACTORS[:1]),
    "SSG": replace(SSG, settings=SIZES[:1]),
}
Form = Callable[[bool], Setup]  # True asks for the small form of a problem


def problems() -> Iterator[tuple[str, str, Form, dict[str, Method]]]:
    """Yield an experiment, a problem, its form, and the methods."""
    yield "E1", "Simple Example", paper_problems.simple_example, OF_IPC
    for data, c in (("bank", 0.2), ("a9a", 0.08)):
        yield "E2", data, partial(paper_problems.minority, data, c), OF_IPC
    for data, kind in product(("compas", "a9a"), ("by batches", "exact")):
        form = partial(paper_problems.roc, data, kind == "exact")
        yield "E3", f"{data}, x* {kind}", form, OF_ECON
    for data in ("compas", "a9a"):
        yield "E4", data, partial(paper_problems.scad, data), OF_ECON
    yield "E5", "MNIST", paper_problems.digits, OF_ECON
    for data, notion in product(("compas", "bank", "adult"), ("DP", "EO")):
        form = partial(paper_problems.classification, data, notion)
        yield "E6", f"{data}, {notion}", form, OF_PLADA


@lru_cache(maxsize=2)
def built(form: Form, small: bool) -> Setup:
    """Return a problem; lines of the same one share it."""
    return form(small)


@dataclass(frozen=True)
class Line:
    """A line of the page.

    Attributes
    ----------
    experiment, data, method : str
        What it is.
    form : callable
        Returns the problem.
    of : Method or None
        The method; None is what "auto" takes, by default only.
    """

    experiment: str
    data: str
    method: str
    form: Form
    of: Method | None

    @property
    def published(self) -> Row:
        """The figures that the paper prints; empty where it has a plot."""
        key = (self.experiment, self.data.split(",")[0], self.method)
        return PUBLISHED.loc[key].dropna().to_dict() if key in PUBLISHED.index else {}

    @property
    def passes(self) -> float:
        """The data passes of a full run: the paper's, where it prints them."""
        default = DEFAULT_PASSES if self.of is None else PASSES.get(self.experiment, 2000.0)
        return self.published.get("passes", default)

    def paper(self, setup: Setup) -> dict[str, Solver]:
        """Return the solvers with `paper()` by their settings, none where there are none."""
        if self.of is None:
            return {}
        rho = 2.0 * setup.rho
        names = [", ".join(map("{:g}".format, some)) for some in self.of.settings]
        made = [self.of.paper(*some, rho=rho) for some in self.of.settings]
        return dict(zip(names, made, strict=True))


def all_lines() -> Iterator[Line]:
    """Yield the lines of E1 to E6, those of a problem together."""
    for experiment, data, form, methods in problems():
        for name, method in methods.items():
            yield Line(experiment, data, name, form, method)
        if methods is not OF_IPC:
            yield Line(experiment, data, "default of the library", form, None)


def best_of(made: Mapping[str, Solver], setup: Setup, passes: float) -> str:
    """Return which solver has the lowest objective after some data passes, as in the paper.

    Runs that violate by more than 1e-3 come after all others, and are ordered by violation.
    """

    def rank(name: str) -> tuple[float, float]:
        result = minimized(made[name].unpolished(), setup.problem, setup.start, passes)
        objective = result.objective if np.isfinite(result.objective) else np.inf
        return (0.0 if result.violation <= FEASIBLE else result.violation), objective

    return min(made, key=rank)


def add_options(parser) -> None:
    """Add experiments, budgets and splits."""
    add_choice(parser, "--only", EXPERIMENTS, quick=EXPERIMENTS, help="experiments")
    text = 'E1 to E6: lines that a pattern is found in, such as "a9a, x.* SSG default"'
    parser.add_argument("--lines", default="", metavar="PATTERN", help=text)
    most = "the most data passes of a run, below those that the paper names"
    parser.add_argument("--passes", type=float, default=Default(np.inf, 100.0), help=most)
    text, ranks = "data sets of E9 and E10", rank_parity.RANKS
    add_choice(parser, "--rank-data", ranks, quick=["law_school"], help=text)
    add_numbers(parser, "--seeds", [0, 1, 2, 3, 4], [0], "of the splits of E7, E9 and E10")


def solve(setup: Setup, solver: Solver | None, passes: float) -> Row:
    """Return the figures of a run; None is the library's default, for its form of the problem.

    Near-stationarity is always that of the paper's form.
    """
    problem, start = (setup.problem, setup.start) if solver else setup.default()
    solver = solver or solver_for(problem)
    missing = solver.missing(problem)
    if missing:
        return {"status": f"needs {' and '.join(missing)}"}
    clock = time.process_time()
    result = minimized(solver, problem, start, passes)
    seconds, w = time.process_time() - clock, result.w[: setup.problem.n_variables]
    svio = setup.near_stationarity(w, SVIO_TOL) if np.all(np.isfinite(w)) else np.nan
    return {**ended(result), "SVio": svio, "seconds": seconds, "remark": setup.remark}


def _run(line: Line, kind: str, options) -> Row:
    """Return the figures of a line with "paper" or "default"."""
    setup, passes = built(line.form, options.quick), min(options.passes, line.passes)
    if kind == "default":
        solver = None if line.of is None else SOLVERS[line.of.default]()
        return solve(setup, solver, min(passes, DEFAULT_PASSES))
    made = line.paper(setup)
    setting = next(iter(made))  # quick runs take the first one of the grid
    if len(made) > 1 and not options.quick:
        small = built(line.form, True)
        setting = best_of(line.paper(small), small, min(passes, TRIAL_PASSES))
    return {**solve(setup, made[setting].unpolished(), passes), "setting": setting}


def run(options) -> None:
    """Run what is not known; write papers.md, and tables for E7 to E10."""
    store, table = Store(options.out / "papers"), list[Row]()
    for line in (line for line in all_lines() if line.experiment in options.only):
        head = {name: getattr(line, name) for name in ("experiment", "data", "method")}
        runs = {"published": line.published} if line.published else {}
        for kind in ("default",) if line.of is None else KINDS:
            if re.search(options.lines, " ".join((*head.values(), kind))):
                key = (*head.values(), kind, "quick" if options.quick else "full")
                runs[kind] = store.of(key, partial(_run, line, kind, options))
        for kind, row in runs.items():
            shown = {name: row.get(name, "") for name in FIGURES}
            table.append({**head, "run": kind, **shown, **stamp(row)})
    if table:
        write_table(table, "papers", "The papers' tables", options.out)
    networks.run(options)
    for name in rank_parity.EXPERIMENTS:
        if name in options.only:
            rank_parity.run(name, options, Store(options.out / "rank_parity"))


MAIN = "a9a, x* by batches"  # the problem of E3 whose methods all have a row


def table(lines: pd.DataFrame, *ranks: pd.DataFrame) -> pd.DataFrame:
    """Return the lowest objective of every kind of run for each problem, and the lines of E3."""
    some = lines[lines.objective.notna() & ~(lines.violation > FEASIBLE)]
    some = some.assign(of=some.method.where(some.data == MAIN, ""))
    head = ["experiment", "data", "of", "run"]
    best = some.loc[some.groupby(head, sort=False).objective.idxmin()].set_index(head)
    words = best.objective.map("{:.4g}".format) + " (" + best.method + ")"
    shown = words.unstack("run").fillna("")[["published", *KINDS]].droplevel("of").reset_index()
    excess = lines.groupby("data").remark.first().str.extract(r"([\d.]+%)", expand=False).fillna("")
    shown.insert(2, "loss of x*", shown.data.map(excess))
    names = {"data": "problem", "paper": "with paper()", "default": "by default"}
    return shown.rename_axis(columns=None).rename(columns=names)


def draw(left, right, lines: pd.DataFrame, e9: pd.DataFrame, e10: pd.DataFrame) -> None:
    """Draw objectives over the published ones, and who is ahead in E9 and E10."""
    head = ["experiment", "data", "method"]
    some = lines[lines.data.isin([MAIN, "a9a"])]
    some = some.pivot(index=head, columns="run", values="objective").dropna().reset_index()
    for kind, colour in zip(KINDS, (ORANGE, BLUE), strict=True):
        label = "with paper()" if kind == "paper" else "by default"
        names = some.experiment + ", " + some.method
        left.plot(some[kind] / some.published, names, "o", color=colour, label=label)
    left.axvline(1.0, color="black", linewidth=0.8)
    left.invert_yaxis()
    left.set_xlabel("objective over the published one, a9a")
    left.legend()
    ranks = pd.concat([e9.assign(of="E9"), e10.assign(of="E10")])
    draw_differences(right, ranks.assign(method=ranks.of + ", " + ranks.method))


PAGES = (Page("papers", table, draw, ("papers", "papers-E9", "papers-E10")),)
