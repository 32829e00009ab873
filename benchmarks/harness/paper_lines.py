"""The lines of "Reproducing the papers": problems, methods with `paper()` and by default, figures.

A line is a method on a problem of a published table or figure. The problem is built when a line is
run, and kept as long as the lines of the same problem are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import paper_problems as problems
from benchmarks.harness.data import Data, load, parts
from benchmarks.harness.paper_grids import GRIDS, Grid, proximal
from benchmarks.harness.paper_setup import Setup
from benchmarks.harness.swapped import swapped
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import DemographicParity, EqualizedOdds
from fairconstrained.datasets import fetch_a9a
from fairconstrained.domains import L1Ball
from fairconstrained.penalties import Penalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import (
    IPC,
    PLADA,
    SOLVERS,
    ConEx,
    ExactPenalty,
    OnlineStochastic,
    Solver,
    StochasticSwitchingSubgradient,
    SwitchingSubgradient,
    ThreeSEcon,
)
from fairconstrained.utils.typing import Array

Make = Callable[[bool], Setup]
THRESHOLDS = 400


class QuadraticForm(Penalty):
    """The function w' diag(d) w / 2 + offset of the paper's "Simple Example"."""

    convex = False

    def __init__(self, diagonal: Array, offset: float = 0.0):
        self.diagonal = diagonal
        self.offset = offset

    @property
    def modulus(self) -> float:
        """The least curvature."""
        return float(np.min(self.diagonal))

    def value(self, w: Array) -> float:
        """Return the value."""
        return float(0.5 * w @ (self.diagonal * w)) + self.offset

    def gradient(self, w: Array) -> Array:
        """Return the gradient."""
        return self.diagonal * w


@dataclass(frozen=True)
class Line:
    """A line of the page.

    Attributes
    ----------
    experiment, data, method : str
        What it is.
    setup : callable
        Returns the problem; True asks for the small form.
    paper : callable or None
        Makes the solvers with `paper()` from which the paper chooses one, by their settings.
    default : callable or None
        Makes the solver with the library's defaults; None takes what "auto" takes.
    passes : float
        The data passes of a full run: the paper's, where it says.
    published : dict
        The figures that the paper prints; empty where it has a plot.
    """

    experiment: str
    data: str
    method: str
    setup: Make
    paper: Grid | None
    default: Callable[[], Solver] | None
    passes: float
    published: dict[str, float] = field(default_factory=dict)


def _same(problem: Problem, start: Array, rho: float) -> Setup:
    return Setup(problem, start, rho, problem, start)


def _mean_squares(groups: Array, X: Array) -> list[float]:
    """Return the groups' mean squared norms: the paper's rho is their sum or their maximum."""
    squares = np.asarray(X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else (X * X).sum(1))
    return [float(squares.ravel()[groups == g].mean()) for g in np.unique(groups)]


@lru_cache(maxsize=1)
def simple_example(small: bool) -> Setup:
    """Return E1; the paper's modulus is 5."""
    problem = Problem(
        CompositeFunction(penalty=QuadraticForm(np.array([10.0, -1.0]))),
        (CompositeFunction(penalty=QuadraticForm(np.array([50.0, -5.0]), -10.0)),),
        L1Ball(1.0),
        n_variables=2,
    )
    return _same(problem, np.array([0.0, 0.5]), 5.0)


@lru_cache(maxsize=1)
def minority(data: str, c: float, small: bool) -> Setup:
    """Return E2."""
    problem = problems.minority_problem(data, c)
    start = problem.domain.project(np.ones(problem.n_variables))
    return _same(problem, start, 0.5 * 10**-2.5)


@lru_cache(maxsize=1)
def roc(data: str, exact: bool, small: bool) -> Setup:
    """Return E3 with x* as the exact minimiser or by the paper's stochastic steps."""
    best, least = (problems.least_loss if exact else problems.sampled_loss)(data)
    excess = 0.0 if exact else least / problems.least_loss(data)[1] - 1.0
    remark = f"x* has a hinge loss {excess:.2%} above the least"
    base = problems.roc_problem(data, 100 if small else THRESHOLDS, best)
    bound = (1.0 + problems.INCREASE) * least
    _, (X, _, groups) = parts(data)
    level = base.uncounted().at(best).constraints.max()
    epigraph = problems.without_ball(base).epigraph(bound)
    rho = sum(_mean_squares(groups, X))
    first = np.append(best, level)
    return Setup(swapped(base, bound), best, rho, epigraph, first, remark, constraint_rho=0.0)


@lru_cache(maxsize=1)
def scad(data: str, small: bool) -> Setup:
    """Return E4."""
    problem = problems.scad_problem(data)
    _, (X, _, groups) = parts(data)
    return _same(problem, problem.start(), sum(_mean_squares(groups, X)))


@lru_cache(maxsize=1)
def digits(small: bool) -> Setup:
    """Return E5, on 3,000 images in the small form."""
    n_rows = 3000 if small else None
    problem = problems.digits_problem(n_rows)
    X, labels = problems.mnist(n_rows)
    return _same(problem, problem.start(), max(_mean_squares(labels, X)))


