"""Solvers of problems: IPC is an outer loop, the others serve directly or as its oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Solver
from fairconstrained.solvers.ipc import IPC
from fairconstrained.solvers.result import Result, Status, Trace
from fairconstrained.solvers.switching_subgradient import (
    PolyakSteps,
    StepRule,
    StronglyConvexSteps,
    SwitchingSubgradient,
)

if TYPE_CHECKING:
    from fairconstrained.problem import Problem

__all__ = [
    "IPC",
    "SOLVERS",
    "AugmentedLagrangian",
    "PolyakSteps",
    "Result",
    "Solver",
    "Status",
    "StepRule",
    "StronglyConvexSteps",
    "SwitchingSubgradient",
    "Trace",
    "able",
    "automatic",
]


def ipp_ssg(**options: object) -> IPC:
    """Return IPC with the switching subgradient oracle, known as IPP-SSG."""
    return IPC(SwitchingSubgradient(max_iter=500), **{"max_iter": 20, **options})  # type: ignore[arg-type]


# In order of preference: `automatic` takes the first that the problem allows.
SOLVERS: dict[str, Callable[..., Solver]] = {
    "ipc": IPC,
    "augmented-lagrangian": AugmentedLagrangian,
    "ipp-ssg": ipp_ssg,
    "ssg": SwitchingSubgradient,
}


def able(problem: Problem) -> list[str]:
    """Return the names of the solvers that can solve the problem, the preferred one first."""
    return [name for name, make in SOLVERS.items() if not make().missing(problem)]


def automatic(problem: Problem) -> Solver:
    """Return the preferred solver for the problem's properties."""
    return SOLVERS[able(problem)[0]]()
