"""One search on decisions: the steps, and what they have found and cost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.decisions.candidates import Candidate, most_promising
from fairconstrained.decisions.refinement import Refinement
from fairconstrained.decisions.repair import repair
from fairconstrained.decisions.tightening import steepened, tightening
from fairconstrained.solvers import Result
from fairconstrained.utils.rounding import ROUNDING

if TYPE_CHECKING:
    from fairconstrained.decisions.search import DecisionTask

_LARGEST_WEIGHT = 1e100  # squares of the scores of larger weights may overflow


class SearchRun:
    """The state of one search: the candidates seen, and the data passes made.

    Parameters
    ----------
    task : DecisionTask
        What the search starts from.
    """

    def __init__(self, task: DecisionTask):
        self.task, self.budget = task, task.budget
        self.search = task.candidates()
        self.problem, self.begin = self.search.problem, self.search.problem.passes
        passes = min(task.first.data_passes, self.budget.most_passes)
        self.fit_passes = max(passes, self.budget.least_passes)
        self.start = self.search.evaluate(task.first.w)
        own = task.first.w[len(task.unconstrained) :]  # the variables of the constraints' terms
        self.free = self.search.evaluate(np.append(task.unconstrained, own))
        self.seen = [self.start]

    def spent(self) -> float:
        """Return the data passes made, as a multiple of those of the fit on scores."""
        lines = self.search.line_rows / self.problem.n_rows
        return (self.problem.passes - self.begin - lines) / self.fit_passes

    def effort(self) -> float:
        """Return the same with a line search counted as one data pass."""
        return self.spent() + self.search.n_lines / self.fit_passes

    def offer(self, one: Candidate) -> None:
        """Offer a candidate, and all intercepts of it."""
        self.search.offer(one)
        self.search.sweep_intercept(one)

    def _first(self) -> Result:
        """Return the fit on scores, with multipliers of zero for the estimates for new rows."""
        multipliers = np.zeros(self.problem.n_constraints)
        multipliers[: len(self.task.first.multipliers)] = self.task.first.multipliers
        return replace(self.task.first, multipliers=multipliers)

    def _has_no_model(self) -> bool:
        """Return whether only a constant model meets the bound on rankings, so far."""
        return self.search.best.constant and not self.search.counted

    def _limit(self) -> float:
        """Return the cost after which no further problem is solved."""
        limit = self.budget.solve_passes if self.search.counted else self.budget.ranking_passes
        if not self._has_no_model():
            return limit
        return max(limit, self.budget.unmet_passes / self.fit_passes)

    def _exceeds(self, limit: float, _: object) -> bool:
        return self.spent() > limit

    def solve(self) -> None:
        """Solve with other tolerances, repeatedly from the last solution.

        After a solution whose decisions are not nearer to the bound, steeper surrogates are used;
        they describe decisions better and are harder to minimise. Constraints on rankings depend on
        small differences of scores, so that the surrogates get steeper each time, and solutions are
        not polished. They cannot be repaired, and their solves may cost what repairs cost
        otherwise, and more as long as only a constant model meets the bound. Surrogates also get
        steeper where the tolerance cannot be made smaller.
        """
        task, budget = self.task, self.budget
        factor, warm, cost = 1.0, self._first(), 0.0
        solver = task.solver if self.search.counted else task.solver.unpolished()
        shifts = None
        sharpness = iter(budget.continuation if self.search.counted else ())
        for _ in range(budget.max_solves):
            factor = next(sharpness, factor)
            before, last, limit = self.spent(), self.seen[-1], self._limit()
            if before + (0.0 if self._has_no_model() else cost) > limit:
                break
            problem = steepened(self.search, self.start, factor)
            shifts = tightening(self.search, problem, last, shifts)
            warm = solver.minimize(
                problem.shifted(shifts),
                warm=warm,
                tol=budget.solve_tol_factor * task.solver.tol,
                callback=partial(self._exceeds, limit),
                random_state=task.random_state,
                max_data_passes=max(max(budget.cutoff_passes, limit) - before, 0.0)
                * self.fit_passes,
            )
            cost = self.spent() - before
            if not np.all(np.abs(warm.w) <= _LARGEST_WEIGHT):
                break
            found = self.search.evaluate(warm.w)
            self.seen.append(found)
            self.offer(found)
            tried = self._has_no_model() and np.array_equal(
                tightening(self.search, problem, found, shifts), shifts
            )
            if tried or found.violation > budget.sufficient_decrease * max(last.violation, 0.0):
                factor = budget.steepening * (1.0 if self.search.counted else factor)

    def repair(self) -> None:
        """Repair the most promising models step by step."""
        budget = self.budget
        weight = budget.accuracy_weight
        for one in most_promising(self.seen, weight, budget.n_repaired):
            for _ in range(budget.n_repairs):
                best = self.search.best
                if best.met and one.merit <= best.merit:
                    break  # repairs cost merit: the repaired model would not be better
                found = repair(self.search, one, lambda: self.effort() > budget.repair_passes)
                if found.promise(weight) <= one.promise(weight):
                    break
                one = found

    def join(self) -> None:
        """Search the lines between the best model and the others."""
        best = self.search.best
        for other in (*self.seen, self.free):
            self.search.sweep_between(self.search.best, other)
        if self.search.best is not best:
            self.search.sweep_intercept(self.search.best)

    def refine(self) -> None:
        """Search near some candidates, one variable after another, several times."""
        search, budget = self.search, self.budget
        near = Refinement(search, lambda: self.effort() > budget.refinement_passes)
        for _ in range(budget.n_restarts):
            for one in search.to_refine(self.seen):
                near.refine(one)

    def rank(self) -> None:
        """Search the lines from the constant model, for constraints on rankings.

        Scores may rank rows well although decisions are constant. Where no model is more accurate
        than the constant one, the loss decides, and it is least on these lines.
        """
        search = self.search
        if search.counted or search.best.accuracy > search.constant.accuracy + ROUNDING:
            return
        for other in (*self.seen, self.free):
            search.sweep_between(search.constant, other)
