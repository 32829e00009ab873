"""Lagrangian descent-ascent, with free multipliers or with those of a model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_array

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import FirstOrderSolver, Rows, Updates, moved
from fairconstrained.solvers.multiplier_models import (
    DeepNetwork,
    Free,
    MultiplierModel,
    Network,
    constraint_features,
)
from fairconstrained.utils.parameter_constraints import Count, Positive, Share
from fairconstrained.utils.typing import Array, Matrix


@dataclass(eq=False, repr=False)
class LagrangianDescentAscent(FirstOrderSolver):
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
        The step size of the weights, > 0. None: 1 / (2 L), where L is the curvature of the
        objective at the start.
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
    max_iter, check_every, tol, polish
        Steps, steps between two measurements, tolerance and refinement, see
        :class:`~fairconstrained.solvers.first_order.FirstOrderSolver`.

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

    eta: Positive | None = None
    sigma: Positive | None = None
    _: KW_ONLY
    extrapolation: Share = 1.0
    multipliers: MultiplierModel | None = None
    features: Array | None = None
    dual: Literal["surrogate", "zero_one"] = "surrogate"
    n_sampled: Count | None = None
    batch_size: Count | None = None

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
        setting: dict[str, Any] = {"eta": 0.1, "sigma": 1.0, "extrapolation": 0.0, "n_sampled": 100}
        setting |= {"multipliers": DeepNetwork(), "features": features, "dual": "zero_one"}
        return cls(**setting | {"polish": False, "max_iter": 1000} | options)

    def updates(self, problem: Problem, start: Start) -> Updates:
        """Yield the point and its multipliers."""
        rows = Rows(problem, start, self.batch_size, self.check_every, self.max_iter)
        model, features = self.multipliers or Free(), self._features(problem)
        eta = self.eta or 0.5 / rows.curvature
        sigma = self.sigma or rows.curvature / (2.0 * rows.slope**2)
        m, rng, drawn = problem.n_constraints, start.random_state, rows.draw(start.w)
        theta = model.start(features, start.first_multipliers(m), rng)
        while True:
            before, j, weight = drawn.at, drawn.constraints, drawn.weight
            full, n = isinstance(j, slice), self.n_sampled
            if full and n is not None and n < m:
                j, weight = rng.choice(m, n, replace=False), m / n
            multipliers = np.zeros(before.problem.n_constraints)
            places = j if full else slice(None)  # their positions in the batch
            multipliers[places] = weight * model.multipliers(theta, features, j)
            drawn = rows.draw(moved(before, eta * rows.fade * before.gradient(multipliers)))
            values = (drawn.at.decided if self.dual == "zero_one" else drawn.at).constraints
            if self.dual == "surrogate" and not rows.sampled:  # batches differ by noise as well
                values = values + self.extrapolation * (values - before.constraints)
            j = j if full else drawn.constraints
            theta = model.ascend(theta, features, values[places], sigma, j)
            # Without brackets: those of all constraints are computed only where they are measured.
            yield ((at, model.multipliers(theta, features)) for at in rows.answers(drawn.at))

    def _features(self, problem: Problem) -> Matrix:
        """Return the features of the constraints.

        Raises
        ------
        ValueError
            If those that are given are not a row of finite numbers per constraint.
        """
        if self.features is None:
            return constraint_features(problem)
        features: Array = check_array(self.features, dtype=float, input_name="features")
        if len(features) != problem.n_constraints:
            raise ValueError(
                f"features must have a row for each of the {problem.n_constraints} constraints; "
                f"got {len(features)} rows."
            )
        return features
