"""From what a user passes to `fit` to the problem that is solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data

from fairconstrained.constraints.base import Constraint
from fairconstrained.domains import Domain
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.groups import Groups, check_groups
from fairconstrained.losses import Loss
from fairconstrained.models import LinearModel, spread
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.penalties import Penalty
from fairconstrained.problem import Part, Problem
from fairconstrained.scalar import Array
from fairconstrained.terms import average

_NUMERIC = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


@dataclass(frozen=True)
class SensitiveColumns:
    """Which columns of X hold the sensitive attributes, and which ones the model may see.

    Parameters
    ----------
    columns : list, str, int, callable or None
        Names or positions of columns, or a function of X that returns the groups.
    use_sensitive : bool
        Whether these columns are features as well.
    """

    columns: Any
    use_sensitive: bool

    def positions(self, estimator: Any) -> list[int]:
        """Return the positions of the columns.

        Raises
        ------
        ValueError
            If X has no such column; the message lists the ones it has.
        """
        if self.columns is None or callable(self.columns):
            return []
        wanted = [self.columns] if isinstance(self.columns, str | int) else list(self.columns)
        names = list(getattr(estimator, "feature_names_in_", []))
        n_features = estimator.n_features_in_
        found = []
        for column in wanted:
            if isinstance(column, str) and column in names:
                found.append(names.index(column))
            elif not isinstance(column, str) and -n_features <= column < n_features:
                found.append(int(column) % n_features)
            else:
                has = f"the columns {names}" if names else f"{n_features} columns without names"
                raise ValueError(f"sensitive_columns: X has no column {column!r}; it has {has}.")
        return found

    def groups(self, estimator: Any, X: Any) -> Any:
        """Return the values of the sensitive attributes, None without columns."""
        if callable(self.columns):
            return self.columns(X)
        positions = self.positions(estimator)
        return _safe_indexing(X, positions, axis=1) if positions else None

    def kept(self, estimator: Any) -> Array:
        """Return the positions of the model's features."""
        left_out = [] if self.use_sensitive else self.positions(estimator)
        return np.setdiff1d(np.arange(estimator.n_features_in_), left_out)

    def features(self, estimator: Any, X: Any, *, reset: bool) -> Any:
        """Return what the model sees of X as a float ndarray or CSR.

        Columns that it may not see need not be numeric. With `reset` the estimator's
        n_features_in_ and feature_names_in_ are set, else X is compared with them.
        """
        if self.columns is None or callable(self.columns) or self.use_sensitive:
            return validate_data(estimator, X, reset=reset, **_NUMERIC)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        visible = _safe_indexing(X, self.kept(estimator), axis=1)
        return check_array(visible, estimator=estimator, **_NUMERIC)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked data: rows of weight zero are left out, labels are -1 and +1.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_rows, n_model_features)
        The features that the model sees.
    y : ndarray of shape (n_rows,)
        The labels, -1 or +1.
    classes : ndarray of shape (2,)
        What the labels were called.
    groups : Groups or None
        The groups, if any were given.
    sample_weight : ndarray of shape (n_rows,)
        The weights, > 0.
    """

    X: Any
    y: Array
    classes: Array
    groups: Groups | None
    sample_weight: Array

    @classmethod
    def check(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        columns: SensitiveColumns,
    ) -> TrainingData:
        """Check what was passed to `fit`; sets n_features_in_ and feature_names_in_.

        Raises
        ------
        ValueError
            With the argument's name, what was found and what to do.
        """
        if y is None:
            raise ValueError(
                f"{type(estimator).__name__} requires y to be passed, but the target y is None."
            )
        if sensitive_features is not None and columns.columns is not None:
            raise ValueError(
                "Groups are given twice: by sensitive_features in fit and by sensitive_columns in "
                "the constructor. Give one of them."
            )
        features = columns.features(estimator, X, reset=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(features, y)
        values = sensitive_features
        if values is None:
            values = columns.groups(estimator, X)
        groups = None if values is None else check_groups(values, features.shape[0])
        classes, labels = _binary_labels(y)
        weight = _check_sample_weight(
            sample_weight, features, dtype=np.float64, ensure_non_negative=True
        )
        counted = np.flatnonzero(weight)
        if len(counted) < len(weight):
            features, labels, weight = features[counted], labels[counted], weight[counted]
            groups = None if groups is None else groups.take(counted)
        if len(np.unique(labels)) < 2:
            raise ValueError(
                "y must have two classes; in the rows with positive weight there is one class: "
                f"{classes[int(labels.max(initial=0) > 0)]!r}."
            )
        return cls(features, labels, classes, groups, weight)


def _binary_labels(y: Array) -> tuple[Array, Array]:
    """Return the classes and the labels -1 and +1."""
    check_classification_targets(y)
    if type_of_target(y) == "multiclass":
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(np.unique(y))} classes."
        )
    classes, positions = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have two classes; there is one class: {classes[0]!r}.")
    return classes, 2.0 * positions - 1.0


def build_problem(
    data: TrainingData,
    constraints: list[Constraint],
    *,
    loss: Loss,
    penalty: Penalty,
    domain: Domain,
    fit_intercept: bool,
) -> Problem:
    r"""Return the problem of a linear classifier.

    Where the domain is the whole space the features are put on one scale first (see
    :func:`~fairconstrained.models.spread`): the penalty then counts coefficients per spread, and
    nothing depends on the units of the features.

    Parameters
    ----------
    data : TrainingData
        The data.
    constraints : list of Constraint
        All must hold.
    loss : Loss
        Averaged over the rows.
    penalty : Penalty
        On the coefficients; the intercept is free.
    domain : Domain
        Of the coefficients; the intercept is free.
    fit_intercept : bool
        Whether there is an intercept.
    """
    shift = scale = None
    if domain.whole_space:
        shift, scale = spread(data.X, data.sample_weight, center=fit_intercept)
    model = LinearModel(data.X, fit_intercept=fit_intercept, shift=shift, scale=scale)
    groups = data.groups
    terms = [
        constraint.bind(data.y, groups, data.sample_weight)
        for constraint in constraints
        if groups is not None
    ]
    n = model.n_coefficients
    objective = average(loss, data.y, data.sample_weight)
    return Problem(
        Part(model, objective, LeadingPenalty(penalty, n)),
        tuple(Part(model, term) for term in terms),
        LeadingDomain(domain, n),
    )
