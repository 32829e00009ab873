r"""Sums over rows of a function of differences of scores, for many points, at the cost of a few.

For scores x (n of them) and points y (m of them), which are thresholds or other scores,

.. math::
    \sum_i a_i\, \phi(x_i - y_j) \quad \text{for every } j, \qquad
    \sum_j b_j\, \phi(x_i - y_j) \quad \text{for every } i,

and the same with the derivative are n m evaluations of phi by the formula. If phi is piecewise
quadratic, sorting and cumulative sums give them, exactly, in O(n log n). If phi is smooth, scores
are spread on a uniform grid by Lagrange interpolation, as in a non-uniform fast Fourier transform:
sums over its nodes are a convolution.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft, next_fast_len, rfft

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.utils.arrays import Array

Slopes = Callable[[], tuple[Array, Array]]
FEW = 1 << 13  # pairs for which the formula is fastest, as measured
_BLOCK = 1 << 20  # pairs that the formula evaluates at a time, 8 MB
_NODES = 6  # that a score is spread on: interpolation by polynomials of degree 5
_PLACES = np.arange(_NODES) - 0.5 * (_NODES - 1)  # of the nodes, from the middle of them
_TO_SHARES = np.linalg.inv(np.vander(_PLACES, increasing=True))  # from powers of a score's place
# The interpolation error falls with the sixth power of the step. This one gives 6e-10 for
# the sigmoid, whose curvature is at most .096 / scale^2: twelve nodes per scale.
_STEP = 1.0 / 38.0  # over the root of the largest curvature
_PRECISION = 1e-9  # of the interpolated function, relative to its largest value if that is above 1
_LARGEST_GRID = 1 << 22  # nodes
_PAIRS_PER_NODE = 8  # below which the formula is faster than the transforms


class Derivatives:
    """A function at some points, with the derivatives that are asked for, each found once."""

    def __init__(self, function: ScalarFunction, points: Array):
        self.points, self._orders = points, [function.value(points)]
        self._steps = function.derivative, function.second_derivative

    def __getitem__(self, order: int) -> Array:
        """Return phi, phi' or, where there is one, phi''."""
        for step in self._steps[len(self._orders) - 1 : order]:
            self._orders.append(step(self.points, self._orders[-1]))
        return self._orders[order]


