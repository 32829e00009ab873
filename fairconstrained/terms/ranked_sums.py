"""Sums over pairs of scores in O(n log n): sort once, then look up cumulative sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from fairconstrained.functions.base import Rounded, ScalarFunction
from fairconstrained.functions.elementary import Indicator, PositivePart
from fairconstrained.functions.losses import Hinge, SquaredHinge
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.terms.ranked import Ranked
from fairconstrained.utils.typing import Array

MAX_PAIRS = 1 << 16
_FEW_PAIRS = 4096  # where forming all pairs took 0.04 to 0.24 ms, sorting 0.1 to 0.6
Slopes = Callable[[], tuple[Array, Array]]
Corner = Callable[[Ranked, Ranked, float], tuple[float, Slopes]]
_TIED = 1e-12  # relative to the largest score
_PIECEWISE_LINEAR = (Hinge, Ramp, PositivePart)


@singledispatch
def pair_sum(
    function: ScalarFunction, first: Ranked, second: Ranked, max_pairs: int = MAX_PAIRS
) -> tuple[float, Slopes]:
    r"""Return :math:`\sum_{ij} a_i\, b_j\, \phi(x_i - y_j)` and what returns its derivatives.

    Exact in O(n log n) by sorting for the hinge and the ramp (rounded or not), the squared hinge
    and the indicator (ties count half). For any other function all pairs are formed as long as
    there are at most `max_pairs`; beyond that the sum is estimated from `max_pairs` pairs, always
    the same for cells of the same sizes, so that it remains a smooth (convex) function if phi is.
    Its standard error is the standard deviation of phi over the pairs divided by the root of
    `max_pairs`: 0.4 per cent of it for the default.

    Parameters
    ----------
    function : ScalarFunction
        phi.
    first, second : Ranked
        The scores x and y, with weights a and b.
    max_pairs : int
        The largest number of pairs that are formed.

    Returns
    -------
    value : float
    slopes : callable
        () -> the derivatives by x and by y.

    References
    ----------
    S. Clemencon, I. Colin, A. Bellet, "Scaling-up empirical risk minimization: optimization of
    incomplete U-statistics", JMLR 17 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.terms.ranked import Ranked
    >>> from fairconstrained.terms.ranked_sums import pair_sum
    >>> x = Ranked(np.array([0.0, 2.0]), np.full(2, 0.5))
    >>> y = Ranked(np.array([0.5]), np.ones(1))
    >>> value, slopes = pair_sum(Hinge(), x, y)
    >>> float(value), [slope.tolist() for slope in slopes()]
    (0.75, [[-0.5, 0.0], [0.5]])
    """
    n, m = len(first.scores), len(second.scores)
    if n * m <= max_pairs:
        return _all_pairs(function, first, second)
    i = np.arange(max_pairs) % n
    j = np.random.default_rng(0).integers(m, size=max_pairs)
    weights = first.weights[i] * second.weights[j]
    weights *= first.weights.sum() * second.weights.sum() / weights.sum()
    differences = first.scores[i] - second.scores[j]
    value = function.value(differences)

    def slopes() -> tuple[Array, Array]:
        slope = weights * function.derivative(differences, value)
        return np.bincount(i, slope, minlength=n), -np.bincount(j, slope, minlength=m)

    return float(weights @ value), slopes


def _few(first: Ranked, second: Ranked) -> bool:
    """Return whether forming all pairs costs less than sorting."""
    return len(first.scores) * len(second.scores) <= _FEW_PAIRS


def _all_pairs(function: ScalarFunction, first: Ranked, second: Ranked) -> tuple[float, Slopes]:
    """Return the sum over all pairs, which are formed as a matrix."""
    differences = first.scores[:, None] - second.scores
    value = function.value(differences)

    def slopes() -> tuple[Array, Array]:
        slope = function.derivative(differences, value)
        return first.weights * (slope @ second.weights), -second.weights * (first.weights @ slope)

    return float(first.weights @ (value @ second.weights)), slopes


@pair_sum.register
def _indicator(
    function: Indicator, first: Ranked, second: Ranked, max_pairs: int = MAX_PAIRS
) -> tuple[float, Slopes]:
    """Return the weight of the pairs with x > y, and half of that with x = y (Mann-Whitney).

    Scores that differ by rounding errors only are equal: a matrix product may give equal rows
    scores that differ in their last digits.
    """
    weight, x = second.sums[0], first.scores
    near = _TIED * max(np.abs(one.scores).max(initial=0.0) for one in (first, second))
    below = weight[second.below(x - near)] + weight[second.below(x + near, "right")]
    return 0.5 * float(first.weights @ below), lambda: (
        np.zeros_like(first.scores),
        np.zeros_like(second.scores),
    )


@pair_sum.register(Hinge)
@pair_sum.register(Ramp)
@pair_sum.register(PositivePart)
def _piecewise_linear(
    function: ScalarFunction, first: Ranked, second: Ranked, max_pairs: int = MAX_PAIRS
) -> tuple[float, Slopes]:
    """Return the sum of a piecewise linear function."""
    if _few(first, second):
        return _all_pairs(function, first, second)
    return _kinked(function, first, second, _linear)


@pair_sum.register
def _squared_hinge(
    function: SquaredHinge, first: Ranked, second: Ranked, max_pairs: int = MAX_PAIRS
) -> tuple[float, Slopes]:
    """Return the sum of max(0, 1 - (x - y))^2 / 2."""
    if _few(first, second):
        return _all_pairs(function, first, second)
    return _squared(first, second, 1.0)


@pair_sum.register
def _rounded(
    function: Rounded, first: Ranked, second: Ranked, max_pairs: int = MAX_PAIRS
) -> tuple[float, Slopes]:
    """Return the sum of a rounded piecewise linear function; form pairs for any other."""
    if _few(first, second):
        return _all_pairs(function, first, second)
    if not isinstance(function.function, _PIECEWISE_LINEAR):
        return pair_sum.dispatch(ScalarFunction)(function, first, second, max_pairs)
    half, scale = 0.5 * function.width, 1.0 / function.width

    def corner(first: Ranked, second: Ranked, margin: float) -> tuple[float, Slopes]:
        """Return the sum of a rounded hinge, the difference of two squared ones."""
        more, less = (_squared(first, second, margin + sign * half) for sign in (1, -1))
        return _combined(first, second, 0.0, 0.0, [(scale, more), (-scale, less)])

    return _kinked(function.function, first, second, corner)


def _kinked(
    function: ScalarFunction, first: Ranked, second: Ranked, corner: Corner
) -> tuple[float, Slopes]:
    r"""Return the sum of :math:`\phi(t) = \alpha + \beta t + \sum_j d_j \max\{k_j - t, 0\}`.

    The slope jumps by :math:`d_j` at :math:`k_j`, and phi is :math:`\alpha + \beta t` right of all
    kinks.
    """
    right = max(position for position, _ in function.kinks) + np.array([1.0, 2.0])
    at, further = function.value(right)
    slope = further - at
    corners = [(jump, corner(first, second, position)) for position, jump in function.kinks]
    return _combined(first, second, at - slope * right[0], slope, corners)


def _combined(
    first: Ranked,
    second: Ranked,
    constant: float,
    slope: float,
    parts: list[tuple[float, tuple[float, Slopes]]],
) -> tuple[float, Slopes]:
    """Return the sum of an affine function plus multiples of other sums, and its derivatives."""
    value = sum(factor * part for factor, (part, _) in parts)
    if constant or slope:
        (a, ax, _), (b, by, _) = ([total[-1] for total in one.sums] for one in (first, second))
        value += constant * a * b + slope * (ax * b - a * by)

    def slopes() -> tuple[Array, Array]:
        found = [(factor, *part()) for factor, (_, part) in parts]
        on_first = np.sum([factor * one for factor, one, _ in found], axis=0)
        on_second = np.sum([factor * other for factor, _, other in found], axis=0)
        if slope:
            on_first = on_first + slope * second.weights.sum() * first.weights
            on_second = on_second - slope * first.weights.sum() * second.weights
        return on_first, on_second

    return float(value), slopes


def _linear(first: Ranked, second: Ranked, margin: float) -> tuple[float, Slopes]:
    """Return the sum of max(0, margin - (x - y)): those pairs count that have y > x - margin."""
    x, y = first.ascending, second.ascending  # points in order are found several times faster
    start = second.below(x - margin, "right")
    w, wy, _ = (total[-1] - total[start] for total in second.sums)

    def slopes() -> tuple[Array, Array]:
        lower = first.sums[0][first.below(y + margin)]
        return first.as_given(-first.masses * w), second.as_given(second.masses * lower)

    return float(first.masses @ ((margin - x) * w + wy)), slopes


def _squared(first: Ranked, second: Ranked, margin: float) -> tuple[float, Slopes]:
    """Return the sum of max(0, margin - (x - y))^2 / 2."""
    x, y = first.ascending, second.ascending
    start = second.below(x - margin, "right")
    w, wy, wyy = (total[-1] - total[start] for total in second.sums)
    room = margin - x

    def slopes() -> tuple[Array, Array]:
        lower = first.below(y + margin)
        mass, mean = first.sums[0][lower], first.sums[1][lower]
        on_second = second.as_given(second.masses * ((margin + y) * mass - mean))
        return first.as_given(-first.masses * (room * w + wy)), on_second

    return 0.5 * float(first.masses @ (room * room * w + 2.0 * room * wy + wyy)), slopes


class _SubgradientError(ScalarFunction):
    """The subgradient error of a rounded function, as a function of its argument."""

    smooth = False

    def __init__(self, function: ScalarFunction):
        self.function = function

    @property
    def curvature(self) -> tuple[float, float]:
        """No bounds are known."""
        return -np.inf, np.inf

    def value(self, t: Array) -> Array:
        """Return the subgradient error."""
        return self.function.subgradient_error(t)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return zeros: the error is evaluated, not minimised."""
        return np.zeros_like(t)


