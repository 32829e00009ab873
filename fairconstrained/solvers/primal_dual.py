"""Primal-dual methods with linearised constraints: ConEx, the online stochastic method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import count
from math import sqrt
from typing import Any

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import (
    Answers,
    Average,
    FirstOrderSolver,
    Rows,
    constants_at,
    linearised,
    moved,
)
from fairconstrained.utils.parameter_constraints import Count, Positive


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
    >>> from fairconstrained.solvers import ConEx
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ConEx())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> IPC(ConEx(max_iter=100), max_iter=20)  # known as IPP-ConEx
    IPC(max_iter=20, oracle=ConEx(max_iter=100))
    """

    c1: Positive | None = None
    c2: Positive | None = None
    _: KW_ONLY
    offset: Positive | None = None
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

    def updates(self, problem: Problem, start: Start) -> Iterator[Answers]:
        """Yield the last point and the average so far."""
        at = before = start.at(problem)
        c1, c2, offset = self._constants(at)
        lam, ahead = start.first_multipliers(problem.n_constraints), at.constraints
        points, multipliers = Average(), Average()
        for t in count():
            k, last = t + offset, ahead
            ahead = linearised(before, at.w) if self.linearized else at.constraints
            rise = ahead + (k - 1.0) / k * (ahead - last)
            lam = np.maximum(lam + k / c2 * rise, 0.0)
            before, at = at, problem.at(moved(at, at.gradient(lam) / (c1 * k)))
            points.add(at.w, k)
            multipliers.add(lam, k)
            yield [(at, lam), (problem.at(points.mean), multipliers.mean)]


@dataclass(eq=False, repr=False)
class OnlineStochastic(FirstOrderSolver):
    r"""Online stochastic subgradient method, on batches or on all rows.

    Every constraint has a queue :math:`Q_j`, and a step at a batch :math:`\xi` is

    .. math::
        w^+ = \mathrm{Proj}_W\Big(w - \frac{V \nabla f(w; \xi) + \sum_j Q_j \nabla g_j(w; \xi)}
        {2 \alpha}\Big), \qquad Q_j^+ = \max\{Q_j + g_j(w; \xi)
        + \langle \nabla g_j(w; \xi), w^+ - w \rangle, 0\},

    so that :math:`Q / V` are multipliers. The printed answer is the average of all points, and that
    of the multipliers; with all rows the last point is measured as well. A linearisation takes a
    backward pass for every statistic that the constraints depend on, the value at the new point an
    evaluation, which with all rows is that of the next step. If every constraint is determined by a
    block of rows, a batch has whole blocks, and only the queues of their constraints change.

    Parameters
    ----------
    V : float or None, default=None
        The weight of the objective, > 0. None takes :math:`M^2 / L`, with the norm M of the
        Jacobian of the constraints and the curvature L of the objective at the start (on the first
        batch).
    alpha : float or None, default=None
        The inverse step size, > 0. None takes :math:`V L`: steps of length 1 / (2 L).
    batch_size : int or None, default=None
        The number of rows drawn per step, the same share of every cell; None takes all rows.
    linearized : bool, default=False
        Whether the queues take the linearisation, as printed, or the value :math:`g_j(w^+; \xi)`.
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
    H. Yu, M. Neely, X. Wei, "Online convex optimization with stochastic constraints", NeurIPS
    2017; IPC, algorithm 3.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import OnlineStochastic
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=OnlineStochastic())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> OnlineStochastic.paper(max_iter=2500)
    OnlineStochastic(V=50.0, alpha=2500, linearized=True, max_iter=2500,
                     polish=False)
    """

    V: Positive | None = None
    alpha: Positive | None = None
    _: KW_ONLY
    batch_size: Count | None = None
    linearized: bool = False

    @classmethod
    def paper(cls, *, max_iter: int = 10_000, **options: Any) -> OnlineStochastic:
        """Return IPC's algorithm 3 as printed, with V = sqrt(K) and alpha = K.

        Objective and violation are then right to the order of 1 / sqrt(K) (theorems 1 and 2): 1e-2
        after 10,000 steps. The default takes steps from the measured curvature.

        `iterate` yields the printed iterates, with all rows each after the last point; of the
        measured ones `minimize` returns the best.

        Parameters
        ----------
        max_iter : int, default=10000
            K.
        **options
            Further hyperparameters.
        """
        setting = {"V": sqrt(max_iter), "alpha": max_iter, "linearized": True}
        return cls(**{**setting, "max_iter": max_iter, "polish": False, **options})

    def updates(self, problem: Problem, start: Start) -> Iterator[Answers]:
        """Yield the last point, where a step sees all rows, and the average so far."""
        rows = Rows(problem, start, self.batch_size)
        weight, alpha = self._constants(rows)
        queue = weight * start.first_multipliers(problem.n_constraints)
        points, multipliers = Average(), Average()
        drawn = rows.draw(start.w)
        while True:
            at, j = drawn.at, drawn.constraints  # a constraint that is not drawn keeps its queue
            points.add(at.w)
            multipliers.add(queue / weight)
            gradient = at.gradient(drawn.weight * queue[j] / weight)
            after = at.problem.at(moved(at, weight / (2.0 * alpha) * gradient), like=at)
            values = linearised(at, after.w) if self.linearized else after.constraints
            queue[j] = np.maximum(queue[j] + values, 0.0)
            average = (problem.at(points.mean), multipliers.mean)
            yield [average] if rows.sampled else [(after, queue / weight), average]
            drawn = rows.draw(after.w, like=after)

    def _constants(self, rows: Rows) -> tuple[float, float]:
        """Return V and alpha."""
        if self.V is not None and self.alpha is not None:
            return self.V, self.alpha
        curvature, slope = rows.constants()
        weight = slope**2 / curvature if self.V is None else self.V
        return weight, weight * curvature if self.alpha is None else self.alpha
