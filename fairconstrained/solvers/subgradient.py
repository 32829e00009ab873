"""Methods that estimate or linearise constraints: 3S-Econ, online stochastic, ConEx."""

from dataclasses import KW_ONLY
from itertools import count
from math import ceil, sqrt
from typing import Any, Literal, Self

import numpy as np

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import FirstOrderSolver, Mean, Rows, Updates
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import Count, Positive

Size = Count | Literal["sqrt"] | None


class ThreeSEcon(FirstOrderSolver):
    r"""3S-Econ: the SPIDER-type stochastic subgradient method for expectation constraints.

    A single loop of subgradient steps on the exact penalty function, smoothed over a width nu,

    .. math::
        w_{k+1} = P_W\Big(w_k - \alpha_k \big(\zeta_f + \beta \sum_i
        \mathrm{clip}\big(u_i / \nu, 0, 1\big) \zeta_{g_i}\big)\Big),

    where u estimates g(w_k): on a big batch every q steps and in between by
    :math:`u \leftarrow u + g(w_k, B_k) - g(w_{k-1}, B_k)` on small batches (SPIDER). The
    subgradients come from batches drawn independently of the B_k. All are stratified by cell, with
    at least two rows of every stratum; the paper draws rows independently. Sizes and periods follow
    N, the rows that the constraints are computed on. With ``batch_size=None`` all rows are used at
    every step: 3S-Econ-D, with steps :math:`\alpha`. :meth:`stochastic` makes 3S-Econ-S, with steps
    :math:`\alpha / \lceil \sqrt{(k + 1) / q} \rceil`.

    Parameters
    ----------
    beta : float, default=10.0
        The penalty parameter, > 0; it must be larger than all multipliers.
    nu : float, default=1e-5
        The width of the smoothing, > 0.
    q : int or "sqrt", default=1
        The number of steps from one big batch to the next; "sqrt" is the square root of N, rounded
        up, as in the paper.
    alpha : float, default=0.01
        The step size, > 0.
    batch_size : int, "sqrt" or None, default=None
        S2, the number of rows of a small batch; None is all rows.
    checkpoint_size : int, "sqrt" or None, default=None
        S1, the number of rows of a big batch; None is all rows.
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`.

    References
    ----------
    W. Liu, Y. Xu, "A SPIDER-type stochastic subgradient method for expectation-constrained
    nonconvex nonsmooth optimization" (2025), equation (2), algorithm 1 and section 4.2.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import ThreeSEcon
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ThreeSEcon(beta=5.0))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status
    <Status.CONVERGED: 'converged'>
    """

    beta: Positive = 10.0
    nu: Positive = 1e-5
    q: Count | Literal["sqrt"] = 1
    _: KW_ONLY
    alpha: Positive = 0.01
    batch_size: Size = None
    checkpoint_size: Size = None

    @classmethod
    def stochastic(cls, **options: Any) -> Self:
        """Return 3S-Econ-S: batches of sqrt(N) rows, all rows every sqrt(N) steps.

        Parameters
        ----------
        **options
            Further hyperparameters, or others than these.
        """
        batches = {"q": "sqrt", "batch_size": "sqrt", "check_every": 1, "max_iter": 1000}
        return cls(**{**batches, **options})

    @classmethod
    def paper(cls, *, stochastic: bool = False, **options: Any) -> Self:
        """Return the method alone: nu = 1e-5 and steps of 0.01 are those of the paper.

        `iterate` yields the printed iterates; of the measured ones `minimize` returns the best. For
        the printed coordinates see :meth:`PLADA.paper`.

        Parameters
        ----------
        stochastic : bool, default=False
            Whether 3S-Econ-S instead of 3S-Econ-D.
        **options
            Further hyperparameters, or others than these.
        """
        if stochastic:
            return cls.stochastic(**{"polish": False, **options})
        return cls(**{"max_iter": 600, "check_every": 25, "polish": False, **options})

    def _size(self, size: Size, problem: Problem) -> int | None:
        """Return a number of rows or steps; "sqrt" goes by the rows that constraints are on.

        The paper has S2 = q = 181 on a9a, the root of the 32,561 rows of the larger part of the
        data. In E4 here the constraints are on the other part, 16,281 rows: S2 = q = 128.
        """
        if size != "sqrt":
            return size
        models = {part.model for part in problem.constraints}
        return ceil(sqrt(sum(model.n_rows for model in models) or problem.n_rows))

    def _period(self, problem: Problem) -> int:
        return 1 if self.batch_size is None else self._size(self.q, problem) or 1

    def interval(self, problem: Problem) -> int:
        """Return `check_every`, rounded up to a multiple of q."""
        q = self._period(problem)
        return q * ceil(self.check_every / q)

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the point."""
        sizes = (self._size(size, problem) for size in (self.batch_size, self.checkpoint_size))
        small, big = (Rows(problem, start, size, all_constraints=True) for size in sizes)
        q, at, before, u = self._period(problem), big.first, start.w, np.empty(0)
        for k in count():
            w = at.w
            if k % q == 0:
                seen = big.draw(w, like=at).at
                u = seen.constraints
            else:
                seen = small.draw(w).at
                u = u + seen.constraints - seen.problem.at(before).constraints
            length = self.alpha
            if self.batch_size is not None:  # subgradients are those of rows independent of u
                seen = small.draw(w).at
                length /= ceil(sqrt((k + 1) / q))
            gradient = seen.gradient(self.beta * np.clip(u / self.nu, 0.0, 1.0))
            before, at = w, problem.at(self.moved(seen, length * gradient))
            yield [(at, None)]


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
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`.

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
    def paper(cls, *, max_iter: int = 10_000, **options: Any) -> "OnlineStochastic":
        """Return IPC's algorithm 3 as printed, with V = sqrt(K) and alpha = K.

        Objective and violation are then right to the order of 1 / sqrt(K), up to a logarithm (IPC,
        theorem 3): 1e-2 after 10,000 steps. The default takes steps from the measured curvature.

        `iterate` yields the printed iterates, with all rows each after the last point; of the
        measured ones `minimize` returns the best. For the printed coordinates see
        :meth:`PLADA.paper`.

        Parameters
        ----------
        max_iter : int, default=10000
            K.
        **options
            Further hyperparameters.
        """
        setting = {"V": sqrt(max_iter), "alpha": max_iter, "linearized": True}
        return cls(**{**setting, "max_iter": max_iter, "polish": False, **options})

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the last point, where a step sees all rows, and the average so far."""
        rows = Rows(problem, start, self.batch_size)
        weight = self.V or rows.constants.slope**2 / rows.constants.curvature
        alpha = self.alpha or weight * rows.constants.curvature
        queue, average = weight * start.first_multipliers(problem.n_constraints), Mean()
        drawn = rows.draw(start.w)
        while True:
            at, j = drawn.at, drawn.constraints  # a constraint that is not drawn keeps its queue
            mean, multipliers = average.add(at.w, queue / weight)
            gradient = at.gradient(drawn.weight * queue[j] / weight)
            after = at.problem.at(self.moved(at, weight / (2.0 * alpha) * gradient), like=at)
            values = linearised(at, after.w) if self.linearized else after.constraints
            queue[j] = np.maximum(queue[j] + values, 0.0)
            answer = problem.at(mean), multipliers
            yield [answer] if rows.sampled else [(after, queue / weight), answer]
            drawn = rows.draw(after.w, like=after)


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
    strongly convex problems; 3S-Econ, section 4.2 (IPP-ConEx).

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
    def paper(cls, **options: Any) -> "ConEx":
        """Return algorithm 1 as printed, with 3S-Econ's t0 = 1, c1 = 20, c2 = 0.01.

        The theory asks for c1 c2 >= M^2, M being the norm of the constraints' Jacobian: 0.2 is too
        little where M exceeds 0.45, and the iterates then oscillate. The default measures M.

        `iterate` yields the last point and the printed answer so far in turn; of these `minimize`
        returns the best. For the printed coordinates see :meth:`PLADA.paper`.

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
        rows, average = Rows(problem, start), Mean()
        offset = self.offset or float(self.max_iter)
        c1 = self.c1 or 2.0 * rows.constants.curvature / offset
        c2 = self.c2 or 2.0 * rows.constants.slope**2 / c1
        at = before = rows.first
        lam, ahead = start.first_multipliers(problem.n_constraints), at.constraints
        for t in count():
            k, last = t + offset, ahead
            ahead = linearised(before, at.w) if self.linearized else at.constraints
            rise = ahead + (k - 1.0) / k * (ahead - last)
            lam = np.maximum(lam + k / c2 * rise, 0.0)
            before, at = at, problem.at(self.moved(at, at.gradient(lam) / (c1 * k)))
            mean, multipliers = average.add(at.w, lam, weight=k)
            yield [(at, lam), (problem.at(mean), multipliers)]


def linearised(at: Evaluation, w: Array) -> Array:
    """Return the constraints at `w` in their linearisation at a point."""
    jacobian = at.constraint_gradients(np.arange(at.problem.n_constraints))
    return np.asarray(at.constraints + jacobian @ (w - at.w))
