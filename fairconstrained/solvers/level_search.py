"""Level search: the least unfairness for a loss, by a search along the frontier of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from typing import ClassVar

import numpy as np

from fairconstrained.penalties.base import Linear
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.result import Result, Status
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.solvers.state import RoundingState

_FIRST = 0.7  # of the level of the best model: where the search begins, and goes on if it is free
_PART = 0.25  # of the data passes that are left: what the problem of a level may use up
_MANY_CONSTRAINTS = 20
_NEAR = 1e-4  # of the level: the length of an interval that is near the solution
_SHARE = 0.8  # of the tolerance: what the answer to a level may use up


class LevelSearch(Solver):
    r"""Level-set method for :math:`\min_w \max_j g_j(w)` subject to :math:`f(w) \le b`.

    The least objective for a level t of the constraints,

    .. math::
        F(t) = \min_w f(w) \quad\text{s.t.}\quad g_j(w) \le t,

    is cheap to compute, and decreases with t at the rate :math:`F'(t) = -\sum_j \lambda_j`. Near
    the unconstrained optimum it is a parabola, so Newton's method is applied to :math:`\sqrt{F(t) -
    \min f} = \sqrt{b - \min f}`, within an interval that becomes smaller with every solution. Each
    problem is warm-started from the previous one. Divided by :math:`\sum_j \lambda_j`, the
    multipliers are those of the original problem, for which the certificate is computed.

    Parameters
    ----------
    solver : Solver or None, default=None
        The solver of the problem of a level; None takes
        :class:`AugmentedLagrangian` if it is smooth, else :class:`Smoothing`. With 20 constraints
        or more, :class:`Smoothing` uses :class:`ExactPenalty`, which needs fewer data passes. If
        :class:`ExactPenalty` does not converge near the solution, the default of
        :class:`Smoothing` is used from there on.
    max_iter : int, default=20
        The maximum number of levels.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    A. Aravkin, J. Burke, D. Drusvyatskiy, M. Friedlander, S. Roy, "Level-set methods for convex
    optimization", Mathematical Programming 174 (2019); the problem is 3S-Econ's Problem 1.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(goal="fairness", max_loss_increase=0.01)
    >>> clf.fit(X, y, sensitive_features=groups).result_.solver
    LevelSearch()
    """

    requires: ClassVar[tuple[str, ...]] = ("in_epigraph_form",)

    def __init__(self, solver: Solver | None = None, *, max_iter: int = 20, tol: float = 1e-4):
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol

    def _solver_for(self, problem: Problem, *, near: bool = False) -> Solver:
        """Return the solver of the problem of a level, far from or near the solution."""
        if self.solver is not None:
            return self.solver
        if problem.smooth:
            return AugmentedLagrangian()
        many = problem.n_constraints >= _MANY_CONSTRAINTS
        return Smoothing(ExactPenalty() if many and not near else None)

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or those of a level for the solver."""
        lacking = super().missing(problem)
        if lacking or problem.epigraph_of is None:
            return lacking
        return self._solver_for(problem.epigraph_of.problem).missing(problem.epigraph_of.problem)

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer to every level as a point of the problem."""
        made_of = problem.epigraph_of
        assert made_of is not None
        plain = replace(made_of.problem, counter=problem.counter)
        solver, at = self._solver_for(plain), plain.at(start.w[:-1], like=start.like)
        least = made_of.least
        if least is None:
            free, end = start.solve(solver, plain.with_constraints(()), at.w, like=at)
            at, least = plain.at(free.w, like=end), free.objective
        if least >= made_of.bound:
            yield Iterate(_lifted(problem, at), None, 0, status=Status.INFEASIBLE)
            return
        warm: Start | Result | None
        search, warm = self._begin(at, start, sqrt(made_of.bound - least))
        tol = start.tol
        for k in range(1, self.max_iter + 1):
            lowered = Linear(np.zeros(plain.n_variables), -search.level)
            at_level = plain.with_constraints([part.add(lowered) for part in plain.constraints])
            most = _PART * start.passes_left(problem)
            answer, end = start.solve(
                solver, at_level, at.w, like=at, warm=warm, tol=tol, most_passes=most
            )
            warm, at = answer, plain.at(answer.w, like=end)
            price = float(answer.multipliers.sum())
            search.learn(answer, least, price, start.tol, float(at.constraints.max()))
            tol = _SHARE * start.tol * min(1.0, max(price, 1e-3))
            if search.near and not answer.converged:
                solver = self._solver_for(plain, near=True)
            status = Status.STALLED if search.ended else None
            yield _offer(_lifted(problem, at), answer, k, start.tol, status)

    @staticmethod
    def _begin(at: Evaluation, start: Start, target: float) -> tuple[_Search, Start | None]:
        """Return the search and what its first problem starts from."""
        if start.multipliers is None or start.multipliers[-1] <= 0.0:
            top = at.constraints.max()
            return _Search(target, _FIRST * top, top), None
        warm = replace(start, w=at.w, multipliers=start.multipliers[:-1] / start.multipliers[-1])
        return _Search(target, start.w[-1], np.inf), warm


class _Search:
    """Where the level is looked for: Newton's method within an interval.

    If two steps together have not halved the interval, the next step is to its midpoint.
    """

    def __init__(self, target: float, level: float, high: float):
        self.target = target
        self.low, self.high = -np.inf, high
        self.level = level
        self.lengths = [np.inf, np.inf]  # of the interval: two steps ago, and one step ago

    def learn(self, answer: Result, best: float, price: float, tol: float, attained: float) -> None:
        """Take in the answer at a level, with the level that it attains, and choose the next."""
        reached = sqrt(max(answer.objective - best, 0.0))
        if answer.violation > tol or reached > self.target:
            self.low = self.level
        else:
            self.high = min(self.level, attained)
        newton = np.nan
        if answer.violation <= tol and price > 0.0 and reached > 0.0:
            newton = self.level + 2.0 * reached * (reached - self.target) / price
        if np.isfinite(self.low):
            inside = self.low < newton < self.high
            length = self.high - self.low
            slow = length > 0.5 * self.lengths[0]
            self.lengths = [self.lengths[1], length]
            self.level = newton if inside and not slow else 0.5 * (self.low + self.high)
        else:
            least = min(0.0, 2.0 * self.high)  # gaps end at zero, but not all constraints are gaps
            lower = _FIRST * self.high if self.high > 0.0 else 2.0 * self.high
            self.level = max(newton, least) if newton < self.high else lower

    @property
    def near(self) -> bool:
        """Whether the interval is so short that the level is near the solution."""
        return self.high - self.low <= _NEAR * abs(self.high)

    @property
    def ended(self) -> bool:
        """Whether the interval is too small to go on."""
        return self.high - self.low <= 1e-14 * max(1.0, abs(self.high))


def _lifted(problem: Problem, at: Evaluation) -> Evaluation:
    """Return the epigraph problem at the point of the other one and its least level."""
    return problem.at(np.append(at.w, at.constraints.max()), like=at)


def _offer(at: Evaluation, answer: Result, k: int, tol: float, status: Status | None) -> Iterate:
    """Return an answer as a point of the epigraph problem, with its multipliers.

    Where the objective is below its bound they are left to be estimated: if no level is lower, they
    are not those of the problem of this level.
    """
    price = float(answer.multipliers.sum())
    if price == 0.0 or at.constraints[-1] < -tol:
        return Iterate(at, None, k, status=status)
    rounded = RoundingState.rounded(answer.state, at.problem, at)
    multipliers = np.append(answer.multipliers, 1.0) / price
    return Iterate(at, multipliers, k, status=status, rounded=rounded)
