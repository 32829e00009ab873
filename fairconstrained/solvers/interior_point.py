"""A barrier method, the subproblem solver whose answers always satisfy the constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.lbfgs import CurvaturePairs, InverseHessian, minimize_lbfgs
from fairconstrained.solvers._tools.minimize import LatestEvaluation
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.result import Status
from fairconstrained.solvers.state import RoundingState
from fairconstrained.utils.typing import Array

_MAX_WIDTH, _MIN_WIDTH = 0.1, 1e-6  # of the rounding of kinks
_MIN_MARGIN = 0.9  # part of the distance to the constraints that rounding must leave
_CENTERED = 1.0  # gradient norm, relative to mu m, at which a round has found its minimum
_CENTERED_POWER = 5.0  # of the factor `shrink` after such a round


class InteriorPoint(Solver):
    r"""Logarithmic barrier method with L-BFGS: from a strictly feasible point to feasible points.

    Every round takes a few steps on

    .. math::
        f(w) - \mu \sum_j \log(-g_j(w)), \qquad \lambda_j = \mu / (-g_j(w)),

    and then reduces mu. No step violates the constraints, so that any number of steps gives IDCA a
    better feasible point. The convex majorants of IDCA equal the problem at the point where they
    are built, and need not be solved accurately. Kinks are rounded, from above where the functions
    are convex, by a width that decreases with mu. The curvature pairs of L-BFGS are kept from round
    to round, and in the state for warm starts.

    Parameters
    ----------
    mu : float, default=0.003
        The first mu, > 0; a warm start uses the last one.
    shrink : float, default=0.95
        The factor of mu from one round to the next, in (0, 1).
    max_inner : int, default=15
        The L-BFGS steps of a round.
    memory : int, default=20
        The number of pairs that L-BFGS stores.
    max_iter : int, default=200
        The maximum number of rounds.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    A. Fiacco, G. McCormick, "Nonlinear Programming: Sequential Unconstrained Minimization
    Techniques", 1968; IDCA, algorithm 1, whose subproblems it solves.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import IDCA
    >>> from fairconstrained.solvers.interior_point import InteriorPoint
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> solver = IDCA(InteriorPoint(max_iter=1), tol=0.01)
    >>> clf = FairLogisticClassifier(kappa=0.05, surrogate="ramp", solver=solver)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value, clf.violation_
    ('converged', 0.0)
    """

    requires: ClassVar[tuple[str, ...]] = ("smoothable",)

    def __init__(
        self,
        mu: float = 0.003,
        *,
        shrink: float = 0.95,
        max_inner: int = 15,
        memory: int = 20,
        max_iter: int = 200,
        tol: float = 1e-4,
    ):
        self.mu = mu
        self.shrink = shrink
        self.max_inner = max_inner
        self.memory = memory
        self.max_iter = max_iter
        self.tol = tol

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks; the domain must be the whole space."""
        lacking = super().missing(problem)
        bounds = problem.domain.bounds(problem.n_variables)
        unbounded = bounds is not None and not np.any(np.isfinite(bounds))
        return lacking if unbounded else [*lacking, "unbounded_domain"]

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        at = start.at(problem)
        if at.constraints.max(initial=-1.0) >= 0.0:
            yield Iterate(at, None, 1, status=Status.STALLED)
            return
        last = InteriorPointState.of(start.state) or InteriorPointState(mu=self.mu)
        mu, min_mu = last.mu, start.tol / (10.0 * max(problem.n_constraints, 1))
        hessian = InverseHessian.for_variables(start.w.size, last.curvature, size=self.memory)
        for k in range(1, self.max_iter + 1):
            smooth, width = _rounded(at, mu / self.mu)
            inside, gradient_norm = self._minimize_round(
                smooth.at(at.w, like=at), start, mu, hessian
            )
            multipliers = mu / np.maximum(-inside.constraints, 1e-300)
            at = problem.at(inside.w, like=inside)
            centered = gradient_norm <= _CENTERED * mu * problem.n_constraints
            mu = max(mu * self.shrink ** (_CENTERED_POWER if centered else 1.0), min_mu)
            state = InteriorPointState(width, mu, hessian.pairs)
            yield Iterate(at, multipliers, k, state, rounded=inside)

    def _minimize_round(
        self, first: Evaluation, start: Start, mu: float, hessian: InverseHessian
    ) -> tuple[Evaluation, float]:
        """Return the last point, which is strictly feasible, and the gradient's norm there."""
        problem, latest = first.problem, LatestEvaluation(first)

        def gradient(at: Evaluation) -> Array:
            return at.gradient(mu / -at.constraints)

        def barrier(x: Array) -> tuple[float, Array]:
            at = latest.at(x)
            distances = -at.constraints
            if distances.min(initial=1.0) <= 0.0:
                return np.inf, np.zeros_like(x)
            return at.objective - mu * float(np.log(distances).sum()), gradient(at)

        scale = problem.preconditioner
        found = minimize_lbfgs(
            barrier, first.w, tol=0.0, max_iter=self.max_inner, preconditioner=scale,
            inverse_hessian=hessian, stop=lambda: start.passes_used_up(problem),
        )  # fmt: skip
        at = latest.at(found)
        return at, float(np.linalg.norm(scale * gradient(at)))


@dataclass(frozen=True, eq=False)
class InteriorPointState(RoundingState):
    """What :class:`InteriorPoint` leaves for a warm start.

    Attributes
    ----------
    width : float or None
        See :class:`~fairconstrained.solvers.state.RoundingState`.
    mu : float
        The barrier parameter.
    curvature : CurvaturePairs or None
        The pairs of L-BFGS.
    """

    mu: float = 0.003
    curvature: CurvaturePairs | None = None


def _rounded(at: Evaluation, share: float) -> tuple[Problem, float | None]:
    """Return a smooth problem with the point strictly inside its constraints, and the width."""
    problem = at.problem
    if problem.smooth:
        return problem, None
    width = max(_MAX_WIDTH * min(1.0, float(np.sqrt(share))), _MIN_WIDTH)
    level = at.constraints.max(initial=-1.0)
    while width > _MIN_WIDTH:
        smooth = problem.smoothed(width)
        rounded = smooth.uncounted().at(at.w, like=at)
        if rounded.constraints.max(initial=-1.0) < _MIN_MARGIN * level:
            return smooth, width
        width *= 0.5
    return problem.smoothed(width), width
