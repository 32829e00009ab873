"""The search for thresholds on given scores whose decisions meet the constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairconstrained.decisions.band_search import BandSearch, can_be_searched
from fairconstrained.decisions.candidates import CandidateSearch
from fairconstrained.decisions.choice_program import choose
from fairconstrained.decisions.search import DecisionSearch, figures
from fairconstrained.decisions.threshold_choices import ThresholdChoices
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.numerics import ROUNDING, at_most
from fairconstrained.utils.typing import Array


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
        equal to `accuracy` where the search proves that its thresholds are the best.
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

    @property
    def first_passes(self) -> float:
        """Zero: the scores are given."""
        return 0.0

    def candidates(self) -> CandidateSearch:
        """Return a search that knows the constant decisions only."""
        constants = [np.full(self.problem.n_variables, one) for one in self.limits]
        return CandidateSearch(self.problem, self.y, self.sample_weight, constants)

    def below(self, plain: DecisionSearch, shifts: Sequence[Array]) -> Iterator[DecisionSearch]:
        """Yield the thresholds for each of the shifts."""
        for shift in shifts:
            yield replace(self, problem=self.problem.shifted(shift)).search()

    def search(self) -> ThresholdSearch:
        """Return the thresholds of :func:`search_thresholds`."""
        return search_thresholds(self)

    @cached_property
    def choices(self) -> ThresholdChoices:
        """The decisions that thresholds can make."""
        rows = self.problem, self.y, self.sample_weight
        return ThresholdChoices.of(*rows, self.limits, self.fixed)

    @property
    def resolution(self) -> float:
        """The least difference of two accuracies that counts: with equal weights that of a row."""
        weight = self.sample_weight
        equal = bool(np.ptp(weight) <= 1e-9 * weight.max())
        return 0.999 / len(weight) if equal else ROUNDING


def search_thresholds(task: ThresholdTask) -> ThresholdSearch:
    """Return the most accurate thresholds found whose decisions meet the constraints.

    A single threshold is the best of all: the constraints are counted for every one. Of one
    threshold for each group the best ones are found by
    :class:`~fairconstrained.decisions.band_search.BandSearch` where the constraints ask rates of
    groups to be close to each other, and by a mixed-integer program
    (:func:`~fairconstrained.decisions.choice_program.choose`) under others. Constant
    decisions are candidates, so that the answer is never worse than they are.

    Parameters
    ----------
    task : ThresholdTask
        The rows and the constraints.
    """
    choices, search = task.choices, task.candidates()
    free = [int(np.argmax(one.correct)) for one in choices.groups]
    unconstrained = search.evaluate(choices.thresholds(free))
    search.offer(unconstrained)
    bound = np.inf
    if not unconstrained.met:
        positions, bound = _constrained(task, free)
        bound += unconstrained.accuracy - choices.correct(free)  # the constant part of accuracies
        search.offer(search.evaluate(choices.thresholds(positions)))
    best = search.best
    return ThresholdSearch(
        **figures(best),
        accuracy_on_scores=unconstrained.accuracy,
        accuracy_unconstrained=unconstrained.accuracy,
        n_solves=0,
        data_passes=task.problem.passes,
        data_passes_on_scores=0.0,
        accuracy_bound=max(min(bound, unconstrained.accuracy), best.accuracy),
    )


def _constrained(task: ThresholdTask, free: list[int]) -> tuple[list[int], float]:
    """Return choices that meet the constraints if any were found, and a bound on `correct`."""
    choices = task.choices
    if len(choices.groups) == 1:
        return _common(choices)
    if can_be_searched(choices):
        found = BandSearch(choices, task.resolution).run()
        if found is not None:
            return found.positions, found.bound
    ends = [[0] * len(choices.groups), [len(one) - 1 for one in choices.groups]]
    return choose(choices, [free, *ends])


def _common(choices: ThresholdChoices) -> tuple[list[int], float]:
    """Return the best choice of a single threshold, and its accuracy where it is feasible."""
    (one,) = choices.groups
    rates = np.zeros((choices.n_cells, len(one)))
    rates[one.cells] = one.rates
    violation = choices.violations(rates)
    met = at_most(violation)
    if not met.any():
        return [int(np.argmin(violation))], np.inf
    position = int(np.argmax(np.where(met, one.correct, -np.inf)))
    return [position], float(one.correct[position])
