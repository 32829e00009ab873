"""The base classes of the estimators: minimise with callbacks, store, warn, predict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

from sklearn.base import ClassifierMixin

from fairconstrained.constraints import ConstraintLike
from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.labels import ClassWeight, ScoreConvention
from fairconstrained.data.sensitive_columns import Columns
from fairconstrained.estimators.best_of import best_of
from fairconstrained.estimators.callbacks import Progress
from fairconstrained.estimators.fairest import fairest_problem
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.nested import ConstraintParameters, DocumentedEstimator
from fairconstrained.estimators.one_sided import warn_of_equal_predictions, warn_of_one_side
from fairconstrained.estimators.options import warn_of_unused_kappa
from fairconstrained.estimators.selection_rate import cut_exactly, limits_of, rate_of, settle
from fairconstrained.estimators.solution import far_predictions, warn_of_predictions
from fairconstrained.estimators.solving import (
    Attributes,
    solver_of,
    warm_start,
    warn_of,
    warn_of_other_solver,
)
from fairconstrained.estimators.thresholds import Threshold
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.penalties import Penalty
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.solvers.base import Start
from fairconstrained.utils.compat import CallbackSupportMixin, with_callbacks
from fairconstrained.utils.fitted import all_or_nothing
from fairconstrained.utils.threads import limited_threads
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike, RandomState

Minimize = Callable[..., tuple[Result, Evaluation]]


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedEstimator(CallbackSupportMixin, DocumentedEstimator):
    """Estimators trained by minimising a constrained problem.

    The parameters of an estimator are the fields of a dataclass. Subclasses have `warm_start` too.
    """

    solver: str | Solver = "auto"
    beta: float | None = None
    alpha: float | Penalty = 1e-4
    max_iter: int | None = None
    tol: float = 1e-4
    random_state: RandomState = None
    verbose: int = 0

    __metadata_request__fit: ClassVar = {"sample_weight": True}

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters, which are read once per class."""
        return list(super()._get_param_names())

    def _minimize(
        self,
        problem: Problem,
        passed: tuple[Any, Any, Any],
        attributes: Attributes,
        *,
        variables: Array | None,
        first: Start | None = None,
        minimize: Minimize | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the solution and the evaluation there; callbacks receive all measured iterates.

        Parameters
        ----------
        problem : Problem
            What to minimise.
        passed : tuple
            X, y and sample_weight as passed to `fit`.
        attributes : callable
            From the solver's variables to the attributes that `predict` uses.
        variables : ndarray of shape (n_parameters,) or None
            The variables of the last fit, for a warm start.
        first : Start or None, default=None
            The start without a warm start.
        minimize : callable or None, default=None
            Minimises the problem, with the arguments `warm` and `callback` of solvers; None for the
            estimator's solver.
        """
        if minimize is None:
            solver = solver_of(self, problem)
            solver.check(problem)
            minimize = partial(best_of, solver, options=self)
        progress = Progress(self, *passed, attributes)
        warm = warm_start(self, problem, variables, first)
        result, at = minimize(problem, warm=warm, callback=progress)
        progress.close(lambda: attributes(result.w))
        return result, at


class ConstrainedClassifier(ClassifierMixin, ConstrainedEstimator):
    """Classifiers trained by minimising a constrained problem."""

    __metadata_request__score: ClassVar = {"sample_weight": True}

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.

        Returns
        -------
        accuracy : float

        Raises
        ------
        ValueError
            If lengths differ, or pandas objects have the same row labels in another order.
        """
        check_same_rows(test=True, X=X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))


