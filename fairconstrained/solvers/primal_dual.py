"""Primal-dual methods with steps on the Lagrangian: PLADA, descent-ascent."""

from dataclasses import KW_ONLY
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import FirstOrderSolver, Rows, Updates
from fairconstrained.solvers.multiplier_models import DeepNetwork, MultiplierModel, Network
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.utils.arrays import Array, Matrix
from fairconstrained.utils.parameter_constraints import Count, NonNegative, Positive, Share

_MOST_EVALUATIONS = 50  # of a proximal step
_DENSE = 1 << 14  # entries of features up to which a dense array is faster than a sparse one
_ROUNDING = 1e-14  # relative, of a move: the fixed point is then exact in floating point


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
    def paper(cls, **options: Any) -> "PLADA":
        """Return the paper's setting: eta = 1e-3, tau = 0.1, alpha = 10, beta = gamma_0 = 0.1.

        It is that of classification (table 2), with the proximal step as printed (`exact`). The
        paper does not print the other values: delta = 1000, u_max = inf, u = max(-g(w), 0) and
        multipliers of zero at the start are choices of this library.

        `iterate` yields the printed iterates; of the measured ones `minimize` returns the best.

        tau exceeds the 1 / (3 rho) = 0.067 of the theory. With eta far below its bound, and
        convergence at the rate 1 / k on average over the steps (theorem 1), a thousand steps end
        far from a solution. The default takes eta and tau from measured constants.

        Estimators give it scaled columns, with a `domain` as well. In the printed coordinates it
        solves a :class:`Problem` of ``LinearModel(X, fit_intercept=False)`` by `minimize`.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`PLADA`.
        """
        table_2 = {"eta": 1e-3, "tau": 0.1, "alpha": 10.0, "beta": 0.1, "gamma_0": 0.1}
        return cls(**table_2 | {"exact": True, "polish": False, "max_iter": 1000} | options)

    @classmethod
    def network(cls, **options: Any) -> "PLADA":
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
    def stochastic(cls, **options: Any) -> "PLADA":
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
            rho = rows.constants.curvature / (rows.constants.slope**2 * (1.0 + 10.0 * self.beta))
        else:
            rho = self.alpha / (1.0 + self.alpha * self.beta)
        eta = self.eta or 1.0 / (rows.constants.curvature + 3.0 * rho * rows.constants.slope**2)
        tau, gamma_0 = self.tau or 1.0 / (3.0 * rho), self.gamma_0 or 0.5 * rho
        lam = start.first_multipliers(problem.n_constraints).copy()
        mu, steps = lam.copy(), np.zeros_like(lam)
        drawn = rows.draw(start.w)
        u = np.clip(-rows.first.constraints, 0.0, self.u_max)
        most = _MOST_EVALUATIONS if self.exact else 0
        while True:
            multipliers = drawn.weight * lam[drawn.constraints]
            drawn = rows.draw(self._proximal(drawn.at, multipliers, eta * rows.fade, most))
            j = drawn.constraints  # those that a batch has not drawn keep their multipliers
            steps[j] += 1.0
            apart = lam[j] - mu[j]
            fading = rho * self.delta / (steps[j] * (float(apart @ apart) + 1.0))
            u[j] = np.clip(u[j] - tau * lam[j], 0.0, self.u_max)
            mu[j] += np.minimum(gamma_0, fading) / rho * apart
            lam[j] = mu[j] + rho * (drawn.at.constraints + u[j])
            yield [(answer, np.maximum(lam, 0.0)) for answer in rows.answers(drawn.at)]

    def _proximal(self, at: Evaluation, multipliers: Array, eta: float, most: int) -> Array:
        """Return the proximal step by its fixed point, the linearised step where there is none.

        At most `most` evaluations are made; with none the step is the linearised one.
        """
        linear = v = self.moved(at, eta * at.gradient(multipliers))
        last = float(np.linalg.norm(linear - at.w))
        for _ in range(most):
            bent = at.problem.at(v).gradient(multipliers, objective=0.0)
            after = self.moved(at, eta * (at.gradient() + bent))
            length = float(np.linalg.norm(after - v))
            if length <= _ROUNDING * (1.0 + float(np.linalg.norm(v))):
                return after
            if not length < last:  # no contraction: kinks, or no minimiser is near
                break
            v, last = after, length
        return linear


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
    >>> from fairconstrained.solvers import LagrangianDescentAscent
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
    def multiplier_model(cls, **options: Any) -> "LagrangianDescentAscent":
        """Return the method with multipliers that a small network gives.

        Parameters
        ----------
        **options
            Further hyperparameters of :class:`LagrangianDescentAscent`.
        """
        return cls(**{"multipliers": Network(), **options})

    @classmethod
    def paper(cls, features: Array | None = None, **options: Any) -> "LagrangianDescentAscent":
        """Return the multiplier model as PLADA's experiments (section 5.3) compare with it.

        Three hidden layers of 100 units on the features of the constraints (for intersectional
        groups their three thresholds), 100 constraints per step, Adagrad with rate 0.1; the
        multipliers follow the zero-one rates, the weights the surrogates with steps of 0.1. For the
        printed coordinates see :meth:`PLADA.paper`.

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
        model, features = self.multipliers or MultiplierModel(), self._features(problem)
        eta = self.eta or 0.5 / rows.constants.curvature
        sigma = self.sigma or rows.constants.curvature / (2.0 * rows.constants.slope**2)
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
            drawn = rows.draw(self.moved(before, eta * rows.fade * before.gradient(multipliers)))
            values = (drawn.at.decided if self.dual == "zero_one" else drawn.at).constraints
            if self.dual == "surrogate" and not rows.sampled:  # batches differ by noise as well
                values = values + self.extrapolation * (values - before.constraints)
            j = j if full else drawn.constraints
            theta = model.ascend(theta, features, values[places], sigma, j)
            # Without brackets: those of all constraints are computed only where they are measured.
            yield ((at, model.multipliers(theta, features)) for at in rows.answers(drawn.at))

    def _features(self, problem: Problem) -> Matrix:
        """Return the features of the constraints, a row of finite numbers each; else raise."""
        if self.features is None:
            return constraint_features(problem)
        try:
            features: Array = check_array(self.features, dtype=float, input_name="features")
        except (TypeError, ValueError) as error:
            raise ValueError(f"features must be a table of numbers: {error}") from error
        if len(features) != problem.n_constraints:
            raise ValueError(
                f"features must have a row for each of the {problem.n_constraints} constraints; "
                f"got {len(features)} rows."
            )
        return features


def constraint_features(problem: Problem) -> Matrix:
    """Return features of the constraints, shape (n_constraints, n_features), sparse if many.

    A constraint that combines cells has two features per cell: how much of it is added and how much
    subtracted. ``rate(a) - rate(b) <= kappa`` is thus described by "a, added" and "b, subtracted",
    and shares these with the other constraints on a and b. Others are described by themselves.
    """
    blocks = [sp.csr_array((0, 0))]
    for part in problem.constraints:
        combination = getattr(part.term, "combination", None)
        if combination is None:
            blocks.append(sp.eye_array(part.n_outputs, format="csr"))
        else:
            weights = as_csr(combination)
            blocks.append(sp.hstack([weights.maximum(0.0), (-weights).maximum(0.0)]))
    features = sp.csr_array(sp.block_diag(blocks))
    return features if np.prod(features.shape) > _DENSE else features.toarray()
