"""Statements about the population's rates that rows held out from training can test."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.measures import Compared
from fairconstrained.data.validation import TrainingData
from fairconstrained.metrics.exact_tests import TwoRates
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.shards.scores import ShardedScores, shares_selected
from fairconstrained.terms.cell_means import rows_by_cell
from fairconstrained.utils.arrays import ROUNDING, Array, sums_above

_SHARE_ERROR = 0.05  # the part of the error that is used by limits on a group's share of the rows
_DECISION = np.zeros(1)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows whose rate of an event, a positive or a wrong prediction, is an average over a group."""

    # their positions; they may be atoms, which stand for rows that agree in label and groups,
    # (n_sample,)
    rows: Array
    # their weights, whose sizes sum to one; negative where the event is a negative prediction,
    # (n_sample,)
    weight: Array
    repeats: Array  # how many rows each stands for, (n_sample,)
    squares: Array  # the sum of the squared weights of these, (n_sample,)

    @classmethod
    def of(cls, rows: Array, weight: Array) -> "Sample":
        """Return the sample of rows with weights in proportion to these."""
        weight = weight / np.abs(weight).sum()
        return cls(rows, weight, np.ones(len(rows), dtype=int), weight**2)

    def without(self, rows: Array) -> "Sample":
        """Return the sample of the other rows."""
        kept = ~np.isin(self.rows, rows)
        return Sample.of(self.rows[kept], self.weight[kept])

    def on_rows(self, data: TrainingData, rows: Array, *, moved: bool) -> "Sample":
        """Return the sample of some rows of the data, which may be atoms.

        Its rows are positions among all rows if `moved`.
        """
        rows = rows[self.rows]
        sample = replace(self, rows=rows) if moved else self
        if data.counts is None or data.squares is None:
            return sample
        squares = (self.weight / data.sample_weight[rows]) ** 2 * data.squares[rows]
        return replace(sample, repeats=data.counts[rows], squares=squares)

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.repeats.sum())

    @cached_property
    def size(self) -> float:
        """The number of rows; with weights that differ, the effective sample size."""
        return min(1.0 / float(self.squares.sum()), float(self.n_rows))

    @cached_property
    def equal(self) -> bool:
        """Whether all weights are equal: then counts are binomial."""
        return math.isclose(self.size, self.n_rows, rel_tol=1e-5)

    def selected(self, scores: "Scores") -> "tuple[Sample, float]":
        """Return the sample of the selected rows, and their share of the weight."""
        shares, counts = shares_selected(scores, self.rows, self.repeats)
        weight = self.weight * shares
        share = float(weight.sum())
        unit = share or 1.0
        # If weights in an atom differ, those of its selected rows are not known. All are counted.
        squares = self.squares * (counts / self.repeats if self.equal else counts > 0)
        return Sample(self.rows, weight / unit, counts, squares / unit**2), share

    def rates(self, scores: "Scores", thresholds: Array) -> Array:
        """Return the weighted share of the rows with the event for every threshold."""
        return self._with_event(scores, thresholds, counted=False)

    def counts(self, scores: "Scores", thresholds: Array) -> Array:
        """Return the rows with the event for every threshold, as integers."""
        return np.rint(self._with_event(scores, thresholds, counted=True)).astype(int)

    def _with_event(self, scores: "Scores", thresholds: Array, *, counted: bool) -> Array:
        """Return the weight, or the number, of the rows with the event, for every threshold."""
        totals = scores.decided if isinstance(scores, RowScores) and thresholds is _DECISION else {}
        if (self, counted) not in totals:
            each = np.copysign(self.repeats, self.weight) if counted else self.weight
            if isinstance(scores, ShardedScores):
                shares, counts = scores.shares_above(thresholds, self.rows)
                sums = np.sign(each) @ counts if counted else each @ shares
            else:
                sums = sums_above(scores[self.rows], thresholds, each)
            totals[self, counted] = sums - np.minimum(each, 0.0).sum()
        return totals[self, counted]


@dataclass(frozen=True, eq=False)
class RowScores:
    """The scores of a model on rows in memory, with the sums over samples at the threshold 0.

    Many claims share a sample. Each sum is computed once for a model.
    """

    values: Array  # the scores, (n_rows,)
    # weights (False) and numbers (True) of the rows of a sample with the event
    decided: dict[tuple[Sample, bool], Array] = field(default_factory=dict, init=False)

    def __getitem__(self, rows: Any) -> Array:
        """Return the scores of some rows."""
        return self.values[rows]


Scores = Array | RowScores | ShardedScores


