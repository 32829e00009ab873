"""Switching subgradient methods: their step sizes, and when a point counts as feasible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from itertools import count
from math import sqrt
from typing import Any, ClassVar

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import (
    Average,
    FirstOrderSolver,
    Rows,
    Updates,
    moved,
    worst_constraint,
)
from fairconstrained.utils.parameter_constraints import Count, Limit, NonNegative, Positive
from fairconstrained.utils.parameters import Parametrized


class StepRule(Parametrized, ABC):
    """The step sizes, and the value up to which a point counts as feasible.

    Attributes
    ----------
    averages : bool
        Whether the answer is the average of the feasible points, weighted by k + 1, or the best.
    """

    averages: ClassVar[bool] = False

    @abstractmethod
    def tolerance(self, k: int, tol: float) -> float:
        """Return the largest constraint value at which step k decreases the objective.

        Parameters
        ----------
        k : int
            The step, from 0.
        tol : float
            The violation of the answer.
        """

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        r"""Return the length of a step on the objective: :math:`\epsilon_k / \|f'\|^2`.

        Parameters
        ----------
        k : int
            The step, from 0.
        tol : float
            The tolerance of step k.
        norm_squared : float
            The squared norm of the subgradient, > 0.
        curvature : float
            That of the objective at the start, > 0.
        """
        return tol / norm_squared

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        r"""Return the length of a step on the constraint of value `level` > 0: ``G / |G'|^2``."""
        return level / norm_squared


@dataclass(eq=False, repr=False)
class PolyakSteps(StepRule):
    r"""Steps of diminishing aims, limited by the curvature of the objective; the default.

    .. math::
        \min\Big\{\frac{\epsilon_k}{\|f'\|^2}, \frac{1}{L}\Big\}
        \quad\text{and}\quad \frac{\min\{G, \epsilon_k\}}{\|G'\|^2}, \qquad
        \epsilon_k = \frac{\text{first}}{\sqrt{1 + k / 10}},

    with L the curvature of the objective at the start. A point counts as feasible if it meets the
    tolerance `tol`, from the first step on. Steps on the objective are as long as with a larger
    tolerance; the next steps on the constraint lead back.

    Parameters
    ----------
    first : float, default=0.1
        The decrease of the objective or of the largest constraint that step 0 aims at, at most.

    References
    ----------
    IDCA, algorithms 2 and 3, for the quotients.

    Examples
    --------
    >>> from fairconstrained.solvers import PolyakSteps
    >>> PolyakSteps(first=0.1).descent(k=0, tol=1e-4, norm_squared=4.0, curvature=1.0)
    0.025
    """

    first: NonNegative = 0.1

    def tolerance(self, k: int, tol: float) -> float:
        """Return the tolerance asked for."""
        return tol

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return ``min(epsilon_k / |f'|^2, 1 / L)``."""
        return min(self._aim(k) / norm_squared, 1.0 / curvature)

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return ``min(G, epsilon_k) / |G'|^2``: contradictory constraints lead nowhere."""
        return min(level, self._aim(k)) / norm_squared

    def _aim(self, k: int) -> float:
        return self.first / sqrt(1.0 + k / 10.0)


@dataclass(eq=False, repr=False)
class StaticTolerance(StepRule):
    r"""Steps :math:`\epsilon / \|f'\|^2` where :math:`G \le \epsilon`, else :math:`G / \|G'\|^2`.

    The answer violates the constraints by up to epsilon.

    Parameters
    ----------
    epsilon : float, default=1e-3
        The largest constraint value of a point that counts as feasible, > 0. The paper tries 1e-4
        to 1e-3.

    References
    ----------
    IDCA, algorithm 3, "static"; Huang and Lin 2023.

    Examples
    --------
    >>> from fairconstrained.solvers import StaticTolerance, SwitchingSubgradient
    >>> StaticTolerance(1e-3).restoration(k=0, level=0.5, norm_squared=4.0)
    0.125
    >>> solver = SwitchingSubgradient(StaticTolerance(1e-3))
    """

    epsilon: NonNegative = 1e-3

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon."""
        return self.epsilon


@dataclass(eq=False, repr=False)
class DiminishingTolerance(StepRule):
    r"""The steps of :class:`StaticTolerance` with :math:`\epsilon_k = c / (k + 1)`.

    Parameters
    ----------
    c : float, default=0.5
        The factor c > 0 of the tolerance c / (k + 1). The paper tries 0.2, 0.5, 1 and 2.

    References
    ----------
    IDCA, algorithm 3, "diminishing".

    Examples
    --------
    >>> from fairconstrained.solvers import DiminishingTolerance
    >>> [DiminishingTolerance(c=0.5).tolerance(k, tol=1e-4) for k in (0, 1, 4)]
    [0.5, 0.25, 0.1]
    """

    c: Positive = 0.5

    def tolerance(self, k: int, tol: float) -> float:
        """Return c / (k + 1)."""
        return self.c / (k + 1)


@dataclass(eq=False, repr=False)
class StronglyConvexSteps(StepRule):
    r"""The steps :math:`2 / (\mu (k + 2))` of IPC's algorithm 2, with its weighted average.

    Parameters
    ----------
    modulus : float
        The strong convexity constant mu > 0; the paper's is rho^ - rho = rho^ / 2.
    epsilon : float or None, default=None
        The largest value of a feasible point, the paper's eps^ squared; None for the tolerance.

    References
    ----------
    IPC, algorithm 2.

    Examples
    --------
    >>> from fairconstrained.solvers import StronglyConvexSteps
    >>> steps = StronglyConvexSteps(modulus=0.5)
    >>> [steps.descent(k, tol=1e-4, norm_squared=1.0, curvature=0.0) for k in (0, 2)]
    [2.0, 1.0]
    """

    averages: ClassVar[bool] = True

    modulus: Positive
    epsilon: NonNegative | None = None

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon, or the tolerance asked for."""
        return tol if self.epsilon is None else self.epsilon

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))


