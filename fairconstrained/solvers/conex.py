"""ConEx: constraint extrapolation, an oracle of convex problems and a solver of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.descent import (
    Descent,
    SuffixAverage,
    first_multipliers,
    linearised,
)
from fairconstrained.solvers._tools.parameters import Choice, Valid
from fairconstrained.solvers._tools.scales import Scales
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.utils.typing import Array

_STEP_ERROR = 0.01  # of the tolerance: the error that a step may have


class ConEx(PolishedSolver):
    r"""Constraint extrapolation method, for any problem with subgradients.

    With :math:`k = t + t_0`, :math:`\theta_t = (k - 1) / k`, :math:`\eta_t = c_1 k` and
    :math:`\tau_t = c_2 / k`,

    .. math::
        \lambda_{t+1} = \max\{\lambda_t + (g(w_t) + \theta_t (g(w_t) - g(w_{t-1}))) / \tau_t, 0\},
        \qquad
        w_{t+1} = \mathrm{Proj}_W(w_t - (\nabla f(w_t) + \sum_j \lambda_{t+1,j} \nabla g_j(w_t))
        / \eta_t).

    The theory covers convex problems; in practice the method also finds KKT points of other
    problems. On smooth problems the result is the last point and its multipliers, on others
    averages with weights k over the second half of the run; the paper's is the average of all
    points. A step is one forward and one backward pass: constraint values replace the
    linearisations of the paper, which need a Jacobian. If a step is too long, :math:`\eta_t` is
    increased, see :class:`~fairconstrained.solvers._tools.descent.Descent`. Each of these three
    changes can be switched off; :meth:`paper` is the algorithm as published.

    Parameters
    ----------
    c1 : float or None, default=None
        The factor of :math:`\eta_t`, > 0. None takes :math:`L / t_0`, where L is the curvature of
        the objective at the start, so that the first step has length 1 / L.
    c2 : float or None, default=None
        The factor of :math:`\tau_t`, > 0. None takes :math:`M^2 / c_1`, where M is the norm of the
        Jacobian of the constraints at the start: the paper's condition :math:`\eta_t \tau_t \ge
        M^2`.
    offset : float or None, default=None
        :math:`t_0 > 0`, the number of steps after which the step size is halved; None takes
        `max_iter`.
    linearized : bool, default=False
        Whether multipliers take :math:`\ell_t = g(w_{t-1}) + \nabla g(w_{t-1}) (w_t - w_{t-1})` in
        place of :math:`g(w_t)`, and :math:`\ell_{t-1}` in place of :math:`g(w_{t-1})`, as the paper
        does. It costs one backward pass per constraint.
    average : {"suffix", "all"}, default="suffix"
        The points that the result is an average of: those of the second half of the run (on smooth
        problems the last one), or all.
    adapt : bool, default=True
        Whether :math:`\eta_t` is increased if a step is too long.
    max_iter : int, default=1000
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
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
    with c1 and c2 from measured constants the run converges after 232 passes; with those of the
    paper a gap of 12% remains, with `paper()` 11%. With the average of all points no point is
    feasible after 300 passes. Values in place of linearisations save a backward pass per constraint
    and give the same points there. Without `adapt` the run converges after 181 passes there;
    `adapt` is for objectives whose curvature increases during the run.

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
    >>> IPC(ConEx(max_iter=200), max_iter=20)  # known as IPP-ConEx
    IPC(max_iter=20, oracle=ConEx(max_iter=200))
    """

    def __init__(
        self,
        c1: float | None = None,
        c2: float | None = None,
        *,
        offset: float | None = None,
        linearized: bool = False,
        average: Literal["suffix", "all"] = "suffix",
        adapt: bool = True,
        max_iter: int = 1000,
        check_every: int = 50,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.c1 = c1
        self.c2 = c2
        self.offset = offset
        self.linearized = linearized
        self.average = average
        self.adapt = adapt
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol
        self.polish = polish

    @classmethod
    def paper(cls, **options: Any) -> ConEx:
        """Return algorithm 1 as printed, with 3S-Econ's t0 = 1, c1 = 20, c2 = 0.01.

        Multipliers take the linearisation of the constraints at the point before, the answer is the
        average of all points with weights t + 1, and step sizes are not adapted.

        The theory asks for c1 c2 >= M^2, M being the norm of the constraints' Jacobian: 0.2 is too
        little where M exceeds 0.45, and the iterates then oscillate. The default measures M.

        `iterate` yields the printed answer so far; of the measured ones `minimize` returns the
        best.

        Parameters
        ----------
        **options
            Further hyperparameters; the paper tries c1 in {20, 50, 100, 200} and c2 in
            {0.002, 0.005, 0.01, 0.02}.
        """
        setting = {"c1": 20.0, "c2": 0.01, "offset": 1.0, "max_iter": 5000}
        plain = {"linearized": True, "average": "all", "adapt": False}
        return cls(**{**setting, **plain, "polish": False, **options})

    @classmethod
    def valid_parameters(cls) -> dict[str, Valid]:
        """Return the valid values of `average` besides those of all solvers."""
        return {**super().valid_parameters(), "average": Choice(("suffix", "all"))}

    def _constants(self, at: Evaluation) -> tuple[float, float, float]:
        """Return c1, c2 and the offset."""
        offset = float(self.max_iter) if self.offset is None else self.offset
        if self.c1 is not None and self.c2 is not None:
            return self.c1, self.c2, offset
        scales = Scales.near(at, np.random.RandomState(0))
        c1 = (scales.curvature or scales.slope or 1.0) / offset if self.c1 is None else self.c1
        return c1, scales.slope**2 / c1 if self.c2 is None else self.c2, offset

    def _values(self, before: Evaluation, at: Evaluation) -> Array:
        """Return what is extrapolated."""
        return linearised(before, at) if self.linearized else at.constraints

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer so far every `check_every` steps."""
        at, multipliers = start.at(problem), first_multipliers(problem, start)
        c1, c2, offset = self._constants(at)
        descent = Descent(c1 * offset, _STEP_ERROR * start.tol, adapt=self.adapt)
        restarts = self.average == "suffix"
        points, prices = SuffixAverage(restarts=restarts), SuffixAverage(restarts=restarts)
        before, values = at, at.constraints
        for t in range(self.max_iter):
            k = t + offset
            last, values = values, self._values(before, at)
            ahead = values + (k - 1.0) / k * (values - last)
            multipliers = np.maximum(multipliers + k / max(c2, 1e-12) * ahead, 0.0)
            before, at = at, descent.step(at, multipliers, growth=k / offset)
            points.add(at.w, k)
            prices.add(multipliers, k)
            if self.measures(problem, start, t + 1):
                if problem.smooth and restarts:
                    yield Iterate(at, multipliers, t + 1)
                else:
                    yield Iterate(problem.at(points.mean), prices.mean, t + 1)
