"""What `fit` of thresholds is passed, checked: any features, labels, groups and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, validate_data

from fairconstrained.data.attributes import in_order, names_in_fit
from fairconstrained.data.groups import check_groups
from fairconstrained.data.inputs import check_labels, check_weight
from fairconstrained.data.labels import binary_labels, class_weights
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import TrainingData, check_passed, given_groups
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike


def read_rows(
    estimator: BaseEstimator, columns: SensitiveColumns, X: Any, *, reset: bool
) -> tuple[Any, Any]:
    """Return what the inner estimator sees of X, and the values of the sensitive columns or None.

    Parameters
    ----------
    estimator : estimator
        With `reset` its n_features_in_ and feature_names_in_ are set, else X is compared with them.
    columns : SensitiveColumns
        Which columns are sensitive.
    X : array-like, DataFrame or sparse matrix
        The rows.
    reset : bool
        Whether this is `fit`.
    """
    X = columns.table(estimator, X)
    (X,) = indexable(X)
    if reset or columns.columns is not None:  # else the inner estimator compares X
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    values = columns.groups(estimator, X)
    if columns.columns is None or callable(columns.columns) or columns.use_sensitive:
        return X, values
    kept = columns.kept(estimator)
    if not len(kept):
        raise ValueError(
            f"sensitive_columns={columns.columns!r} are all the columns of X, and with "
            "use_sensitive=False the estimator may not see them: no features are left."
        )
    return _safe_indexing(X, kept, axis=1), values


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows of positive weight, and what the inner estimator is fitted to.

    Attributes
    ----------
    X : array-like, DataFrame or sparse matrix
        What the estimator sees of all rows that were passed.
    labels : ndarray
        Their labels as they are called.
    data : TrainingData
        Labels -1 and +1, groups and weights; the features are the positions of the rows.
    positions : ndarray of int of shape (n_rows,)
        The rows' positions in X.
    uncounted : ndarray of int
        The position of a row of each label whose rows all have weight zero.
    """

    X: Any
    labels: Array
    data: TrainingData
    positions: Array
    uncounted: Array

    @property
    def features(self) -> Any:
        """What the estimator sees of the rows."""
        if len(self.positions) == len(self.labels):
            return self.X
        return _safe_indexing(self.X, self.positions)

    @classmethod
    def check(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        sensitive_features: MatrixLike | None,
    ) -> CheckedRows:
        """Check what was passed to `fit`; sets n_features_in_ and feature_names_in_.

        Raises
        ------
        ValueError
            With the argument's name, what was found and what to do.
        """
        columns = SensitiveColumns.of(estimator)
        check_passed(estimator, columns, X, y, sensitive_features, sample_weight)
        features, values = read_rows(estimator, columns, X, reset=True)
        n_rows = _num_samples(X)
        if n_rows == 0:
            raise ValueError(
                "X has no rows: found 0 samples, and at least one of each class is needed."
            )
        labels = check_labels("y", y, n_rows)
        options = estimator.combine, estimator.groups_missing
        groups = given_groups(sensitive_features, values, n_rows, *options)
        weight = check_weight("sample_weight", sample_weight, n_rows)
        classes, signs = binary_labels(labels, estimator.pos_label)
        counted = np.flatnonzero(weight)
        weights = signs[counted], weight[counted]
        by_class = class_weights(estimator.class_weight, classes, *weights)
        uncounted = [np.argmax(signs == sign) for sign in np.setdiff1d(signs, weights[0])]
        groups = None if groups is None else groups.take(counted)
        data = TrainingData(
            np.arange(len(counted)), weights[0], classes, groups, weights[1], class_weight=by_class
        )
        return cls(features, labels, data, counted, np.array(uncounted, dtype=int))

    def take(self, rows: Array) -> CheckedRows:
        """Return some of the rows, their positions counted anew."""
        taken = replace(self.data.take(rows), X=np.arange(len(rows)))
        return replace(self, data=taken, positions=self.positions[rows])


def row_thresholds(estimator: Any, values: Any, name: str, n_rows: int) -> Array:
    """Return the threshold of every row when predicting.

    Parameters
    ----------
    estimator : FairThresholds
        Its thresholds, and how groups are read.
    values : array-like or DataFrame
        The groups of the rows.
    name : str
        What they are called in messages.
    n_rows : int
        How many they are.

    Raises
    ------
    ValueError
        If a group has no threshold, or the columns have other names than in `fit`.
    """
    values = in_order(values, names_in_fit(estimator), name)
    options = {"combine": estimator.combine, "missing": estimator.groups_missing}
    groups = check_groups(values, n_rows, name=name, **options)
    by_group = estimator.thresholds_
    place = {group: k for k, group in enumerate(by_group.index.tolist())}
    unseen = [one for one in groups.names.tolist() if one not in place]
    if unseen:
        raise ValueError(
            f"{name} has the group {groups.called(unseen)[0]!r}, which has no threshold: the "
            f"groups in `fit` were {groups.called(list(place))}."
        )
    thresholds = [by_group.iloc[place[name]] for name in groups.names.tolist()]
    return np.append(thresholds, estimator.threshold_)[groups.codes]  # the last one is of code -1
