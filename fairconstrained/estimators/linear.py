"""Linear classifiers under fairness constraints, and their export to scikit-learn's classes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.attributes import names_in_fit
from fairconstrained.data.inputs import FeatureMap
from fairconstrained.data.sensitive_columns import SensitiveColumns, groups_of
from fairconstrained.data.validation import TrainingData
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.estimators.classifier import FairClassifier
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.rows import loss_part, penalty_of
from fairconstrained.estimators.thresholds import SelectionRate
from fairconstrained.functions.losses import LOSSES, Hinge, Logistic, Loss, Quadratic, SquaredHinge
from fairconstrained.models.linear import LinearModel, finite_scores
from fairconstrained.objectives import MeanLoss, Objective, resolve_objective
from fairconstrained.penalties import InUnits, Penalty
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.problem import Problem
from fairconstrained.shards.model import ShardedData, ShardedLinearModel
from fairconstrained.utils.arguments import check_option
from fairconstrained.utils.arrays import Array, Matrix, MatrixLike
from fairconstrained.utils.execution import coefficients

# From a loss to scikit-learn's linear classifier that minimises it.
_COUNTERPARTS: dict[type[Loss], Callable[..., ClassifierMixin]] = {
    Logistic: LogisticRegression,
    Hinge: partial(LinearSVC, loss="hinge"),
    SquaredHinge: partial(LinearSVC, loss="squared_hinge"),
    Quadratic: partial(SGDClassifier, loss="squared_error"),
}


def linear_scores(estimator: Any, features: Matrix) -> Array:
    """Return the scores of rows with the features that a fitted linear model uses."""
    coef, intercept = coefficients(estimator), getattr(estimator, "intercept_", None)
    coef = np.atleast_2d(coef)[:, SensitiveColumns(estimator).kept()]
    model = LinearModel(features, n_outputs=len(coef), fit_intercept=intercept is not None)
    return finite_scores(model, np.append(coef, [] if intercept is None else intercept))


class LinearScores(FairEstimator):
    """Estimators whose scores may be linear, with coefficients of their own for every group."""

    loss: Any
    domain: Any
    fit_intercept: bool
    group_interactions: bool

    def _prepared(self, data: TrainingData) -> TrainingData:
        data = with_feature_map(self, data)
        feature_map, groups = data.feature_map, data.groups
        if groups is None or not feature_map.n_groups:
            return data

        def of_other_rows(features: Any, X: MatrixLike) -> Any:
            titles = groups.column_names
            codes = self._group_codes(X, features.shape[0], feature_map.groups, titles)
            return feature_map.expand(features, codes)

        X = feature_map.expand(data.X, groups.sensitive.codes)
        return replace(data, X=X, expand=of_other_rows)

    def _group_codes(
        self, X: MatrixLike, n_rows: int, names: Array, columns: tuple[str, ...]
    ) -> Array:
        groups = groups_of(self, X, None, n_rows, columns)
        assert groups is not None, "group_interactions needs sensitive_columns"
        return groups.among(names.tolist(), "group_interactions=True: there are coefficients for")

    def _free_problem(self, data: TrainingData, *growing: Any) -> Problem:
        """Return the problem without constraints, for rows or shards of rows."""
        scale = data.feature_scale if isinstance(data, ShardedData) else None
        X = data.X if scale is None else np.empty((0, len(scale.mean)))
        n_outputs = len(data.classes) if data.several_classes else 1
        plain = LinearModel.standardized(
            X, data.loss_weight, fit_intercept=self.fit_intercept, n_outputs=n_outputs, scale=scale
        )
        model, penalty, domain = in_variables(
            plain, penalty_of(self.alpha), self.domain or WholeSpace()
        )
        if isinstance(data, ShardedData):
            model = ShardedLinearModel.of(model, data.shards, data.sample_weight)
        return Problem(loss_part(self, model, data).add(penalty), domain=domain)

    def _fitted(self, fit: Fit, w: Array) -> dict[str, Array]:
        """Return coefficients, intercepts and feature scales in the units of X."""
        feature_map, model = fit.data.feature_map, fit.model
        convention = fit.data.convention
        assert isinstance(model, LinearModel)
        coef, intercept = feature_map.fold(*model.coefficients(w))
        if fit.data.several_classes:
            order = np.argsort(fit.data.classes)
            coef, intercept = coef[order], intercept[order]
        scale = np.ones(feature_map.n_features)  # where the penalty is in the units of X
        if fit.problem.domain.whole_space and model.scale is not None:
            scale[feature_map.kept] = model.scale[: len(feature_map.kept)]
        attributes = {
            "coef_": convention.sign * coef,
            "intercept_": convention.shown(intercept) + 0.0,  # no negative zeros
            "feature_scale_": scale,
        }
        if feature_map.n_groups:
            attributes["groups_"] = feature_map.groups
        return attributes

    def _variables(self, fit: Fit) -> Array | None:
        """Return the variables of the last fit, None if it was to other features."""
        feature_map, model = fit.data.feature_map, fit.model
        assert isinstance(model, LinearModel)
        n_rows = feature_map.n_groups or model.n_outputs
        coef, convention = np.atleast_2d(coefficients(self)), fit.data.convention
        if coef.shape != (n_rows, feature_map.n_features):
            return None
        intercept = getattr(self, "intercept_", np.zeros(1))  # rankers have none
        if fit.data.several_classes:
            order = np.searchsorted(np.sort(fit.data.classes), fit.data.classes)
            coef, intercept = coef[order], intercept[order]
        shown = convention.sign * coef, convention.fitted(intercept)
        coef, intercept = feature_map.unfold(*shown)
        return model.variables(coef, intercept) if coef.size == model.n_coefficients else None

    _raw_scores = linear_scores


@dataclass(eq=False, repr=False, kw_only=True)
class FairLinearClassifier(LinearScores, SparseCoefMixin, FairClassifier):
    """Linear classifiers of two classes under fairness constraints."""

    loss: str | Loss | Objective = "logistic"
    domain: Domain | None = None
    fit_intercept: bool = True
    group_interactions: bool = False
    warm_start: bool = False

    def _reads_by_atom(self) -> bool:
        """Return whether rows may be read once per evaluation: no result has an entry per row.

        Solvers that are chosen by name may draw rows, and a search on decisions needs scores.
        """
        plain = self.solver == "auto" and self.max_iter is None
        scores_only = self.enforce == "score" and self.confidence is None
        mean = isinstance(resolve_objective("loss", self.loss), MeanLoss)
        fixed = not isinstance(self.threshold, SelectionRate)
        return plain and scores_only and mean and fixed and not self.group_interactions

    def _scores(self, X: MatrixLike) -> Array:
        """Return the scores, with `group_interactions` by the coefficients of each row's group."""
        scores = super()._scores(X)
        if not self.group_interactions:
            return scores
        codes = self._group_codes(X, len(scores), self.groups_, names_in_fit(self))
        return scores.reshape(len(scores), -1)[np.arange(len(scores)), codes]

    def to_sklearn(self, *, sensitive: str = "zero") -> ClassifierMixin:
        """Return scikit-learn's linear classifier for the same loss, with the same coefficients.

        It has the same scores and predictions, and for the logistic loss the same probabilities.
        Exporters to ONNX and PMML support it. It has no information on constraints and groups. For
        pipelines see :func:`fairconstrained.deployment.to_sklearn`.

        Parameters
        ----------
        sensitive : {"zero", "leave_out"}, default="zero"
            What happens to sensitive columns that the model does not use. With "zero" they have a
            coefficient of zero, and must be numeric. With "leave_out" X must not contain them.

        Returns
        -------
        model : LogisticRegression, LinearSVC or SGDClassifier
            Fitted: LogisticRegression for the logistic loss, LinearSVC for the hinge and the
            squared hinge, SGDClassifier(loss="squared_error") for the quadratic loss.

        Raises
        ------
        ValueError
            If scikit-learn has no linear classifier with this loss, or this model was fitted with
            ``group_interactions=True``: no model of scikit-learn is equivalent.
        NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
        >>> X, y, groups = make_biased_classification(random_state=0)
        >>> fair = FairLogisticClassifier().fit(X, y, sensitive_features=groups)
        >>> plain = fair.to_sklearn()
        >>> np.allclose(plain.predict_proba(X), fair.predict_proba(X))
        True
        """
        check_is_fitted(self)
        check_option("sensitive", sensitive, ("zero", "leave_out"))
        plain = _counterpart(self)
        if self.group_interactions:
            raise ValueError(
                f"{type(self).__name__} was fitted with group_interactions=True: it has "
                f"coefficients for each of {self.coef_.shape[0]} groups, and "
                f"{type(plain).__name__} has one row of them for all. Fit with "
                "group_interactions=False, or deploy the model as it is, with pickle or skops."
            )
        kept = np.arange(self.n_features_in_)
        if sensitive == "leave_out":
            kept = SensitiveColumns(self).kept()
        plain.classes_ = self.classes_.copy()
        plain.coef_ = np.ascontiguousarray(coefficients(self)[:, kept])
        plain.intercept_ = np.array(self.intercept_, dtype=plain.coef_.dtype)
        plain.n_features_in_ = len(kept)
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_[kept]
        several = isinstance(plain, LogisticRegression)  # it counts the iterations of each class
        plain.n_iter_ = np.array([self.n_iter_], dtype=np.int32) if several else self.n_iter_
        if getattr(self, "score_threshold_", 0.0) == 0.0:  # several classes have no threshold
            return plain
        cut = FixedThresholdClassifier(
            plain,
            threshold=self.score_threshold_,
            pos_label=self.pos_label_,
            response_method="decision_function",
        )
        cut.estimator_ = plain
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(plain, name):
                setattr(cut, name, getattr(plain, name))
        return cut


