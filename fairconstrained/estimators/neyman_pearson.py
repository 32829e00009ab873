"""Neyman-Pearson classification: one class's errors are minimised, the others' are bounded."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import validate_parameter_constraints

from fairconstrained.data.labels import class_position
from fairconstrained.data.validation import TrainingData
from fairconstrained.domains import Blocks, Domain, L2Ball, WholeSpace
from fairconstrained.estimators.classifier import ConstrainedClassifier
from fairconstrained.estimators.linear import in_variables, linear_scores
from fairconstrained.estimators.rows import penalty_of
from fairconstrained.estimators.solution import Solution, measures, warn_of
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.functions.surrogates import SURROGATES, Stretched, Surrogate
from fairconstrained.models import LinearModel
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.classes import class_losses
from fairconstrained.utils import execution
from fairconstrained.utils.arguments import resolve
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike
from fairconstrained.utils.parameter_constraints import POSITIVE, Positive, check_parameters


@dataclass(eq=False, repr=False)
class NeymanPearsonClassifier(SparseCoefMixin, ConstrainedClassifier):
    r"""Linear classifier with the least loss on one class, subject to bounds on the others.

    .. math::
        \min_{w_k, b_k} \sum_{l \ne 1} \frac{1}{n_1} \sum_{i:\, y_i = 1} \phi(s_{i1} - s_{il})
        + \frac{\alpha}{2} \sum_k \|w_k\|_2^2 \quad \text{s.t.} \quad
        \sum_{l \ne k} \frac{1}{n_k} \sum_{i:\, y_i = k} \phi(s_{ik} - s_{il}) \le \kappa_k,
        \quad k = 2, \dots, K,

    with scores :math:`s_{ik} = x_i^\top w_k + b_k`, phi not increasing, class 1 the priority class,
    and, with a radius, :math:`\|w_k\|_2 \le` radius. The class of the largest score is predicted.

    Parameters
    ----------
    priority : label or None, default=None
        The class whose loss is minimised; None takes the first of the sorted classes.
    kappa : float, mapping from label to float, or None, default=None
        The bounds on the losses of the other classes, > 0: one for all classes, or a mapping (a
        class that is left out has no bound). The loss of a class is a sum over the K - 1 other
        classes. None takes the loss of equal scores, :math:`(K - 1)\,\phi(0)`, as 3S-Econ does.
        This bound can be met for any data; lower ones are usual in practice.
    surrogate : {"sigmoid", "ramp"}, a loss's name, Surrogate or Loss, default="sigmoid"
        The function phi. A loss ("logistic", "hinge", ...) is a function of the margin. A surrogate
        of 1{s > 0} is reflected, phi(s) = surrogate(-s): the share of wrongly ordered pairs.
    radius : float or None, default=None
        The radius of the ball in which the coefficients of each class lie, in the units of X, > 0.
        None means no ball.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty. Without a radius coefficients are
        penalised per feature scale (see :class:`FairLogisticClassifier`).
    fit_intercept : bool, default=True
        Whether the classes have intercepts, which are not penalised.
    solver, beta
        As for :class:`FairLogisticClassifier`.
    max_iter, tol, warm_start, random_state, verbose
        See :class:`FairLogisticClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The coefficients, a row per class (also for two classes).
    intercept_ : ndarray of shape (n_classes,)
        The intercepts.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    priority_ : label
        The priority class.
    kappa_ : ndarray of shape (n_classes,)
        The bounds; infinite for the priority class and for classes without a bound.
    class_losses_ : ndarray of shape (n_classes,)
        The loss of each class on the training rows, summed over the other classes.
    class_errors_ : ndarray of shape (n_classes,)
        The share of each class's training rows that are predicted as another class.
    n_features_in_, feature_names_in_, n_iter_, multipliers_, objective_, violation_
    bound_violation_, bound_met_, kkt_residual_, result_
        See :class:`FairLogisticClassifier`.
    optimality_gap_, optimality_gap_reason_ : None, str
        No bound is known for losses of classes.

    Warns
    -----
    ConvergenceWarning
        If the solver ends before it reaches its tolerance.
    InfeasibleConstraintWarning
        If the violation is above the tolerance: the bounds cannot be met, or the solver found no
        point that meets them.

    References
    ----------
    IPC, section 1.1; 3S-Econ, problem 3 (kappa = 4.5, radius 0.3, ten classes).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fairconstrained import NeymanPearsonClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NeymanPearsonClassifier(priority=1, kappa={0: 0.1, 2: 0.1}).fit(X, y)
    >>> clf.violation_ <= 1e-4, bool(clf.class_losses_[2] <= 0.1 + 1e-4)
    (True, True)
    >>> clf.class_errors_.round(2)
    array([0.02, 0.  , 0.06])
    """

    several_classes: ClassVar[bool] = True
    pos_label: ClassVar[None] = None
    class_weight: ClassVar[None] = None

    priority: Any = None
    kappa: Positive | Mapping[Any, float] | None = None
    _: KW_ONLY
    surrogate: str | Surrogate | Loss = "sigmoid"
    radius: Positive | None = None
    fit_intercept: bool = True
    warm_start: bool = False

    @execution.with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The labels, of two classes or more.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows within their class.

        Returns
        -------
        self : NeymanPearsonClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, or the solver cannot solve the problem.
        """
        with execution.all_or_nothing(self):
            check_parameters(self)
            function = self._function()
            data = TrainingData.check(self, X, y, None, sample_weight)
            self.classes_, labels = data.classes, data.class_positions
            names, first = self.classes_.tolist(), 0
            if self.priority is not None:
                first = class_position("priority", self.priority, names)
            bounds = self._bounds(function, names, first)
            with execution.limited_threads(data.X):
                problem = self._problem(data, function, bounds, first)
                model = problem.objective.model
                assert isinstance(model, LinearModel)

                def attributes(w: Array) -> dict[str, Any]:
                    coef, intercept = model.coefficients(w)
                    return {"coef_": coef, "intercept_": intercept}

                start = self._variables(model) if self.warm_start else None
                passed = X, y, sample_weight
                result, at = self._minimize(problem, passed, attributes, variables=start)
                measured = measures(problem, Solution(result), at)
                n, scores = len(bounds), model.forward(result.w)[0]
                losses = class_losses(function, labels, data.sample_weight, [*range(n)], [0.0] * n)
            del measured["gap_"], measured["decision_gap_"]  # bounds are on losses
            measured |= {
                "class_losses_": losses.value(scores),
                "class_errors_": losses.zero_one().value(scores),
                "priority_": self.classes_[first],
                "kappa_": bounds,
                "optimality_gap_reason_": "no method is known for bounds on the losses of classes",
            }
            execution.set_fitted(self, attributes(result.w) | measured)
            warn_of(result)
        return self

    def _variables(self, model: LinearModel) -> Array | None:
        coef = execution.coefficients(self)
        if coef.size != model.n_coefficients:
            return None
        return model.variables(coef, self.intercept_)

    def _function(self) -> ScalarFunction:
        function = resolve("surrogate", self.surrogate, {**SURROGATES, **LOSSES}, ScalarFunction)
        if isinstance(function, Surrogate):
            return Stretched(function)
        if not isinstance(function, Loss):
            raise TypeError(
                f"surrogate must be a Surrogate, a Loss or the name of one; got {function!r}."
            )
        return function

    def _bounds(self, function: ScalarFunction, names: list[Any], priority: int) -> Array:
        """Return kappa_k, infinite for the priority class and classes that have none."""
        bounds = np.full(len(names), np.inf)
        if isinstance(self.kappa, Mapping):
            for label, kappa in self.kappa.items():
                name = f"kappa[{label!r}]"
                validate_parameter_constraints(
                    {name: [POSITIVE]}, {name: kappa}, type(self).__name__
                )
                bounds[class_position("kappa", label, names)] = kappa
            if np.isfinite(bounds[priority]):
                raise ValueError(
                    f"kappa has a bound for the class {names[priority]!r}, the "
                    "priority class: its loss is minimised, bounds are for the others."
                )
        else:
            guessing = float(function.value(np.zeros(1))[0]) * (len(names) - 1)
            bounds[:] = guessing if self.kappa is None else self.kappa
            bounds[priority] = np.inf
        return bounds

    def _problem(
        self, data: TrainingData, function: ScalarFunction, bounds: Array, first: int
    ) -> Problem:
        labels, weight = data.class_positions, data.sample_weight
        if first not in labels:
            raise ValueError(
                f"priority: all rows of the class {self.classes_.tolist()[first]!r} have weight "
                "zero, so that there is no loss to minimise."
            )
        bounded = np.flatnonzero(np.isfinite(bounds))
        ball: Domain = WholeSpace() if self.radius is None else L2Ball(float(self.radius))
        n = len(self.classes_)
        plain = LinearModel.standardized(
            data.X, weight, fit_intercept=self.fit_intercept, n_outputs=n
        )
        model, penalty, domain = in_variables(plain, penalty_of(self.alpha), Blocks(ball, n))
        loss = class_losses(function, labels, weight, [first], [0.0], ["loss"])
        parts = []
        if bounded.size:
            names = [f"loss of class {self.classes_[k]}" for k in bounded]
            limits = bounds[bounded].tolist()
            held = class_losses(function, labels, weight, bounded.tolist(), limits, names)
            parts.append(CompositeFunction(model, held))
        return Problem(CompositeFunction(model, loss, penalty), tuple(parts), domain)

    def _scores(self, X: MatrixLike) -> Array:
        """Return the scores of the classes, of two the second one's minus the first one's."""
        scores = super()._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    _raw_scores = linear_scores
