"""Linear classifiers of two classes: validate, bind, minimise, store."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fairconstrained.constraints import CONSTRAINTS, Constraint
from fairconstrained.data.group_interactions import Layout, codes_of
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import SensitiveColumns, TrainingData
from fairconstrained.decisions.population import check_rates, counted, enforce, hold_out
from fairconstrained.domains import Domain
from fairconstrained.estimators.base import ConstrainedClassifier
from fairconstrained.estimators.fit import Prepared, assemble, fairest, threads_that_pay
from fairconstrained.estimators.options import check_options, domain_of, penalty_of
from fairconstrained.models.linear import LinearModel
from fairconstrained.objectives import resolve_objective
from fairconstrained.penalties.base import Penalty
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_kappa


class FairLinearClassifier(ConstrainedClassifier):
    """Linear classifiers of two classes under fairness constraints: one for every loss."""

    def __init__(
        self,
        constraint: Any = "demographic_parity",
        kappa: float = 0.05,
        *,
        goal: str = "accuracy",
        max_loss_increase: float = 0.001,
        solver: str | Solver = "auto",
        beta: float | None = None,
        surrogate: Any = "sigmoid",
        loss: Any = "logistic",
        alpha: float | Penalty = 1e-4,
        domain: Domain | None = None,
        fit_intercept: bool = True,
        sensitive_columns: Any = None,
        use_sensitive: bool = False,
        combine: str = "intersection",
        groups_missing: str = "raise",
        group_interactions: bool = False,
        enforce: str = "score",
        confidence: float | None = None,
        holdout: float = 0.25,
        max_iter: int | None = None,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.constraint = constraint
        self.kappa = kappa
        self.goal = goal
        self.max_loss_increase = max_loss_increase
        self.solver = solver
        self.beta = beta
        self.surrogate = surrogate
        self.loss = loss
        self.alpha = alpha
        self.domain = domain
        self.fit_intercept = fit_intercept
        self.sensitive_columns = sensitive_columns
        self.use_sensitive = use_sensitive
        self.combine = combine
        self.groups_missing = groups_missing
        self.group_interactions = group_interactions
        self.enforce = enforce
        self.confidence = confidence
        self.holdout = holdout
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: binary labels, sparse features."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The labels, of two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows in the loss and in the groups' averages alike.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups; of several columns, what `combine` says. Not needed with
            `sensitive_columns` or without a constraint.

        Returns
        -------
        self : FairLinearClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, groups are missing, or the solver cannot solve the problem.
        """
        prepared = self._prepare(X, y, sample_weight, sensitive_features)
        problem, model = prepared.problem, prepared.model
        with threads_that_pay(prepared.data.X):
            wanted, first = problem, None
            if self.goal == "fairness" and problem.n_constraints:
                wanted, first = fairest(problem, prepared.unconstrained, self.max_loss_increase)
            result = self._minimize(
                wanted,
                (X, y, sample_weight),
                lambda w: _ready_to_predict(model, prepared.data, prepared.layout, w),
                first=first,
                layout=prepared.layout,
            )
            result = self._enforce(prepared, result)
        self._store_result(result)
        self._store(problem, model, prepared.data, prepared.layout)
        self._warn()
        return self

    def _enforce(self, prepared: Prepared, result: Result) -> Result:
        """Return the result with a model whose decisions meet the bound, if that is wanted."""
        self.decision_search_ = self.certificate_ = None
        if self.enforce == "score" or not prepared.problem.n_constraints:
            return result
        solver = self._solver(prepared.problem)
        self.decision_search_, self.certificate_ = enforce(
            prepared, result, solver, self.confidence, self.random_state
        )
        return self.decision_search_.result(prepared.problem, result)

    def _prepare(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Prepared:
        """Return the checked data and the problem."""
        check_options(self)
        columns = SensitiveColumns(self.sensitive_columns, self.use_sensitive)
        data = TrainingData.check(
            self,
            X,
            y,
            sensitive_features,
            sample_weight,
            columns,
            self.combine,
            self.groups_missing,
        )
        constraints = self._constraints(data)
        layout = self._layout(data, columns)
        data = data.with_features(
            layout.expand(data.X, data.groups), self._expansion(layout, data, columns)
        )
        held = None
        if self.confidence is not None and constraints:
            check_rates(constraints)
            data, held, rows = hold_out(data, self.holdout, self.random_state)
            self.holdout_indices_ = rows if sample_weight is None else counted(sample_weight)[rows]
        with threads_that_pay(data.X):
            problem, unconstrained = assemble(
                data,
                constraints,
                loss=resolve_objective("loss", self.loss),
                penalty=penalty_of(self.alpha),
                domain=domain_of(self.domain),
                fit_intercept=self.fit_intercept,
            )
        prepared = Prepared(data, layout, problem, unconstrained)
        return prepared.with_held_out(held, constraints)

    def _named_constraints(self) -> list[Constraint]:
        """Return the constraints as the user passed them, names resolved."""
        if self.constraint is None:
            return []
        given = self.constraint if isinstance(self.constraint, list | tuple) else [self.constraint]
        return [resolve("constraint", one, CONSTRAINTS, Constraint) for one in given]

    def _constraints(self, data: TrainingData) -> list[Constraint]:
        """Return the constraints with the estimator's kappa and surrogate where they have none."""
        found = self._named_constraints()
        if any(one.needs_groups for one in found) and data.groups is None:
            raise ValueError(
                f"constraint={self.constraint!r} needs groups: pass sensitive_features to fit (in "
                "pipelines and searches by metadata routing), or name columns of X in "
                "sensitive_columns."
            )
        kappa = self.kappa if self.goal == "accuracy" else 0.0
        if any(one.kappa is None for one in found):
            check_kappa(kappa)
        defaults = {"kappa": kappa, "surrogate": self.surrogate, "loss": self.loss}
        return [one.with_defaults(**defaults) for one in found]

    def _layout(self, data: TrainingData, columns: SensitiveColumns) -> Layout:
        """Return what the model sees of X."""
        crossed = self.group_interactions and data.groups is not None
        n_groups = len(data.groups.names) if crossed and data.groups is not None else 0
        return Layout(columns.kept(self), self.n_features_in_, n_groups)

    def _expansion(self, layout: Layout, data: TrainingData, columns: SensitiveColumns) -> Any:
        """Return what makes the model's features of other rows, None if it sees x alone."""
        if not layout.n_groups or data.groups is None:
            return None
        names = data.groups.names

        def expand(features: Any, X: Any) -> Any:
            values = columns.groups(self, X)
            codes = codes_of(names, values, features.shape[0], self.groups_missing)
            return layout.expand(features, Groups(codes, names))

        return expand

    def _store(
        self, problem: Problem, model: LinearModel, data: TrainingData, layout: Layout
    ) -> None:
        """Store what the problem, at the solver's answer, says of the model."""
        w = self.result_.w
        for name, value in _ready_to_predict(model, data, layout, w).items():
            setattr(self, name, value)
        self.feature_scale_ = np.ones(self.n_features_in_)
        if model.scale is not None:
            self.feature_scale_[layout.kept] = model.scale[: len(layout.kept)]
        at = problem.uncounted().at(w[: problem.n_variables])
        self.objective_ = at.objective
        self.gap_ = at.gap
        self.decision_gap_ = at.decision_gap

    def decision_function(self, X: Any) -> Array:
        """Return the scores.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The second class is decided where the score is positive.

        Raises
        ------
        ValueError
            With `group_interactions`, if a row is of a group that no row had in `fit`.
        """
        check_is_fitted(self)
        columns = SensitiveColumns(self.sensitive_columns, self.use_sensitive)
        features = columns.features(self, X, reset=False)
        coef = self.coef_[:, columns.kept(self)]
        model = LinearModel(features, n_outputs=len(coef))
        scores = model.scores(np.append(coef.ravel(), self.intercept_))
        if not self.group_interactions:
            return scores
        groups = columns.groups(self, columns.table(self, X))
        codes = codes_of(self.groups_, groups, model.n_rows, self.groups_missing)
        return scores.reshape(model.n_rows, -1)[np.arange(model.n_rows), codes]

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]


def _ready_to_predict(
    model: LinearModel, data: TrainingData, layout: Layout, w: Array
) -> dict[str, Array]:
    """Return what `predict` needs, in the units of X, for the solver's variables."""
    coef, intercept = layout.fold(*model.coefficients(w[: model.n_parameters]))
    names = np.array([])
    if data.groups is not None:  # a model with rows per group has one per intersection
        names = data.groups.names if layout.n_groups else data.groups.listed
    return {"coef_": coef, "intercept_": intercept, "classes_": data.classes, "groups_": names}
