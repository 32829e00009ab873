"""The epigraph problem: the least unfairness subject to a bound on the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class EpigraphOrigin:
    """What an epigraph problem was made of.

    Attributes
    ----------
    problem : Problem
        The problem of the least objective.
    bound : float
        The largest objective allowed.
    least : float or None
        The least objective of all, if it is known.
    """

    problem: Problem
    bound: float
    least: float | None = None
