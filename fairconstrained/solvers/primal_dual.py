"""Primal-dual methods with all multipliers in sight: PLADA and constraint extrapolation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import count
from typing import Any

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import (
    Average,
    FirstOrderSolver,
    Rows,
    Updates,
    linearised,
    moved,
)
from fairconstrained.utils.parameter_constraints import Count, NonNegative, Positive
from fairconstrained.utils.typing import Array

_MOST_EVALUATIONS = 50  # of a proximal step
_ROUNDING = 1e-14  # relative, of a move: the fixed point is then exact in floating point


@dataclass(eq=False, repr=False)
class PLADA(FirstOrderSolver):
    r"""Alternating directions on the proximal-perturbed Lagrangian.

    With :math:`\rho = \alpha / (1 + \alpha \beta)`, slack variables u and auxiliary multipliers mu,

    .. math::
        w^+ &= \operatorname{Proj}_W\big(w - \eta\,(\nabla f(w)
        + \textstyle\sum_j \lambda_j \nabla g_j(w))\big), \\
        u^+ &= \operatorname{clip}(u - \tau \lambda, 0, u_{\max}), \qquad
        \mu^+ = \mu + \tfrac{\gamma_k}{\rho} (\lambda - \mu), \\
        \lambda^+ &= \mu^+ + \rho\,(g(w^+) + u^+), \qquad
        \gamma_k = \min\Big\{\gamma_0, \frac{\rho\,\delta}{(k + 1)
        (\|\lambda - \mu\|^2 + 1)}\Big\}.

    A step is one evaluation for any number of constraints, each of which has its own multiplier.
    The theory asks for :math:`\eta < 1 / (L_F + 3 \rho M_G^2)` and :math:`\tau < 1 / (3 \rho)`,
    with L_F a Lipschitz constant of the gradient of f and M_G one of g. Both are measured at the
    start. The parameters that are None are computed from them.

    With `exact` the step in w is the paper's, in which the constraints are not linearised,

    .. math::
        w^+ = \arg\min_{v \in W} \langle \nabla f(w), v \rangle + \langle \lambda, g(v) \rangle
        + \tfrac{1}{2 \eta} \|v - w\|^2,

    which takes a few evaluations of the constraints instead of one. The proof needs it (lemma 5
    takes the subgradient at the new point). It is the fixed point of

    .. math::
        v \mapsto \operatorname{Proj}_W\big(w - \eta\,(\nabla f(w)
        + \textstyle\sum_j \lambda_j \nabla g_j(v))\big),

    a contraction if eta times the curvature of the constraints is below one, as the theory asks.
    Where it is not, at kinks or because no minimiser is near, the linearised step is taken.

    With `batch_size` gradients and values come from mini-batches (with rows of every cell in each).
    The step size then decreases to zero over the run, eta (1 - k / K)^2, and the result is an
    average of recent points.

    If every constraint is determined by a block of rows, such as the pairwise errors of a query, a
    mini-batch has whole blocks (at least one) and the constraints that they determine. A step reads
    these rows, and updates the multipliers and slack variables of these constraints only, so that
    its cost does not depend on the number of constraints. The gradient of a drawn constraint is
    weighted by one over the probability of its draw.

    Parameters
    ----------
    eta : float or None, default=None
        The step size of the weights. None: 1 / (L_F + 3 rho M_G^2).
    tau : float or None, default=None
        The step size of the slack variables. None: 1 / (3 rho).
    alpha : float or None, default=10.0
        The penalty parameter, > 0. None measures it, for constraints in units far from those of
        rates: the penalty then bends as strongly as the objective, divided by 1 + 10 beta.
    beta : float, default=0.1
        The proximal parameter, >= 0.
    gamma_0 : float or None, default=None
        The maximum step size of mu. None: rho / 2.
    delta : float, default=1000.0
        The factor of the decreasing sequence delta / (k + 1).
    u_max : float, default=inf
        The upper bound of the slack variables; the theory needs a bound on the values of the
        constraints.
    exact : bool, default=False
        Whether the step in w is the proximal step above, without linearisation of the constraints.
    batch_size : int or None, default=None
        The number of rows of a mini-batch; None takes all rows.
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`.

    References
    ----------
    PLADA, algorithm 1 (equations 9 to 13) and appendix D.3 for mini-batches.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import PLADA
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=PLADA())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> PLADA.paper()
    PLADA(eta=0.001, exact=True, gamma_0=0.1, max_iter=1000, polish=False, tau=0.1)
    """

    eta: Positive | None = None
    tau: Positive | None = None
    _: KW_ONLY
    alpha: Positive | None = 10.0
    beta: NonNegative = 0.1
    gamma_0: Positive | None = None
    delta: Positive = 1000.0
    u_max: NonNegative = np.inf
    exact: bool = False
    batch_size: Count | None = None

    @classmethod
    def paper(cls, **options: Any) -> PLADA:
        """Return the paper's setting: eta = 1e-3, tau = 0.1, alpha = 10, beta = gamma_0 = 0.1.

        It is that of classification (table 2), with the proximal step as printed (`exact`). The
        paper does not print the other values: delta = 1000, u_max = inf, u = max(-g(w), 0) and
        multipliers of zero at the start are choices of this library.

        `iterate` yields the printed iterates; of the measured ones `minimize` returns the best.

        tau exceeds the 1 / (3 rho) = 0.067 of the theory. With eta far below its bound, and
        convergence at the rate 1 / k on average over the steps (theorem 1), a thousand steps end
        far from a solution. The default takes eta and tau from measured constants.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        table_2 = {"eta": 1e-3, "tau": 0.1, "alpha": 10.0, "beta": 0.1, "gamma_0": 0.1}
        return cls(**table_2 | {"exact": True, "polish": False, "max_iter": 1000} | options)

    @classmethod
    def network(cls, **options: Any) -> PLADA:
        """Return the paper's setting for networks: eta = 0.1, tau = 0.01, beta = 0.5.

        As for classification, alpha = 10 and gamma_0 = 0.1. The step in w is linearised: the
        problem of the paper (E7: differences of the hinge losses of a network with ReLU units) is
        unbounded below in the proximal step.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        return cls.paper(**{"eta": 0.1, "tau": 0.01, "beta": 0.5, "exact": False} | options)

    @classmethod
    def stochastic(cls, **options: Any) -> PLADA:
        """Return the mini-batch version.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        return cls(**{"batch_size": 256, "max_iter": 600, **options})

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the point and its multipliers."""
        rows = Rows(problem, start, self.batch_size, self.check_every, self.max_iter)
        if self.alpha is None:
            rho = rows.curvature / (rows.slope**2 * (1.0 + 10.0 * self.beta))
        else:
            rho = self.alpha / (1.0 + self.alpha * self.beta)
        eta = self.eta or 1.0 / (rows.curvature + 3.0 * rho * rows.slope**2)
        tau, gamma_0 = self.tau or 1.0 / (3.0 * rho), self.gamma_0 or 0.5 * rho
        lam = start.first_multipliers(problem.n_constraints).copy()
        mu, steps = lam.copy(), np.zeros_like(lam)
        drawn = rows.draw(start.w)
        u = np.clip(-rows.first.constraints, 0.0, self.u_max)
        step = _proximal_step if self.exact else _linearised_step
        while True:
            multipliers = drawn.weight * lam[drawn.constraints]
            drawn = rows.draw(step(drawn.at, multipliers, eta * rows.fade))
            j = drawn.constraints  # those that a batch has not drawn keep their multipliers
            steps[j] += 1.0
            apart = lam[j] - mu[j]
            fading = rho * self.delta / (steps[j] * (float(apart @ apart) + 1.0))
            u[j] = np.clip(u[j] - tau * lam[j], 0.0, self.u_max)
            mu[j] += np.minimum(gamma_0, fading) / rho * apart
            lam[j] = mu[j] + rho * (drawn.at.constraints + u[j])
            yield [(answer, np.maximum(lam, 0.0)) for answer in rows.answers(drawn.at)]


def _linearised_step(at: Evaluation, multipliers: Array, eta: float) -> Array:
    return moved(at, eta * at.gradient(multipliers))


def _proximal_step(at: Evaluation, multipliers: Array, eta: float) -> Array:
    """Return the proximal step by its fixed point, the linearised step where there is none."""
    slope, linear = at.gradient(), _linearised_step(at, multipliers, eta)
    v, last = linear, float(np.linalg.norm(linear - at.w))
    for _ in range(_MOST_EVALUATIONS):
        bent = at.problem.at(v).gradient(multipliers, objective=0.0)
        after = moved(at, eta * (slope + bent))
        length = float(np.linalg.norm(after - v))
        if length <= _ROUNDING * (1.0 + float(np.linalg.norm(v))):
            return after
        if not length < last:  # no contraction: kinks, or no minimiser is near
            break
        v, last = after, length
    return linear


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
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`.

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

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the last point and the average so far."""
        rows, average = Rows(problem, start), Average()
        offset = self.offset or float(self.max_iter)
        c1 = self.c1 or 2.0 * rows.curvature / offset
        c2 = self.c2 or 2.0 * rows.slope**2 / c1
        at = before = rows.first
        lam, ahead = start.first_multipliers(problem.n_constraints), at.constraints
        for t in count():
            k, last = t + offset, ahead
            ahead = linearised(before, at.w) if self.linearized else at.constraints
            rise = ahead + (k - 1.0) / k * (ahead - last)
            lam = np.maximum(lam + k / c2 * rise, 0.0)
            before, at = at, problem.at(moved(at, at.gradient(lam) / (c1 * k)))
            average.add(at.w, lam, weight=k)
            mean, multipliers = average.means
            yield [(at, lam), (problem.at(mean), multipliers)]
