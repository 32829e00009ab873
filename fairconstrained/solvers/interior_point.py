"""A barrier method: the oracle whose answers always satisfy the constraints."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.result import Status
from fairconstrained.utils.typing import Array

_WIDEST, _NARROWEST = 0.1, 1e-6  # widths that kinks are rounded over
_SUFFICIENT, _MOST_HALVINGS = 1e-4, 40
_NEAR, _FASTER = 1.0, 5.0  # once a round ends near its minimum, mu shrinks that much faster

Point = Callable[[Array], tuple[float, Evaluation]]


class InteriorPoint(Solver):
    r"""Logarithmic barrier with L-BFGS inside: from a strictly feasible point to feasible points.

    Decreases, by a few steps for each value of a mu that shrinks,

    .. math::
        f(w) - \mu \sum_j \log(-g_j(w)), \qquad \lambda_j = \mu / (-g_j(w)).

    No step leaves the constraints, so that any number of steps gives IDCA a better feasible point:
    its majorants touch where they were made and need not be solved closely before the next one.
    Kinks are rounded, from above where the functions are convex, by a width that shrinks with mu.

    Parameters
    ----------
    mu : float, default=0.003
        The first mu, > 0; a warm start goes on with the last one.
    shrink : float, default=0.95
        What mu is multiplied by from one round to the next, in (0, 1).
    max_inner : int, default=15
        The L-BFGS steps of a round.
    memory : int, default=20
        The pairs that L-BFGS keeps.
    max_iter : int, default=200
        The largest number of rounds.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    A. Fiacco, G. McCormick, "Nonlinear Programming: Sequential Unconstrained Minimization
    Techniques", 1968; IDCA, algorithm 1, for whose subproblems it is made.

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
        """Return what the problem lacks; domains must be the whole space."""
        lacking = super().missing(problem)
        whole = problem.domain.bounds(problem.n_variables)
        free = whole is not None and not np.any(np.isfinite(whole))
        return lacking if free else [*lacking, "unbounded_domain"]

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        at = problem.at(start.w)
        if at.constraints.max(initial=-1.0) >= 0.0:
            yield Iterate(at, None, 1, status=Status.STALLED)
            return
        last = start.tol / (10.0 * max(problem.n_constraints, 1))
        mu = start.state.get("mu", self.mu)
        for k in range(1, self.max_iter + 1):
            smooth = _rounded(problem, at.w, mu / self.mu)
            inside, left = self._descend(smooth, at.w, mu)
            multipliers = mu / np.maximum(-inside.constraints, 1e-300)
            at = problem.at(inside.w)
            arrived = left <= _NEAR * mu * problem.n_constraints
            mu = max(mu * self.shrink ** (_FASTER if arrived else 1.0), last)
            yield Iterate(at, multipliers, k, {"mu": mu}, rounded=inside)

    def _descend(self, problem: Problem, w: Array, mu: float) -> tuple[Evaluation, float]:
        """Return where the steps lead, strictly inside the constraints, and the slope there."""
        units = problem.preconditioner

        def barrier(x: Array) -> tuple[float, Evaluation]:
            at = problem.at(x)
            slack = -at.constraints
            if slack.min(initial=1.0) <= 0.0:
                return np.inf, at
            return at.objective - mu * float(np.log(slack).sum()), at

        def gradient(at: Evaluation) -> Array:
            return units * at.gradient(mu / -at.constraints)

        value, at = barrier(w)
        slope = gradient(at)
        pairs: deque[tuple[Array, Array]] = deque(maxlen=self.memory)
        for _ in range(self.max_inner):
            direction = -_times_inverse(pairs, slope)
            found = _backtrack(barrier, at.w, value, units * direction, float(slope @ direction))
            if found is None:
                break
            new = gradient(found[1])
            step, turn = (found[1].w - at.w) / units, new - slope
            if step @ turn > 1e-10 * np.linalg.norm(step) * np.linalg.norm(turn):
                pairs.append((step, turn))
            (value, at), slope = found, new
        return at, float(np.linalg.norm(slope))


def _rounded(problem: Problem, w: Array, share: float) -> Problem:
    """Return a smooth problem with `w` strictly inside."""
    if problem.smooth:
        return problem
    width = max(_WIDEST * min(1.0, float(np.sqrt(share))), _NARROWEST)
    level = problem.uncounted().at(w).constraints.max(initial=-1.0)
    while width > _NARROWEST:
        smooth = problem.smoothed(width)
        if smooth.uncounted().at(w).constraints.max(initial=-1.0) < 0.9 * level:
            return smooth
        width *= 0.5
    return problem.smoothed(width)


def _times_inverse(pairs: deque[tuple[Array, Array]], gradient: Array) -> Array:
    """Return L-BFGS's inverse Hessian times the gradient (the two-loop recursion)."""
    out, factors = gradient.copy(), []
    for step, turn in reversed(pairs):
        factors.append(float(step @ out) / float(step @ turn))
        out -= factors[-1] * turn
    if pairs:
        step, turn = pairs[-1]
        out *= float(step @ turn) / float(turn @ turn)
    else:
        out /= max(float(np.linalg.norm(gradient)), 1e-300)
    for (step, turn), factor in zip(pairs, reversed(factors), strict=True):
        out += (factor - float(turn @ out) / float(step @ turn)) * step
    return out


def _backtrack(
    function: Point, w: Array, value: float, direction: Array, slope: float
) -> tuple[float, Evaluation] | None:
    """Return the first of halved steps that decreases the function enough, None if none does."""
    length = 1.0
    for _ in range(_MOST_HALVINGS):
        reached = function(w + length * direction)
        if reached[0] <= value + _SUFFICIENT * length * slope:
            return reached
        length *= 0.5
    return None