@dataclass(frozen=True, eq=False)
class Claim:
    r"""The statement :math:`\alpha p_1 + \beta p_2 \le b` on two rates in the population.

    The rates are those of two groups, or of a group and all other rows. Where a group is compared
    with all rows, whose rate is :math:`\pi p_1 + (1 - \pi) p_2` with the group's share :math:`\pi`,
    the coefficients of the two rates depend on the `share`: they are :math:`\alpha + \beta \pi` and
    :math:`\beta (1 - \pi)`. The statement for both confidence limits of the share implies the one
    for the share, since it is affine in it.

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

    name: str  # the statement in words
    samples: tuple[Sample, ...]  # the rows of the two rates, or of one
    coefficients: tuple[float, ...]  # alpha and beta, or alpha alone
    bound: float  # b
    share: float | None = None  # the first group's share, where it is compared with all rows
    # the statement is made for each of these thresholds of the scores; None stands for all
    thresholds: Array | None = field(default_factory=lambda: _DECISION)
    ranks: tuple[float, float] = (0.0, 1.0)  # the rates are clipped to this range
    one_output: bool = True  # whether it is one output of the constraint's term, of the same name
    # the labels, where the rates are those of positive labels among the selected rows, (n_rows,)
    labels: Array | None = None

    def given(self, scores: Scores) -> "tuple[Claim, Scores]":
        """Return the claim with what is to be tested for a model, and the scores of the events.

        Given which rows are selected, the number of positive labels among them is binomial. A
        precision is therefore a rate of these rows, with their labels as scores. If a group has no
        selected rows, no test accepts the claim.
        """
        if self.labels is None:
            return self, scores
        samples, selected = zip(*(sample.selected(scores) for sample in self.samples), strict=True)
        if not min(selected):
            return Claim(self.name, self.samples[:1], (1.0,), -np.inf), scores
        share = self.share and 1.0 / (1.0 + (1.0 / self.share - 1.0) * selected[1] / selected[0])
        return replace(self, samples=samples, share=share, labels=None), self.labels

    def accepts(self, scores: Scores, delta: float) -> bool:
        """Return whether the statement is accepted with an error of at most delta."""
        return all(self._test(scores, *test, decide=True) <= 0 for test in self._tests(delta))

    def limit(self, scores: Scores, delta: float) -> float:
        """Return an upper confidence limit of the left-hand side less b; see `accepts`."""
        return max(self._test(scores, *test) for test in self._tests(delta))

    def excess(self, scores: Scores) -> float:
        """Return the left-hand side found less b, the largest one of all thresholds."""
        points, total = self._points(scores), np.zeros(1)
        for factor, sample in zip(self._line(self.share), self.samples, strict=True):
            total = total + factor * np.clip(sample.rates(scores, points), *self.ranks)
        return float(total.max()) - self.bound

    def deviation(self, scores: Scores | None = None) -> float:
        """Return the standard deviation of the left-hand side.

        Rates are 1/2 without scores, and where one of many thresholds has a rate near it.
        """
        total = 0.0
        for sample, factor in zip(self.samples, self._line(self.share), strict=True):
            rate = 0.5
            if scores is not None and self.one_output:
                rate = float(sample.rates(scores, _DECISION)[0])
            rate = (sample.size * rate + 1.0) / (sample.size + 2.0)
            total += factor**2 * rate * (1.0 - rate) / sample.size
        return float(np.sqrt(total))

    def room(self, scores: Scores | None = None) -> float:
        """Return how far the left-hand side may be below b: with equal rates, if there are two."""
        samples, equal = self.samples, len(self.samples) > 1
        rates = 0.5 if scores is None else [sample.rates(scores, _DECISION) for sample in samples]
        least = equal * sum(self._line(self.share)) * float(np.mean(rates))
        return max(self.bound - least, 0.0)

    @property
    def of_decisions(self) -> bool:
        """Whether the rates are those of positive predictions, not of wrong ones."""
        return self.labels is None and not any((sample.weight < 0).any() for sample in self.samples)

    def at_constant(self, decision: bool) -> float:
        """Return the left-hand side less b, if all predictions are positive or all negative."""
        rate = float(np.clip(decision, *self.ranks))
        return sum(self._line(self.share)) * rate - self.bound

    def _until_next(self, rates: Array, scores: Scores) -> Array:
        """Return the least rate between each threshold and the next one; rates fall with them.

        Where the rates of two samples change between thresholds, a statement that holds for the
        rate of the first one at a threshold and of the second one at the next holds for all between
        them. Of rows in memory all thresholds are known at which rates change.
        """
        between = self.thresholds is None and isinstance(scores, ShardedScores)
        return np.append(rates[1:], 0) if between else rates

    def _points(self, scores: Scores) -> Array:
        """Return the thresholds at which the counts differ."""
        if self.thresholds is not None:
            return self.thresholds
        if isinstance(scores, ShardedScores):
            return np.append(-np.inf, scores.grid())
        points = [scores[sample.rows] for sample in self.samples]
        return np.unique(np.concatenate([*points, [-np.inf]]))

    def _line(self, share: float | None) -> tuple[float, ...]:
        """Return the coefficients for a share of the first group, if there is one."""
        if share is None:
            return self.coefficients
        alpha, beta = self.coefficients
        return alpha + beta * share, beta * (1.0 - share)

    def _tests(self, delta: float) -> list[tuple[tuple[float, ...], float]]:
        """Return the coefficients and the error of every test: all of them must accept."""
        if self.share is None:
            return [(self.coefficients, delta)]
        # confidence limits of the first group's share use up a part of the error
        (first, rest), shares = self.samples, np.array([self.share, 1.0 - self.share])
        n_rows, of_share = first.n_rows + rest.n_rows, _SHARE_ERROR * delta
        size = min(1.0 / float(np.sum(shares**2 / [first.size, rest.size])), float(n_rows))
        if np.isclose(size, n_rows):  # all weights are equal
            _, *limits = clopper_pearson(shares[0], np.array(size), 1.0 - of_share)
        else:
            reach = np.sqrt(np.log(2.0 / of_share) / (2.0 * size)) * np.array([-1.0, 1.0])
            limits = np.clip(self.share + reach, 0.0, 1.0).tolist()
        return [(self._line(float(share)), delta - of_share) for share in limits]

    def _test(
        self, scores: Scores, line: tuple[float, ...], delta: float, *, decide: bool = False
    ) -> float:
        """Return an upper confidence limit of the left-hand side less b, for given coefficients.

        With `decide` it is a number that is at most 0 where the statement is accepted: for two
        rates, how far their counts are from the critical region.
        """
        exact = all(sample.equal for sample in self.samples)
        if not exact or (len(line) > 1 and min(line) > ROUNDING):
            return self._weighted_limit(scores, line, delta)
        # exact tests of binomial counts
        ordered = sorted(zip(line, self.samples, strict=True), key=lambda rate: -rate[0])
        (up, first), (down, second) = ordered[0], ordered[-1]
        if up <= ROUNDING:  # no rate increases the left-hand side
            return -self.bound
        points = self._points(scores)
        counts = first.counts(scores, points)
        if down >= -ROUNDING:  # only one rate matters
            size = np.full(len(counts), float(first.n_rows))
            _, _, high = clopper_pearson(counts / first.n_rows, size, 1.0 - 2.0 * delta)
            return float(up * np.max(high) - self.bound)
        others = self._until_next(second.counts(scores, points), scores)
        rates = TwoRates(first.n_rows, second.n_rows, up, -down, self.bound, *self.ranks)
        return float((rates.surplus if decide else rates.limit)(counts, others, delta))

    def _weighted_limit(self, scores: Scores, line: tuple[float, ...], delta: float) -> float:
        """Return the value found plus sqrt(log(1 / delta) sum_k (alpha_k^2 / n_k) / 2).

        That is Hoeffding's inequality for all rows together, for weights that differ.
        """
        terms = list(zip(line, self.samples, strict=True))
        squares = sum(factor**2 / sample.size for factor, sample in terms)
        points = self._points(scores)
        limits = np.full(len(points), float(np.sqrt(0.5 * np.log(1.0 / delta) * squares)))
        for factor, sample in terms:
            rates = sample.rates(scores, points)
            limits += factor * (self._until_next(rates, scores) if factor < 0.0 else rates)
        low, high = self.ranks
        if high - low < 1.0:  # clipped rates are at most as far apart, in the same order
            limits = np.clip(limits, 0.0, 1.0)
        return float(limits.max()) - self.bound


def claims_of(compared: Compared) -> list[Claim]:
    """Return the claims of the outputs of a term, see :class:`Compared`."""
    # the rows of every number: a negative weight is one of a negative prediction
    weights = sp.csr_array(sp.csr_array(compared.numbers) @ compared.cells)
    weights.sort_indices()
    if compared.signs is not None:
        weights.data *= -compared.signs[weights.indices]
    factors, samples = compared.factors, [Sample.of(*each) for each in rows_by_cell(weights)]
    # the numbers less the rates of events, of which some are negative predictions
    flipped = [np.maximum(-sample.weight, 0.0).sum() for sample in samples]
    origin = compared.pairs.origin
    rest = np.zeros(len(samples)) if origin is None else origin - flipped
    shares = [share for part in compared.measures for share in (*part.shares.tolist(), None)]
    end = "" if compared.claimed.get("one_output", True) else ", all thresholds"
    claims = []
    for a, b, name in zip(*compared.pairs.ends(), compared.texts([""]), strict=True):
        share = None
        pair: tuple[Sample, ...] = samples[a], samples[b]
        coefficients: tuple[float, ...] = factors
        if not factors[1]:
            pair, coefficients = pair[:1], factors[:1]
        elif None in (shares[a], shares[b]):
            group, overall = (a, b) if shares[b] is None else (b, a)
            share, coefficients = shares[group], factors if group == a else factors[::-1]
            pair = samples[group], samples[overall].without(samples[group].rows)
        if all(len(sample.rows) for sample in pair):  # a group of all rows has none to compare with
            most = compared.bound - compared.constant - float(np.dot(factors, rest[[a, b]]))
            claims.append(Claim(name + end, pair, coefficients, most, share, **compared.claimed))
    return claims
