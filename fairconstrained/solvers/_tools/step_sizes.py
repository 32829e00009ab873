"""Step rules of single-loop subgradient methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, sqrt

from fairconstrained.utils.parameters import Parametrized


@dataclass(frozen=True)
class Run:
    """What a step rule may look at.

    Attributes
    ----------
    max_iter : int
        The number of steps.
    period : int
        q, the steps from one big batch to the next.
    curvature : float
        The curvature of the smoothed penalty function as it was measured at the start.
    exact : bool
        Whether gradients are continuous and come from all rows, so that steps need not shrink.
    """

    max_iter: int
    period: int
    curvature: float
    exact: bool


class Steps(Parametrized, ABC):
    """The lengths alpha_k of the steps.

    Attributes
    ----------
    measures : bool
        Whether the lengths depend on the measured curvature.
    """

    measures: bool = False

    @abstractmethod
    def length(self, k: int, run: Run) -> float:
        """Return the length of step k, counted from 0."""


class ConstantSteps(Steps):
    r""":math:`\alpha_k = \alpha`, the paper's choice for 3S-Econ-D.

    Parameters
    ----------
    size : float, default=0.01
        alpha > 0.
    """

    def __init__(self, size: float = 0.01):
        self.size = size

    def length(self, k: int, run: Run) -> float:
        """Return alpha."""
        return self.size


class RootSteps(Steps):
    r""":math:`\alpha_k = \alpha / \lceil \sqrt{(k + 1) / q} \rceil`, the paper's for 3S-Econ-S.

    Parameters
    ----------
    size : float, default=0.01
        alpha > 0.
    """

    def __init__(self, size: float = 0.01):
        self.size = size

    def length(self, k: int, run: Run) -> float:
        """Return alpha over the rounded root of the number of periods."""
        return self.size / ceil(sqrt((k + 1) / run.period))


class CurvatureSteps(Steps):
    r""":math:`\alpha_k = \frac{c}{L} (1 - k / K)^p`, L the curvature measured at the start.

    p is 0 where steps are exact and `power` where the subgradients jump or are noisy: the last
    iterate is then as good as an average.

    Parameters
    ----------
    factor : float, default=1.0
        c, in (0, 2).
    power : float, default=1.0
        p >= 0.

    References
    ----------
    A. Defazio et al., "Optimal linear decay learning rate schedules and further
    refinements" (2023).
    """

    measures = True

    def __init__(self, factor: float = 1.0, power: float = 1.0):
        self.factor = factor
        self.power = power

    def length(self, k: int, run: Run) -> float:
        """Return c / L, lowered towards the end."""
        left = 1.0 if run.exact else (1.0 - k / run.max_iter) ** self.power
        return self.factor * left / run.curvature
