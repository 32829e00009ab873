"""Subgradient methods on the objective or the worst constraint, or on their sum."""

from dataclasses import KW_ONLY
from itertools import count
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import FirstOrderSolver, Mean, Rows, Updates, constants_at
from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import Count, Limit, NonNegative, Positive


class StepRule(Parametrized):
    r"""The step sizes, and the value up to which a point counts as feasible.

    Methods are given the step k, from 0; the tolerance of the answer or of the step; the squared
    norm of the subgradient; the curvature of the objective or the largest constraint value.

    Attributes
    ----------
    averages : bool
        Whether the answer is the average of the feasible points, weighted by k + 1, or the best.
    """

    averages: ClassVar[bool] = False

    def tolerance(self, k: int, tol: float) -> float:
        """Return the largest constraint value at which step k decreases the objective."""
        return tol

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        r"""Return the length of a step on the objective: :math:`\epsilon_k / \|f'\|^2`."""
        return tol / norm_squared

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return the length of a step on the constraint of value `level` > 0, by the same rule."""
        return self.descent(k, level, norm_squared, 0.0)


class PolyakSteps(StepRule):
    r"""Steps of diminishing aims, limited by the curvature of the objective; the default.

    .. math::
        \min\Big\{\frac{\epsilon_k}{\|f'\|^2}, \frac{1}{L}\Big\}
        \quad\text{and}\quad \frac{\min\{G, \epsilon_k\}}{\|G'\|^2}, \qquad
        \epsilon_k = \frac{\text{first}}{\sqrt{1 + k / 10}},

    with L the curvature of the objective at the start. Points that meet the tolerance `tol` count
    as feasible, from the first step on.

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

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return ``min(epsilon_k / |f'|^2, 1 / L)``."""
        return min(self._aim(k) / norm_squared, 1.0 / curvature)

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return ``min(G, epsilon_k) / |G'|^2``: contradictory constraints lead nowhere."""
        return min(level, self._aim(k)) / norm_squared

    def _aim(self, k: int) -> float:
        return self.first / sqrt(1.0 + k / 10.0)


class StaticTolerance(StepRule):
    r"""Steps :math:`\epsilon / \|f'\|^2` where :math:`G \le \epsilon`, else :math:`G / \|G'\|^2`.

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
    >>> from fairconstrained.solvers import StaticTolerance
    >>> StaticTolerance(1e-3).restoration(k=0, level=0.5, norm_squared=4.0)
    0.125
    """

    epsilon: NonNegative = 1e-3

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon."""
        return self.epsilon


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
    def paper(cls, **options: Any) -> "SwitchingSubgradient":
        """Return IDCA's setting: a static tolerance of 1e-3 for 50,000 steps.

        The answer violates by up to this tolerance, which is therefore `tol` as well, unless other
        steps are given. With :class:`DiminishingTolerance` it is one of the first points. `iterate`
        yields the printed answer so far; of the measured ones `minimize` returns the best. For the
        printed coordinates see :meth:`PLADA.paper`. Options are further hyperparameters.
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
        curvature = rows.constants.curvature if isinstance(rule, PolyakSteps) else 0.0
        at = best = rows.draw(start.w).at
        mean, least = Mean(), (float("inf"), float("inf"))
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
            at = rows.draw(self.moved(at, rows.fade * length * direction)).at
            # Without a feasible point there is no average.
            answer = problem.at(*mean.means) if mean.means else at if rule.averages else best
            yield [(each, None) for each in (rows.answers(at) if rows.sampled else [answer])]


class StochasticSwitchingSubgradient(SwitchingSubgradient, kw_only=True):
    r"""Switching subgradient method on mini-batches (SSG-S).

    Subgradients, and the values that decide between objective and constraints, come from stratified
    batches. Steps shrink over the run by (1 - k / K)^2, and the result is an average of recent
    points. The paper prints no algorithm for its SSG-S.

    Parameters
    ----------
    steps, batch_size, max_iter, check_every, tol, polish
        Those of :class:`SwitchingSubgradient`; `batch_size` is 512, `max_iter` 600.

    References
    ----------
    3S-Econ, section 4.4 and table 2 (SSG-S), compares with it.

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


class Regularization(FirstOrderSolver):
    r"""Subgradient descent on the objective plus the violation, times a strength.

    .. math::
        \min_{w \in W} f(w) + s \max\{0, \max_j g_j(w)\}

    by subgradient steps of length :math:`\eta (1 - k / K)^p`. If s exceeds the sum of the
    multipliers, the solutions are those of the constrained problem. The iterates oscillate about
    the boundary of the feasible set, the less the shorter the steps are.

    Parameters
    ----------
    strength : float or None, default=None
        s > 0. None starts at 1 and doubles it whenever the violation is not at least halved between
        measurements, until the constraints hold. With a given strength the result is the minimiser
        of the formula, feasible or not; it is the only point that is measured.
    eta : float or None, default=None
        The first step size, > 0. None: 1 / (L max{1, s}), where L is the curvature of the objective
        plus the largest constraint at the start.
    decay : float, default=3.0
        The power p >= 0 with which step sizes decrease to zero; 0 for constant steps.
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`; `check_every` is 20.

    References
    ----------
    IDCA, appendix D.4.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import Regularization
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=Regularization(max_iter=1000, tol=1e-2))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    strength: Positive | None = None
    _: KW_ONLY
    eta: Positive | None = None
    decay: NonNegative = 3.0
    check_every: Count = 20

    @classmethod
    def paper(cls, **options: Any) -> "Regularization":
        """Return the paper's setting: a given strength and constant steps of 1e-3.

        The answer is the last point. A strength below the sum of the multipliers leaves a
        violation, however many steps are made; with a larger one constant steps jump over the
        boundary. The default raises the strength until the constraints hold. The paper tries steps
        of 5e-4 to 5e-3 and strengths of 0.001 to 2. For the printed coordinates see
        :meth:`PLADA.paper`. Options are further hyperparameters.
        """
        setting = {"strength": 1.0, "eta": 1e-3, "decay": 0.0, "max_iter": 10_000, "polish": False}
        return cls(**{**setting, **options})

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the point; with a given strength only the last one."""
        at, strength, before = start.at(problem), self.strength or 1.0, np.inf
        largest = worst_constraint(at.constraints)[1]
        curvature = constants_at(at, largest).curvature if self.eta is None else 0.0
        for k in count(1):
            level, worst = worst_constraint(at.constraints)
            gradient = at.gradient(strength * (level > 0.0) * worst)
            eta = self.eta or 1.0 / (curvature * max(1.0, strength))
            eta *= (1.0 - (k - 1) / self.max_iter) ** self.decay
            at = problem.at(self.moved(at, eta * gradient))
            last = k == self.max_iter or start.passes_used_up(problem)
            yield [(at, None)] if last or self.strength is None else []
            if self.strength is None and k % self.check_every == 0:
                # Steps that shrink by themselves reduce a violation, too: only one that does not
                # halve shows that the strength is below the sum of the multipliers.
                if at.violation > max(start.feasibility_tol, 0.5 * before):
                    strength *= 2.0
                before = at.violation

    @property
    def seeks_feasibility(self) -> bool:  # type: ignore[override]
        """Whether the strength is not given: else the answer is the minimiser of the formula."""
        return self.strength is None


def worst_constraint(values: Array) -> tuple[float, Array]:
    """Return the largest constraint value and the unit vector of its constraint."""
    if not len(values):
        return -np.inf, values
    worst = int(values.argmax())
    return float(values[worst]), np.eye(1, len(values), worst)[0]
