"""Methods that step on a penalty function: 3S-Econ and regularisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import count
from math import ceil, sqrt
from typing import Any, Literal, Self

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import (
    Answers,
    FirstOrderSolver,
    Sampler,
    constants_at,
    moved,
    worst_constraint,
)
from fairconstrained.utils.parameter_constraints import Count, NonNegative, Positive

Size = Count | Literal["sqrt"] | None


@dataclass(eq=False, repr=False)
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

        `iterate` yields the printed iterates; of the measured ones `minimize` returns the best.

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
        parts = problem.constraints
        used = [m for m in problem.models if any(part.model is m for part in parts)]
        return ceil(sqrt(sum(model.n_rows for model in used) or problem.n_rows))

    def _period(self, problem: Problem) -> int:
        return 1 if self.batch_size is None else self._size(self.q, problem) or 1

    def measures(self, problem: Problem, start: Start, k: int) -> bool:
        """Return whether step k is measured: `check_every` is rounded up to a multiple of q."""
        q = self._period(problem)
        due = k % (q * ceil(self.check_every / q)) == 0
        return due or k == self.max_iter or start.passes_used_up(problem)

    def updates(self, problem: Problem, start: Start) -> Iterator[Answers]:
        """Yield the point."""
        small, big = (
            Sampler(problem, self._size(size, problem), start.random_state)
            for size in (self.batch_size, self.checkpoint_size)
        )
        q, at, before, u = self._period(problem), start.at(problem), start.w, np.empty(0)
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
            before, at = w, problem.at(moved(seen, length * gradient))
            yield [(at, None)]


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
    >>> from fairconstrained.solvers import Regularization
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=Regularization(max_iter=1000, tol=1e-2))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    strength: Positive | None = None
    _: KW_ONLY
    eta: Positive | None = None
    decay: NonNegative = 3.0
    check_every: Count = 20

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

    def updates(self, problem: Problem, start: Start) -> Iterator[Answers]:
        """Yield the point; with a given strength only the last one."""
        at, strength, before = start.at(problem), self.strength or 1.0, np.inf
        largest = worst_constraint(at.constraints)[1]
        curvature = constants_at(at, largest)[0] if self.eta is None else 0.0
        for k in count(1):
            level, worst = worst_constraint(at.constraints)
            gradient = at.gradient(strength * (level > 0.0) * worst)
            eta = self.eta or 1.0 / (curvature * max(1.0, strength))
            eta *= (1.0 - (k - 1) / self.max_iter) ** self.decay
            at = problem.at(moved(at, eta * gradient))
            last = k == self.max_iter or start.passes_used_up(problem)
            yield [(at, None)] if last or self.strength is None else []
            if self.strength is None and k % self.check_every == 0:
                # Steps that shrink by themselves reduce a violation, too: only one that does not
                # halve shows that the strength is below the sum of the multipliers.
                if at.violation > max(start.feasibility_tol, 0.5 * before):
                    strength *= 2.0
                before = at.violation

    @property
    def seeks_feasibility(self) -> bool:
        """Whether the strength is not given: else the answer is the minimiser of the formula."""
        return self.strength is None
