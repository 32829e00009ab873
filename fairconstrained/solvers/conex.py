"""ConEx: constraint extrapolation, an oracle of convex problems and a solver of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.first_order import Average, FirstOrderSolver, constants_at, linearised
from fairconstrained.utils.parameter_constraints import POSITIVE, ParameterConstraints


@dataclass(eq=False, repr=False)
class ConEx(FirstOrderSolver):
    r"""Constraint extrapolation method, for any problem with subgradients.

    With :math:`k = t + t_0`, :math:`\theta_t = (k - 1) / k`, :math:`\eta_t = c_1 k`,
    :math:`\tau_t = c_2 / k` and the linearisations :math:`\ell_t = g(w_{t-1}) + \nabla g(w_{t-1})
    (w_t - w_{t-1})`,

    .. math::
        \lambda_{t+1} = \max\{\lambda_t + (\ell_t + \theta_t (\ell_t - \ell_{t-1})) / \tau_t,
        0\}, \qquad
        w_{t+1} = \mathrm{Proj}_W(w_t - (\nabla f(w_t) + \sum_j \lambda_{t+1,j} \nabla g_j(w_t))
        / \eta_t).

    The printed answer is the average of all points with weights k, and that of the multipliers; the
    last point is measured as well. The theory covers convex problems. A step is one evaluation; a
    linearisation takes a backward pass for every statistic that the constraints depend on.

    Parameters
    ----------
    c1 : float or None, default=None
        The factor of :math:`\eta_t`, > 0. None takes :math:`2 L / t_0`, where L is the curvature of
        the objective at the start, so that the first step has length 1 / (2 L).
    c2 : float or None, default=None
        The factor of :math:`\tau_t`, > 0. None takes :math:`2 M^2 / c_1`, where M is the norm of
        the Jacobian of the constraints at the start: twice the paper's condition
        :math:`\eta_t \tau_t \ge M^2`.
    offset : float or None, default=None
        :math:`t_0 > 0`, the number of steps after which the step size is halved; None takes
        `max_iter`.
    linearized : bool, default=False
        Whether :math:`\ell_t` is the linearisation, as printed, or :math:`g(w_t)`, which costs
        nothing.
    max_iter : int, default=200
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by second-order steps from its best
        point, see :func:`~fairconstrained.solvers.base.refine`. If False, estimators try no
        other solver either.

    References
    ----------
    D. Boob, Q. Deng, G. Lan, "Stochastic first-order methods for convex and nonconvex functional
    constrained optimization", Mathematical Programming 197 (2023), algorithm 1, its step sizes for
    strongly convex problems; 3S-Econ, section 6 (IPP-ConEx).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import IPC
    >>> from fairconstrained.solvers.conex import ConEx
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ConEx())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> IPC(ConEx(max_iter=100), max_iter=20)  # known as IPP-ConEx
    IPC(max_iter=20, oracle=ConEx(max_iter=100))
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "c1": [POSITIVE, None],
        "c2": [POSITIVE, None],
        "offset": [POSITIVE, None],
        "linearized": ["boolean"],
    }

    c1: float | None = None
    c2: float | None = None
    _: KW_ONLY
    offset: float | None = None
    linearized: bool = False

    @classmethod
    def paper(cls, **options: Any) -> ConEx:
        """Return algorithm 1 as printed, with 3S-Econ's t0 = 1, c1 = 20, c2 = 0.01.

        The theory asks for c1 c2 >= M^2, M being the norm of the constraints' Jacobian: 0.2 is too
        little where M exceeds 0.45, and the iterates then oscillate. The default measures M.

        `iterate` yields the last point and the printed answer so far in turn; of these `minimize`
        returns the best.

        Parameters
        ----------
        **options
            Further hyperparameters; the paper tries c1 in {20, 50, 100, 200} and c2 in
            {0.002, 0.005, 0.01, 0.02}.
        """
        setting = {"c1": 20.0, "c2": 0.01, "offset": 1.0, "linearized": True, "max_iter": 5000}
        return cls(**{**setting, "polish": False, **options})

    def _constants(self, at: Evaluation) -> tuple[float, float, float]:
        """Return c1, c2 and the offset."""
        offset = float(self.max_iter) if self.offset is None else self.offset
        if self.c1 is not None and self.c2 is not None:
            return self.c1, self.c2, offset
        curvature, slope = constants_at(at)
        c1 = 2.0 * curvature / offset if self.c1 is None else self.c1
        return c1, 2.0 * slope**2 / c1 if self.c2 is None else self.c2, offset

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the last point and the average so far every `check_every` steps."""
        at = before = start.at(problem)
        c1, c2, offset = self._constants(at)
        lam, ahead = start.first_multipliers(problem.n_constraints), at.constraints
        points, multipliers = Average(), Average()
        for t in range(self.max_iter):
            k, last = t + offset, ahead
            ahead = linearised(before, at.w) if self.linearized else at.constraints
            rise = ahead + (k - 1.0) / k * (ahead - last)
            lam = np.maximum(lam + k / c2 * rise, 0.0)
            before = at
            at = problem.at(problem.domain.project(at.w - at.gradient(lam) / (c1 * k)))
            points.add(at.w, k)
            multipliers.add(lam, k)
            if self.measures(problem, start, t + 1):
                yield Iterate(at, lam, t + 1)
                yield Iterate(problem.at(points.mean), multipliers.mean, t + 1)
