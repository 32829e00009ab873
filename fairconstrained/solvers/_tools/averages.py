"""Running averages of points."""

from __future__ import annotations

import numpy as np

from fairconstrained.utils.typing import Array


class RunningAverage:
    """The weighted average of the points added since the last :meth:`clear`.

    Attributes
    ----------
    mean : ndarray
        The average; of size 0 before the first point.
    total : float
        The sum of the weights.
    """

    def __init__(self) -> None:
        self.mean: Array = np.zeros(0)
        self.total = 0.0

    def clear(self) -> None:
        """Remove all points."""
        self.mean, self.total = np.zeros(0), 0.0

    def add(self, x: Array, weight: float = 1.0) -> None:
        """Add a point."""
        if not self.total:
            self.mean = np.zeros_like(x)
        self.total += weight
        self.mean = self.mean + (weight / self.total) * (x - self.mean)


class SuffixAverage(RunningAverage):
    """The weighted average of the later half of the points, or more.

    The average restarts at every power of two, so that it needs to know neither the earlier points
    nor the number of points to come.

    References
    ----------
    A. Rakhlin, O. Shamir, K. Sridharan, "Making gradient descent optimal for strongly convex
    stochastic optimization", ICML 2012.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, x: Array, weight: float = 1.0) -> None:
        """Add a point."""
        self.count += 1
        if self.count & (self.count - 1) == 0:  # a power of two
            self.clear()
        super().add(x, weight)


class ExponentialAverage(RunningAverage):
    r"""The average in which point k has the weight :math:`\max\{1/m, \min\{4/k, 1\}\}`.

    Earlier points keep one minus this weight. The weight :math:`4/k` removes the first points
    quickly; with more than :math:`4m` points this is exponential smoothing.

    Parameters
    ----------
    memory : int
        The number of points m that the average covers in the long run, >= 1.
    """

    def __init__(self, memory: int) -> None:
        super().__init__()
        self.memory = memory
        self.count = 0

    def add(self, x: Array, weight: float = 1.0) -> None:
        """Add a point."""
        self.count += 1
        share = max(1.0 / self.memory, min(4.0 / self.count, 1.0))
        self.total = weight * (1.0 / share - 1.0)
        super().add(x, weight)
