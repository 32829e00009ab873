"""Bounds on decisions: the search over the tolerances of what stands for decisions."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairconstrained.decisions.candidates import NEAR, WINDOW, Candidate, Search
from fairconstrained.exceptions import ConstantDecisionWarning, InfeasibleConstraintWarning
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import EvaluationCounter
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array

_MOST_SOLVES = 6
_SOLVES = 1.5  # data passes of the fit on scores, times this, after which no solve begins
_CUT = 2.0  # where a solve is cut off
_EFFORT = 2.6  # passes and lines after which no model is repaired
_LOOSE = 10.0  # its solves are that much looser than the fit on scores
_SPEEDS = (0.3, 4.0)  # between these the decisions' speed is taken to be
_SHARPEN = 2.0  # above this speed the surrogate is made as steep as the decisions are
_STEEPER = 4.0  # times as steep, once a solve has not brought the excess down to ...
_LEFT = 0.5  # ... this share of what it was
_REPAIRS = 12
_POOL = 3  # how many models are repaired


@dataclass(frozen=True, eq=False)
class DecisionSearch:
    """What the search for a model whose decisions meet the bound found, and what it cost.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The model.
    met : bool
        Whether its decisions on the training rows meet all constraints.
    constant : bool
        Whether it decides the same of everybody, because nothing better was found.
    excess : float
        The largest constraint, measured on decisions: <= 0 if they are met.
    accuracy : float
        The weighted share of right decisions on the training rows.
    accuracy_on_scores : float
        The same of the fit that bounds scores, which the search starts from.
    accuracy_unconstrained : float
        The same of the model without constraints.
    n_solves : int
        How many problems were solved after the fit on scores.
    data_passes : float
        The data passes of the fit on scores and of the search together.
    data_passes_on_scores : float
        Those of the fit on scores alone.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.1, enforce="decision")
    >>> search = clf.fit(X, y, sensitive_features=groups).decision_search_
    >>> search.met, search.constant, clf.decision_gap_ <= 0.1
    (True, False, True)
    >>> search.data_passes <= 4.0 * search.data_passes_on_scores
    True
    """

    w: Array = field(repr=False)
    met: bool
    constant: bool
    excess: float
    accuracy: float
    accuracy_on_scores: float
    accuracy_unconstrained: float
    n_solves: int
    data_passes: float
    data_passes_on_scores: float

    def warn(self, stacklevel: int) -> None:
        """Warn if the bound is not met, or by constant decisions only."""
        figures = (
            f"right on {self.accuracy:.3f} of the training rows; without constraints it would be "
            f"{self.accuracy_unconstrained:.3f}"
        )
        if not self.met:
            warnings.warn(
                f"enforce='decision': no model whose decisions meet the constraints was found, nor "
                f"do constant decisions; the one nearest to them is kept: it misses them by "
                f"{self.excess:.3g} and is {figures}. Raise kappa.",
                InfeasibleConstraintWarning,
                stacklevel=stacklevel,
            )
        elif self.constant:
            warnings.warn(
                f"enforce='decision': nothing better than constant decisions was found to meet the "
                f"constraints. The model decides the same of everybody and is {figures}. Raise "
                "kappa, or join small groups.",
                ConstantDecisionWarning,
                stacklevel=stacklevel,
            )

    @property
    def accuracy_cost(self) -> float:
        """The training accuracy that the bound costs, compared with the unconstrained model."""
        return self.accuracy_unconstrained - self.accuracy

    def result(self, problem: Problem, first: Result) -> Result:
        """Return the result of the fit on scores with this model in place of its own."""
        at = problem.uncounted().at(self.w)
        return replace(
            first,
            w=self.w,
            objective=at.objective,
            violation=at.violation,
            zero_one_violation=at.zero_one_violation,
            data_passes=self.data_passes,
        )


def constant_decisions(
    problem: Problem, y: Array, sample_weight: Array, like: DecisionSearch
) -> DecisionSearch:
    """Return the best model that decides the same of everybody, its other figures as in `like`."""
    best = Search(problem, y, sample_weight).constant
    return replace(
        like,
        w=best.w,
        met=best.met,
        constant=True,
        excess=best.excess,
        accuracy=best.accuracy,
    )


class Spent(Exception):
    """A solve has read more rows than it may."""


class Limited(EvaluationCounter):
    """Counts on another counter, and raises `Spent` beyond a number of rows."""

    def __init__(self, counter: EvaluationCounter, most: float):
        self.counter, self.most = counter, most

    @property
    def rows(self) -> float:
        """The rows counted so far."""
        return self.counter.rows

    @rows.setter
    def rows(self, value: float) -> None:
        self.counter.rows = value
        if value > self.most:
            raise Spent

    def reached(self, w: Array) -> Array:
        """Return `w` with the weights that were looked at last in place of its own."""
        w = w.copy()
        if self.latest is not None:
            w[: len(self.latest.w)] = self.latest.w
        return w


def raise_by(problem: Problem, candidate: Candidate) -> Array:
    r"""Return by how much to raise every constraint so that its strict version is met.

    With the surrogate's value :math:`g_j` and the decisions' :math:`G_j` at the model, and
    decisions that move :math:`\rho_j` times as fast as the surrogate, :math:`G_j \le 0` holds, to
    first order, where :math:`g_j \le g_j(w) - G_j(w) / \rho_j`: the constraint is raised by
    :math:`G_j(w) / \rho_j - g_j(w)`, which is negative where decisions are fairer than scores.
    """
    shifts = []
    for part in problem.constraints:
        term, scores = part.term, candidate.scores[id(part.model)]
        assert term is not None
        own = candidate.w[part.auxiliary]
        strict = term.zero_one().value(scores, own)
        shift = strict / speeds(term, scores) - term.value(scores, own)
        if not isinstance(term, CellMeans):  # that of the worst for all: without speeds it pays
            shift = np.full(len(shift), shift[int(np.argmax(strict))])
        shifts.append(shift)
    return np.concatenate(shifts)


def speeds(term: Term, scores: Array) -> Array:
    """Return how fast decisions move compared with the surrogate, for each output.

    A cell's rate of decisions moves with the density of its scores at 0, the surrogate's average
    with the mean of its derivative. Terms that are not averages over cells count as moving alike.
    """
    if not isinstance(term, CellMeans):
        return np.ones(term.n_outputs)
    near = (np.abs(scores) < WINDOW) / (2.0 * WINDOW)
    slope = np.abs(term.function.derivative(scores, term.function.value(scores)))
    averages = term.cells.tocsr() @ np.column_stack([near, slope])
    dense, steep = (abs(term.combination) @ averages).T
    ratio = np.divide(dense, steep, out=np.ones_like(dense), where=steep > 0.0)
    return np.clip(ratio, *_SPEEDS)


def sharpened(problem: Problem, candidate: Candidate, factor: float) -> Problem:
    """Return the problem with steeper surrogates where decisions move much faster than they do.

    That is so where scores are small, as on data that say little about the labels.

    Parameters
    ----------
    problem : Problem
        The problem with the surrogate.
    candidate : Candidate
        The speeds are those at its scores.
    factor : float
        By how much steeper all of them are made besides.
    """

    def steeper(part: CompositeFunction) -> CompositeFunction:
        term, scores = part.term, candidate.scores[id(part.model)]
        if not (isinstance(term, CellMeans) and isinstance(term.function, Surrogate)):
            return part
        near = term.zero_one().value(scores) > -NEAR
        speed = float(speeds(term, scores)[near].max(initial=1.0))
        function = copy.copy(term.function)
        function.scale /= factor * (speed if speed >= _SHARPEN else 1.0)
        return replace(part, term=replace(term, function=function))

    return problem.with_constraints([steeper(part) for part in problem.constraints])


class _Run:
    """What one search has spent and seen.

    Parameters
    ----------
    problem : Problem
        The problem with the surrogate.
    first : Result
        Its solution.
    search : Search
        Keeps the best candidate.
    begin : float
        The data passes before it.
    fit : float
        The least that counts as those of a fit.
    """

    def __init__(self, problem: Problem, first: Result, search: Search, begin: float, fit: float):
        self.problem, self.first, self.search, self.begin = problem, first, search, begin
        self.limit = max(first.data_passes, fit)
        self.seen = [search.judge(first.w)]

    @property
    def start(self) -> Candidate:
        """The fit on scores."""
        return self.seen[0]

    def spent(self) -> float:
        """Return the data passes made, as a multiple of those of the fit on scores."""
        return (self.problem.passes - self.begin) / self.limit

    def effort(self) -> float:
        """Return the same with a line counted as a pass, which it costs on few features."""
        return self.spent() + self.search.n_lines / self.limit

    def solve(self, solver: Solver, random_state: Any) -> None:
        """Solve with raised tolerances, again and again from the last solution.

        Where a solution is not nearer to the bound, the surrogate says too little about decisions:
        from there on it is a steeper one, which is harder to solve.
        """
        factor, warm, cost = 1.0, self.first, 0.0
        most = (self.begin + _CUT * self.limit) * self.problem.n_rows
        for _ in range(_MOST_SOLVES):
            before, last = self.spent(), self.seen[-1]
            if before + cost > _SOLVES:
                break
            steep = sharpened(self.problem, self.start, factor)
            counter = Limited(self.problem.counter, most)
            try:
                warm = solver.minimize(
                    replace(steep.shifted(raise_by(steep, last)), counter=counter),
                    warm=warm,
                    tol=_LOOSE * solver.tol,
                    callback=lambda _: self.spent() > _SOLVES,
                    random_state=random_state,
                )
                w = warm.w
            except Spent:  # where it has come to is a candidate all the same
                w = counter.reached(warm.w)
            cost = self.spent() - before
            found = self.search.judge(w)
            self.seen.append(found)
            self.search.offer(found)
            self.search.sweep_intercept(found)
            if found.excess > _LEFT * max(last.excess, 0.0):
                factor = _STEEPER

    def repair(self) -> None:
        """Repair the most promising models step by step."""
        for one in sorted(self.seen, key=lambda one: -one.promise)[:_POOL]:
            for _ in range(_REPAIRS):
                best = self.search.best
                if best.met and one.accuracy <= best.accuracy:
                    break  # repairs cost accuracy: this one would not be better
                found = self.search.repair(one, lambda: self.effort() > _EFFORT)
                if found.promise <= one.promise:
                    break
                one = found

    def join(self, free: Candidate) -> None:
        """Look for better models between the best and the others."""
        best = self.search.best
        for other in (*self.seen, free):
            self.search.sweep_between(self.search.best, other)
        if self.search.best is not best:
            self.search.sweep_intercept(self.search.best)


def enforce_on_decisions(
    problem: Problem,
    first: Result,
    solver: Solver,
    y: Array,
    sample_weight: Array,
    unconstrained: Array,
    *,
    fit: float = 0.0,
    random_state: Any = None,
) -> DecisionSearch:
    r"""Return a model whose decisions meet the constraints, the most accurate that was found.

    The surrogate's tolerances are searched: each constraint is raised by what its decisions show
    (`raise_by`) and the problem solved again from the last solution, a few times. All intercepts of
    every solution and the lines between them are searched by counting, solutions short of the bound
    are repaired, and constant decisions are the candidate that there always is. The decisions of
    what is returned were looked at.

    Parameters
    ----------
    problem : Problem
        The problem with the surrogate.
    first : Result
        Its solution.
    solver : Solver
        Solves it again.
    y, sample_weight : ndarray of shape (n_rows,)
        Labels, -1 or +1, and weights of the objective's rows.
    unconstrained : ndarray of shape (n_parameters,)
        The model without constraints.
    fit : float, default=0.0
        The search may cost a few times what the solution did, or this many data passes if that is
        more: where the solution is one of an easier problem.
    random_state : int, RandomState or None, default=None
        For stochastic solvers.
    """
    begin, search = problem.passes, Search(problem, y, sample_weight)
    run = _Run(problem, first, search, begin, fit)
    free = search.judge(np.append(unconstrained, first.w[len(unconstrained) :]))
    for one in (free, run.start):
        search.offer(one)
        search.sweep_intercept(one)
    if not free.met:
        run.solve(solver, random_state)
        run.repair()
        run.join(free)
    best = search.best
    return DecisionSearch(
        w=best.w,
        met=best.met,
        constant=best is search.constant,
        excess=best.excess,
        accuracy=best.accuracy,
        accuracy_on_scores=run.start.accuracy,
        accuracy_unconstrained=free.accuracy,
        n_solves=len(run.seen) - 1,
        data_passes=first.data_passes + problem.passes - begin,
        data_passes_on_scores=first.data_passes,
    )
