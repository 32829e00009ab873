"""The grids from which 3S-Econ chooses the parameters of the methods that it compares with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from itertools import product
from typing import Protocol

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import IPC, ConEx, Result, Solver, SwitchingSubgradient
from fairconstrained.solvers.switching_subgradient import StepRule
from fairconstrained.utils.typing import Array

_FEASIBLE = 1e-3  # largest violation of a run that is chosen for its objective


class PaperProblem(Protocol):
    """What a grid needs of a problem of a paper."""

    @property
    def problem(self) -> Problem:
        """The problem in the paper's form."""

    @property
    def start(self) -> Array:
        """Where the paper starts."""

    @property
    def rho(self) -> float:
        """Half of rho^ of the proximal methods."""


Grid = Callable[[PaperProblem], dict[str, Solver]]


class ConstantSteps(StepRule):
    """Steps of one length on the objective and on the constraints, as 3S-Econ runs SSG.

    Parameters
    ----------
    size : float
        The paper tries 2e-4, 5e-4, 1e-3 and 5e-3.
    """

    def __init__(self, size: float = 1e-3):
        self.size = size

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return the size."""
        return self.size


def subgradients(setup: PaperProblem) -> dict[str, Solver]:
    """Return the switching subgradient methods; the first one is taken where nothing is tried."""
    run = {"max_iter": 10_000_000}  # the published data passes are the limit
    return {
        f"steps of {size:g}": SwitchingSubgradient.paper(steps=ConstantSteps(size), **run)
        for size in (1e-3, 2e-4, 5e-4, 5e-3)
    }


def proximal_subgradients(setup: PaperProblem) -> dict[str, Solver]:
    """Return the proximal methods with 1,000 steps of the switching subgradient method."""
    return {
        f"steps of {size:g}": proximal(
            SwitchingSubgradient(ConstantSteps(size), max_iter=1000, check_every=1000), setup
        )
        for size in (1e-3, 2e-4, 5e-4, 5e-3)
    }


def proximal_conex(setup: PaperProblem) -> dict[str, Solver]:
    """Return the proximal methods with 1,000 steps of ConEx."""
    return {
        f"c1 = {c1:g}, c2 = {c2:g}": proximal(
            ConEx.paper(c1=c1, c2=c2, max_iter=1000, check_every=1000), setup
        )
        for c1, c2 in product((20.0, 50.0, 100.0, 200.0), (0.01, 0.002, 0.005, 0.02))
    }


def proximal(oracle: Solver, setup: PaperProblem) -> Solver:
    """Return the proximal method with an oracle, and rho^ of twice the constant."""
    return IPC.paper(oracle=oracle, rho=2.0 * setup.rho, max_iter=10_000)


GRIDS: dict[str, Grid] = {
    "SSG": subgradients,
    "IPP-SSG": proximal_subgradients,
    "IPP-ConEx": proximal_conex,
}


def first(grid: Grid) -> Callable[[PaperProblem], Solver]:
    """Return what makes the first solver of a grid."""
    return lambda setup: next(iter(grid(setup).values()))


def best_of(solvers: Mapping[str, Solver], setup: PaperProblem, passes: float) -> str:
    """Return which solver has the lowest objective after some data passes, as in the paper.

    Runs that violate by more than 1e-3 come after all others, and are ordered by violation.
    """

    def rank(name: str) -> tuple[float, float]:
        result = _short_run(solvers[name].unpolished(), setup, passes)
        objective = result.objective if np.isfinite(result.objective) else np.inf
        return (0.0 if result.violation <= _FEASIBLE else result.violation), objective

    return min(solvers, key=rank)


def _short_run(solver: Solver, setup: PaperProblem, passes: float) -> Result:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        problem = setup.problem.uncounted()
        return solver.minimize(problem, setup.start, max_data_passes=passes, random_state=0)
