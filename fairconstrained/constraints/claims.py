"""Statements about the population's rates that rows held out from training can test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from fairconstrained.constraints._samples import RowTotals, Sample, Share
from fairconstrained.constraints.measures import Comparison, Measures, Requirement
from fairconstrained.metrics.exact_tests import TwoRates
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.terms.cell_means import rows_by_cell
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
        return all(one.surplus(scores) <= 0 for one in self._tests(delta))

    def limit(self, scores: Array, delta: float) -> float:
        """Return an upper confidence limit of the left-hand side less b; see `accepts`."""
        return max((one.limit(scores) for one in self._tests(delta)), default=-self.bound)

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

    def _tests(self, delta: float) -> Iterator[_Test]:
        """Yield the tests: all of them must accept."""
        rest = delta if self.share is None else (1.0 - _SHARE_ERROR) * delta
        exact = all(one.exact for one in self.samples)
        for line in self._lines(delta):
            counted = exact and (len(line) < 2 or min(line) <= ROUNDING)
            yield (_Counted if counted else _Weighted)(self, line, rest)


@dataclass(frozen=True, eq=False)
class _Test(ABC):
    """The test of a claim with given coefficients, with an error of at most delta."""

    claim: Claim
    line: tuple[float, ...]
    delta: float

    @abstractmethod
    def limit(self, scores: Array) -> float:
        """Return an upper confidence limit of the left-hand side less b."""

    def surplus(self, scores: Array) -> float:
        """Return a number that is at most 0 where the statement is accepted."""
        return self.limit(scores)


class _Weighted(_Test):
    """Hoeffding's inequality for all rows together, for weights that differ."""

    def limit(self, scores: Array) -> float:
        """Return the value found plus sqrt(log(1 / delta) sum_k (alpha_k^2 / n_k) / 2)."""
        factors = zip(self.line, self.claim.samples, strict=True)
        squares = sum(factor**2 / one.size for factor, one in factors)
        reach = float(np.sqrt(0.5 * np.log(1.0 / self.delta) * squares))
        low, high = self.claim.ranks
        points = self.claim._points(scores)
        found = np.full(len(points), reach)
        for factor, one in zip(self.line, self.claim.samples, strict=True):
            rates = one.rates(scores, points)
            if factor < 0.0 and self.claim._between_points:
                rates = _until_next(rates)
            found += factor * rates
        if high - low < 1.0:  # clipped rates are at most as far apart, in the same order
            found = np.clip(found, 0.0, 1.0)
        return float(found.max()) - self.claim.bound


class _Counted(_Test):
    """Exact tests of binomial counts."""

    def surplus(self, scores: Array) -> float:
        """Return how far the counts are from the critical region."""
        rates = self._rates()
        if isinstance(rates, TwoRates):
            return float(rates.surplus(*self._counts(scores), self.delta))
        return self.limit(scores)

    def limit(self, scores: Array) -> float:
        """Return the limit of the exact test of two rates, or Clopper and Pearson's of one."""
        rates, bound = self._rates(), self.claim.bound
        if isinstance(rates, TwoRates):
            return rates.limit(*self._counts(scores), self.delta)
        if rates is None:  # no rate increases the left-hand side
            return -bound
        sample, factor = rates
        found = sample.counts(scores, self.claim._points(scores)) / len(sample)
        size = np.full(len(found), float(len(sample)))
        _, _, high = clopper_pearson(found, size, 1.0 - 2.0 * self.delta)
        return float(factor * np.max(high) - bound)

    def _rates(self) -> TwoRates | tuple[Sample, float] | None:
        """Return what is tested: two rates, one with a positive coefficient, or none."""
        order = self._order
        if not order or self.line[order[0]] <= ROUNDING:
            return None
        first = self.claim.samples[order[0]]
        if len(order) < 2 or self.line[order[1]] >= -ROUNDING:
            return first, float(self.line[order[0]])
        second = self.claim.samples[order[1]]
        low, high = self.claim.ranks
        factors = self.line[order[0]], -self.line[order[1]]
        return TwoRates(len(first), len(second), *factors, self.claim.bound, low, high)

    @property
    def _order(self) -> list[int]:
        """The positions of the rates, that with the larger coefficient first."""
        return sorted(range(len(self.line)), key=lambda k: -self.line[k])

    def _counts(self, scores: Array) -> tuple[Array, Array]:
        points = self.claim._points(scores)
        first, second = (self.claim.samples[k].counts(scores, points) for k in self._order)
        return first, _until_next(second) if self.claim._between_points else second


def _until_next(rates: Array) -> Array:
    """Return the least rate between each threshold and the next one; rates fall with them.

    Where the rates of two samples change between thresholds, a statement that holds for the rate of
    the first one at a threshold and of the second one at the next holds for all between them.
    """
    return np.append(rates[1:], 0)


def claims_of(
    measures: Sequence[Measures],
    comparison: Comparison,
    requirement: Requirement,
    flipped: Array | None = None,
) -> list[Claim]:
    """Return the claims of the outputs of :func:`~fairconstrained.constraints.measures.compared`.

    Parameters
    ----------
    measures : sequence of Measures
        The numbers of groups; a group is a cell.
    comparison : callable
        The choice of the pairs.
    requirement : Requirement
        The bound on the two.
    flipped : ndarray of bool of shape (n_rows,) or None, default=None
        The rows on which the event is a negative prediction; None stands for no row.
    """
    return [
        claim
        for one in measures
        for claim in _claims(one, comparison, requirement, _samples(one, flipped))
    ]


def _samples(measures: Measures, flipped: Array | None) -> list[Sample]:
    flips = np.zeros(measures.cells.shape[1], dtype=bool) if flipped is None else flipped
    return [Sample(rows, weight, flips[rows]) for rows, weight in rows_by_cell(measures.cells)]


def _claims(
    measures: Measures, comparison: Comparison, requirement: Requirement, samples: list[Sample]
) -> Iterator[Claim]:
    first, second, pairs = comparison(measures)
    bound = requirement.bound - requirement.constant
    for k, (a, b) in enumerate(pairs):
        name = requirement.text.format(first=a, second=b)
        sides = [side.indices[side.indptr[k] : side.indptr[k + 1]] for side in (first, second)]
        factors = requirement.first, requirement.second
        if not len(sides[1]):
            yield Claim(name, (samples[sides[0][0]],), factors[:1], bound)
        elif len(sides[0]) == len(sides[1]) == 1:
            yield Claim(name, tuple(samples[int(side[0])] for side in sides), factors, bound)
        else:
            reverse = len(sides[0]) > 1
            group = int(sides[reverse][0])
            yield against_all(
                name, samples, group, measures.shares, factors[::-1] if reverse else factors, bound
            )


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
