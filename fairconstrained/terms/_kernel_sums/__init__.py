r"""Averages over cells of :math:`\phi(s_i - \theta_j)` for many thresholds at the cost of a few.

With scores s (n rows), thresholds theta (m of them) and cells A (g of them, sparse),

.. math::
    r_{kj} = \sum_i A_{ki}\, \phi(s_i - \theta_j)

is n m evaluations of phi if done by the formula. A phi that is linear between kinks needs sorting
and cumulative sums only, and the sigmoid a few moments of the scores per bin: O(n + m) both,
exactly or to 1e-12. What is computed here is differentiated as it is computed.
"""

from __future__ import annotations

from collections.abc import Callable

from fairconstrained.functions.base import Parabola, Rounded, ScalarFunction, SumFunction
from fairconstrained.functions.elementary import Indicator
from fairconstrained.functions.surrogates import Sigmoid, SigmoidMinus, SigmoidPlus
from fairconstrained.terms._kernel_sums.base import Cells, DirectSums, KernelSums, Memory
from fairconstrained.terms._kernel_sums.piecewise import (
    LinearSums,
    ParabolaSums,
    RoundedSums,
    StepSums,
)
from fairconstrained.terms._kernel_sums.sigmoid import SigmoidSums
from fairconstrained.terms._kernel_sums.split_sigmoid import SigmoidMinusSums
from fairconstrained.utils.typing import Array

__all__ = ["FAST", "Cells", "KernelSums", "kernel_sums"]

_FEW = 1 << 14  # pairs of a row and a threshold below which the formula itself is fastest


class AddedSums(KernelSums):
    """For the sum of two functions."""

    def __init__(
        self,
        function: ScalarFunction,
        cells: Cells,
        scores: Array,
        thresholds: Array,
        memory: Memory = None,
    ):
        super().__init__(function, cells, scores, thresholds)
        self.parts = [
            kernel_sums(one, cells, scores, thresholds, memory) for one in self._summands(function)
        ]

    @staticmethod
    def _summands(function: ScalarFunction) -> tuple[ScalarFunction, ScalarFunction]:
        assert isinstance(function, SumFunction)
        return function.first, function.second

    def values(self) -> Array:
        """Return the sum of the averages."""
        return self.parts[0].values() + self.parts[1].values()

    def push(self, change: Array) -> Array:
        """Return the sum of the products."""
        return self.parts[0].push(change) + self.parts[1].push(change)

    def pull(self, u: Array) -> Array:
        """Return the sum of the weights."""
        return self.parts[0].pull(u) + self.parts[1].pull(u)

    def subgradient_error(self) -> Array:
        """Return the sum of the subgradient error."""
        return self.parts[0].subgradient_error() + self.parts[1].subgradient_error()


class SigmoidPlusSums(AddedSums):
    """For the convex part of the sigmoid: the sigmoid and what the part exceeds it by."""

    @staticmethod
    def _summands(function: ScalarFunction) -> tuple[ScalarFunction, ScalarFunction]:
        assert isinstance(function, SigmoidPlus)
        return Sigmoid(function.scale), SigmoidMinus(function.scale)


# By type itself: a subclass may be another function. `kernel_sums` looks for kinks after these.
FAST: dict[type[ScalarFunction], Callable[..., KernelSums]] = {
    Indicator: StepSums,
    Parabola: ParabolaSums,
    Rounded: RoundedSums,
    Sigmoid: SigmoidSums.or_direct,
    SigmoidMinus: SigmoidMinusSums.or_direct,
    SigmoidPlus: SigmoidPlusSums,
    SumFunction: AddedSums,
}


def kernel_sums(
    function: ScalarFunction,
    cells: Cells,
    scores: Array,
    thresholds: Array,
    memory: Memory = None,
) -> KernelSums:
    """Return the averages by the fastest way there is for the function and its data.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    cells : Cells
        A.
    scores : ndarray of shape (n_rows,)
        s.
    thresholds : ndarray of shape (n_thresholds,)
        theta.
    memory : dict or None, default=None
        Where to keep what depends on function and thresholds alone, for the next call with both.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.cell_means import cell_matrix
    >>> from fairconstrained.terms._kernel_sums import Cells, kernel_sums
    >>> from fairconstrained.functions.surrogates import Ramp
    >>> cells = Cells(cell_matrix(np.array([0, 0, 1]), np.ones(3), 2))
    >>> kernel_sums(Ramp(), cells, np.array([0.0, 1.0, 0.25]), np.array([0.0, 0.5])).values()
    array([[0.75, 0.5 ],
           [0.75, 0.25]])
    """
    way: Callable[..., KernelSums] = DirectSums
    if len(scores) * len(thresholds) > _FEW:
        way = FAST.get(type(function), LinearSums if function.kinks else DirectSums)
    return way(function, cells, scores, thresholds, memory)
