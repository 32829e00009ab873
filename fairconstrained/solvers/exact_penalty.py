"""The exact penalty method: linearised constraints, a trust region, a penalty that adapts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.infeasibility import is_stuck
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.linearised import Curvature, Model, Step
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.result import Status
from fairconstrained.solvers.state import SolverState

_N_MERITS = 5  # latest merits, of which a step must fall below the largest (non-monotone)
_MIN_RATIO = 0.1  # of actual to predicted decrease, for a step to be accepted
_FIRST_WIDTH = 0.1  # below the largest constraint value, within which others are linearised
_MIN_SHARE = 0.3  # of the decrease of the violation that the constraints allow
_LARGE = 1e3  # times rho: a penalty at which a step goes for feasibility alone
_MAX_GROWTH = 1e6  # of the penalty parameter
_LEAST_FALL, _MAX_IDLE = 1e-2, 60  # of Phi, times the tolerance; trial steps without such a fall
_MIN_RADIUS = 1e-10  # of the trust region; below it the run has stalled


class ExactPenalty(Solver):
    r"""Exact penalty method with a trust region, for smooth problems.

    Minimises :math:`\Phi(w) = f(w) + \rho \max_j g_j(w)_+` by steps that solve

    .. math::
        \min_{s} \langle \nabla f, s \rangle + \tfrac12 s^\top B s
        + \rho \max_j \big(g_j + \langle \nabla g_j, s \rangle\big)_+
        \quad \text{s.t.} \quad w + s \in W, \quad s^\top B s \le \Delta^2,

    through its dual, which has a variable per constraint that is nearly active. The step is taken
    if :math:`\Phi` decreases by a fraction of the decrease of the model; the radius is adapted
    accordingly. rho grows only if a larger value would bring the model much nearer to feasibility,
    so that it stays bounded for infeasible problems.

    On the whole space B comes from the L-BFGS formula for the Lagrangian, damped, in the problem's
    units; on other domains it is a multiple of the identity (Barzilai and Borwein), so that steps
    are projections.

    Parameters
    ----------
    rho : float, default=0.3
        The first penalty parameter, > 0. With a small value the first steps decrease the objective,
        and later steps approach the constraints. With a large value all steps stay near the
        constraints, which may lead to worse local solutions.
    growth : float, default=4.0
        The factor by which rho grows, > 1.
    radius : float, default=1.0
        The first radius Delta, > 0; a step decreases f by at most about half its square.
    memory : int, default=30
        The number of pairs that L-BFGS stores. 0 is the paper's model: without the term in B, in
        a Euclidean ball, and with all constraints (at most 50), not only nearly active ones.
    max_iter : int, default=1000
        The maximum number of trial steps, each of which is one evaluation.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    Notes
    -----
    The effect of the additions, measured by ``python -m benchmarks additions`` on COMPAS
    (demographic parity 0.02): with curvature the run converges after 11 data passes, with the
    linear model after 109, with `paper()` after 107.

    References
    ----------
    C. Cartis, N. Gould, P. Toint, "On the evaluation complexity of composite function minimization
    with applications to nonconvex nonlinear programming", SIAM Journal on Optimization 21 (2011),
    algorithms 2.1 and 4.1; IPC, section 4 compares with it. The choice of rho is a simple form of
    R. Byrd, J. Nocedal, R. Waltz, "Steering exact penalty methods for nonlinear programming",
    Optimization Methods and Software 23 (2008); damping is Powell's (1978).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import ExactPenalty
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ExactPenalty())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    requires: ClassVar[tuple[str, ...]] = ("smooth",)
    preferred_with: ClassVar[tuple[str, ...]] = ("in_epigraph_form",)

    def __init__(
        self,
        rho: float = 0.3,
        *,
        growth: float = 4.0,
        radius: float = 1.0,
        memory: int = 30,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ):
        self.rho = rho
        self.growth = growth
        self.radius = radius
        self.memory = memory
        self.max_iter = max_iter
        self.tol = tol

    @classmethod
    def paper(cls, **options: Any) -> ExactPenalty:
        """Return the method that IPC compares with: a linear model in a ball.

        IPC cites Cartis, Gould and Toint (2011) and tunes the parameters; neither the algorithm nor
        their values are printed in the paper. These are the linear model and the trust region of
        the cited article with a first penalty of 1; the penalty grows by steering. The
        largest value of Phi at the latest five points is what a step must lower, as by default
        (non-monotone acceptance); in the article it is the latest value. The number
        of steps grows with the inverse square of the tolerance.
        The default's model has the curvature of the Lagrangian as well.

        Parameters
        ----------
        **options
            Further hyperparameters.
        """
        return cls(**{"rho": 1.0, "memory": 0, "max_iter": 5000, **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the points that are moved to."""
        at, radius = start.at(problem), self.radius
        last = ExactPenaltyState.of(start.state)
        merit = _Merit(self.rho if last is None else last.rho)
        curvature = Curvature(problem, self.memory)
        model = Model(at, curvature, self._width(_FIRST_WIDTH), start.multipliers)
        merit.add(at)
        for k in range(1, self.max_iter + 1):
            step = self._steered(model, merit, radius)
            trial = problem.at(at.w + step.s)
            ratio = merit.ratio(trial, step)
            curvature.update(step, trial.gradient(step.multipliers) - step.slope)
            change = float(np.abs(trial.constraints - at.constraints).max(initial=0.0))
            radius = _next_radius(radius, ratio, step.size)
            if ratio >= _MIN_RATIO:
                at = trial
                merit.add(at)
            merit.note(at, _LEAST_FALL * start.tol)
            width = self._width(2.0 * change)
            model = Model(at, curvature, width, step.multipliers, step.stretch)
            failure = self._failure(at, step, merit, radius, start.tol)
            ends = k == self.max_iter or start.passes_used_up(problem)
            if ratio >= _MIN_RATIO or failure is not None or ends:
                yield Iterate(at, step.multipliers, k, ExactPenaltyState(merit.rho), failure)

    def _width(self, width: float) -> float:
        """Return how far below the largest constraint others are linearised; all in the paper."""
        return np.inf if self.memory == 0 else width

    def _steered(self, model: Model, merit: _Merit, radius: float) -> Step:
        """Return the model's step for the least penalty that leads well towards feasibility."""
        step = model.solve(merit.rho, radius)
        if not step.pushes(merit.rho):
            return step
        possible = model.violation - model.solve(_LARGE * merit.rho, radius).violation
        while step.pushes(merit.rho) and merit.rho < _MAX_GROWTH * self.rho:
            if possible <= 1e-12 or model.violation - step.violation >= _MIN_SHARE * possible:
                break
            merit.rho *= self.growth
            step = model.solve(merit.rho, radius)
        return step

    def _failure(
        self, at: Evaluation, step: Step, merit: _Merit, radius: float, tol: float
    ) -> Status | None:
        """Return why the run cannot go on, None if it can."""
        ended = step.promise <= 1e-10 or radius <= _MIN_RADIUS
        idle = merit.rho >= 1e3 * self.rho and merit.fall_of_violation <= 0.1 * tol
        if (ended or idle) and step.violation > 0.9 * at.violation and is_stuck(at, tol):
            return Status.INFEASIBLE
        return Status.STALLED if radius <= _MIN_RADIUS or merit.idle >= _MAX_IDLE else None


@dataclass(frozen=True, eq=False)
class ExactPenaltyState(SolverState):
    """What :class:`ExactPenalty` leaves for a warm start.

    Attributes
    ----------
    rho : float
        The penalty parameter.
    """

    rho: float


def _next_radius(radius: float, ratio: float, size: float) -> float:
    if ratio < 0.25:
        return 0.5 * min(size, radius)
    return 2.0 * radius if ratio > 0.7 and size >= 0.8 * radius else radius


class _Merit:
    """The penalty function Phi, and its largest recent value."""

    def __init__(self, rho: float):
        self.rho = rho
        self.idle = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=_N_MERITS)
        self._least = np.inf, rho

    def add(self, at: Evaluation) -> None:
        """Take in a point that is moved to."""
        self._recent.append((at.objective, at.violation))

    def note(self, at: Evaluation, fall: float) -> None:
        """Count the trial steps since Phi last fell by so much, for the present penalty."""
        value, (least, rho) = at.objective + self.rho * at.violation, self._least
        if rho != self.rho or value < least - fall:
            self._least, self.idle = (value, self.rho), 0
        else:
            self.idle += 1

    @property
    def fall_of_violation(self) -> float:
        """By how much the violation has fallen in the latest steps; infinite before as many."""
        if len(self._recent) < _N_MERITS:
            return np.inf
        return self._recent[0][1] - self._recent[-1][1]

    def ratio(self, trial: Evaluation, step: Step) -> float:
        """Return the fall of Phi over what the model promises."""
        value = trial.objective + self.rho * trial.violation
        highest = max(f + self.rho * v for f, v in self._recent)
        rounding = 1e-13 * (abs(value) + abs(highest))
        return (highest - value + rounding) / max(step.promise, rounding)
