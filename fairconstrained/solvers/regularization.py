"""Regularisation: the violation is added to the objective, times a strength."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.first_order import FirstOrderSolver, constants_at, worst_constraint
from fairconstrained.utils.parameter_constraints import NON_NEGATIVE, POSITIVE, ParameterConstraints


@dataclass(eq=False, repr=False)
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
        of the formula, whether it meets the constraints or not; it is the only point that is
        measured.
    eta : float or None, default=None
        The first step size, > 0. None: 1 / (L max{1, s}), where L is the curvature of the objective
        plus the largest constraint at the start.
    decay : float, default=3.0
        The power p >= 0 with which step sizes decrease to zero; 0 for constant steps.
    max_iter : int, default=200
        The number of steps.
    check_every : int, default=20
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by second-order steps from its best
        point, see :func:`~fairconstrained.solvers.base.refine`. If False, estimators try no
        other solver either.

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

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "strength": [POSITIVE, None],
        "eta": [POSITIVE, None],
        "decay": [NON_NEGATIVE],
    }

    strength: float | None = None
    _: KW_ONLY
    eta: float | None = None
    decay: float = 3.0
    check_every: int = 20

    @classmethod
    def paper(cls, **options: Any) -> Regularization:
        """Return the paper's setting: a given strength and constant steps of 1e-3.

        The answer is the last point. A strength below the sum of the multipliers leaves a
        violation, however many steps are made; with a larger one constant steps jump over the
        boundary. The default raises the strength until the constraints hold.

        The paper tries steps of 5e-4 to 5e-3 and strengths of 0.001 to 2.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`Regularization`.
        """
        setting = {"strength": 1.0, "eta": 1e-3, "decay": 0.0, "max_iter": 10_000, "polish": False}
        return cls(**{**setting, **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the point every `check_every` steps."""
        at = start.at(problem)
        strength, before = self.strength or 1.0, np.inf
        largest = worst_constraint(at.constraints)[1]
        curvature = constants_at(at, largest)[0] if self.eta is None else 0.0
        for k in range(1, self.max_iter + 1):
            level, worst = worst_constraint(at.constraints)
            gradient = at.gradient(strength * (level > 0.0) * worst)
            eta = self.eta or 1.0 / (curvature * max(1.0, strength))
            eta *= (1.0 - (k - 1) / self.max_iter) ** self.decay
            at = problem.at(problem.domain.project(at.w - eta * gradient))
            last = k == self.max_iter or start.passes_used_up(problem)
            if last or (self.strength is None and k % self.check_every == 0):
                yield Iterate(at, None, k)
                # Steps that shrink by themselves reduce a violation, too: only one that does not
                # halve shows that the strength is below the sum of the multipliers.
                if at.violation > max(start.feasibility_tol, 0.5 * before):
                    strength *= 2.0
                before = at.violation

    @property
    def seeks_feasibility(self) -> bool:
        """Whether the strength is not given: else the answer is the minimiser of the formula."""
        return self.strength is None

    @property
    def polishes(self) -> bool:
        """Whether the strength is not given, and `polish` is set."""
        return self.polish and self.seeks_feasibility
