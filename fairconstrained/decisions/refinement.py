"""Search near a model: one variable after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Scores

_MOST_DIRECTIONS = 60  # the variables of a round
_IMPROVEMENT = 1e-9


class Refinement:
    """Changes the variables of models one after another, and offers all candidates on the way.

    Parameters
    ----------
    search : CandidateSearch
        Keeps the best candidate. Its problem has a linear model, and no domain, else nothing is
        searched.
    enough : callable
        Returns True when the budget is used up.
    """

    def __init__(self, search: CandidateSearch, enough: Callable[[], bool]):
        self.search, self.enough = search, enough
        self._random = np.random.RandomState(0)
        self._columns: dict[int, Scores] = {}

    def refine(self, one: Candidate) -> None:
        """Search near a candidate.

        On each line the point of the largest promise is taken. Rounds are repeated with a smaller
        weight of the accuracy, so that the violation falls and the accuracy changes little. Of many
        variables some are drawn.
        """
        search, budget = self.search, self.search.budget
        if not (search.model.linear and search.problem.domain.whole_space):
            return
        for weight in budget.refinement_weights:
            for _ in range(budget.n_refinements if search.counted else 1):
                last = one
                order = self._random.permutation(search.model.n_parameters)
                for j in order[:_MOST_DIRECTIONS]:
                    if self.enough():
                        return
                    one = self._along(one, int(j), weight)
                if one is last:
                    break

    def _along(self, one: Candidate, variable: int, weight: float) -> Candidate:
        """Return the most promising candidate on the line of one variable."""
        search = self.search
        direction = np.zeros(search.problem.n_variables)
        direction[variable] = search.problem.preconditioner[variable]
        if variable not in self._columns:
            if len(self._columns) > _MOST_DIRECTIONS:
                self._columns.clear()
            self._columns[variable] = search.scores_at(direction)
        line = search.line(search.measures, one.w, direction, one.scores, self._columns[variable])
        search.n_lines += 1
        points = search.points_on(line, (-np.inf, np.inf), 0.0)
        accuracy, violation = line.values(points)
        promise = weight * accuracy - np.maximum(violation, 0.0)
        k = int(np.argmax(promise))
        if promise[k] <= one.promise(weight) + _IMPROVEMENT:
            return one
        found = search.evaluate(line.model(points[k]), line.scores(points[k]))
        if found.better_than(search.best):
            search.offer(search.evaluate(found.w))
        return found if found.promise(weight) > one.promise(weight) else one
