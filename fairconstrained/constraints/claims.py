"""Statements about the population's rates that rows held out from training can test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints._samples import RowTotals, Sample, Share
from fairconstrained.constraints.measures import Compared, Measures
from fairconstrained.metrics.exact_tests import TwoRates
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.utils.rounding import ROUNDING
from fairconstrained.utils.typing import Array

_SHARE_ERROR = 0.05  # the part of the error that is used by limits on a group's share of the rows
_DECISION = np.zeros(1)


@dataclass(frozen=True, eq=False)
class Claim:
    r"""The statement :math:`\alpha p_1 + \beta p_2 \le b` on two rates in the population.

    The rates are those of two groups, or of a group and all other rows. Where a group is compared
    with all rows, whose rate is :math:`\pi p_1 + (1 - \pi) p_2` with the group's share :math:`\pi`,
    the coefficients depend on the share: they are :math:`\alpha + \beta \pi` and
    :math:`\beta (1 - \pi)` with ``of_all``, else those of the two groups. The statement for both
    confidence limits of the share implies the one for the share, since it is affine in it.

    Attributes
    ----------
    name : str
        The statement in words.
    samples : tuple of Sample
        The rows of the two rates, or of one.
    coefficients : tuple of float
        alpha and beta, or alpha alone.
    bound : float
        b.
    share : Share or None
        The first group's share, where it is compared with all rows.
    thresholds : ndarray or None
        The statement is made for each of these thresholds of the scores; None stands for all.
    ranks : tuple of float
        The rates are clipped to this range.
    one_output : bool
        Whether it is one output of the constraint's term, of the same name.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> y, groups = np.tile([1, -1], 100), np.repeat(["a", "b"], 100)
    >>> claim, _ = DemographicParity(kappa=0.1).claims(y, groups, np.ones(200))
    >>> claim.name
    'rate(a) - rate(b) <= 0.1'
    >>> scores = np.concatenate([np.arange(100) - 60.5, np.arange(100) - 50.5])  # rates 0.39, 0.49
    >>> claim.accepts(scores, delta=0.1), round(claim.limit(scores, delta=0.1), 2)
    (True, -0.09)
    """

    name: str
    samples: tuple[Sample, ...]
    coefficients: tuple[float, ...]
    bound: float
    share: Share | None = None
    thresholds: Array | None = field(default_factory=lambda: _DECISION)
    ranks: tuple[float, float] = (0.0, 1.0)
    one_output: bool = True

    def accepts(self, scores: Array, delta: float) -> bool:
        """Return whether the statement is accepted with an error of at most delta.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            The scores of a model that does not depend on these rows.
        delta : float
            The error.
        """
        return all(self._test(scores, *one, decide=True) <= 0 for one in self._tests(delta))

    def limit(self, scores: Array, delta: float) -> float:
        """Return an upper confidence limit of the left-hand side less b; see `accepts`."""
        return max(self._test(scores, *one) for one in self._tests(delta))

    def deviation(self, scores: Array | None = None) -> float:
        """Return the standard deviation of the left-hand side, with rates of 1/2 without scores."""
        total = 0.0
        for sample, factor in zip(self.samples, self._lines(None)[0], strict=True):
            rate = 0.5
            if scores is not None:
                rates = sample.rates(scores, self._some_points(scores))
                rate = float(rates[int(np.argmin(np.abs(rates - 0.5)))])
            rate = (sample.size * rate + 1.0) / (sample.size + 2.0)
            total += factor**2 * rate * (1.0 - rate) / sample.size
        return float(np.sqrt(total))

    def room(self, scores: Array | None = None) -> float:
        """Return how far the left-hand side may be below b: with equal rates, if there are two."""
        if len(self.samples) < 2:
            return max(self.bound, 0.0)
        rate = 0.5
        if scores is not None:
            rate = float(np.mean([one.rate(scores) for one in self.samples]))
        return max(self.bound - sum(self._lines(None)[0]) * rate, 0.0)

    @property
    def size(self) -> float:
        """The number of rows of its smallest sample."""
        return min(one.size for one in self.samples)

    @property
    def of_decisions(self) -> bool:
        """Whether the rates are those of positive predictions, not of wrong ones."""
        return not any(one.flipped.any() for one in self.samples)

    def at_constant(self, decision: bool) -> float:
        """Return the left-hand side less b, if all predictions are positive or all negative."""
        rate = float(np.clip(decision, *self.ranks))
        return sum(self._lines(None)[0]) * rate - self.bound

    def on_rows(self, rows: Array) -> Self:
        """Return the claim with positions among all rows, of which `rows` are its own."""
        moved = tuple(replace(one, rows=rows[one.rows]) for one in self.samples)
        return replace(self, samples=moved)

    def of_atoms(self, atoms: RowTotals) -> Self:
        """Return the claim on atoms that each stand for several rows of unknown scores."""
        share = self.share
        if share is not None:
            share = replace(share, sample=share.sample.of_atoms(atoms))
        samples = tuple(one.of_atoms(atoms) for one in self.samples)
        return replace(self, samples=samples, share=share)

    @property
    def _between_points(self) -> bool:
        """Whether rates may change between the thresholds at which they are known."""
        return self.thresholds is None and any(one.changes_between_points for one in self.samples)

    def _points(self, scores: Array) -> Array:
        """Return the thresholds at which the counts differ."""
        if self.thresholds is not None:
            return self.thresholds
        found = [one.distinct(scores) for one in self.samples]
        return np.unique(np.concatenate([*found, [-np.inf]]))

    def _some_points(self, scores: Array) -> Array:
        points = self._points(scores)
        return points[np.unique(np.linspace(0, len(points) - 1, 9).astype(int))]

    def _lines(self, delta: float | None) -> list[tuple[float, ...]]:
        """Return the coefficients, for each limit of the share; None stands for the share found."""
        if self.share is None:
            return [self.coefficients]
        alpha, beta = self.coefficients
        ends = (self.share.value,) if delta is None else self.share.limits(_SHARE_ERROR * delta)
        return [(alpha + beta * share, beta * (1.0 - share)) for share in ends]

    def _tests(self, delta: float) -> list[tuple[tuple[float, ...], float]]:
        """Return the coefficients and the error of every test: all of them must accept."""
        rest = delta if self.share is None else (1.0 - _SHARE_ERROR) * delta
        return [(line, rest) for line in self._lines(delta)]

    def _test(
        self, scores: Array, line: tuple[float, ...], delta: float, *, decide: bool = False
    ) -> float:
        """Return an upper confidence limit of the left-hand side less b, for given coefficients.

        With `decide` it is a number that is at most 0 where the statement is accepted: for two
        rates, how far their counts are from the critical region.
        """
        exact = all(one.exact for one in self.samples)
        if not exact or (len(line) > 1 and min(line) > ROUNDING):
            return self._weighted_limit(scores, line, delta)
        # exact tests of binomial counts
        order = sorted(range(len(line)), key=lambda k: -line[k])
        first, second = self.samples[order[0]], self.samples[order[-1]]
        if line[order[0]] <= ROUNDING:  # no rate increases the left-hand side
            return -self.bound
        points = self._points(scores)
        counts = first.counts(scores, points)
        if len(order) < 2 or line[order[1]] >= -ROUNDING:
            size = np.full(len(counts), float(len(first)))
            _, _, high = clopper_pearson(counts / len(first), size, 1.0 - 2.0 * delta)
            return float(line[order[0]] * np.max(high) - self.bound)
        others = second.counts(scores, points)
        others = _until_next(others) if self._between_points else others
        factors = line[order[0]], -line[order[1]]
        rates = TwoRates(len(first), len(second), *factors, self.bound, *self.ranks)
        return float((rates.surplus if decide else rates.limit)(counts, others, delta))

    def _weighted_limit(self, scores: Array, line: tuple[float, ...], delta: float) -> float:
        """Return the value found plus sqrt(log(1 / delta) sum_k (alpha_k^2 / n_k) / 2).

        That is Hoeffding's inequality for all rows together, for weights that differ.
        """
        terms = list(zip(line, self.samples, strict=True))
        squares = sum(factor**2 / one.size for factor, one in terms)
        points = self._points(scores)
        found = np.full(len(points), float(np.sqrt(0.5 * np.log(1.0 / delta) * squares)))
        for factor, one in terms:
            rates = one.rates(scores, points)
            if factor < 0.0 and self._between_points:
                rates = _until_next(rates)
            found += factor * rates
        low, high = self.ranks
        if high - low < 1.0:  # clipped rates are at most as far apart, in the same order
            found = np.clip(found, 0.0, 1.0)
        return float(found.max()) - self.bound


def _until_next(rates: Array) -> Array:
    """Return the least rate between each threshold and the next one; rates fall with them.

    Where the rates of two samples change between thresholds, a statement that holds for the rate of
    the first one at a threshold and of the second one at the next holds for all between them.
    """
    return np.append(rates[1:], 0)


def claims_of(compared: Compared) -> list[Claim]:
    """Return the claims of the outputs of a term, see :class:`Compared`."""
    found, requirement = [], compared.requirement
    bound, factors = (
        requirement.bound - requirement.constant,
        (requirement.first, requirement.second),
    )
    for one in compared.measures:
        samples, n = _samples(one), len(one)
        for a, b, first, second in compared.comparison.named(one):
            name = requirement.text.format(first=first, second=second)
            if not requirement.second:
                found.append(Claim(name, (samples[a],), factors[:1], bound))
            elif max(a, b) < n:
                found.append(Claim(name, (samples[a], samples[b]), factors, bound))
            else:
                ordered = factors if b == n else factors[::-1]
                found.append(against_all(name, samples, min(a, b), one.shares, ordered, bound))
    return found


def _samples(measures: Measures) -> list[Sample]:
    """Return the rows of every group: a negative weight is one of a negative prediction."""
    cells, combination = measures.cells, measures.combination
    weights = cells.tocsr() if combination is None else sp.csr_array(combination @ cells)
    ends = pairwise(weights.indptr)
    rows = [(weights.indices[a:b], weights.data[a:b]) for a, b in ends]
    return [Sample(index, np.abs(weight), weight < 0.0) for index, weight in rows]


def against_all(
    name: str,
    samples: Sequence[Sample],
    group: int,
    shares: Array,
    coefficients: tuple[float, float],
    bound: float,
) -> Claim:
    """Return the claim on a group's rate and on that of all rows.

    Parameters
    ----------
    name : str
        The statement in words.
    samples : sequence of Sample
        Disjoint groups, which together have all rows.
    group : int
        The position of the group.
    shares : ndarray of shape (n_groups,)
        The groups' shares of the weight.
    coefficients : tuple of float
        Those of the group's rate and of the rate of all rows.
    bound : float
        The bound.
    """
    others = [k for k in range(len(samples)) if k != group]
    rest = Sample.joined([samples[k] for k in others], shares[others])
    everybody = Sample.joined(samples, shares)
    share = Share(float(shares[group]), everybody)
    return Claim(name, (samples[group], rest), coefficients, bound, share)