def with_feature_map(estimator: Any, data: TrainingData) -> TrainingData:
    """Return the data with how the model's features come from X and the groups."""
    kept, n_features = SensitiveColumns(estimator).kept(), estimator.n_features_in_
    groups = data.groups if estimator.group_interactions else None
    names = np.empty(0) if groups is None else groups.sensitive.names
    return replace(data, feature_map=FeatureMap(kept, n_features, names))


def in_variables(
    model: LinearModel, penalty: Penalty, domain: Domain
) -> tuple[LinearModel, Penalty, Domain]:
    """Return linear scores of scaled features, their penalty and their domain, in its variables.

    The coefficients are multiplied by the feature scale; the intercepts after them are free. In the
    whole space the penalty is on these variables. Other domains, and then the penalty, are in the
    units of X, and the variables are the coefficients times factors that give them similar sizes:
    of every column, where the set in these units is known and the penalty convex, otherwise of all
    columns together.
    """
    n, scale = model.n_coefficients, model.scale
    if domain.n_variables not in (None, n):
        raise ValueError(
            f"domain is a set of {domain.n_variables} variables, but the model has {n} "
            f"coefficients; got {domain!r}."
        )
    if not domain.whole_space and scale is not None:
        curvature = max(penalty.modulus, 0.0)  # a strong penalty is what makes variables unlike
        factors = np.sqrt(scale**2 + curvature)
        stretched = domain.stretched(np.tile(factors, model.n_outputs)) if penalty.convex else None
        if stretched is None:
            factors = np.full_like(scale, np.sqrt(np.mean(scale**2) + curvature))
            stretched = domain.stretched(np.tile(factors, model.n_outputs))
        assert stretched is not None
        model, domain = model.in_units(factors), stretched
        penalty = InUnits(penalty, 1.0 / np.tile(factors, model.n_outputs))
    leading = domain if domain.whole_space else LeadingDomain(domain, n)
    return model, LeadingPenalty(penalty, n), leading


def _counterpart(model: FairLinearClassifier) -> ClassifierMixin:
    objective = resolve_objective("loss", model.loss)
    loss = objective.loss_function if isinstance(objective, MeanLoss) else None
    for kind, counterpart in _COUNTERPARTS.items():
        if type(loss) is kind:
            return counterpart(fit_intercept=model.fit_intercept)
    names = ", ".join(name for name, kind in LOSSES.items() if kind in _COUNTERPARTS)
    raise ValueError(
        f"scikit-learn has no linear classifier with loss={model.loss!r} (it has {names}). Deploy "
        "the model as it is, with pickle or skops."
    )
