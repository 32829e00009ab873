"""The switching subgradient method: an oracle of convex problems and a solver of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.scalar import Array
from fairconstrained.solvers.base import Iterate, Solver, Start


class StepRule(BaseEstimator, ABC):
    """How far to go and when a point counts as feasible.

    Attributes
    ----------
    averages : bool
        Whether the answer is the average of the feasible points, weighted by k + 1, or the
        feasible point of least objective.
    """

    averages: bool = False

    @abstractmethod
    def tolerance(self, k: int, tol: float) -> float:
        """Return the largest constraint value at which step k decreases the objective."""

    @abstractmethod
    def length(self, k: int, gap: float, norm_squared: float) -> float:
        """Return the step length.

        Parameters
        ----------
        k : int
            The step, from 0.
        gap : float
            The constraint's value where it is to be lowered, else the tolerance.
        norm_squared : float
            The squared norm of the subgradient.
        """


class PolyakSteps(StepRule):
    r"""Polyak's steps: :math:`\epsilon_k / \|f'\|^2` and :math:`G / \|G'\|^2`.

    Parameters
    ----------
    first : float, default=0.01
        :math:`\epsilon_k = \max\{\text{first} / \sqrt{1 + k / 10}, \text{tol}\}`: it falls until
        feasible points meet the tolerance asked for.

    References
    ----------
    IDCA, algorithms 2 and 3; Huang and Lin 2023.
    """

    def __init__(self, first: float = 0.01):
        self.first = first

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon_k."""
        return max(self.first / np.sqrt(1.0 + k / 10.0), tol)

    def length(self, k: int, gap: float, norm_squared: float) -> float:
        """Return the gap over the squared norm."""
        return gap / max(norm_squared, 1e-300)


class StronglyConvexSteps(StepRule):
    r"""The steps :math:`2 / (\mu (k + 2))` of IPC's algorithm 2, with its weighted average.

    Parameters
    ----------
    modulus : float
        The strong convexity constant mu > 0.

    References
    ----------
    IPC, algorithm 2.
    """

    averages = True

    def __init__(self, modulus: float):
        self.modulus = modulus

    def tolerance(self, k: int, tol: float) -> float:
        """Return the tolerance asked for."""
        return tol

    def length(self, k: int, gap: float, norm_squared: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))


class SwitchingSubgradient(Solver):
    r"""Switching subgradient method (SSG), for any problem with subgradients.

    A step follows the objective's subgradient where :math:`G = \max_j g_j` is at most the
    tolerance, else that of G. On strongly convex problems (IPC's subproblems) it takes IPC's steps
    and returns the weighted average of the feasible points, else Polyak's and returns the best
    feasible point. If no point was feasible, the last one is returned and reported as it is.

    Parameters
    ----------
    steps : StepRule or None, default=None
        None chooses by the problem's modulus as above.
    max_iter : int, default=5000
        The number of steps.
    check_every : int, default=100
        Steps between two measurements (each of which estimates the multipliers).
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    IPC, algorithm 2; IDCA, algorithms 2 and 3.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import SwitchingSubgradient
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(
    ...     kappa=0.05, solver=SwitchingSubgradient(max_iter=500, tol=0.02)
    ... )
    >>> clf.fit(X, y, sensitive_features=groups).violation_ <= 0.02
    True
    """

    def __init__(
        self,
        steps: StepRule | None = None,
        *,
        max_iter: int = 5000,
        check_every: int = 100,
        tol: float = 1e-4,
    ):
        self.steps = steps
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol

    def _rule(self, problem: Problem) -> StepRule:
        if self.steps is not None:
            return self.steps
        known = problem.modulus if problem.weakly_convex else -np.inf
        return StronglyConvexSteps(known) if known > 0.0 else PolyakSteps()

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer so far every `check_every` steps."""
        rule = self._rule(problem)
        answer = _Average() if rule.averages else _Best()
        w = start.w
        for k in range(self.max_iter):
            at = problem.at(w)
            tolerance = rule.tolerance(k, start.feasible)
            level = float(at.constraints.max(initial=-np.inf))
            if level <= tolerance:
                answer.add(at, k, start.feasible)
                gap, direction = tolerance, at.gradient()
            else:
                worst = np.zeros(problem.n_constraints)
                worst[int(at.constraints.argmax())] = 1.0
                gap, direction = level, at.gradient(worst, objective=0.0)
            w = problem.domain.project(
                w - rule.length(k, gap, float(direction @ direction)) * direction
            )
            if (k + 1) % self.check_every == 0 or k + 1 == self.max_iter:
                yield Iterate(answer.point(problem, w), None, k + 1)


class _Average:
    """The average of the feasible points, weighted by k + 1."""

    def __init__(self) -> None:
        self.total: float = 0.0
        self.mean: Array | None = None

    def add(self, at: Evaluation, k: int, tol: float) -> None:
        self.total += k + 1
        weight = (k + 1) / self.total
        self.mean = at.w if self.mean is None else self.mean + weight * (at.w - self.mean)

    def point(self, problem: Problem, last: Array) -> Evaluation:
        return problem.at(last if self.mean is None else self.mean)


class _Best:
    """The point of least objective among those that meet the tolerance asked for."""

    def __init__(self) -> None:
        self.best: Evaluation | None = None

    def add(self, at: Evaluation, k: int, tol: float) -> None:
        if at.violation <= tol and (self.best is None or at.objective < self.best.objective):
            self.best = at

    def point(self, problem: Problem, last: Array) -> Evaluation:
        return problem.at(last) if self.best is None else self.best
