r"""Sums over rows of a function of differences of scores, for many points, at the cost of a few.

For scores x (n of them) and points y (m of them), which are thresholds or other scores,

.. math::
    \sum_i a_i\, \phi(x_i - y_j) \quad \text{for every } j, \qquad
    \sum_j b_j\, \phi(x_i - y_j) \quad \text{for every } i,

and the same with the derivative are n m evaluations of phi by the formula. If phi is piecewise
quadratic, sorting and cumulative sums give them, exactly, in O(n log n). If phi is smooth, scores
and points are spread on a uniform grid by Lagrange interpolation, as in a non-uniform fast Fourier
transform: sums over nodes are a convolution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft, next_fast_len, rfft

from fairconstrained.functions.base import Indicator, ScalarFunction, SubgradientError
from fairconstrained.terms.cell_means import reweighted
from fairconstrained.terms.ranked import NODES, TO_SHARES, Ranked
from fairconstrained.utils.typing import Array, SparseMatrix

Slopes = Callable[[], tuple[Array, Array]]
FEW = 1 << 13  # pairs for which the formula is fastest, as measured
_BLOCK = 1 << 20  # pairs that the formula evaluates at a time, 8 MB
# The interpolation error falls with the sixth power of the step. This first one gives 1e-10 for
# the sigmoid, whose curvature is at most .096 / scale^2: sixteen nodes per scale.
_STEP = 1.0 / 51.0  # over the root of the largest curvature
_PRECISION = 1e-9  # of the interpolated function, relative to its largest value if that is above 1
_HALVINGS = 3  # of the step, for functions that bend more sharply than their curvature says
_LARGEST_GRID = 1 << 22  # nodes
_PAIRS_PER_NODE = 8  # below which the formula is faster than the transforms


class Derivatives:
    """A function at some points, with the derivatives that are asked for, each found once.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    points : ndarray
        Where.
    """

    def __init__(self, function: ScalarFunction, points: Array):
        self.function, self.points = function, points
        self._found = [function.value(points)]

    def __getitem__(self, order: int) -> Array:
        """Return phi, phi' or, where there is one, phi''."""
        if len(self._found) <= order:
            lower = self[order - 1]
            if order == 1:
                self._found.append(self.function.derivative(self.points, lower))
            else:
                self._found.append(self.function.second_derivative(self.points, lower))
        return self._found[order]


class DifferenceSums(ABC):
    r"""Sums of :math:`\phi(x_i - y_j)`, or of a derivative of phi, over i or over j.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    first, second : Ranked
        The scores x and the points y, with their weights.
    """

    def __init__(self, function: ScalarFunction, first: Ranked, second: Ranked):
        self.function, self.first, self.second = function, first, second

    @abstractmethod
    def over_first(self, weights: Array | None = None, *, order: int = 0) -> Array:
        """Return the sums over i, for every j, with x's weights or others."""

    @abstractmethod
    def over_second(self, weights: Array | None = None, *, order: int = 0) -> Array:
        """Return the sums over j, for every i, with y's weights or others.

        But for piecewise quadratic functions there may be several columns of weights.
        """

    def spread(self) -> SparseMatrix | None:
        """Return the matrix that spreads x's weights on nodes, CSC of shape (n_nodes, n).

        None where sums over i do not go through a few nodes.
        """
        return None

    def over_nodes(self, mass: Array, order: int) -> Array:
        """Return `over_first` from what lies on the nodes, in columns, (n_nodes, n_columns).

        It exists where `spread` returns a matrix.
        """
        raise NotImplementedError(f"{type(self).__name__} has no nodes.")