class DifferenceSums:
    r"""Sums of :math:`\phi(x_i - y_j)`, or of a derivative of phi, over i or over j.

    These are all pairs by the formula, in blocks of rows; the last block is kept for further
    products. Subclasses have faster ways.
    """

    def __init__(self, function: ScalarFunction, first: "Ranked", second: "Ranked"):
        self.function, self.first, self.second = function, first, second
        self._last: tuple[int, Derivatives] | None = None

    def _blocks(self, order: int) -> Iterator[tuple[slice, Array]]:
        """Yield rows with phi, or a derivative, of their pairs."""
        x, y = self.first.scores[:, None], self.second.scores
        step = max(1, _BLOCK // max(len(y), 1))
        for start in range(0, max(len(x), 1), step):
            rows = slice(start, start + step)
            if self._last is None or self._last[0] != start:
                self._last = start, Derivatives(self.function, x[rows] - y)
            yield rows, self._last[1][order]

    def over_first(self, weights: Array, *, order: int = 0) -> Array:
        """Return the sums over i, weighted, for every j.

        The formula takes columns of weights as well, here and in `over_second`.
        """
        return np.sum([phi.T @ weights[rows] for rows, phi in self._blocks(order)], axis=0)

    def over_second(self, weights: Array, *, order: int = 0) -> Array:
        """Return the sums over j, weighted, for every i."""
        return np.concatenate([phi @ weights for _, phi in self._blocks(order)])


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

    def over_first(self, weights: Array, *, order: int = 0) -> Array:
        return self._over(self.first, weights, self.second, order)

    def over_second(self, weights: Array, *, order: int = 0) -> Array:
        # x - y is (-y) - (-x)
        return self._over(self.second.negated, weights, self.first.negated, order)

    def _over(self, first: "Ranked", weights: Array, second: "Ranked", order: int) -> Array:
        knots, pieces = self._quadratics
        if order:
            pieces = pieces[:, [1, 2, 2]] * [1.0, 2.0, 0.0]
        y = second.ascending  # sorted points are found several times faster
        sums = first.sums if weights is first.weights else first.cumulative(weights)
        total = _quadratic_sum(pieces[-1], sums[:, -1:], y)
        for knot, jump in zip(knots, pieces[:-1] - pieces[1:], strict=True):
            if jump.any():
                total = total + _quadratic_sum(jump, sums[:, first.below(y + knot, "right")], y)
        return second.as_given(total)


def _quadratic_sum(coefficients: Array, moments: Array, y: Array) -> Array:
    """Return the sums of a quadratic in x - y for every y, given the moments of x."""
    (constant, slope, square), (mass, mean, mean_square) = coefficients, moments
    if square:
        constant, slope = constant + (square * y - slope) * y, slope - 2.0 * square * y
        return constant * mass + slope * mean + square * mean_square
    return (constant - slope * y) * mass + slope * mean


def interpolation(points: Array, step: float) -> tuple[Array, Array, Array]:
    """Return the nodes of a uniform grid around points, the six of every point, and its shares."""
    place = points / step
    lowest = np.floor(place)
    place -= lowest
    place -= 0.5
    low, high = lowest.min(), lowest.max()
    lowest -= low
    powers = np.empty((_NODES, len(points)))
    powers[0] = 1.0
    for k in range(1, _NODES):
        np.multiply(powers[k - 1], place, out=powers[k])
    columns = np.add.outer(lowest.astype(np.int32), np.arange(_NODES, dtype=np.int32))
    nodes = step * (low - _NODES // 2 + 1 + np.arange(int(high - low) + _NODES))
    return nodes, columns, powers.T @ _TO_SHARES


class _Convolved(DifferenceSums):
    """For many points: both sides are spread on a grid; sums over its nodes convolve."""

    def __init__(self, function: ScalarFunction, first: "Ranked", second: "Ranked", step: float):
        super().__init__(function, first, second)
        # The grid is as long as the scores of one side, however far they are from the other's.
        apart, n = first.scores.min() - second.scores.min(), len(first.scores)
        both = np.concatenate([first.scores - apart, second.scores])
        nodes, columns, values = interpolation(both, step)
        entries = values.ravel(), columns.ravel(), np.arange(0, values.size + 1, values.shape[1])
        shares = sp.csr_array(entries, shape=(len(both), len(nodes)))
        self.of_first, self.of_second = shares[:n], shares[n:]
        self.kernel = Derivatives(function, apart + step * np.arange(1 - len(nodes), len(nodes)))

    def over_first(self, weights: Array, *, order: int = 0) -> Array:
        return self.of_second @ self._times(self.kernel[order][::-1], self.of_first.T @ weights)

    def over_second(self, weights: Array, *, order: int = 0) -> Array:
        return self.of_first @ self._times(self.kernel[order], self.of_second.T @ weights)

    def _times(self, kernel: Array, mass: Array) -> Array:
        """Return the products with the matrix of phi(node g - node h): a convolution."""
        size = next_fast_len(len(kernel), real=True)
        return irfft(rfft(kernel, size) * rfft(mass, size), size)[len(mass) - 1 : len(kernel)]


def difference_sums(function: ScalarFunction, first: "Ranked", second: "Ranked") -> DifferenceSums:
    """Return the sums by the fastest way that is precise for the function.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.surrogates import Ramp
    >>> from fairconstrained.terms.difference_sums import difference_sums
    >>> from fairconstrained.terms.difference_sums import Ranked
    >>> x = Ranked(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> difference_sums(Ramp(), x, Ranked(np.array([0.0, 0.5]))).over_first(x.weights)
    array([0.75, 0.5 ])
    """
    if len(first.scores) * len(second.scores) <= FEW:
        return DifferenceSums(function, first, second)
    if function.knots is not None:
        return _BySorting(function, first, second)
    step = precise_step(function, first.scores, second.scores)
    if step is None:
        return DifferenceSums(function, first, second)
    return _Convolved(function, first, second, step)


def precise_step(function: ScalarFunction, scores: Array, points: Array) -> float | None:
    """Return the step of a grid on which phi of differences is interpolated precisely.

    None for a function without bounded curvature or one that bends more sharply than its curvature
    says, and where the formula is faster.
    """
    bend = float(np.max(np.abs(function.curvature)))
    if not function.smooth or not 0.0 < bend < np.inf:
        return None
    step = _STEP / np.sqrt(bend)
    most = min(len(scores) * len(points) / _PAIRS_PER_NODE, _LARGEST_GRID)
    # the nodes within reach of any difference: from the first one of every point, up to the next
    first = np.sort(np.floor((scores.min() - points) / step)) - _NODES
    reach = np.ceil(np.ptp(scores) / step) + 2 * _NODES + 1
    counts = np.minimum(np.diff(first, append=np.inf), reach)
    if not counts.sum() < most:  # nor is it less than this where a run has diverged
        return None
    counts = counts.astype(int)
    nodes = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    values, whole = function.value(step * nodes), nodes[_NODES - 1 :] - nodes[: 1 - _NODES] < _NODES
    middles = step * (nodes[: 1 - _NODES] + 0.5 * (_NODES - 1))
    errors = np.convolve(values, _TO_SHARES[0], "valid") - function.value(middles)
    error = np.abs(errors[whole]).max()
    if error > _PRECISION * max(1.0, np.abs(values).max()):
        return None
    return float(step)


def pair_sum(function: ScalarFunction, first: "Ranked", second: "Ranked") -> tuple[float, Slopes]:
    r"""Return :math:`\sum_{ij} a_i\, b_j\, \phi(x_i - y_j)` and what returns its derivatives.

    Ties count half in a sum of indicators (Mann-Whitney). The derivatives are those by x and by y.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.terms.difference_sums import pair_sum
    >>> from fairconstrained.terms.difference_sums import Ranked
    >>> x, y = Ranked(np.array([0.0, 2.0]), np.full(2, 0.5)), Ranked(np.array([0.5]))
    >>> value, slopes = pair_sum(Hinge(), x, y)
    >>> float(value), [slope.tolist() for slope in slopes()]
    (0.75, [[-0.5, 0.0], [0.5]])
    """
    if isinstance(function, Indicator):
        zeros = np.zeros_like(first.scores), np.zeros_like(second.scores)
        return first.probability_above(second), lambda: zeros
    sums = difference_sums(function, first, second)

    def slopes() -> tuple[Array, Array]:
        on_first = first.weights * sums.over_second(second.weights, order=1)
        return on_first, -second.weights * sums.over_first(first.weights, order=1)

    return float(sums.over_first(first.weights) @ second.weights), slopes


_TIED = 1e-12  # relative to the largest score


class Ranked:
    """Weighted scores of a cell, sorted where that is needed; weights of None stand for ones."""

    def __init__(self, scores: Array, weights: Array | None = None, rows: Any = slice(None)):
        self.scores, self.rows = scores, rows
        self.weights = np.ones(len(scores)) if weights is None else weights

    @cached_property
    def order(self) -> Array:
        """The positions of the scores in ascending order; ties keep the order of the rows."""
        return np.argsort(self.scores, kind="stable")

    @cached_property
    def ascending(self) -> Array:
        """The sorted scores."""
        return self.scores[self.order]

    @cached_property
    def negated(self) -> "Ranked":
        """The scores with the other sign."""
        other = Ranked(-self.scores, self.weights, self.rows)
        other.order = self.order[::-1]
        return other

    def as_given(self, values: Array) -> Array:
        """Return values that are in the order of `ascending` in that of the scores."""
        out = np.empty_like(values)
        out[self.order] = values
        return out

    @cached_property
    def sums(self) -> Array:
        """Weights, weighted scores and weighted squares, summed over the k lowest, k = 0 to n."""
        return self.cumulative(self.weights)

    def cumulative(self, weights: Array) -> Array:
        """Return the same for other weights, of shape (3, n + 1)."""
        out = np.zeros((3, len(weights) + 1))
        masses = weights[self.order]
        for moment in out:
            np.cumsum(masses, out=moment[1:])
            masses = masses * self.ascending
        return out

    def below(self, points: Array, side: str = "left") -> Array:
        """Return the positions in `sums` of the scores < `points` (<= with side="right")."""
        return np.searchsorted(self.ascending, points, side=side)  # type: ignore[call-overload]

    def share_above(self, points: Array) -> Array:
        """Return the weight of the scores > `points`."""
        weight = self.sums[0]
        return weight[-1] - weight[self.below(points, "right")]

    def share_below(self, points: Array) -> Array:
        """Return the weight of the scores < `points`, and half of that of scores equal to them.

        Scores that differ by rounding errors only are equal: a matrix product may give equal rows
        scores that differ in their last digits.
        """
        largest = max(np.abs(points).max(initial=0.0), np.abs(self.scores).max(initial=0.0))
        near, weight = _TIED * largest, self.sums[0]
        return 0.5 * (
            weight[self.below(points - near)] + weight[self.below(points + near, "right")]
        )

    def probability_above(self, other: "Ranked") -> float:
        """Return the weighted share of pairs whose score here is the larger one; ties count half.

        Sorted scores are found several times faster.
        """
        return float(self.weights[self.order] @ other.share_below(self.ascending))

    def top(self, level: float) -> Array:
        """Return the part of every weight that is within the highest `level` of all weight.

        The score on the boundary counts in part, so that the parts sum to `level` times the total.
        """
        weight = self.sums[0]
        inside = np.minimum(weight[-1] - weight, level * weight[-1])
        return self.as_given(inside[:-1] - inside[1:])


def centered(scores: Array) -> Array:
    """Return the scores minus their mean.

    Sums over differences are equal, and a large intercept does not cost them their digits.
    """
    return scores - np.mean(scores) if scores.size else scores


def soft_top(values: Array, weights: Array, level: float, width: float) -> Array:
    r"""Return the shares :math:`\mathrm{clip}((v - \tau) / \omega, 0, 1)` that add up to a level.

    Their weighted sum is `level` times that of all weights; it falls piecewise linearly in
    :math:`\tau`, which is found between two of its kinks.
    """
    ranked = Ranked(values, weights)
    kinks = np.unique(np.concatenate([values - width, values]))
    start, end = ranked.sums[:, ranked.below(kinks)], ranked.sums[:, ranked.below(kinks + width)]
    mass, mean = (end - start)[:2]
    sums = ranked.sums[0, -1] - end[0] + (mean - kinks * mass) / width
    # the sums fall in the kinks
    tau = np.interp(-level * weights.sum(), -sums, kinks)
    return np.clip((values - tau) / width, 0.0, 1.0)
