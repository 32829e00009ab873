"""PLADA: the proximal-perturbed Lagrangian, one loop with one multiplier per constraint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.sampling import ConstraintSampler, StratifiedSampler
from fairconstrained.solvers._tools.smoothness import Lipschitz
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.utils.typing import Array

_LARGEST_RHO = 1e6
_PROBES = 5  # batches that the constants are measured on


class PLADA(Solver):
    r"""Alternating directions on the proximal-perturbed Lagrangian.

    With :math:`\rho = \alpha / (1 + \alpha \beta)`, slacks u and auxiliary multipliers mu,

    .. math::
        w^+ &= \operatorname{Proj}_W\big(w - \eta\,(\nabla f(w)
        + \textstyle\sum_j \lambda_j \nabla g_j(w))\big), \\
        u^+ &= \operatorname{clip}(u - \tau \lambda, 0, u_{\max}), \qquad
        \mu^+ = \mu + \tfrac{\gamma_k}{\rho} (\lambda - \mu), \\
        \lambda^+ &= \mu^+ + \rho\,(g(w^+) + u^+), \qquad
        \gamma_k = \min\Big\{\gamma_0, \frac{\rho\,\delta}{(k + 1)
        (\|\lambda - \mu\|^2 + 1)}\Big\}.

    A step is one evaluation whatever the number of constraints, each of which has a multiplier of
    its own. The theory asks for :math:`\eta < 1 / (L_F + 3 \rho M_G^2)` and
    :math:`\tau < 1 / (3 \rho)`, with L_F a Lipschitz constant of the gradient of f and M_G one of
    g. Both are estimated by power iterations where the run starts and raised where a step shows
    more; the parameters that are None follow from them.

    With `batch_size` the gradients come from mini-batches (with rows of every cell in each). The
    step size then falls to zero over the run, eta (1 - k / K)^2, and the answer is an average of
    recent points. The multipliers follow the constraints' values at that average, measured
    exactly with every check, plus the difference between there and here on the batch.

    Where every constraint is determined by a block of rows, such as the parity of a query's
    pairwise errors, a mini-batch is made of whole blocks (one at least) and of the constraints that
    they determine: a step reads these rows, and updates the multipliers and slacks of these
    constraints only, so that its cost does not depend on the number of constraints. The gradient
    of a drawn constraint is weighted by one over the probability of its draw.

    Parameters
    ----------
    eta : float or None, default=None
        The step of the weights. None: 1 / (L_F + 3 rho M_G^2).
    tau : float or None, default=None
        The step of the subgradient error. None: 1 / (3 rho).
    alpha : float or None, default=None
        The penalty parameter. None: the one with rho = L_F / (2 M_G^2), so that the constraints
        make steps neither much shorter nor matter little.
    beta : float, default=0.1
        The proximal parameter, >= 0.
    gamma_0 : float or None, default=None
        The largest step of mu. None: rho / 2.
    delta : float, default=1000.0
        The factor of the falling sequence delta / (k + 1).
    u_max : float, default=inf
        The largest slack; the theory wants a bound on the constraints' values.
    batch_size : int or None, default=None
        The rows of a mini-batch; None takes all rows.
    max_iter : int, default=1000
        The number of steps.
    check_every : int, default=20
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that ends short of `tol` is finished by sequential quadratic programming steps
        from its best point, see :attr:`Solver.polish`.

    References
    ----------
    PLADA, algorithm 1 (equations 9 to 13) and appendix D.3 for mini-batches. Batches whose
    estimates are corrected by an exact value elsewhere: R. Johnson, T. Zhang, "Accelerating
    stochastic gradient descent using predictive variance reduction", NIPS 2013.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers.plada import PLADA
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=PLADA())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> PLADA.paper()
    PLADA(alpha=10.0, eta=0.001, gamma_0=0.1, polish=False, tau=0.1)
    """

    def __init__(
        self,
        eta: float | None = None,
        tau: float | None = None,
        *,
        alpha: float | None = None,
        beta: float = 0.1,
        gamma_0: float | None = None,
        delta: float = 1000.0,
        u_max: float = np.inf,
        batch_size: int | None = None,
        max_iter: int = 1000,
        check_every: int = 20,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.eta = eta
        self.tau = tau
        self.alpha = alpha
        self.beta = beta
        self.gamma_0 = gamma_0
        self.delta = delta
        self.u_max = u_max
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol
        self.polish = polish

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a problem must have: terms that take batches, unless every step uses all rows."""
        return () if self.batch_size is None else ("batchable",)

    @classmethod
    def paper(cls, **options: Any) -> PLADA:
        """Return the paper's setting: eta = 1e-3, tau = 0.1, alpha = 10, beta = gamma_0 = 0.1.

        tau exceeds the 1 / (3 rho) = 0.067 of the theory. With eta far below its bound, and
        convergence at the rate 1 / k on average over the steps (theorem 1), a thousand steps end
        far from a solution. The default takes the bounds from measured constants.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        setting = {
            "eta": 1e-3,
            "tau": 0.1,
            "alpha": 10.0,
            "beta": 0.1,
            "gamma_0": 0.1,
            "polish": False,
        }
        return cls(**{**setting, **options})

    @classmethod
    def network(cls, **options: Any) -> PLADA:
        """Return the paper's setting for networks: eta = 0.1, tau = 0.01, beta = 0.5.

        As for classification, alpha = 10 and gamma_0 = 0.1.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        return cls.paper(**{"eta": 0.1, "tau": 0.01, "beta": 0.5, **options})

    @classmethod
    def stochastic(cls, **options: Any) -> PLADA:
        """Return the mini-batch version.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        return cls(**{"batch_size": 256, "max_iter": 1500, "check_every": 50, **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer so far every `check_every` steps."""
        rows = self._rows(problem, start)
        drawn = rows.draw(start.w)
        dual = self._dual(rows, rows.first_values(drawn), start.multipliers)
        for k in range(1, self.max_iter + 1):
            multipliers = drawn.weight * dual.multipliers[drawn.constraints]
            gradient = drawn.at.gradient(multipliers)
            step = self._step(rows.lipschitz, dual.rho) * rows.fade(k / self.max_iter)
            before = drawn.at
            drawn = rows.draw(problem.domain.project(before.w - step * gradient))
            rows.observe(before, drawn.at, gradient, multipliers)
            dual.update(drawn)
            if self.measures(problem, start, k):
                last = k == self.max_iter or start.passes_used_up(problem)
                for answer in rows.answers(drawn.at, last=last):
                    yield Iterate(answer, np.maximum(dual.multipliers, 0.0), k)

    def _rows(self, problem: Problem, start: Start) -> _Rows:
        if self.batch_size is None:
            return _AllRows(start.at(problem))
        if ConstraintSampler.applies(problem):
            constraints = ConstraintSampler(problem, self.batch_size, start.random_state)
            return _Blocks(constraints, start.at(problem), self.check_every)
        sampler = StratifiedSampler(problem, self.batch_size, start.random_state)
        return _Batches(sampler, start.at(problem), self.check_every)

    def _dual(self, rows: _Rows, values: Array, multipliers: Array | None) -> _Dual:
        lipschitz = rows.lipschitz
        if self.alpha is None:
            balanced = lipschitz.curvature / (2.0 * lipschitz.slope**2)
            rho = min(rows.penalty * balanced, _LARGEST_RHO)
        else:
            rho = self.alpha / (1.0 + self.alpha * self.beta)
        first = np.zeros_like(values) if multipliers is None else multipliers
        return _Dual(
            rho=rho,
            tau=1.0 / (3.0 * rho) if self.tau is None else self.tau,
            gamma_0=0.5 * rho if self.gamma_0 is None else self.gamma_0,
            delta=self.delta,
            u_max=self.u_max,
            u=np.clip(-values, 0.0, self.u_max),
            mu=np.array(first),
            multipliers=np.array(first),
            steps=np.zeros_like(values),
        )

    def _step(self, lipschitz: Lipschitz, rho: float) -> float:
        if self.eta is not None:
            return self.eta
        return 1.0 / (lipschitz.curvature + 3.0 * rho * lipschitz.slope**2)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What a step sees of the problem.

    Attributes
    ----------
    at : Evaluation
        What gives the gradients.
    values : ndarray of shape (n_drawn,)
        The values of the drawn constraints.
    constraints : slice or ndarray of int of shape (n_drawn,)
        Their positions among all.
    weight : float
        One over the probability with which each of them is drawn.
    """

    at: Evaluation
    values: Array
    constraints: slice | Array = field(default_factory=lambda: slice(None))
    weight: float = 1.0


@dataclass
class _Dual:
    """The slack variables, the two kinds of multipliers and the steps of each constraint."""

    rho: float
    tau: float
    gamma_0: float
    delta: float
    u_max: float
    u: Array
    mu: Array
    multipliers: Array
    steps: Array

    def update(self, drawn: _Drawn) -> None:
        """Take the dual half of a step for the drawn constraints, at their new values."""
        at = drawn.constraints
        self.steps[at] += 1.0
        apart = self.multipliers[at] - self.mu[at]
        fading = self.rho * self.delta / (self.steps[at] * (float(apart @ apart) + 1.0))
        self.u[at] = np.clip(self.u[at] - self.tau * self.multipliers[at], 0.0, self.u_max)
        self.mu[at] += np.minimum(self.gamma_0, fading) / self.rho * apart
        self.multipliers[at] = self.mu[at] + self.rho * (drawn.values + self.u[at])


class _Rows(ABC):
    """Where functions and gradients come from."""

    lipschitz: Lipschitz
    penalty: float = 1.0  # rho in units of the one that balances objective and constraints

    @abstractmethod
    def draw(self, w: Array) -> _Drawn:
        """Return what gives the gradients at `w`, and the values of constraints there."""

    def first_values(self, drawn: _Drawn) -> Array:
        """Return the values of all constraints at the start."""
        return drawn.values

    @abstractmethod
    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        """Return the full problem at what may be the answer."""

    def fade(self, done: float) -> float:
        """Return the factor of the step size when a fraction of the run is done."""
        return 1.0

    @abstractmethod
    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        """Learn from a step what can be learnt about the constants."""


class _AllRows(_Rows):
    """Every row in every step."""

    def __init__(self, first: Evaluation):
        self.first = first
        self.lipschitz = Lipschitz(first)

    def draw(self, w: Array) -> _Drawn:
        at = self.first.problem.at(w, like=self.first)
        return _Drawn(at, at.constraints)

    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        return [at]

    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        self.lipschitz.observe(before, after, gradient, multipliers)


class _Averaged(_Rows):
    """Some rows per step: the answer is an average of recent points."""

    def __init__(self, anchor: Evaluation, memory: int):
        self.anchor = anchor
        self.average = anchor.w
        self.memory = memory
        self.drawn = 0

    def add(self, w: Array) -> None:
        """Add a point to the average; the first points are soon forgotten."""
        self.drawn += 1
        share = max(1.0 / self.memory, min(4.0 / self.drawn, 1.0))
        self.average = self.average + share * (w - self.average)

    def answers(self, at: Evaluation, *, last: bool) -> list[Evaluation]:
        full = self.anchor.problem
        self.anchor = full.at(self.average)
        # an average of points on the boundary of W lies inside: the last point may be better
        return [self.anchor, full.at(at.w)] if last else [self.anchor]

    def fade(self, done: float) -> float:
        return (1.0 - done) ** 2

    def observe(
        self, before: Evaluation, after: Evaluation, gradient: Array, multipliers: Array
    ) -> None:
        """Two batches differ by more than a step does: nothing is learnt."""


class _Batches(_Averaged):
    """A mini-batch per step, the constraints' values corrected by exact ones at an anchor."""

    def __init__(self, sampler: StratifiedSampler, anchor: Evaluation, memory: int):
        super().__init__(anchor, memory)
        self.sampler = sampler
        self.lipschitz = Lipschitz(sampler.draw().at(anchor.w))

    def draw(self, w: Array) -> _Drawn:
        batch = self.sampler.draw()
        at, there = batch.at(w), batch.at(self.anchor.w)
        self.add(w)
        return _Drawn(at, self.anchor.constraints + at.constraints - there.constraints)


class _Blocks(_Averaged):
    """Whole blocks of rows per step, with the exact values of the constraints they determine.

    A multiplier moves only when its block is drawn, hence by larger steps.
    """

    penalty = 10.0

    def __init__(self, sampler: ConstraintSampler, anchor: Evaluation, memory: int):
        super().__init__(anchor, memory)
        self.sampler = sampler
        draws = [sampler.draw() for _ in range(_PROBES)]
        found = [Lipschitz(one.problem.at(anchor.w)) for one in draws]
        self.lipschitz = max(found, key=lambda one: one.curvature)
        # the penalty of a drawn constraint is weighted as its gradient is
        self.lipschitz.slope = sqrt(draws[0].weight) * max(one.slope for one in found)

    def draw(self, w: Array) -> _Drawn:
        found = self.sampler.draw()
        at = found.problem.at(w)
        self.add(w)
        return _Drawn(at, at.constraints, found.constraints, found.weight)

    def first_values(self, drawn: _Drawn) -> Array:
        return self.anchor.constraints
