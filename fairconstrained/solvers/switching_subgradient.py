"""The switching subgradient method: an oracle of convex problems and a solver of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.parameters import InstanceOf, Valid
from fairconstrained.solvers._tools.subgradient_steps import (
    Average,
    Bend,
    Best,
    squared_norm,
    worst_constraint,
)
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.utils.parameters import Parametrized
from fairconstrained.utils.typing import Array


class StepRule(Parametrized, ABC):
    """The step sizes, and the value up to which a point counts as feasible.

    Attributes
    ----------
    averages : bool
        Whether the answer is the average of the feasible points, weighted by k + 1, or the best.
    in_units : bool
        Whether steps and norms on the whole space are scaled by :attr:`Problem.preconditioner`.
    """

    averages: bool = False
    in_units: bool = False

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

    @abstractmethod
    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return the length of a step on the objective.

        Parameters
        ----------
        k : int
            The step, from 0.
        tol : float
            The tolerance of step k.
        norm_squared : float
            The squared norm of the subgradient, > 0.
        curvature : float
            That of the objective along recent steps, 0 if unknown.
        """

    @abstractmethod
    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return the length of a step on the constraint whose value is `level` > 0."""


VALID_RULE = InstanceOf(StepRule, "a step rule, such as PolyakSteps()", checked=True)


class PolyakSteps(StepRule):
    r"""Polyak's step sizes, limited by the curvature of the objective; the default.

    .. math::
        \min\Big\{\frac{\epsilon_k}{\|f'\|^2}, \frac{1}{L_k}\Big\}
        \quad\text{and}\quad \min\Big\{\frac{G + \delta_k}{\|G'\|^2},
        \frac{\text{reach}}{\|G'\| \sqrt{1 + k/10}}\Big\},
        \qquad \epsilon_k = \frac{\text{first}}{\sqrt{1 + k / 10}},
        \quad \delta_k = \frac{\text{margin}}{1 + k / 10},

    with :math:`L_k` the curvature that recent steps showed, 0 for an objective with kinks. A point
    counts as feasible if it meets the tolerance `tol`, from the first step on. Steps on the
    objective are as long as with a larger tolerance; the next steps on the constraint lead back. If
    several constraints are active, the margin prevents steps that become smaller and smaller.

    Parameters
    ----------
    first : float, default=0.1
        The decrease of the objective that step 0 aims at.
    margin : float, default=0.03
        How far below their bounds step 0 on the constraints aims.
    reach : float, default=10.0
        The maximum length of the first step, which keeps infeasible problems from diverging.

    References
    ----------
    IDCA, algorithms 2 and 3, for the quotients. Limits, margin and scaling are additions: a gap of
    0.09% instead of 0.14% in ``python -m benchmarks additions``.

    Examples
    --------
    >>> from fairconstrained.solvers import PolyakSteps
    >>> steps = PolyakSteps(first=0.1)
    >>> steps.descent(k=0, tol=1e-4, norm_squared=4.0, curvature=0.0)
    0.025
    """

    in_units = True

    def __init__(self, first: float = 0.1, margin: float = 0.03, reach: float = 10.0):
        self.first = first
        self.margin = margin
        self.reach = reach

    def tolerance(self, k: int, tol: float) -> float:
        """Return the tolerance asked for."""
        return tol

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return ``min(epsilon_k / |f'|^2, 1 / L)``, but at least ``tol / |f'|^2``."""
        longest = self.first / _slowly(k) / norm_squared
        shortest = min(tol / norm_squared, longest)
        return max(min(longest, 1.0 / max(curvature, 1e-300)), shortest)

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return ``(G + delta_k) / |G'|^2``, within reach."""
        aim = level + self.margin / _slowly(k) ** 2
        return min(aim / norm_squared, self.reach / _slowly(k) / np.sqrt(norm_squared))


def _slowly(k: int) -> float:
    return float(np.sqrt(1.0 + k / 10.0))


class _TolerancePolyak(StepRule):
    """Polyak's steps as in the papers: epsilon_k is the tolerance and the aim of the steps."""

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return ``epsilon_k / |f'|^2``."""
        return tol / norm_squared

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return ``G / |G'|^2``."""
        return level / norm_squared


class StaticTolerance(_TolerancePolyak):
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

    def __init__(self, epsilon: float = 1e-3):
        self.epsilon = epsilon

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon."""
        return self.epsilon


class DiminishingTolerance(_TolerancePolyak):
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

    def __init__(self, c: float = 0.5):
        self.c = c

    def tolerance(self, k: int, tol: float) -> float:
        """Return c / (k + 1)."""
        return self.c / (k + 1)


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

    averages = True

    def __init__(self, modulus: float, epsilon: float | None = None):
        self.modulus = modulus
        self.epsilon = epsilon

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon, or the tolerance asked for."""
        return tol if self.epsilon is None else self.epsilon

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))


class SwitchingSubgradient(PolishedSolver):
    r"""Switching subgradient method (SSG), for any problem with subgradients.

    A step follows the subgradient of the objective if :math:`G = \max_j g_j` is at most the
    tolerance, else the subgradient of G. On strongly convex problems (the subproblems of IPC) it
    uses the step sizes of IPC and returns the weighted average of the feasible points. On other
    problems it uses Polyak's step sizes and returns the best feasible point, or the point of least
    violation.

    Parameters
    ----------
    steps : StepRule or None, default=None
        The step sizes; None chooses as above.
    max_iter : int, default=1000
        The number of steps.
    own_tolerance : bool, default=False
        Whether a point counts as feasible if it meets the tolerance of its own step, as in the
        paper, in place of the larger one of the last step's and `tol` / 3. It makes a difference
        for tolerances that diminish: the answer may then violate by as much as the first one.
    check_every : int, default=100
        Steps between two measurements (each of which estimates the multipliers).
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by sequential quadratic programming
        steps from its best point. If False, estimators try no other solver either.

    Notes
    -----
    The effect of the additions to the published algorithm, measured by ``python -m benchmarks
    additions`` on COMPAS (demographic parity 0.02, 300 data passes; gaps are relative to the best
    objective):
    the gap is 0.09% by default and 0.14% with `paper()`. The margin, which keeps points feasible,
    costs a little: the gap is 0.07% without it.

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

    def __init__(
        self,
        steps: StepRule | None = None,
        *,
        own_tolerance: bool = False,
        max_iter: int = 1000,
        check_every: int = 100,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.steps = steps
        self.own_tolerance = own_tolerance
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol
        self.polish = polish

    @classmethod
    def paper(cls, **options: Any) -> SwitchingSubgradient:
        """Return IDCA's setting: a static tolerance of 1e-3 for 50,000 steps.

        The answer violates by up to this tolerance, which is therefore `tol` as well, unless other
        steps are given. The theory's number of steps is of the order of its inverse to the fourth
        power. The default aims at points inside the constraints,
        with steps from the measured curvature. As printed, the answer is the best of the points
        that met the tolerance of their own step: with :class:`DiminishingTolerance` it is one of
        the first points, and violates.

        `iterate` yields the printed answer so far; of the measured ones `minimize` returns the
        best.

        Parameters
        ----------
        **options
            Further hyperparameters, for instance ``steps=DiminishingTolerance(0.5)``.
        """
        steps = StaticTolerance()
        setting = {} if "steps" in options else {"steps": steps, "tol": steps.epsilon}
        run = {"max_iter": 50_000, "check_every": 1000, "own_tolerance": True, "polish": False}
        return cls(**{**setting, **run, **options})

    @classmethod
    def valid_parameters(cls) -> dict[str, Valid]:
        """Return the valid values of the step rule besides those of all solvers."""
        return {**super().valid_parameters(), "steps": VALID_RULE}

    def _rule(self, problem: Problem) -> StepRule:
        if self.steps is not None:
            return self.steps
        known = problem.modulus if problem.weakly_convex else -np.inf
        return StronglyConvexSteps(known) if known > 0.0 else PolyakSteps()

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer so far every `check_every` steps."""
        rule = self._rule(problem)
        last = max(start.feasible, rule.tolerance(self.max_iter - 1, start.feasible))
        answer = Average() if rule.averages else Best()
        metric, bend, at = metric_of(problem, rule), Bend(problem.objective), start.at(problem)
        for k in range(self.max_iter):
            bend.observe(at)
            tolerance = rule.tolerance(k, start.feasible)
            answer.add(at, k, tolerance if self.own_tolerance else last)
            level, worst = worst_constraint(at.constraints)
            if level <= tolerance:
                direction = at.gradient()
                norm = squared_norm(direction, metric)
                length = rule.descent(k, tolerance, norm, bend.curvature)
                bend.remember(at, length, norm)
            else:
                direction = at.gradient(worst, objective=0.0)
                length = rule.restoration(k, level, squared_norm(direction, metric))
            at = problem.at(problem.domain.project(at.w - length * metric * direction))
            if self.measures(problem, start, k + 1):
                yield Iterate(answer.point(at), None, k + 1)


def metric_of(problem: Problem, rule: StepRule) -> Array:
    """Return the diagonal that a rule's steps multiply gradients by: ones on a bounded domain."""
    if rule.in_units and problem.domain.whole_space:
        return problem.preconditioner**2
    return np.ones(problem.n_variables)