def _rows(data: str) -> Data:
    if data != "adult":
        return load(data)
    both = fetch_a9a(subset="all")
    y = np.asarray(both.target)
    return both.data, (y == y.max()).astype(int), np.asarray(both.sensitive_features.astype(str))


@lru_cache(maxsize=1)
def classification(data: str, notion: str, small: bool) -> Setup:
    """Return E6: all 48,842 rows of Adult, 6,172 of COMPAS restricted to two races, Bank."""
    constraint = DemographicParity(0.02) if notion == "DP" else EqualizedOdds(0.05)
    X, y, groups = _rows(data)
    problem = FairLogisticClassifier(constraint).bind(X, y, sensitive_features=groups).problem
    return _same(problem, problem.start(), 1.0)


def _only(make: Callable[..., Solver], **options: object) -> Grid:
    return lambda setup: {"": make(**options)}


def _first(grid: Grid) -> Grid:
    return lambda setup: dict([next(iter(grid(setup).items()))])


_LONG = {"max_iter": 10_000_000}  # the published data passes are the limit
ECON: dict[str, tuple[Grid, str]] = {  # with paper(); the name of the default
    "SSG": (GRIDS["SSG"], "ssg"),
    "IPP-SSG": (GRIDS["IPP-SSG"], "ipp-ssg"),
    "IPP-ConEx": (GRIDS["IPP-ConEx"], "conex"),
    "3S-Econ-D": (_only(ThreeSEcon.paper, check_every=1000, **_LONG), "3s-econ"),
    "SSG-S": (
        _only(StochasticSwitchingSubgradient, polish=False, **_LONG), "ssg-stochastic"
    ),
    "3S-Econ-S": (
        _only(ThreeSEcon.paper, stochastic=True, check_every=1000, **_LONG), "3s-econ-stochastic"
    ),
}  # fmt: skip
# 3S-Econ's Table 2 and what it says of figure 4; seconds are those of MATLAB on an M1, passes those
# over g.
PUBLISHED = pd.read_csv(Path(__file__).with_name("published.csv"))
_FIGURES = ["objective", "violation", "SVio", "passes", "seconds"]
_PASSES = 2000.0  # of methods for which none are printed


def _econ_lines(experiment: str, data: str, label: str, setup: Make) -> Iterator[Line]:
    """Yield the lines of 3S-Econ for a problem and a data set, and that of the default."""
    table = PUBLISHED[(PUBLISHED.experiment == experiment) & (PUBLISHED.data == data)]
    for method, figures in table.set_index("method")[_FIGURES].iterrows():
        paper, name = ECON[str(method)]
        printed = figures.dropna().to_dict()
        passes = printed.get("passes", _PASSES)
        yield Line(experiment, label, str(method), setup, paper, SOLVERS[name], passes, printed)
    yield _auto(experiment, label, setup)


def _auto(experiment: str, data: str, setup: Make) -> Line:
    return Line(experiment, data, "default of the library", setup, None, None, 5000.0)


def _lines(
    experiment: str, data: str, setup: Make, methods: dict[str, tuple[Grid, Any]], passes: float
) -> list[Line]:
    """Return the lines of a figure."""
    return [
        Line(experiment, data, method, setup, paper, default, passes)
        for method, (paper, default) in methods.items()
    ]


IPC_METHODS: dict[str, tuple[Grid, Any]] = {
    "IPC": (_only(IPC.paper, max_iter=10_000), IPC),
    "exact penalty": (_only(ExactPenalty.paper), ExactPenalty),
    "Yu-Neely-Wei": (_only(OnlineStochastic.paper), OnlineStochastic),
}
PLADA_METHODS: dict[str, tuple[Grid, Any]] = {
    "PLADA": (_only(PLADA.paper, **_LONG), PLADA),
    "PLADA, linearised": (_only(PLADA.paper, exact=False, **_LONG), PLADA),
    "IPP-SSG": (_first(GRIDS["IPP-SSG"]), SOLVERS["ipp-ssg"]),
    "IPP-ConEx": (
        lambda setup: {"": proximal(ConEx.paper(max_iter=1000), setup)}, SOLVERS["ipp-conex"]
    ),
    "SSG": (_first(GRIDS["SSG"]), SwitchingSubgradient),
}  # fmt: skip


def all_lines() -> Iterator[Line]:
    """Yield the lines of E1 to E6, those of a problem together."""
    yield from _lines("E1", "Simple Example", simple_example, IPC_METHODS, 1e5)
    for data, c in (("bank", 0.2), ("a9a", 0.08)):
        yield from _lines("E2", data, partial(minority, data, c), IPC_METHODS, 1e5)
    for data in ("compas", "a9a"):
        for kind, exact in (("by batches", False), ("exact", True)):
            yield from _econ_lines("E3", data, f"{data}, x* {kind}", partial(roc, data, exact))
    for data in ("compas", "a9a"):
        yield from _econ_lines("E4", data, data, partial(scad, data))
    yield from _econ_lines("E5", "MNIST", "MNIST", digits)
    for data in ("compas", "bank", "adult"):
        for notion in ("DP", "EO"):
            setup = partial(classification, data, notion)
            yield from _lines("E6", f"{data}, {notion}", setup, PLADA_METHODS, 1e4)
            yield _auto("E6", f"{data}, {notion}", setup)
