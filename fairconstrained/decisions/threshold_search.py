"""The search for thresholds on given scores whose decisions meet the constraints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairconstrained.decisions.candidates import CandidateSearch, correct_predictions
from fairconstrained.decisions.search import DecisionSearch, figures
from fairconstrained.decisions.threshold_choices import Band, Choices, ThresholdChoices, choose
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.arrays import ROUNDING, Array, at_most, equal_weights

_BATCH = 2048  # boxes that are divided at the same time
_MOST_BOUNDS = 3_000_000  # of boxes, summed over groups, that are computed
_MARGIN = 0.25 * ROUNDING  # on either side of a band


@dataclass(frozen=True, eq=False)
class ThresholdSearch(DecisionSearch):
    """The thresholds that a search found.

    The attributes are those of :class:`~fairconstrained.decisions.search.DecisionSearch`, and one
    more. `accuracy_on_scores` and `accuracy_unconstrained` are those of the most accurate
    thresholds.

    Attributes
    ----------
    accuracy_bound : float
        No thresholds whose decisions meet the constraints are more accurate on these rows. It is
        equal to `accuracy` where the search proves that its thresholds are the best. Of groups with
        millions of different scores it is about the thresholds that are tried.
    """

    what: ClassVar[str] = "FairThresholds"

    accuracy_bound: float = 1.0


@dataclass(frozen=True, eq=False)
class ThresholdTask:
    """Rows with scores, and the constraints on the decisions of thresholds."""

    problem: Problem  # its model is a `ThresholdModel`
    y: Array  # the labels, -1 or +1, (n_rows,)
    sample_weight: Array  # their weights, (n_rows,)
    # the thresholds that select no row and all rows, also of rows not seen yet
    limits: tuple[float, float]
    # thresholds that are given, by their positions
    fixed: Mapping[int, float] = field(default_factory=dict)

    def candidates(self) -> CandidateSearch:
        """Return a search that knows the constant decisions only."""
        constants = [np.full(self.problem.n_variables, limit) for limit in self.limits]
        return CandidateSearch(self.problem, self.y, self.sample_weight, constants)

    def below(self, plain: DecisionSearch, shifts: Sequence[Array]) -> Iterator[DecisionSearch]:
        """Yield the thresholds for each of the shifts."""
        for shift in shifts:
            yield replace(self, problem=self.problem.shifted(shift)).search()

    def search(self) -> ThresholdSearch:
        """Return the most accurate thresholds found whose decisions meet the constraints.

        A single threshold is the best of all: the constraints are counted for every one. Of one
        threshold for each group the best ones are found by :class:`BandSearch` where the
        constraints ask rates of groups to be close to each other, and by a mixed-integer program
        (:func:`~fairconstrained.decisions.threshold_choices.choose`) under others. Constant
        decisions are candidates, so that the answer is never worse than they are.
        """
        choices, search = self.choices, self.candidates()
        free = [int(np.argmax(group.correct)) for group in choices.groups]
        unconstrained = search.evaluate(choices.thresholds(free))
        search.offer(unconstrained)
        bound = np.inf
        if not unconstrained.met:
            weight = self.sample_weight
            # The least difference of two accuracies that counts: of equal weights that of a row.
            resolution = 0.999 / len(weight) if equal_weights(weight) else ROUNDING
            positions, bound = _constrained(choices, free, resolution)
            bound += unconstrained.accuracy - choices.correct(free)  # the constant part of both
            search.offer(search.evaluate(choices.thresholds(positions)))
        best = search.best
        return ThresholdSearch(
            **figures(best),
            accuracy_on_scores=unconstrained.accuracy,
            accuracy_unconstrained=unconstrained.accuracy,
            data_passes=self.problem.passes,
            accuracy_bound=max(min(bound, unconstrained.accuracy), best.accuracy),
        )

    @cached_property
    def choices(self) -> ThresholdChoices:
        """The decisions that thresholds can make."""
        rows = self.problem, self.y, self.sample_weight
        return ThresholdChoices(*rows, self.limits, self.fixed)


def _constrained(
    choices: ThresholdChoices, free: list[int], resolution: float
) -> tuple[list[int], float]:
    """Return choices that meet the constraints if any were found, and a bound on `correct`."""
    if len(choices.groups) == 1:
        return _common(choices)
    if can_be_searched(choices):
        answer = BandSearch(choices, resolution).run()
        if answer is not None:
            return answer
    ends = [[0] * len(choices.groups), [len(group) - 1 for group in choices.groups]]
    return choose(choices, [free, *ends])


def _common(choices: ThresholdChoices) -> tuple[list[int], float]:
    """Return the best choice of a single threshold, and its accuracy where it is feasible."""
    (group,) = choices.groups
    rates = np.zeros((choices.n_cells, len(group)))
    rates[group.cells] = group.rates
    violation = choices.violations(rates)
    met = at_most(violation)
    if not met.any():
        return [int(np.argmin(violation))], np.inf
    position = int(np.argmax(np.where(met, group.correct, -np.inf)))
    return [position], float(group.correct[position])


def wrong_predictions(y: Array, sample_weight: Array) -> CellMeans:
    """Return the share of wrong predictions."""
    correct = correct_predictions(y, sample_weight)
    return replace(correct, combination=-np.ones((1, 1)), constant=1.0 - correct.constant)


def can_be_searched(choices: ThresholdChoices) -> bool:
    """Return whether constraints are bands, in which every group has one cell, of its rows only."""
    if choices.bands is None:
        return False
    owners = np.bincount(np.concatenate([group.cells for group in choices.groups]), minlength=1)
    return owners.max() <= 1 and all(
        np.isin(band.cells, group.cells).sum() <= 1
        for group in choices.groups
        for band in choices.bands
    )


class _Ladder:
    """One group: its rates, one for every band that has one, and the largest accuracies of ranges.

    These come from maxima of ranges whose lengths are powers of two.

    References
    ----------
    M. Bender, M. Farach-Colton, "The LCA problem revisited" (2000), section 3.
    """

    def __init__(self, choices: Choices, bands: Sequence[Band]):
        place = {int(cell): k for k, cell in enumerate(choices.cells)}
        self.correct = choices.correct
        self.rates = [
            (k, choices.rates[place[int(cell)]])
            for k, band in enumerate(bands)
            for cell in band.cells
            if int(cell) in place
        ]
        n = len(choices)
        self.table = np.full((n.bit_length(), n), -np.inf)
        self.table[0] = choices.correct
        for k in range(1, len(self.table)):
            half, last = 1 << (k - 1), self.table[k - 1]
            self.table[k, : n - half] = np.maximum(last[:-half], last[half:])

    def ranges(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return where all rates are within [low, high], both of shape (n_boxes, n_bands)."""
        start = np.zeros(len(low), dtype=int)
        stop = np.full(len(low), len(self.correct))
        for band, rates in self.rates:
            left = np.searchsorted(rates, low[:, band] - _MARGIN, side="left")
            right = np.searchsorted(rates, high[:, band] + _MARGIN, side="right")
            start, stop = np.maximum(start, left), np.minimum(stop, right)
        return start, stop

    def largest(self, low: Array, high: Array) -> Array:
        """Return the largest accuracies in these ranges; minus infinity of empty ones."""
        start, stop = self.ranges(low, high)
        there = start < stop
        k = np.frexp(np.where(there, stop - start, 1))[1] - 1  # the largest power of two within it
        first, second = np.where(there, start, 0), np.where(there, stop - (1 << k), 0)
        return np.where(there, np.maximum(self.table[k, first], self.table[k, second]), -np.inf)


