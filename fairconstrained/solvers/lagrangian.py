"""Lagrangian descent-ascent, with free multipliers or with those of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.multiplier_models import (
    Free,
    MultiplierModel,
    Network,
    constraint_features,
)
from fairconstrained.solvers._tools.smoothness import Lipschitz
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.utils.typing import Array


class LagrangianDescentAscent(Solver):
    r"""Gradient descent in the weights and ascent in the multipliers of the Lagrangian.

    .. math::
        w^+ &= \operatorname{Proj}_W\big(w - \eta\,(\nabla f(w)
        + \textstyle\sum_j \lambda_j \nabla g_j(w))\big), \\
        \lambda^+ &= \max\big\{\lambda + \sigma\,\big(g(w^+)
        + \vartheta\,(g(w^+) - g(w))\big), 0\big\}.

    The extrapolation :math:`\vartheta = 1` damps the oscillations that plain descent-ascent,
    :math:`\vartheta = 0`, is known for. The multipliers may also be given by a model with
    parameters of its own, which then make the ascent: :meth:`multiplier_model`. A step is one
    evaluation.

    Parameters
    ----------
    eta : float or None, default=None
        The step of the weights. None: 1 / L, with L the curvature of the objective by power
        iterations, raised where a step shows that of the Lagrangian to be larger.
    sigma : float or None, default=None
        The step of the multipliers. None: L / (2 M^2), M being a Lipschitz constant of the
        constraints; larger steps are not known to converge on convex problems.
    extrapolation : float, default=1.0
        The factor :math:`\vartheta` in [0, 1].
    multipliers : MultiplierModel or None, default=None
        What gives the multipliers; None for `Free`.
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
    H. Narasimhan, A. Cotter, Y. Zhou, S. Wang, W. Guo, "Approximate heavily-constrained learning
    with Lagrange multiplier models", NeurIPS 2020; L. Condat, "A primal-dual splitting method for
    convex optimization", Journal of Optimization Theory and Applications 158 (2013), for
    extrapolation and steps.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers.lagrangian import LagrangianDescentAscent
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=LagrangianDescentAscent())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> LagrangianDescentAscent.multiplier_model()
    LagrangianDescentAscent(multipliers=Network())
    """

    def __init__(
        self,
        eta: float | None = None,
        sigma: float | None = None,
        *,
        extrapolation: float = 1.0,
        multipliers: MultiplierModel | None = None,
        max_iter: int = 1000,
        check_every: int = 20,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.eta = eta
        self.sigma = sigma
        self.extrapolation = extrapolation
        self.multipliers = multipliers
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol
        self.polish = polish

    @classmethod
    def multiplier_model(cls, **options: Any) -> LagrangianDescentAscent:
        """Return the method with multipliers that a small network gives.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`LagrangianDescentAscent`.
        """
        return cls(**{"multipliers": Network(), **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the point and its multipliers every `check_every` steps."""
        model = Free() if self.multipliers is None else self.multipliers
        at, features = start.at(problem), constraint_features(problem)
        lipschitz = Lipschitz(at)
        theta = model.start(features, self._first(problem, start), start.random_state)
        multipliers = model.multipliers(theta, features)
        for k in range(1, self.max_iter + 1):
            eta = 1.0 / lipschitz.curvature if self.eta is None else self.eta
            gradient = at.gradient(multipliers)
            after = problem.at(problem.domain.project(at.w - eta * gradient))
            lipschitz.observe(at, after, gradient, multipliers)
            ahead = after.constraints + self.extrapolation * (after.constraints - at.constraints)
            theta = model.ascend(theta, features, ahead, self._ascent(lipschitz))
            at, multipliers = after, model.multipliers(theta, features)
            if self.measures(problem, start, k):
                yield Iterate(at, multipliers, k)

    @staticmethod
    def _first(problem: Problem, start: Start) -> Array:
        return np.zeros(problem.n_constraints) if start.multipliers is None else start.multipliers

    def _ascent(self, lipschitz: Lipschitz) -> float:
        # the curvature at the start: if that of a growing multiplier counted, it would grow faster
        return lipschitz.first / (2.0 * lipschitz.slope**2) if self.sigma is None else self.sigma
