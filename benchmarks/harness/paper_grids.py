"""The grids from which 3S-Econ chooses the parameters of the methods that it compares with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from benchmarks.harness.paper_setup import Setup, minimized
from fairconstrained.solvers import IPC, ConEx, Solver, SwitchingSubgradient
from fairconstrained.solvers.switching_subgradient import StepRule

_FEASIBLE = 1e-3  # largest violation of a run that is chosen for its objective


Grid = Callable[[Setup], dict[str, Solver]]  # solvers by their settings


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


def subgradients(setup: Setup) -> dict[str, Solver]:
    """Return the switching subgradient methods; the first one is taken where nothing is tried."""
    run = {"max_iter": 10_000_000}  # the published data passes are the limit
    return {
        f"steps of {size:g}": SwitchingSubgradient.paper(steps=ConstantSteps(size), **run)
        for size in (1e-3, 2e-4, 5e-4, 5e-3)
    }


def proximal_subgradients(setup: Setup) -> dict[str, Solver]:
    """Return the proximal methods with 1,000 steps of the switching subgradient method."""
    return {
        f"steps of {size:g}": proximal(
            SwitchingSubgradient(ConstantSteps(size), max_iter=1000, check_every=1000), setup
        )
        for size in (1e-3, 2e-4, 5e-4, 5e-3)
    }


def proximal_conex(setup: Setup) -> dict[str, Solver]:
    """Return the proximal methods with 1,000 steps of ConEx."""
    return {
        f"c1 = {c1:g}, c2 = {c2:g}": proximal(
            ConEx.paper(c1=c1, c2=c2, max_iter=1000, check_every=1000), setup
        )
        for c1, c2 in product((20.0, 50.0, 100.0, 200.0), (0.01, 0.002, 0.005, 0.02))
    }


def proximal(oracle: Solver, setup: Setup) -> Solver:
    """Return the proximal method with an oracle, and rho^ of twice the constant."""
    return IPC.paper(oracle=oracle, rho=2.0 * setup.rho, max_iter=10_000)


GRIDS: dict[str, Grid] = {
    "SSG": subgradients,
    "IPP-SSG": proximal_subgradients,
    "IPP-ConEx": proximal_conex,
}


def best_of(solvers: Mapping[str, Solver], setup: Setup, passes: float) -> str:
    """Return which solver has the lowest objective after some data passes, as in the paper.

    Runs that violate by more than 1e-3 come after all others, and are ordered by violation.
    """

    def rank(name: str) -> tuple[float, float]:
        result = minimized(solvers[name].unpolished(), setup.problem, setup.start, passes)
        objective = result.objective if np.isfinite(result.objective) else np.inf
        return (0.0 if result.violation <= _FEASIBLE else result.violation), objective

    return min(solvers, key=rank)