@dataclass(eq=False, repr=False)
class SwitchingSubgradient(FirstOrderSolver):
    r"""Switching subgradient method (SSG), for any problem with subgradients.

    A step follows the subgradient of the objective if :math:`G = \max_j g_j` is at most the
    tolerance, else the subgradient of G. On strongly convex problems (the subproblems of IPC) it
    uses the step sizes of IPC and returns the weighted average of the feasible points. On other
    problems it uses Polyak's step sizes and returns the best feasible point, or the point of least
    violation. A point counts as feasible if it meets the tolerance of its own step.

    Parameters
    ----------
    steps : StepRule or None, default=None
        The step sizes; None chooses as above.
    batch_size : int or None, default=None
        The number of rows of a mini-batch, see :class:`StochasticSwitchingSubgradient`; None takes
        all rows.
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`.

    References
    ----------
    IPC, algorithm 2; IDCA, algorithms 2 and 3; Y. Huang, Q. Lin, "Oracle complexity of single-loop
    switching subgradient methods", NeurIPS 2023.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import SwitchingSubgradient
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=SwitchingSubgradient())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    steps: StepRule | None = None
    _: KW_ONLY
    batch_size: Count | None = None

    @classmethod
    def paper(cls, **options: Any) -> SwitchingSubgradient:
        """Return IDCA's setting: a static tolerance of 1e-3 for 50,000 steps.

        The answer violates by up to this tolerance, which is therefore `tol` as well, unless other
        steps are given. The theory's number of steps is of the order of its inverse to the fourth
        power. With :class:`DiminishingTolerance` the answer is one of the first points, and
        violates.

        `iterate` yields the printed answer so far; of the measured ones `minimize` returns the
        best.

        Parameters
        ----------
        **options
            Further hyperparameters, for instance ``steps=DiminishingTolerance(0.5)``.
        """
        run = {"max_iter": 50_000, "check_every": 1000, "polish": False, **options}
        if "steps" not in options:
            run = {"steps": StaticTolerance(), "tol": StaticTolerance.epsilon, **run}
        return cls(**run)

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the average of the feasible points, weighted by k + 1, or the best point so far."""
        modulus = problem.modulus if problem.weakly_convex else 0.0
        rule = self.steps or (StronglyConvexSteps(modulus) if modulus > 0.0 else PolyakSteps())
        rows = Rows(problem, start, self.batch_size, self.check_every, self.max_iter)
        curvature = rows.curvature if isinstance(rule, PolyakSteps) else 0.0
        at = best = rows.draw(start.w).at
        mean, least = Average(), (float("inf"), float("inf"))
        for k in count():
            tolerance = rule.tolerance(k, start.feasibility_tol)
            level, worst = worst_constraint(at.constraints)
            descends = level <= tolerance
            rank = (0.0 if descends else level, at.objective)
            if rule.averages and descends:
                mean.add(at.w, weight=k + 1.0)
            elif rank < least:
                best, least = at, rank
            direction = at.gradient(None if descends else worst, objective=float(descends))
            norm = max(float(direction @ direction), 1e-300)
            if descends:
                length = rule.descent(k, tolerance, norm, curvature)
            else:
                length = rule.restoration(k, level, norm)
            at = rows.draw(moved(at, rows.fade * length * direction)).at
            if rows.sampled:
                answers = rows.answers(at)
            elif rule.averages:
                answers = [problem.at(*mean.means) if mean.means else at]
            else:
                answers = [best]
            yield [(answer, None) for answer in answers]


@dataclass(eq=False, repr=False, kw_only=True)
class StochasticSwitchingSubgradient(SwitchingSubgradient):
    r"""Switching subgradient method on mini-batches (SSG-S).

    Subgradients, and the values that decide between objective and constraints, come from stratified
    batches. Steps shrink over the run by (1 - k / K)^2, and the result is an average of recent
    points. The paper prints no algorithm for its SSG-S, so that there is no setting of its own.

    Parameters
    ----------
    steps : StepRule or None, default=None
        The step sizes, see :class:`SwitchingSubgradient`.
    batch_size : int or None, default=512
        The number of rows of a batch.
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`; `max_iter` is 600.

    References
    ----------
    3S-Econ, section 5.4 (SSG-S), compares with it.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import StochasticSwitchingSubgradient
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> solver = StochasticSwitchingSubgradient(batch_size=100, tol=0.1)
    >>> clf = FairLogisticClassifier(kappa=0.1, solver=solver, random_state=0)
    >>> clf.fit(X, y, sensitive_features=groups).violation_ <= 0.1
    True
    """

    batch_size: Count | None = 512
    max_iter: Limit = 600
