"""How the scores of linear classifiers depend on the solver's variables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from fairconstrained.data.group_interactions import FeatureMap, codes_of
from fairconstrained.data.groups import Groups
from fairconstrained.data.labels import ScoreConvention
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import TrainingData
from fairconstrained.domains import Domain
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.estimators.options import domain_of, penalty_of
from fairconstrained.estimators.parametrization import Parametrization
from fairconstrained.estimators.thresholds import SelectionRate
from fairconstrained.models.feature_scale import Features, FeatureScale
from fairconstrained.models.linear import LinearModel
from fairconstrained.objectives import MeanLoss, resolve_objective
from fairconstrained.penalties import InUnits, Penalty
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.shards.in_memory import ShardedData
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.utils.fitted import coefficients
from fairconstrained.utils.typing import Array, Matrix, MatrixLike


@dataclass(frozen=True, eq=False)
class LinearParametrization(Parametrization):
    """Linear scores; the variables are coefficients per feature scale, then the intercepts.

    Attributes
    ----------
    model : LinearModel
        The model on the training rows.
    penalty : Penalty
        The penalty on the variables; intercepts are free.
    domain : Domain
        The set of the variables; intercepts are free.
    convention : ScoreConvention
        How the scores are related to those of the coefficients that users see.
    """

    model: LinearModel
    penalty: Penalty
    domain: Domain
    convention: ScoreConvention = field(default_factory=ScoreConvention, kw_only=True)

    def moved(self, by: float) -> Self:
        """Return the same for scores measured from a threshold that is higher by a number."""
        return replace(self, convention=self.convention.moved(by))

    def _shown(self, coef: Array, intercept: Array) -> dict[str, Array]:
        """Return the coefficients and intercepts that users see."""
        if self.convention == ScoreConvention():
            return {"coef_": coef, "intercept_": intercept}
        return {
            "coef_": self.convention.sign * coef,
            "intercept_": self.convention.shown(intercept) + 0.0,  # no negative zeros
        }

    def _fitted(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients and intercepts of the fit, for those that users see."""
        return self.convention.sign * coef, self.convention.fitted(intercept)

    def attributes(self, w: Array) -> dict[str, Array]:
        """Return coefficients and intercepts in the units of X."""
        return self._shown(*self.model.coefficients(w))

    def variables(self, estimator: Any) -> Array | None:
        """Return the variables of a fitted estimator, None if it was fitted to other features."""
        coef = coefficients(estimator)
        if not hasattr(estimator, "coef_") or coef.size != self.model.n_coefficients:
            return None
        return self.model.variables(*self._fitted(coef, estimator.intercept_))


@dataclass(frozen=True, eq=False)
class ClassifierParametrization(LinearParametrization):
    """Linear scores of classes, with group interactions if the estimator has them.

    Two classes have one score, several classes one each.

    Attributes
    ----------
    feature_map : FeatureMap
        How the model's features come from X and the groups.
    groups : ndarray or None
        The groups that have coefficients of their own.
    """

    feature_map: FeatureMap
    groups: Array | None = None

    @classmethod
    def by_atom(cls, estimator: Any) -> bool:
        """Return whether rows may be read once per evaluation: no result has an entry per row.

        Solvers that are chosen by name may draw rows, and a search on decisions needs scores.
        """
        plain = estimator.solver == "auto" and estimator.max_iter is None
        scores_only = estimator.enforce == "score" and estimator.confidence is None
        mean = isinstance(resolve_objective("loss", estimator.loss), MeanLoss)
        fixed = not isinstance(estimator.threshold, SelectionRate)
        return plain and scores_only and mean and fixed and not estimator.group_interactions

    @classmethod
    def features(cls, estimator: Any, data: TrainingData) -> TrainingData:
        """Return the rows with the features of the feature map.

        Parameters
        ----------
        estimator : FairLinearClassifier
            Its `n_features_in_` is set.
        data : TrainingData
            The rows with the columns of X that the model may use.
        """
        feature_map = feature_map_of(estimator, data)
        if not feature_map.n_groups or data.groups is None:
            return data
        columns = SensitiveColumns.of(estimator)
        names, missing = data.groups.names, estimator.groups_missing

        def of_other_rows(features: Matrix, X: MatrixLike) -> Matrix:
            values = columns.groups(estimator, X)
            codes = codes_of(names, values, features.shape[0], missing)
            return feature_map.expand(features, Groups(codes, names))

        return data.with_features(feature_map.expand(data.X, data.groups), of_other_rows)

    @classmethod
    def of(cls, estimator: Any, data: TrainingData, *, path: bool = False) -> Self:
        """Return the parametrization for an estimator's alpha, domain and fit_intercept."""
        linear = _linear(estimator, data)
        feature_map = feature_map_of(estimator, data)
        groups = data.groups.names if feature_map.n_groups and data.groups is not None else None
        return cls(
            linear.model,
            linear.penalty,
            linear.domain,
            feature_map,
            groups,
            convention=data.convention,
        )

    def attributes(self, w: Array) -> dict[str, Array]:
        """Return coefficients, intercepts and feature scales in the units of X."""
        kept = self.feature_map.kept
        coef, intercept = self.feature_map.fold(*self.model.coefficients(w))
        scale = np.ones(self.feature_map.n_features)
        if self.domain.whole_space and self.model.scale is not None:
            scale[kept] = self.model.scale[: len(kept)]
        found = {**self._shown(coef, intercept), "feature_scale_": scale}
        return found if self.groups is None else {**found, "groups_": self.groups}

    def variables(self, estimator: Any) -> Array | None:
        """Return the variables of a fitted estimator, None if it was fitted to other features."""
        n_rows = self.feature_map.n_groups or getattr(self.model, "n_outputs", 1)
        shape = (n_rows, self.feature_map.n_features)
        coef = coefficients(estimator)
        if coef.shape != shape:
            return None
        shown = self._fitted(coef, estimator.intercept_)
        coef, intercept = self.feature_map.unfold(*shown)
        if coef.size != self.model.n_coefficients:
            return None
        return self.model.variables(coef, intercept)


