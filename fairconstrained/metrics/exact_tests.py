"""Exact tests and limits for a linear function of two rates, whatever the rates are."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, gammaln, ndtri

from fairconstrained.utils.arrays import Array

_NODES = 48  # of the nuisance parameter where a region is searched
_PRECISION = 2e-4  # of limits
_USED = 0.985  # the part of the error that the search uses; proving the maximum needs the rest
_CUBIC = 9.0 * np.sqrt(3.0)  # of the error of a parabola, the divisor of its third derivative
_PIECES = 200_000  # of the line, after which a region counts as too large
_CHUNK = 2_000_000  # entries of a table
_LEAST = -1e3  # the logarithm of what counts as 0
_ADDED = 3.0  # rows of each label, where standard deviations are computed


@dataclass(frozen=True)
class TwoRates:
    r"""The test of :math:`\alpha p_1 - \beta p_2 \le b` by two independent binomial counts.

    With counts x_1 of n_1 and x_2 of n_2, the statement is accepted if x_1 is at most an integer
    that depends on x_2, the critical region. Its probability is at most delta for all rates with
    :math:`\alpha p_1 - \beta p_2 \ge b`: the test is exact and unconditional. The integers increase
    with x_2, so that the probability decreases in p_1 and increases in p_2 and is largest on the
    line :math:`\alpha p_1 - \beta p_2 = b`. The maximum on that line is bounded rigorously, see
    :meth:`holds`. Among such regions one with a score statistic is chosen: b is subtracted from the
    difference found, and the result is divided by its standard deviation at the rates on the line
    that are nearest to those found.

    References
    ----------
    G. Barnard, Biometrika 34 (1947); I. Chan and Z. Zhang, Biometrics 55 (1999), with the order
    of counts fixed. Monotone regions: J. Roehmel and U. Mansmann, Biometrical Journal 41 (1999).
    """

    n_first: int  # n_1 and n_2, > 0
    n_second: int
    first: float  # alpha and beta, > 0
    second: float
    bound: float  # b
    bottom: float = 0.0  # the statement is on both rates clipped to this range; then alpha = beta
    top: float = 1.0

    @property
    def range(self) -> tuple[float, float]:
        """The second rate on the line, least and largest; empty if the statement always holds."""
        low = max(self.bottom, (self.first * self.bottom - self.bound) / self.second)
        return low, min(self.top, (self.first * self.top - self.bound) / self.second)

    def on_line(self, second: Array) -> Array:
        """Return the first rate on the line for the second one."""
        return np.clip((self.bound + self.second * second) / self.first, 0.0, 1.0)

    def region(self, delta: float) -> Array:
        """Return, for every count of the second sample, the largest accepted one of the first.

        It is -1 where none is accepted. The error delta is in (0, 1).
        """
        return _critical(self, float(delta))

    def surplus(self, first: Array, second: Array, delta: float) -> int:
        """Return the largest distance of counts from the region; at most 0 if all are accepted."""
        return int(np.max(first - self.region(delta)[second]))

    def limit(self, first: Array | int, second: Array | int, delta: float) -> float:
        """Return an upper confidence limit of alpha p_1 - beta p_2 - b.

        It is at most 0 where the statement is accepted. Where there are several pairs of counts,
        for the same samples, it is the largest of their limits.
        """
        surplus = self.surplus(np.asarray(first), np.asarray(second), delta)
        return _limit(self, float(delta), surplus)

    @property
    def mirrored(self) -> "TwoRates":
        """The same statement about the rates 1 - p_2 and 1 - p_1, in this order.

        The samples change places. A bound on p_1 - p_2 and the same bound on p_2 - p_1 therefore
        need one region only.
        """
        bound, ranks = self.bound + (self.second - self.first), (1.0 - self.top, 1.0 - self.bottom)
        return TwoRates(self.n_second, self.n_first, self.second, self.first, bound, *ranks)

    def holds(self, most: Array, delta: float) -> bool:
        r"""Return whether the probability p of a region is at most delta on the whole line.

        The line is divided into pieces. In each, three points at distances h are evaluated, and p
        is at most the sum of the largest of their three values; an eighth of their second
        difference, by which the parabola through them may exceed these values; and
        :math:`h^3 / (9 \sqrt 3)` times a bound on the third derivative of p, by which p may exceed
        the parabola.

        The third derivative of the probability of two counts, divided by this probability, is a
        function of the counts with mean 0. Its variance is at most :math:`6 I^3`, where I is
        Fisher's information: for a binomial count, the functions of derivatives of different orders
        are orthogonal. The third derivative of p is the covariance of this function and the
        indicator of the region. It is therefore at most :math:`\sqrt{6 I^3 p (1 - p)}`.

        The bound thus depends on p itself. It is computed with p = delta. If the sum is then at
        most delta, p cannot be larger than delta: for larger p, the sum grows more slowly than p.

        Where this does not suffice, p is at most its value at the smallest first and the largest
        second rate of the piece. Pieces for which neither suffices are halved.
        """
        points = _spread(*self.range, _NODES // 2)
        left, right = points[:-1], points[1:]
        values = self._probability(most, self.on_line(points), points, delta)
        first, last = values[:, :-1], values[:, 1:]
        variance = min(delta, 0.5) * (1.0 - min(delta, 0.5))
        for _ in range(41):
            middle = 0.5 * (left + right)
            inner = self._probability(most, self.on_line(middle), middle, delta)
            largest = np.max([first[1], inner[1], last[1]], axis=0)
            if largest.max() > delta:
                return False
            curve = np.maximum(2.0 * inner[1] - first[0] - last[0], 0.0) / 8.0
            information = np.minimum(self._information(left, right), 1e90)  # its cube is finite
            error = np.sqrt(6.0 * information**3 * variance) * (0.5 * (right - left)) ** 3 / _CUBIC
            rest = np.flatnonzero(largest + curve + error > delta)
            if len(rest):
                corner = self.on_line(left[rest]), right[rest]
                rest = rest[self._probability(most, *corner, delta)[1] > delta]
            if not len(rest):
                return True
            if 2 * len(rest) > _PIECES:
                return False
            left, middle, right = left[rest], middle[rest], right[rest]
            first, inner, last = first[:, rest], inner[:, rest], last[:, rest]
            left, right = np.append(left, middle), np.append(middle, right)
            first, last = np.hstack([first, inner]), np.hstack([inner, last])
        return False

    def largest(self, most: Array, delta: float) -> float:
        """Return the largest probability of a region at some points of the line."""
        nodes = _spread(*self.range, _NODES)
        return float(self._probability(most, self.on_line(nodes), nodes, delta)[1].max())

    def candidate(self, t: float) -> Array:
        """Return the region of counts whose statistic is at most t."""
        counted = np.arange(self.n_second + 1) / self.n_second
        low, high = self.range
        second = np.maximum(counted, low)  # lower rates are clipped
        line = self.bound + self.second * second
        spread = self._deviation(second)
        for _ in range(5):  # the point of the line nearest to the counts at the region's boundary
            spread = self._deviation(second + self._share * t * spread / self.second)
        most = np.floor(self.n_first * (line + t * spread) / self.first + 1e-9)
        if self.top < 1.0:  # second rates that are clearly higher satisfy the statement alone
            clearly = high - 2.0 * t * np.sqrt(high * (1.0 - high) / self.n_second)
            most[counted > clearly] = self.n_first
        return np.maximum.accumulate(np.clip(most, -1, self.n_first).astype(int))

    def statistic(self, first: float, second: float) -> float:
        """Return the statistic of two rates."""
        surplus = self.first * first - self.second * second - self.bound
        nearest = np.array(second + self._share * surplus / self.second)
        return float(surplus / self._deviation(nearest))

    @property
    def _share(self) -> float:
        """The part of the distance from the line by which the nearest point of it is away."""
        ratio = self.n_first * self.second**2 / self.first**2
        return ratio / (ratio + self.n_second)

    def _deviation(self, second: Array) -> Array:
        """Return the standard deviation of the difference found, at rates on the line.

        Rates near 0 and 1 are moved inwards; there the level would be too high otherwise.
        """
        second = np.clip(second, *self.range)
        p = (self.n_second * second + _ADDED) / (self.n_second + 2.0 * _ADDED)
        q = (self.n_first * self.on_line(second) + _ADDED) / (self.n_first + 2.0 * _ADDED)
        return np.sqrt(
            self.second**2 * p * (1.0 - p) / self.n_second
            + self.first**2 * q * (1.0 - q) / self.n_first
        )

    def _information(self, left: Array, right: Array) -> Array:
        """Return the largest information about the second rate between points of the line."""
        second = np.stack([left, right])
        first, factor = self.on_line(second), (self.second / self.first) ** 2 * self.n_first
        with np.errstate(divide="ignore", over="ignore"):
            ends = self.n_second / (second * (1.0 - second)) + factor / (first * (1.0 - first))
        return np.max(ends, axis=0)

    def _probability(self, most: Array, first: Array, second: Array, delta: float) -> Array:
        """Return bounds on the probability of a region, (2, n_points), equal up to far tails."""
        out = np.empty((2, len(first)))
        reach = max(4.5, np.sqrt(2.0 * np.log(1e3 / delta)))
        sizes = 10.0 + 2.0 * reach * 0.5 * np.sqrt([self.n_first, self.n_second])
        step = max(int(_CHUNK / sizes.sum()), 1)
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            out[:, part] = _region_probability(
                most, self.n_first, first[part], self.n_second, second[part], reach
            )
        return out


def _spread(low: float, high: float, n: int) -> Array:
    """Return points between two ends, denser near them."""
    points = low + (high - low) * np.sin(0.5 * np.pi * np.linspace(0.0, 1.0, n)) ** 2
    points[-1] = high
    return np.minimum(points, high)  # `low` may be larger, by rounding


@lru_cache(maxsize=512)
def _log_binomials(n: int) -> Array:
    k = np.arange(n + 1.0)
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _window(n: int, p: Array, reach: float) -> tuple[Array, Array, Array]:
    """Return the binomial probabilities of the counts near the mean, for each of the rates p.

    They are the first of these counts, (n_p,), their probabilities, (n_p, width), and the
    probability of all lower counts, (n_p,).
    """
    half = reach * np.sqrt(n * p * (1.0 - p)) + 4.0
    start = np.maximum(np.floor(n * p - half), 0).astype(int)
    width = int(np.ceil(2.0 * half.max())) + 2
    counts = start[:, None] + np.arange(min(width, n + 1))
    # log(0) where p is 0 or 1; products overflow beyond the count n, where they are set to 0 below
    with np.errstate(divide="ignore", over="ignore"):
        log_p, log_q = (np.maximum(each, _LEAST)[:, None] for each in (np.log(p), np.log1p(-p)))
        logs = _log_binomials(n).take(counts, mode="clip")
        logs += counts * (log_p - log_q)
        logs += n * log_q
        chances = np.exp(logs, out=logs)
    chances[counts > n] = 0.0
    below = np.where(start > 0, bdtr(np.maximum(start - 1, 0), n, p), 0.0)
    return start, chances, below


def _region_probability(
    most: Array, n: int, first: Array, m: int, second: Array, reach: float
) -> Array:
    """Return lower and upper bounds on P(x_1 <= most[x_2]).

    Their difference is the probability of the counts that are in no window.
    """
    start, chances, below = _window(n, first, reach)
    other, weights, less = _window(m, second, reach)
    # P(x_1 <= k) for a k below the window, for every k in it, and for a k above it
    shares = np.empty((len(first), chances.shape[1] + 2))
    shares[:, 0], shares[:, -1] = below, 1.0
    np.cumsum(chances, axis=1, out=shares[:, 1:-1])
    shares[:, 1:-1] += below[:, None]
    place = most.take(other[:, None] + np.arange(weights.shape[1]), mode="clip")
    place = np.clip(place - (start[:, None] - 1), 0, shares.shape[1] - 1)
    place += np.arange(len(first))[:, None] * shares.shape[1]
    last = np.minimum(other + weights.shape[1] - 1, m)
    less = less + np.where(last < m, bdtrc(last, m, second), 0.0)
    upper = np.einsum("ij,ij->i", weights, shares.take(place)) + less
    tails = less + below + np.maximum(1.0 - shares[:, -2], 0.0)
    return np.stack([upper - tails, upper])


@lru_cache(maxsize=4096)
def _critical(test: TwoRates, delta: float) -> Array:
    if test.n_first < test.n_second:
        most = _critical(test.mirrored, delta)
        return test.n_first - np.searchsorted(most, np.arange(test.n_second, -1, -1))
    low, high = test.range
    if low > high:  # no rates are on the line: the statement is true for all of them, or for none
        always = test.first * test.top - test.second * test.bottom <= test.bound
        return np.full(test.n_second + 1, test.n_first if always else -1)
    width = 0.05
    bad = good = float(ndtri(delta)) + 0.5 * width
    while good > -60.0 and test.largest(test.candidate(good), delta) > _USED * delta:
        bad, good, width = good, good - width, 2.0 * width
    while bad - good > 2e-3:
        t = 0.5 * (bad + good)
        if test.largest(test.candidate(t), delta) <= _USED * delta:
            good = t
        else:
            bad = t
    for step in range(200):
        most = test.candidate(good - 0.01 * step)
        if test.holds(most, delta):
            return most
    return np.full(test.n_second + 1, -1)


@lru_cache(maxsize=65536)
def _limit(test: TwoRates, delta: float, surplus: int) -> float:
    """Return the least excess of the bound at which the shifted region has probability delta."""
    most = np.minimum(np.maximum(test.region(delta) + surplus, -1), test.n_first)
    span = test.first * test.top - test.second * test.bottom - test.bound  # the largest excess
    if np.all(most == test.n_first):
        return span
    least = test.first * test.bottom - test.second * test.top - test.bound
    low, high = (least, 0.0) if surplus <= 0 else (0.0, span)
    while high - low > _PRECISION:
        middle = 0.5 * (low + high)
        enough = replace(test, bound=test.bound + middle).largest(most, delta) <= delta
        low, high = (low, middle) if enough else (middle, high)
    while surplus > 0 or high < 0.0:
        if high >= span or replace(test, bound=test.bound + high).holds(most, delta):
            break
        high += _PRECISION
    return float(min(high, 0.0 if surplus <= 0 else span))


def ratio_interval(
    first: tuple[int, int], second: tuple[int, int], confidence: float
) -> tuple[float, float]:
    r"""Return the exact unconditional confidence interval of a ratio of two rates.

    A ratio :math:`\rho` is in the interval if neither of the one-sided tests of
    :math:`p_1 = \rho p_2` at half the error rejects it; their probabilities are maximized over the
    nuisance parameter at some points, see :meth:`TwoRates.largest`. `first` and `second` are the
    count and the number of rows of p_1 and of p_2. The upper limit is infinite if the second count
    is 0.

    References
    ----------
    I. Chan and Z. Zhang, Biometrics 55 (1999).
    """
    delta = 0.5 * (1.0 - confidence)
    return 1.0 / _largest_ratio(*second, *first, delta), _largest_ratio(*first, *second, delta)


@lru_cache(maxsize=65536)
def _largest_ratio(count: int, n: int, other: int, m: int, delta: float) -> float:
    """Return the ratio above which the test that p_1 / p_2 is at least as large rejects."""
    if not other:
        return np.inf

    def excess(log_ratio: float) -> float:
        """Return by how many standard errors the probability of counts as low is too large."""
        test = TwoRates(n, m, 1.0, float(np.exp(log_ratio)), 0.0)
        most = test.candidate(test.statistic(count / n, other / m))
        most[other:] = np.maximum(most[other:], count)  # these counts, whatever the rounding
        chance = np.clip(test.largest(most, delta), 1e-300, 1.0 - 1e-16)
        return float(ndtri(chance) - ndtri(_USED * delta))

    centre = np.log((count + 0.5) / (n + 0.5)) - np.log((other + 0.5) / (m + 0.5))
    spread = -ndtri(delta) * np.sqrt(1.0 / (count + 0.5) + 1.0 / (other + 0.5))
    low, high = centre, centre + spread
    while excess(low) <= 0.0:
        low -= spread
    while excess(high) > 0.0:
        high += 0.25 * spread
    return float(np.exp(brentq(excess, low, high, xtol=1e-4 * spread, rtol=1e-12)))
