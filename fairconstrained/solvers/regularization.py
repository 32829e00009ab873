"""Regularisation: the violation is added to the objective, times a strength."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.smoothness import Lipschitz
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.utils.typing import Array


class Regularization(PolishedSolver):
    r"""Subgradient descent on the objective plus the violation, times a strength.

    .. math::
        \min_{w \in W} f(w) + s \max\{0, \max_j g_j(w)\}, \qquad
        \eta_k = \eta \Big(1 - \frac{k}{K}\Big)^p.

    If s exceeds the sum of the multipliers, the solutions are those of the constrained problem. The
    iterates oscillate about the boundary of the feasible set; the oscillation vanishes as the step
    sizes decrease to zero. Of the iterates between two measurements the best one is measured, or
    the last one.

    Parameters
    ----------
    strength : float or None, default=None
        s > 0. None starts at 1 and doubles it whenever the violation is not at least halved between
        measurements, until the constraints hold. With a given strength the result is the minimiser
        of the formula, whether it meets the constraints or not; it is the only point that is
        measured.
    eta : float or None, default=None
        The first step size, > 0. None: 1 / (L max{1, s}), where L is the curvature of the
        objective, estimated by power iterations.
    decay : float, default=3.0
        The power p >= 0 with which step sizes decrease to zero; 0 for constant steps.
    max_iter : int, default=1000
        The number of steps K.
    check_every : int, default=100
        Steps between two measurements (each of which estimates the multipliers).
    best : bool, default=True
        Whether the best point since the last measurement is measured: a feasible one with the
        smallest objective, or with a given strength the one of the smallest sum. If False it is
        the last point.
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
    the gap is 0.003% by default, 1% with constant steps, 10% with `paper()`. The growing strength
    makes no difference where a strength of 1 suffices, as here.

    References
    ----------
    IDCA, appendix D.4.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers.regularization import Regularization
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=Regularization(max_iter=1000, tol=1e-2))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    def __init__(
        self,
        strength: float | None = None,
        *,
        eta: float | None = None,
        decay: float = 3.0,
        max_iter: int = 1000,
        check_every: int = 100,
        best: bool = True,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.strength = strength
        self.eta = eta
        self.decay = decay
        self.max_iter = max_iter
        self.check_every = check_every
        self.best = best
        self.tol = tol
        self.polish = polish

    @classmethod
    def paper(cls, **options: Any) -> Regularization:
        """Return the paper's setting: a given strength and constant steps of 1e-3.

        The answer is the last point. A strength below the sum of the multipliers leaves a
        violation, however many steps are made; with a larger one constant steps jump over the
        boundary. The default raises the strength until the constraints hold, and its steps fall to
        zero.

        The paper tries steps of 5e-4 to 5e-3 and strengths of 0.001 to 2.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`Regularization`.
        """
        setting = {"strength": 1.0, "eta": 1e-3, "decay": 0.0, "max_iter": 10_000}
        return cls(**{**setting, "best": False, "polish": False, **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the best of the points since the last measurement, or the last one."""
        at = start.at(problem)
        measured = 1.0 / Lipschitz(at).curvature if self.eta is None else 0.0
        strength = 1.0 if self.strength is None else self.strength
        visited: list[Evaluation] = []  # the best point since the last measurement, if any
        before = np.inf
        for k in range(1, self.max_iter + 1):
            eta = measured / max(1.0, strength) if self.eta is None else self.eta
            gradient = at.gradient(strength * _worst(at))
            step = eta * (1.0 - (k - 1) / self.max_iter) ** self.decay
            at = problem.at(problem.domain.project(at.w - step * gradient))
            known = [*visited, at] if self.best else [at]
            best = min(known, key=lambda one: self._rank(one, start))
            visited = [best]
            last = k == self.max_iter or start.passes_used_up(problem)
            if last or (k % self.check_every == 0 and self.strength is None):
                yield Iterate(best, None, k)
                if best.violation > max(start.feasible, 0.5 * before):
                    strength *= 2.0
                visited, before = [], best.violation

    @property
    def seeks_feasibility(self) -> bool:
        """Whether the strength is not given: else the answer is the minimiser of the formula."""
        return self.strength is None

    @property
    def polishes(self) -> bool:
        """Whether the strength is not given, and `polish` is set."""
        return self.polish and self.seeks_feasibility

    def _rank(self, at: Evaluation, start: Start) -> tuple[float, float]:
        """Return what sorts points: feasible ones first, or by the formula if s is given."""
        if self.strength is not None:
            return 0.0, at.objective + self.strength * at.violation
        return max(at.violation - start.feasible, 0.0), at.objective


def _worst(at: Evaluation) -> Array:
    """Return one at the largest of the violated constraints, zeros if none is."""
    weights = np.zeros(at.problem.n_constraints)
    if at.violation > 0.0:
        weights[int(at.constraints.argmax())] = 1.0
    return weights
