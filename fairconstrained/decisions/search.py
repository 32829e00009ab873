"""The search for a model whose decisions meet the constraints on the training rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch, ClassCandidateSearch
from fairconstrained.decisions.new_rows import ExpectedGap
from fairconstrained.decisions.smooth_rounds import ANCHOR, FIRST_ROUNDS, N_ROUNDS, SmoothRounds
from fairconstrained.exceptions import (
    ConstantDecisionWarning,
    GeneralizationWarning,
    InfeasibleConstraintWarning,
    warn,
)
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, default_solver
from fairconstrained.terms.classes import MultinomialLoss
from fairconstrained.utils.arrays import ROUNDING, Array

_MORE_ROUNDS = 8  # at most, while models get better, or no round has ended at the bound
_SHORTFALL = 0.02  # of the best model's accuracy, less prices, below that of a model near the bound
_LEAST_ROUNDS = 5  # then rounds end where two of them gain less than this:
_PROGRESS = 0.002
_STRONG_ANCHOR = 300.0  # the price of distance where held-out rows test the model
_TOL_OF_START, _PASSES_OF_START = 1e-7, 8.0  # to which, and in how many, a start is solved
_TIGHTER = 0.5, 0.2, 0.1  # shares of tolerances of fits where rounds end below such a model
_PASSES_OF_TIGHTER = 100.0  # of each of these fits
_ANY = np.finfo(float).max  # of a part without outputs: infinity minus infinity is no number
_N_JOINED = 8  # models that are joined to the best one by lines
_MOST_EXPECTED = 2.0  # times the bound on a gap, without a warning
LOOSEN = "loosen the bound (kappa, or the constraint's own tolerance)"  # what a user can do


@dataclass(frozen=True, eq=False)
class DecisionTask:
    """What a search on decisions starts from."""

    problem: Problem  # the problem with the surrogate
    first: Result  # its solution, the fit on scores
    # the labels of the objective's rows, -1 or +1, or the classes 0, 1, ... of several, (n_rows,)
    y: Array
    sample_weight: Array  # their weights, (n_rows,)
    unconstrained: Array  # the model without constraints, (n_parameters,)
    # estimates of the constraints on new rows, see
    # `SoftLabels`
    expected: tuple[CompositeFunction, ...] = ()
    anchor: float = ANCHOR  # what it costs to move away from `first`
    # whether `first` solves the problem: limits on decisions alone may have been added
    solved: bool = True

    def candidates(self, constants: Sequence[Candidate] | None = None) -> CandidateSearch:
        """Return a search that knows the constant models only, which may have been evaluated."""
        of_classes = isinstance(self.problem.objective.term, MultinomialLoss)
        kind = ClassCandidateSearch if of_classes else CandidateSearch
        return kind(self.problem, self.y, self.sample_weight, constants, self.expected)

    def search(self) -> "DecisionSearch":
        r"""Return a model whose decisions meet the constraints, the best one that was found.

        Among models that meet the constraints the more accurate one is better, then the one of
        smaller loss. Rates of few rows are estimated from more rows as well, see
        :class:`~fairconstrained.decisions.new_rows.SoftLabels`: the amount by which the estimates
        exceed the bound has a price in accuracy, and the problems below bound them, too.

        From the fit on scores by the default solver, which Newton's steps take to many digits,
        :class:`~fairconstrained.decisions.smooth_rounds.SmoothRounds`
        minimise the share of errors with narrowing sigmoids in place of decisions. All intercepts
        of every model on the way and the lines between models are searched by counting. Where only
        constant models meet the bound, rounds begin at the model without constraints as well. Where
        they end far below a model near the bound, fits on scores with smaller tolerances follow.
        The constant models are candidates, so that the answer is never worse than a constant one
        that meets the constraints.
        """
        search = self.candidates()
        begin, given = search.problem.passes, search.evaluate(self.first.w)
        refinable = self.solved and self.problem.twice_differentiable
        start = search.evaluate(self._refined().w) if refinable else given
        auxiliary = self.first.w[len(self.unconstrained) :]  # the variables of constraints' terms
        free = search.evaluate(np.append(self.unconstrained, auxiliary))
        seen = [start, free, search.add(start), search.add(free)]
        n_solves = 0
        if not free.met or free.excess > 0.0:
            n_solves = _run_rounds(search, seen, start, self.anchor)
            if search.best.constant or not search.best.met:
                n_solves += _run_rounds(search, seen, free, self.anchor)
            if _ahead(search, seen):
                for model in self._tighter(search):
                    seen += [model, search.add(model)]
                    n_solves += 1
            for other in sorted(seen, key=attrgetter("promise"), reverse=True)[:_N_JOINED]:
                if other is not search.best:
                    search.sweep_between(search.best, other)
            search.sweep_intercept(search.best)
        return DecisionSearch(
            **figures(search.best),
            accuracy_on_scores=given.accuracy,
            accuracy_unconstrained=free.accuracy,
            n_solves=n_solves,
            data_passes=self.first.data_passes + search.problem.passes - begin,
            data_passes_on_scores=self.first.data_passes,
        )

    def _refined(self) -> Result:
        """Return the fit on scores to many digits, which does not depend on the solver before."""
        solver, passes = default_solver(self.problem), _PASSES_OF_START
        return solver.minimize(
            self.problem, warm=self.first, tol=_TOL_OF_START, max_data_passes=passes
        )

    def _tighter(self, search: CandidateSearch) -> Iterator[Candidate]:
        """Yield fits on scores with smaller tolerances, each from the one before."""
        parts, last = self.problem.constraints, self.first
        # One bound for all outputs of a constraint: partial parity has more outputs than gaps.
        bounds = [part.gap_bounds(part.term.gap_bounds).min(initial=_ANY) for part in parts]
        for share in _TIGHTER:
            each = zip(parts, bounds, strict=True)
            shifted = [part.shifted((1.0 - share) * bound) for part, bound in each]
            problem = self.problem.with_constraints(shifted)
            solver = default_solver(problem)
            last = solver.minimize(problem, warm=last, max_data_passes=_PASSES_OF_TIGHTER)
            yield search.evaluate(last.w)

    def without_search(self) -> "DecisionSearch":
        """Return the fit on scores as it is, with its predictions measured; it is the only one."""
        best, passes = self.candidates().evaluate(self.first.w), self.first.data_passes
        return DecisionSearch(**figures(best), data_passes=passes, data_passes_on_scores=passes)

    def below(self, plain: "DecisionSearch", shifts: Sequence[Array]) -> "Iterator[DecisionSearch]":
        """Yield a model for each of the shifts, the largest first.

        `plain` is the model for the tolerances as they are. Each model is the best one for its
        shift on the line from `plain` to the model for the middle shift. Held-out rows test one
        model after another, so that each should be only a little more accurate, and a little nearer
        to the bound, than the one before.
        """
        problem = self.problem.shifted(shifts[len(shifts) // 2])
        first = default_solver(problem).minimize(problem, warm=self.first)
        shifted = replace(self, problem=problem, first=first, anchor=_STRONG_ANCHOR)
        unshifted = self.candidates()
        ends = [unshifted.evaluate(w) for w in (plain.w, shifted.search().w)]
        for shift in shifts:
            shifted = replace(self, problem=self.problem.shifted(shift))
            search = shifted.candidates(unshifted.constants)
            start, other = (end.judged_by(search) for end in ends)
            search.offer(start)
            search.offer(other)
            search.sweep_between(start, other)
            yield plain.with_model(search.best)


@dataclass(frozen=True, eq=False)
class DecisionSearch:
    """The model that a search on decisions found, and its cost.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        The model.
    met : bool
        Whether its decisions on the training rows meet all constraints, up to rounding.
    constant : bool
        Whether it predicts the same class for every row.
    violation : float
        The largest violation of the constraints on decisions; 0 if they are met.
    accuracy : float
        The weighted share of correct predictions on the training rows. The weights are those of
        the loss: `sample_weight` times `class_weight`.
    accuracy_on_scores : float
        The same of the fit that bounds scores, which the search starts from; nan if there was none.
    accuracy_unconstrained : float
        The same of the model without constraints, nan if that was not fitted.
    n_solves : int
        The number of smooth problems solved after the fit on scores.
    data_passes : float
        The data passes of the fit on scores and of the search together.
    data_passes_on_scores : float
        The data passes of the fit on scores.
    expected_gaps : tuple of ExpectedGap
        For every rate that constraints compare: its gap on the training rows and the one expected
        on new rows, see :class:`~fairconstrained.decisions.new_rows.ExpectedGap`.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.1, enforce="decision")
    >>> search = clf.fit(X, y, sensitive_features=groups).decision_search_
    >>> search.met, search.constant, search.violation, clf.decision_gap_ <= 0.1
    (True, False, 0.0, True)
    >>> search.n_solves > 0, search.data_passes > search.data_passes_on_scores
    (True, True)
    """

    what: ClassVar[str] = (
        "enforce='decision'"  # the parameter that requires the search, in messages
    )

    w: Array = field(repr=False)
    met: bool
    constant: bool
    violation: float
    accuracy: float
    accuracy_on_scores: float = np.nan
    accuracy_unconstrained: float = np.nan
    n_solves: int = 0
    data_passes: float = 0.0
    data_passes_on_scores: float = 0.0
    expected_gaps: tuple[ExpectedGap, ...] = ()

    def warn(self) -> None:
        """Warn if the bound is not met, by constant decisions only, or hardly on new rows."""
        figures = (
            f"weighted training accuracy {self.accuracy:.3f}; without constraints it would be "
            f"{self.accuracy_unconstrained:.3f}"
        )
        far = [gap for gap in self.expected_gaps if gap.expected > _MOST_EXPECTED * gap.bound]
        if not self.met:
            warn(
                f"{self.what}: neither a model nor constant decisions were found that meet "
                f"the constraints. The model of least violation is kept: violation "
                f"{self.violation:.3g}, {figures}. To meet them, {LOOSEN}.",
                InfeasibleConstraintWarning,
            )
        elif self.constant and self.accuracy < 1.0 - ROUNDING:
            warn(
                f"{self.what}: no model better than constant decisions was found that meets "
                f"the constraints. The same class is predicted for every row: {figures}. Merge "
                f"small groups, or {LOOSEN}.",
                ConstantDecisionWarning,
            )
        elif far:
            gap = max(far, key=lambda gap: gap.expected - gap.bound)
            where = f" ({gap.uncertain})" if gap.uncertain != gap.name else ""
            warn(
                f"{self.what}: on new rows the gap of a rate is expected to be "
                f"{gap.expected:.3f}{where}, more than twice its bound of {gap.bound:.3g}, which "
                f"it meets on the training rows ({gap.name}: {gap.training:z.3f}). Some groups "
                "have few rows, or the model fits noise of the training rows. Use more rows, merge "
                f"small groups, or {LOOSEN}; confidence tests it.",
                GeneralizationWarning,
            )

    @property
    def accuracy_cost(self) -> float:
        """The training accuracy that the bound costs, compared with the unconstrained model."""
        return self.accuracy_unconstrained - self.accuracy

    def result(self, at: Evaluation, first: Result) -> Result:
        """Return a result for this model, with the status and trace of `first`, that on scores."""
        if self.constant:  # thresholds of ranks that suit other scores say nothing
            problem = at.problem
            at = problem.at(problem.start_at(at.w[: problem.objective.model.n_parameters]))
        kkt = KKT.of(at, first.multipliers)
        message = (
            f"enforce='decision': violation on decisions {self.violation:.2e}; on scores the model "
            f"has objective {at.objective:.6g}, violation {at.violation:.2e} and KKT residual "
            f"{kkt.residual:.2e}. The fit on scores: {first.message}"
        )
        return replace(
            first,
            w=at.w,
            objective=at.objective,
            violation=at.violation,
            zero_one_violation=at.zero_one_violation,
            kkt_residual=kkt.residual,
            message=message,
            data_passes=self.data_passes,
        )

    def with_model(self, candidate: "Candidate | DecisionSearch") -> "DecisionSearch":
        """Return the same search with another model."""
        return replace(self, **figures(candidate))


def figures(best: Candidate | DecisionSearch) -> dict[str, Any]:
    """Return the fields that describe the model."""
    return {
        "w": best.w,
        "met": best.met,
        "constant": best.constant,
        "violation": 0.0 if best.met else best.violation,
        "accuracy": best.accuracy,
    }


def _run_rounds(
    search: CandidateSearch, seen: list[Candidate], start: Candidate, anchor: float
) -> int:
    """Solve smooth problems from a model, later from the most promising one; return how many.

    The models are added to those seen.
    """
    start = _promising(seen) if start.constant else start
    rounds, merits, feasible = SmoothRounds(search, start, anchor), [-np.inf] * 3, False
    for k in range(N_ROUNDS + _MORE_ROUNDS):
        if k == FIRST_ROUNDS:
            rounds.restart(_promising(seen))
        merits.append(search.best.merit)
        stalled = merits[-1] < merits[-3] + _PROGRESS
        if k >= _LEAST_ROUNDS and stalled and feasible and not _ahead(search, seen):
            return k
        model = rounds.next()
        feasible |= model.met and not model.constant
        seen += [model, search.add(model)]
    return N_ROUNDS + _MORE_ROUNDS


def _ahead(search: CandidateSearch, seen: Sequence[Candidate]) -> bool:
    """Return whether a model near the bound is better than all that meet it, by much."""
    return _promising(seen).merit - search.best.merit > _SHORTFALL


def _promising(seen: Sequence[Candidate]) -> Candidate:
    """Return the most promising model, one that is not constant if there is one."""
    return max([m for m in seen if not m.constant] or seen, key=attrgetter("promise"))