class _ByFormula(DifferenceSums):
    """All pairs, in blocks of rows. A single block is kept for all products."""

    @cached_property
    def _whole(self) -> Derivatives:
        return self._pairs(slice(None))

    def _pairs(self, rows: slice) -> Derivatives:
        return Derivatives(self.function, self.first.scores[rows, None] - self.second.scores)

    @property
    def _in_one_block(self) -> bool:
        return len(self.first.scores) * len(self.second.scores) <= _BLOCK

    def _blocks(self, order: int) -> Iterator[tuple[slice, Array]]:
        """Yield rows with phi, or a derivative, of their pairs."""
        if self._in_one_block:
            yield slice(None), self._whole[order]
            return
        n, step = len(self.first.scores), max(1, _BLOCK // len(self.second.scores))
        for rows in (slice(start, start + step) for start in range(0, n, step)):
            yield rows, self._pairs(rows)[order]

    def over_first(self, weights: Array | None = None, *, order: int = 0) -> Array:
        weights = self.first.weights if weights is None else weights
        return np.sum([weights[rows] @ phi for rows, phi in self._blocks(order)], axis=0)

    def over_second(self, weights: Array | None = None, *, order: int = 0) -> Array:
        weights = self.second.weights if weights is None else weights
        return np.concatenate([phi @ weights for _, phi in self._blocks(order)])

    def spread(self) -> SparseMatrix | None:
        """Return the weights themselves: every score is a node."""
        return sp.diags_array(self.first.weights, format="csc") if self._in_one_block else None

    def over_nodes(self, mass: Array, order: int) -> Array:
        return self._whole[order].T @ mass


class _BySorting(DifferenceSums):
    """For piecewise quadratic functions: moments of the scores below every knot.

    Between knots phi is one quadratic, and the quadratic right of all knots counts for all pairs;
    at every knot the pairs below it add the difference of its two quadratics.
    """

    @cached_property
    def _quadratics(self) -> tuple[Array, Array]:
        """The knots, and the coefficients of 1, t, t^2 between them, (n_knots + 1, 3)."""
        knots = np.unique(np.array(self.function.knots, dtype=float))
        edges = [knots[0] - 4.0, *knots, knots[-1] + 4.0] if len(knots) else [-1.0, 1.0]
        low, high = np.array(edges[:-1]), np.array(edges[1:])
        middle, quarter = 0.5 * (low + high), 0.25 * (high - low)
        value = self.function.value(middle)
        sides = np.concatenate([middle - quarter, middle + quarter])
        left, right = np.split(self.function.derivative(sides, self.function.value(sides)), 2)
        half, slope = 0.25 * (right - left) / quarter, 0.5 * (left + right)
        constant = value - slope * middle + half * middle * middle
        return knots, np.stack([constant, slope - 2.0 * half * middle, half], axis=1)

    def over_first(self, weights: Array | None = None, *, order: int = 0) -> Array:
        knots, pieces = self._quadratics
        return _moments_below(knots, _of(pieces, order), self.first, weights, self.second, "right")

    def over_second(self, weights: Array | None = None, *, order: int = 0) -> Array:
        # As a function of y - x: reflected, and a difference at a knot changes sides.
        knots, pieces = self._quadratics
        reflected = _of(pieces, order)[::-1] * [1.0, -1.0, 1.0]
        return _moments_below(-knots[::-1], reflected, self.second, weights, self.first, "left")


def _of(pieces: Array, order: int) -> Array:
    """Return coefficients, or those of the derivatives."""
    return pieces[:, [1, 2, 2]] * [1.0, 2.0, 0.0] if order else pieces


def _moments_below(
    knots: Array, pieces: Array, first: Ranked, weights: Array | None, second: Ranked, side: str
) -> Array:
    """Return the sums over i of a piecewise quadratic of x_i - y_j, for every j.

    Parameters
    ----------
    knots, pieces : ndarray of shapes (n_knots,) and (n_knots + 1, 3)
        The quadratics.
    first, weights : Ranked and ndarray
        x and other weights than its own.
    second : Ranked
        y.
    side : {"left", "right"}
        Whether a difference at a knot belongs to the quadratic above it ("left") or below it.
    """
    x, y = first.ascending, second.ascending  # sorted points are found several times faster
    sums = first.sums if weights is None else first.cumulative(weights[first.order])

    def quadratic(coefficients: Array, moments: list[Array]) -> Array:
        constant, slope, square = coefficients
        out = constant * moments[0]
        if slope or square:
            out = out + (slope - 2.0 * square * y) * moments[1]
            out += (square * y - slope) * y * moments[0]
        return out + square * moments[2] if square else out

    total = quadratic(pieces[-1], [one[-1:] for one in sums]) + np.zeros(len(y))
    for knot, jump in zip(knots, pieces[:-1] - pieces[1:], strict=True):
        if jump.any():
            below = np.searchsorted(x, y + knot, side=side)  # type: ignore[call-overload]
            total += quadratic(jump, [one[below] for one in sums])
    return second.as_given(total)


class _OnGrid(DifferenceSums):
    """For smooth functions: scores and points are spread on nodes; sums over nodes convolve.

    Parameters
    ----------
    function, first, second
        See :class:`DifferenceSums`.
    step : float
        The distance of the nodes.
    """

    def __init__(self, function: ScalarFunction, first: Ranked, second: Ranked, step: float):
        super().__init__(function, first, second)
        self.at_first, self.at_second = first.on_grid(step), second.on_grid(step)
        n, m = self.at_first.n_nodes, self.at_second.n_nodes
        # node g of x minus node h of y is entry g - h + m - 1
        lowest = self.at_first.first - self.at_second.first - m + 1
        self.kernel = Derivatives(function, step * (lowest + np.arange(n + m - 1)))

    def over_first(self, weights: Array | None = None, *, order: int = 0) -> Array:
        weights = self.first.weights if weights is None else weights
        return self.over_nodes(self.at_first.matrix.T @ weights, order)

    def over_second(self, weights: Array | None = None, *, order: int = 0) -> Array:
        weights = self.second.weights if weights is None else weights
        mass = self.at_second.matrix.T @ weights
        sums = _convolved(self.kernel[order], mass)
        return self.at_first.matrix @ sums

    def spread(self) -> SparseMatrix:
        return reweighted(self.at_first.matrix.T, self.first.weights)

    def over_nodes(self, mass: Array, order: int) -> Array:
        return self.at_second.matrix @ _convolved(self.kernel[order], mass[::-1])[::-1]


def _convolved(kernel: Array, mass: Array) -> Array:
    """Return the convolution with each column where the mass lies within the kernel."""
    size = next_fast_len(len(kernel), real=True)
    columns = mass.reshape(len(mass), -1)
    whole = irfft(rfft(kernel, size)[:, None] * rfft(columns, size, axis=0), size, axis=0)
    return whole[len(mass) - 1 : len(kernel)].reshape(-1, *mass.shape[1:])


def difference_sums(
    function: ScalarFunction, first: Ranked, second: Ranked, step: float | None = None
) -> DifferenceSums:
    """Return the sums by the fastest way that is precise for the function.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    first, second : Ranked
        The scores x and the points y.
    step : float or None, default=None
        A precise step of the grid, where it is known, see :func:`precise_step`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.surrogates import Ramp
    >>> from fairconstrained.terms.difference_sums import difference_sums
    >>> from fairconstrained.terms.ranked import Ranked
    >>> x = Ranked(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> difference_sums(Ramp(), x, Ranked(np.array([0.0, 0.5]))).over_first()
    array([0.75, 0.5 ])
    """
    n_pairs = len(first.scores) * len(second.scores)
    if n_pairs <= FEW:
        return _ByFormula(function, first, second)
    if function.knots is not None:
        return _BySorting(function, first, second)
    step = step or precise_step(function, first.scores, second.scores)
    if step is None:
        return _ByFormula(function, first, second)
    return _OnGrid(function, first, second, step)


def precise_step(function: ScalarFunction, first: Array, second: Array) -> float | None:
    """Return the distance of nodes between which phi is interpolated precisely.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    first, second : ndarray
        The scores and the points whose differences phi is of.

    Returns
    -------
    step : float or None
        None for a function without bounded curvature, and where the formula is faster.
    """
    bend = float(np.max(np.abs(function.curvature)))
    if not function.smooth or not 0.0 < bend < np.inf:
        return None
    low, high = first.min() - second.max(), first.max() - second.min()
    most = min(len(first) * len(second) / _PAIRS_PER_NODE, _LARGEST_GRID)
    step = _STEP / np.sqrt(bend)
    for _ in range(1 + _HALVINGS):
        if step * most <= high - low:
            return None
        nodes = np.arange(low - NODES * step, high + NODES * step, step)
        values, middles = function.value(nodes), nodes[: 1 - NODES] + 0.5 * (NODES - 1) * step
        found = np.convolve(values, TO_SHARES[0], "valid")  # of points halfway
        error = np.abs(found - function.value(middles)).max()
        if error <= _PRECISION * max(1.0, np.abs(values).max()):
            return step
        step *= 0.5
    return None


def pair_sum(function: ScalarFunction, first: Ranked, second: Ranked) -> tuple[float, Slopes]:
    r"""Return :math:`\sum_{ij} a_i\, b_j\, \phi(x_i - y_j)` and what returns its derivatives.

    Ties count half in a sum of indicators (Mann-Whitney).

    Parameters
    ----------
    function : ScalarFunction
        phi.
    first, second : Ranked
        The scores x and y, with weights a and b.

    Returns
    -------
    value : float
    slopes : callable
        () -> the derivatives by x and by y.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.terms.difference_sums import pair_sum
    >>> from fairconstrained.terms.ranked import Ranked
    >>> x, y = Ranked(np.array([0.0, 2.0]), np.full(2, 0.5)), Ranked(np.array([0.5]))
    >>> value, slopes = pair_sum(Hinge(), x, y)
    >>> float(value), [slope.tolist() for slope in slopes()]
    (0.75, [[-0.5, 0.0], [0.5]])
    """
    if isinstance(function, Indicator):
        zeros = np.zeros_like(first.scores), np.zeros_like(second.scores)
        return float(first.weights @ second.share_below(first.scores)), lambda: zeros
    sums = difference_sums(function, first, second)

    def slopes() -> tuple[Array, Array]:
        on_first = first.weights * sums.over_second(order=1)
        return on_first, -second.weights * sums.over_first(order=1)

    return float(sums.over_first() @ second.weights), slopes


def pair_subgradient_error(function: ScalarFunction, first: Ranked, second: Ranked) -> float:
    """Return the sum over pairs of phi's subgradient error."""
    return max(pair_sum(SubgradientError(function.corners), first, second)[0], 0.0)