def _linear(estimator: Any, data: TrainingData) -> LinearParametrization:
    """Return the linear scores of rows, which may be in shards."""
    of_rows = partial(
        linear_parametrization,
        penalty=penalty_of(estimator.alpha),
        domain=domain_of(estimator.domain),
        fit_intercept=estimator.fit_intercept,
    )
    if not isinstance(data, ShardedData):
        n_outputs = len(data.classes) if data.several_classes else 1
        return of_rows(data.X, data.loss_weight, n_outputs=n_outputs)
    scale = data.feature_scale
    linear = of_rows(np.empty((0, len(scale.mean))), np.empty(0), known=scale)
    model = ShardedLinearModel.of(linear.model, data.shards, data.sample_weight)
    return replace(linear, model=model)


def feature_map_of(estimator: Any, data: TrainingData) -> FeatureMap:
    """Return how the model's features come from X and the groups."""
    columns = SensitiveColumns.of(estimator)
    crossed = estimator.group_interactions and data.groups is not None
    n_groups = len(data.groups.names) if crossed and data.groups is not None else 0
    return FeatureMap(columns.kept(estimator), estimator.n_features_in_, n_groups)


def linear_parametrization(
    X: Features,
    sample_weight: Array,
    *,
    penalty: Penalty,
    domain: Domain,
    fit_intercept: bool,
    n_outputs: int = 1,
    known: FeatureScale | None = None,
) -> LinearParametrization:
    """Return linear scores of centred and scaled features.

    Where the domain is the whole space, the penalty is on coefficients per feature scale, so that
    nothing depends on the units of X, see
    :func:`~fairconstrained.models.feature_scale.feature_scale`. Otherwise domain and penalty are in
    the units of X, see :func:`in_solver_units`.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        The features.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows.
    penalty : Penalty
        The penalty on the coefficients.
    domain : Domain
        The set of the coefficients.
    fit_intercept : bool
        Whether there are intercepts.
    n_outputs : int, default=1
        The number of scores per row.
    known : FeatureScale or None, default=None
        The feature scale, where it is not that of these rows.
    """
    model = LinearModel.standardized(
        X, sample_weight, fit_intercept=fit_intercept, n_outputs=n_outputs, known=known
    )
    return LinearParametrization(*in_solver_units(model, penalty, domain))


def in_solver_units(
    model: LinearModel, penalty: Penalty, domain: Domain
) -> tuple[LinearModel, Penalty, Domain]:
    """Return standardised linear scores, their penalty and domain in the variables of solvers.

    In the whole space the penalty is on the model's parameters. Other domains, and then the
    penalty, are in the units of X, and the solver's variables are the coefficients times factors
    that give them similar sizes: of every column, where the set in these units is known and the
    penalty convex, otherwise of all columns together.

    Parameters
    ----------
    model : LinearModel
        From `LinearModel.standardized`.
    penalty : Penalty
        The penalty on the coefficients.
    domain : Domain
        The set of the coefficients.

    Raises
    ------
    ValueError
        If the domain is a set of another number of variables.
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
    return model, LeadingPenalty(penalty, n), LeadingDomain(domain, n)