@dataclass(eq=False, repr=False)
class FairEstimator(ConstraintParameters, ConstrainedEstimator):
    """Estimators of two classes under fairness constraints, with any model.

    Attributes
    ----------
    several_classes : bool
        Whether y may have more than two classes.
    quality : {"accuracy", "ndcg"}
        What a model is worth beside its gap, on paths.
    needs_queries : bool
        Whether rows belong to queries: for rankers.
    """

    constraint: ConstraintLike = "demographic_parity"
    kappa: float = 0.05
    _: KW_ONLY
    goal: str = "accuracy"
    max_loss_increase: float = 0.001
    sensitive_columns: Columns = None
    use_sensitive: bool = False
    combine: str = "intersection"
    groups_missing: str = "raise"
    pos_label: object = None

    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    several_classes: ClassVar[bool] = False
    quality: ClassVar[str] = "accuracy"
    needs_queries: ClassVar[bool] = False

    @property
    @abstractmethod
    def parametrization(self) -> type[Any]:
        """How the scores depend on the solver's variables: a subclass of `Parametrization`."""

    def _wanted(self, fit: Fit) -> tuple[Problem, Start | None]:
        """Return the problem that the goal asks for, and a start."""
        if self.goal == "fairness" and fit.problem.n_constraints:
            return fairest_problem(fit, self.max_loss_increase)
        return fit.problem, None

    def _solve(self, fit: Fit, passed: tuple[Any, Any, Any]) -> Self:
        """Solve the problem of a fit, set the fitted attributes and warn of what was not found.

        Parameters
        ----------
        fit : Fit
            The options of this estimator bound to the training rows.
        passed : tuple
            X, y and sample_weight as passed to `fit`.
        """
        with limited_threads(fit.data.X):
            rate, first, passes = rate_of(fit), None, 0.0
            if rate is not None:
                fit, first, passes = settle(fit, rate, self._wanted)
            wanted, start = self._wanted(fit)
            result, at = self._minimize(
                wanted,
                passed,
                fit.fitted_attributes,
                variables=fit.parametrization.variables(self) if self.warm_start else None,
                first=start if first is None else first,
                minimize=fit.minimize,
            )
            if rate is not None:
                result = replace(result, data_passes=result.data_passes + passes)
                fit, result = cut_exactly(fit, rate, result, at, self._wanted)
                at = fit.problem.uncounted().at(result.w[: fit.problem.n_variables])
            solution = fit.enforced(result, limits_of(fit))
        fit.store(self, solution, like=at)
        warn_of_one_side(fit, solution.result.w[: fit.problem.n_variables], stacklevel=5)
        promised = solution.certificate or solution.search
        if promised is None:
            warn_of(solution.result, stacklevel=5)
            if self.goal == "accuracy" and not self.needs_queries:
                far = far_predictions(fit.constraints, fit.data, at)
                warn_of_predictions(far, stacklevel=5)
                warn_of_equal_predictions(fit, at, stacklevel=5)
        else:
            warn_of_other_solver([result], stacklevel=5)
            promised.warn(stacklevel=5)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class FairClassifier(FairEstimator, ConstrainedClassifier):
    """Classifiers of two classes under fairness constraints, with any model.

    Subclasses have a `decision_function`, and `warm_start` as a parameter or an attribute.
    """

    surrogate: str | Surrogate = "sigmoid"
    class_weight: ClassWeight = None
    threshold: Threshold = None
    enforce: str = "score"
    confidence: float | None = None
    holdout: float | str = "auto"

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The labels, of two classes, or more where `several_classes` is True.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows, in the loss (times `class_weight`) and in the groups' averages.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups; `combine` defines how several columns make groups. Not needed with
            `sensitive_columns` or without a constraint.

        Returns
        -------
        self : FairClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, groups are missing, or the solver cannot solve the problem.
        """
        with all_or_nothing(self):
            warn_of_unused_kappa(self)
            fit = self.bind(X, y, sample_weight, sensitive_features)
            return self._solve(fit, (X, y, sample_weight))

    def bind(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sensitive_features: MatrixLike | None = None,
        *,
        path: bool = False,
    ) -> Fit:
        """Return the problem that `fit` would solve, for developers.

        The problem has no rows of weight zero. `data.positions` has the positions of its rows in X,
        or is None if they are the rows of X.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features
            See `fit`.
        path : bool, default=False
            Whether the tolerances are to vary, see :meth:`Fit.bind`.
        """
        return Fit.of(self, X, y, sample_weight, sensitive_features, path=path)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, and which label is favourable if that was not chosen."""
        text = super().__repr__(N_CHAR_MAX)
        favourable = getattr(self, "pos_label_", None)
        if self.pos_label is not None or not isinstance(favourable, str):
            return text
        return f"{text} (fitted: the favourable label is {favourable!r}, see pos_label)"

    def predict(self, X: MatrixLike) -> Array:
        """Return the class of each row: the favourable one if its score is above the threshold.

        With more than two classes it is the class of the largest score.

        The score of the favourable class is `decision_function` if it is the second of `classes_`,
        else its negative.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return self.classes_[scores.argmax(axis=1)]
        convention = ScoreConvention.of(self)
        favourable = convention.fitted(scores) > 0.0
        return self.classes_[(favourable == (convention.sign > 0.0)).astype(int)]