class BandSearch:
    r"""The most accurate choices whose rates are in all bands.

    For levels :math:`t = (t_1, \dots, t_E)` of the bands the groups are independent of each other:
    the rates of a group rise as its threshold falls, so that those of its thresholds that have all
    rates in :math:`[t_e, h_e(t_e)]` follow each other, and a table of range maxima returns the most
    accurate one. For a box of levels, :math:`[t_e, h_e(t'_e)]` with the lowest and the highest
    level of the box contains all of these ranges, and the sum of the maxima is an upper bound.
    Boxes are divided, those of the largest bound first, until none of them can have better choices
    than the best ones found. Only levels that are rates of some group count.

    For the choices see :func:`can_be_searched`. Those that add less than the `resolution`, for
    instance the weight of a row, to the accuracy are not looked for.
    """

    def __init__(self, choices: ThresholdChoices, resolution: float):
        self.bands = choices.bands or ()
        self.ladders = [_Ladder(group, self.bands) for group in choices.groups]
        self.resolution = resolution
        self.levels = []
        for k in range(len(self.bands)):
            values = [rates for group in self.ladders for band, rates in group.rates if band == k]
            self.levels.append(np.unique(np.concatenate(values)))
        self.best, self.best_at = -np.inf, np.zeros(len(self.bands), dtype=int)
        self.n_bounds = 0

    def run(self) -> tuple[list[int], float] | None:
        """Return the best choices and a bound on all, None if no rates are in all bands."""
        n_levels = np.array([len(level) for level in self.levels])
        first, last = np.zeros((1, len(n_levels)), dtype=int), n_levels[None] - 1
        bound, left_out = self._bounds(first, last), -np.inf
        while len(bound) and self.n_bounds < _MOST_BOUNDS:
            order = np.argsort(-bound, kind="stable")
            now, later = order[:_BATCH], order[_BATCH:]
            self._try((first[now] + last[now]) // 2)
            low, high = self._divided(first[now], last[now])
            new = self._bounds(low, high)
            bound = np.concatenate([bound[later], new])
            first, last = np.concatenate([first[later], low]), np.concatenate([last[later], high])
            keep = bound > self.best + self.resolution
            left_out = max(left_out, float(bound[~keep].max(initial=-np.inf)))
            first, last, bound = first[keep], last[keep], bound[keep]
        if not np.isfinite(self.best):
            return None
        highest = max(self.best, left_out, float(bound.max(initial=-np.inf)))
        proved = highest <= self.best + self.resolution
        return self._positions(), self.best if proved else highest

    def _box(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Return the lowest and the highest rates of boxes of levels, (n_boxes, n_bands) each."""
        low = np.column_stack([level[at] for level, at in zip(self.levels, first.T, strict=True)])
        each = zip(self.bands, self.levels, last.T, strict=True)
        return low, np.column_stack([band.top(level[at]) for band, level, at in each])

    def _bounds(self, first: Array, last: Array) -> Array:
        """Return upper bounds on the accuracy for boxes of levels, (n_boxes,)."""
        box = self._box(first, last)
        self.n_bounds += len(first) * len(self.ladders)
        return np.sum([ladder.largest(*box) for ladder in self.ladders], axis=0)

    def _try(self, levels: Array) -> None:
        """Keep the best of single levels, whose bounds are exact."""
        values = self._bounds(levels, levels)
        k = int(np.argmax(values))
        if values[k] > self.best:
            self.best, self.best_at = float(values[k]), levels[k]

    def _divided(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Return the halves of boxes along their widest sides; single levels were tried."""
        ends = zip(self.levels, first.T, last.T, strict=True)
        widths = np.column_stack([level[high] - level[low] for level, low, high in ends])
        widths[last == first] = -1.0
        side = np.argmax(widths, axis=1)
        wide = np.flatnonzero(widths.max(axis=1) >= 0.0)
        first, last, side = first[wide], last[wide], side[wide]
        rows = np.arange(len(wide))
        middle = (first[rows, side] + last[rows, side]) // 2
        left_last, right_first = last.copy(), first.copy()
        left_last[rows, side], right_first[rows, side] = middle, middle + 1
        return np.concatenate([first, right_first]), np.concatenate([left_last, last])

    def _positions(self) -> list[int]:
        """Return the choices at the best levels."""
        box, positions = self._box(self.best_at[None], self.best_at[None]), []
        for ladder in self.ladders:
            (start,), (stop,) = ladder.ranges(*box)
            positions.append(int(start + np.argmax(ladder.correct[start:stop])))
        return positions
