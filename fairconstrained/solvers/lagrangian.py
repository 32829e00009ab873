"""Lagrangian descent-ascent, with free multipliers or with those of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.parameters import Choice, InstanceOf, Valid
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.multiplier_models import (
    DeepNetwork,
    Free,
    MultiplierModel,
    Network,
    constraint_features,
)
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.solvers.rows import Drawn, PrimalDualSolver, RowSource
from fairconstrained.utils.typing import Array, Matrix


class LagrangianDescentAscent(PrimalDualSolver, PolishedSolver):
    r"""Gradient descent in the weights and ascent in the multipliers of the Lagrangian.

    .. math::
        w^+ &= \operatorname{Proj}_W\big(w - \eta\,(\nabla f(w)
        + \textstyle\sum_j \lambda_j \nabla g_j(w))\big), \\
        \lambda^+ &= \max\big\{\lambda + \sigma\,\big(g(w^+)
        + \vartheta\,(g(w^+) - g(w))\big), 0\big\}.

    The extrapolation :math:`\vartheta = 1` damps the oscillations that plain descent-ascent,
    :math:`\vartheta = 0`, is known for. The multipliers can also be computed by a model, whose
    parameters then make the ascent: :meth:`multiplier_model`. A step is one evaluation.

    With `batch_size` a step reads a mini-batch. If every constraint is determined by a block of
    rows, such as the pairwise errors of a query, it reads whole blocks, and only the multipliers of
    their constraints make the ascent, without extrapolation, as in Narasimhan et al. The step size
    of the weights then decreases to zero over the run, eta (1 - k / K)^2, and the result is an
    average of recent points.

    Parameters
    ----------
    eta : float or None, default=None
        The step size of the weights, > 0. None: 1 / L, where L is the curvature of the objective,
        estimated by power iterations and increased if a step shows a larger curvature of the
        Lagrangian.
    sigma : float or None, default=None
        The step size of the multipliers, > 0. None: L / (2 M^2), where M is a Lipschitz constant of
        the constraints; larger steps are not known to converge on convex problems.
    extrapolation : float, default=1.0
        The factor :math:`\vartheta` in [0, 1].
    multipliers : MultiplierModel or None, default=None
        The model of the multipliers; None for one free parameter per constraint.
    features : ndarray of shape (n_constraints, n_features) or None, default=None
        The input of the multiplier model for each constraint; None describes a constraint by the
        cells that it combines.
    dual : {"surrogate", "zero_one"}, default="surrogate"
        The constraint values in the ascent: those of the surrogates, or with "zero_one" those of
        the predictions (Cotter et al. 2019), without extrapolation.
    n_sampled : int or None, default=None
        The number of constraints that a step draws. Their multipliers are weighted by one over the
        probability of a draw, and only they are updated. None takes all constraints.
    batch_size : int or None, default=None
        The number of rows of a mini-batch; None takes all rows.
    variance_reduction : bool, default=True
        Whether the constraints' values of a mini-batch are corrected by exact values at an earlier
        point, as in :class:`StochasticSwitchingSubgradient`. Blocks of rows with exact values need
        no correction.
    max_iter : int, default=1000
        The number of steps.
    check_every : int, default=20
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
    objective): extrapolation has no effect (171 passes to convergence with and without it); with
    surrogates in the ascent the run converges, with zero-one rates a gap of 1e-4 remains. With
    batches of 256 rows the gap is 0.014% after 1,500 steps and 179 passes, and without
    `variance_reduction` 0.019% after as many steps and 105 passes (medians over five seeds).

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
        features: Array | None = None,
        dual: Literal["surrogate", "zero_one"] = "surrogate",
        n_sampled: int | None = None,
        batch_size: int | None = None,
        variance_reduction: bool = True,
        max_iter: int = 1000,
        check_every: int = 20,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.eta = eta
        self.sigma = sigma
        self.extrapolation = extrapolation
        self.multipliers = multipliers
        self.features = features
        self.dual = dual
        self.n_sampled = n_sampled
        self.batch_size = batch_size
        self.variance_reduction = variance_reduction
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

    @classmethod
    def paper(cls, features: Array | None = None, **options: Any) -> LagrangianDescentAscent:
        """Return the multiplier model as PLADA's experiments (section 5.3) compare with it.

        Three hidden layers of 100 units on the features of the constraints (for intersectional
        groups their three thresholds), 100 constraints per step, Adagrad with rate 0.1; the
        multipliers follow the zero-one rates, the weights the surrogates with steps of 0.1.

        Parameters
        ----------
        features : ndarray of shape (n_constraints, n_features) or None, default=None
            The features of the constraints, best of mean 0 and standard deviation 1.
        **options
            Further hyperparameters of :class:`LagrangianDescentAscent`.
        """
        setting: dict[str, Any] = {
            "eta": 0.1,
            "sigma": 1.0,
            "extrapolation": 0.0,
            "multipliers": DeepNetwork(),
            "features": features,
            "dual": "zero_one",
            "n_sampled": 100,
            "polish": False,
        }
        return cls(**{**setting, **options})

    @classmethod
    def valid_parameters(cls) -> dict[str, Valid]:
        """Return the valid values of the ascent's parameters besides those of all solvers."""
        model = InstanceOf(MultiplierModel, "a model of multipliers, such as Network()")
        own: dict[str, Valid] = {"multipliers": model, "dual": Choice(("surrogate", "zero_one"))}
        return {**super().valid_parameters(), **own}

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the point and its multipliers every `check_every` steps."""
        model = Free() if self.multipliers is None else self.multipliers
        rows = self.rows(problem, start)
        drawn, features = rows.draw(start.w), self._features(problem)
        theta = model.start(features, self._first(problem, start), start.random_state)
        for k in range(1, self.max_iter + 1):
            drawn = self._sampled(drawn, start)
            before, eta = drawn, 1.0 / rows.lipschitz.curvature if self.eta is None else self.eta
            found = before.weight * model.multipliers_at(theta, features, before.constraints)
            multipliers = self._among_all(found, before)
            gradient = before.at.gradient(multipliers)
            step = eta * rows.fade(k / self.max_iter)
            drawn = rows.draw(problem.domain.project(before.at.w - step * gradient))
            rows.observe(before.at, drawn.at, gradient, multipliers)
            at, ahead = self._ahead(before, drawn)
            theta = model.ascend_at(theta, features, ahead, self._ascent(rows), at)
            if self.measures(problem, start, k):
                last = k == self.max_iter or start.passes_used_up(problem)
                for answer in rows.answers(drawn.at, last=last):
                    yield Iterate(answer, model.multipliers(theta, features), k)

    def _sampled(self, drawn: Drawn, start: Start) -> Drawn:
        """Return some of the constraints of a step that sees all of them."""
        m = len(drawn.values)
        if self.n_sampled is None or self.n_sampled >= m or not drawn.knows_all:
            return drawn
        chosen = start.random_state.choice(m, self.n_sampled, replace=False)
        values, weight = drawn.values[chosen], m / self.n_sampled
        return replace(drawn, values=values, constraints=chosen, weight=weight)

    def _among_all(self, multipliers: Array, drawn: Drawn) -> Array:
        """Return the multipliers of the problem that the step sees, zeros for those not drawn."""
        m = drawn.at.problem.n_constraints
        if len(multipliers) == m:
            return multipliers
        found = np.zeros(m)
        found[drawn.constraints] = multipliers
        return found

    def _ahead(self, before: Drawn, after: Drawn) -> tuple[slice | Array, Array]:
        """Return the constraints whose multipliers move, and the values that they follow."""
        zero_one = self.dual == "zero_one"
        values = after.at.zero_one_constraints if zero_one else after.values
        if after.knows_all and not before.knows_all:  # the step has drawn some of them
            return before.constraints, values[before.constraints]
        ahead = 0.0 if zero_one else self._extrapolation(before, after)
        return after.constraints, values + ahead

    def _features(self, problem: Problem) -> Matrix:
        """Return the features of the constraints.

        Raises
        ------
        ValueError
            If those that are given are not a row per constraint.
        """
        if self.features is None:
            return constraint_features(problem)
        try:
            found = np.asarray(self.features, dtype=float)
        except (TypeError, ValueError):
            found = np.empty(())
        if found.ndim != 2 or len(found) != problem.n_constraints or not np.isfinite(found).all():
            raise ValueError(
                f"features must have a row of finite numbers for each of the "
                f"{problem.n_constraints} constraints; got {self.features!r}."
            )
        return found

    def _extrapolation(self, before: Drawn, after: Drawn) -> Array | float:
        """Return what is added to the constraints' values, where both steps know the same ones."""
        if not (after.knows_all and before.knows_all):
            return 0.0
        return self.extrapolation * (after.values - before.values)

    @staticmethod
    def _first(problem: Problem, start: Start) -> Array:
        return np.zeros(problem.n_constraints) if start.multipliers is None else start.multipliers

    def _ascent(self, rows: RowSource) -> float:
        if self.sigma is not None:
            return self.sigma
        # the curvature at the start: if that of a growing multiplier counted, it would grow faster
        return rows.penalty * rows.lipschitz.first / (2.0 * rows.lipschitz.slope**2)
