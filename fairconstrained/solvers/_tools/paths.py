"""The points that subgradient steps lead to: plain, with momentum, or averaged."""

from __future__ import annotations

from math import sqrt

from fairconstrained.domains import Domain
from fairconstrained.utils.typing import Array


class ProjectedPath:
    """The points of plain projected steps."""

    def __init__(self, domain: Domain, w: Array):
        self.domain = domain
        self.point = w

    def move(self, gradient: Array, length: float) -> None:
        """Make a step."""
        self.point = self.domain.project(self.point - length * gradient)

    def close(self) -> None:
        """End a period."""


class AcceleratedPath(ProjectedPath):
    """Nesterov's momentum, restarted if it points uphill (O'Donoghue and Candes 2015)."""

    def __init__(self, domain: Domain, w: Array):
        super().__init__(domain, w)
        self.landed = w
        self.age = 1.0

    def move(self, gradient: Array, length: float) -> None:
        landed = self.domain.project(self.point - length * gradient)
        step = landed - self.landed
        if gradient @ step > 0.0:
            self.age = 1.0
        older = 0.5 * (1.0 + sqrt(1.0 + 4.0 * self.age**2))
        self.point = self.domain.project(landed + (self.age - 1.0) / older * step)
        self.landed, self.age = landed, older


class AveragedPath(ProjectedPath):
    """Every period starts from the average over the second half of the one before."""

    def __init__(self, domain: Domain, w: Array, period: int):
        super().__init__(domain, w)
        self.period = period
        self.made, self.count, self.mean = 0, 0, w

    def move(self, gradient: Array, length: float) -> None:
        super().move(gradient, length)
        self.made += 1
        if 2 * self.made > self.period:
            self.count += 1
            self.mean = self.mean + (self.point - self.mean) / self.count

    def close(self) -> None:
        if self.count:
            self.point = self.mean
        self.made = self.count = 0