def pair_subgradient_error(
    function: ScalarFunction, first: Ranked, second: Ranked, max_pairs: int = MAX_PAIRS
) -> float:
    """Return the sum over pairs of phi's subgradient error; by sorting if phi was piecewise linear.

    With v = t - k for a kink k, that is |d| |v| max(width / 2 - |v|, 0) / width, which is piecewise
    quadratic: three hinges and two squared ones add up to it.
    """
    if not (isinstance(function, Rounded) and isinstance(function.function, _PIECEWISE_LINEAR)):
        return pair_sum(_SubgradientError(function), first, second, max_pairs)[0]
    half, total = 0.5 * function.width, 0.0
    for position, jump in function.function.kinks:
        low, high = position - half, position + half
        hinges = sum(
            size * _linear(first, second, at)[0]
            for size, at in ((0.5, low), (1.0, position), (0.5, high))
        )
        squares = _squared(first, second, high)[0] - _squared(first, second, low)[0]
        total += abs(jump) * max(hinges - 2.0 / function.width * squares, 0.0)
    return total


@singledispatch
def losses_at(function: ScalarFunction, first: Ranked, points: Array) -> Array:
    r"""Return :math:`\sum_i a_i\, \phi(x_i - y)` for every point y, by sorting.

    Raises
    ------
    TypeError
        If phi has no exact method.
    """
    raise TypeError(f"{function!r} cannot be summed by sorting.")


@losses_at.register
def _(function: Hinge, first: Ranked, points: Array) -> Array:
    mass, mean, _ = (total[first.below(points + 1.0)] for total in first.sums)
    return (1.0 + points) * mass - mean


@losses_at.register
def _(function: SquaredHinge, first: Ranked, points: Array) -> Array:
    return _squared_at(first, points, 1.0)


@losses_at.register
def _(function: Rounded, first: Ranked, points: Array) -> Array:
    high, low = (_squared_at(first, points, 1.0 + s * function.width / 2) for s in (1, -1))
    return (high - low) / function.width


def _squared_at(first: Ranked, points: Array, margin: float) -> Array:
    mass, mean, square = (total[first.below(points + margin)] for total in first.sums)
    room = margin + points
    return 0.5 * (room * room * mass - 2.0 * room * mean + square)
