"""Search near a model: one variable after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Scores

_MOST_DIRECTIONS = 60  # the variables of a round
_MOST_SCORES = 1 << 22  # the scores along directions that are kept, 32 MB
_IMPROVEMENT = 1e-9  # a smaller one is a rounding error


class Refinement:
    """Changes one variable of a model after another, and offers all models on the way.

    Parameters
    ----------
    search : CandidateSearch
        Keeps the best candidate. If its model is not linear, or its problem has a domain, nothing
        is searched.
    enough : callable
        Returns True when the budget is used up.
    """

    def __init__(self, search: CandidateSearch, enough: Callable[[], bool]):
        self.search, self.enough = search, enough
        self._random = np.random.RandomState(0)
        self._columns: dict[int, Scores] = {}

    def refine(self, one: Candidate) -> None:
        """Search near a candidate.

        A variable gets the value of the largest promise, see :meth:`Candidate.promise`. A round
        changes every variable once, in random order; of more than 60 variables some are drawn. The
        next rounds give the accuracy a smaller weight, so that the violation falls.
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
            if (len(self._columns) + 1) * sum(known.size for known in one.scores) > _MOST_SCORES:
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
