"""What a user passes to `fit`, checked: features, labels, groups and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import validate_data

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.features import feature_kind, numeric
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import (
    check_held,
    check_labels,
    check_squares,
    check_weight,
)
from fairconstrained.data.labels import (
    ClassWeight,
    ScoreConvention,
    binary_labels,
    check_classes_counted,
    class_labels,
    class_weights,
    positions_of,
)
from fairconstrained.data.queries import Queries
from fairconstrained.utils.typing import Array, ArrayLike, Matrix, MatrixLike
from fairconstrained.utils.validation import is_number

Columns = str | int | Sequence[str | int] | Callable[[Any], Any] | None


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

    columns: Columns
    use_sensitive: bool

    def check_only_source(self, sensitive_features: object) -> None:
        """Raise a ValueError if groups are named here and passed to `fit` as well."""
        if sensitive_features is not None and self.columns is not None:
            raise ValueError(
                "Groups are given twice: by sensitive_features in fit and by sensitive_columns in "
                "the constructor. Give one of them."
            )

    def positions(self, estimator: BaseEstimator) -> list[int]:
        """Return the positions of the columns.

        Raises
        ------
        ValueError
            If X has no such column; the message lists the ones it has.
        """
        if self.columns is None or callable(self.columns):
            return []
        names = list(getattr(estimator, "feature_names_in_", []))
        return [_position(column, names, estimator.n_features_in_) for column in self._wanted()]

    def _wanted(self) -> list[Any]:
        """Return the names and positions as a list."""
        columns: Any = self.columns
        try:
            wanted = [columns] if isinstance(columns, str | Real) else list(columns)
        except TypeError:
            wanted = [self.columns]
        for column in wanted:
            if not isinstance(column, str) and not is_number(column, Integral):
                raise ValueError(
                    "sensitive_columns must be names or positions of columns of X, a function of "
                    f"X, or None; found {column!r}."
                )
        return wanted

    def table(self, estimator: BaseEstimator, X: Any, name: str = "X") -> Any:
        """Return X as something that has columns: a frame as it is, else an ndarray or CSR."""
        check_held(name, X)
        if self.columns is None or hasattr(X, "columns"):
            return X
        return check_array(
            X, accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=estimator
        )

    def groups(self, estimator: BaseEstimator, X: Any) -> Any:
        """Return the values of the sensitive attributes, None without columns.

        Raises
        ------
        ValueError
            If X does not have the columns.
        """
        if callable(self.columns):
            return self.columns(X)
        positions = self.positions(estimator)
        if positions and X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"The groups are in the columns {self.columns!r} of X, which X does not have here: "
                f"it has {X.shape[1]} columns, and had {estimator.n_features_in_} in fit. Pass X "
                "with them, or the groups as sensitive_features where that is possible."
            )
        return _safe_indexing(X, positions, axis=1) if positions else None

    def kept(self, estimator: BaseEstimator) -> Array:
        """Return the positions of the model's features."""
        left_out = [] if self.use_sensitive else self.positions(estimator)
        return np.setdiff1d(np.arange(estimator.n_features_in_), left_out)

    def features(self, estimator: BaseEstimator, X: Any, *, reset: bool, name: str = "X") -> Any:
        """Return what the model sees of X as a float ndarray or CSR.

        Columns that it may not see need not be numeric, and need not be there without `reset`. With
        `reset` the estimator's n_features_in_ and feature_names_in_ are set, else X is compared
        with them.
        """
        kind = feature_kind(estimator)
        if self.columns is None or callable(self.columns) or self.use_sensitive:
            X = kind.encode(estimator, X, reset=reset)
            return numeric(X, partial(validate_data, estimator, reset=reset, **kind.checks), name)
        X = kind.encode(estimator, self.table(estimator, X, name), reset=reset)
        there = None if reset else self._without_sensitive(estimator, X)
        if there is not None:
            return self._converted(estimator, _safe_indexing(X, there, axis=1), name)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        kept = self.kept(estimator)
        if kept.size == 0:
            raise ValueError(
                f"sensitive_columns={self.columns!r} are all the columns of X, and with "
                "use_sensitive=False the model may not see them: no features are left."
            )
        return self._converted(estimator, _safe_indexing(X, kept, axis=1), name)

    def _without_sensitive(self, estimator: BaseEstimator, X: Any) -> list[int] | None:
        """Return the positions of the model's features in an X that lacks sensitive columns.

        None if X lacks none of them, or other columns than these.
        """
        kept, n_columns = self.kept(estimator), X.shape[1]
        names = getattr(estimator, "feature_names_in_", None)
        if not len(kept) <= n_columns < estimator.n_features_in_:
            return None
        if names is None or not hasattr(X, "columns"):
            return list(range(n_columns)) if n_columns == len(kept) else None
        has, sensitive = list(X.columns), set(np.delete(names, kept))
        there = [k for k, column in enumerate(has) if column not in sensitive]
        return there if [has[k] for k in there] == names[kept].tolist() else None

    @staticmethod
    def _converted(estimator: BaseEstimator, X: Any, name: str) -> Any:
        """Return the columns that the model sees as numbers."""
        checks = feature_kind(estimator).checks
        return numeric(
            X, partial(check_array, estimator=estimator, input_name=name, **checks), name
        )


def _position(column: str | int, names: list[str], n_features: int) -> int:
    """Return the position of a column given by name or (perhaps negative) position."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if not isinstance(column, str) and -n_features <= column < n_features:
        return int(column) % n_features
    has = f"the columns {names}" if names else f"{n_features} columns without names"
    raise ValueError(f"sensitive_columns: X has no column {column!r}; it has {has}.")


@dataclass(frozen=True, eq=False)
class Reader:
    """How rows other than the training rows are read: as X was in `fit`.

    Parameters
    ----------
    estimator : estimator
        It knows the columns that X had.
    columns : SensitiveColumns
        Which of them are sensitive.
    combine : {"intersection", "marginal"}
        What several sensitive attributes mean.
    expand : callable or None, default=None
        From the features and X to what the model sees, where that is more than the features.
    missing : {"raise", "own_group", "ignore_in_constraint"}, default="raise"
        What missing sensitive attributes mean.
    """

    estimator: BaseEstimator
    columns: SensitiveColumns
    combine: str
    expand: Callable[[Any, Any], Any] | None = None
    missing: str = "raise"

    def read(
        self, X: MatrixLike, groups: MatrixLike | None, name: str, rows: str
    ) -> tuple[Any, Groups | None]:
        """Return what the model sees of X, and the groups; see :meth:`TrainingData.others`."""
        arguments: dict[str, Any] = {rows: X, name: groups}
        check_same_rows(**arguments)
        X = self.columns.table(self.estimator, X, rows)
        features = self.columns.features(self.estimator, X, reset=False, name=rows)
        values, source = groups, name
        if values is None:
            values, source = self.columns.groups(self.estimator, X), "sensitive_columns"
        found = None
        if values is not None:
            options = {"combine": self.combine, "missing": self.missing}
            found = check_groups(values, features.shape[0], name=source, rows=rows, **options)
        return (features if self.expand is None else self.expand(features, X)), found


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked data: rows of weight zero are left out, labels are numbers.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_rows, n_model_features)
        The features that the model sees.
    y : ndarray of shape (n_rows,)
        The labels: -1 or +1, or 0, 1, ... of several classes.
    classes : ndarray of shape (n_classes,)
        What the labels were called; of two, the second one is the favourable class.
    groups : Groups or None
        The groups, if any were given.
    sample_weight : ndarray of shape (n_rows,)
        The weights, > 0.
    reader : Reader or None
        Reads rows that constraints bring with them.
    query : Queries or None
        The queries, for rankers.
    counts : ndarray of int of shape (n_rows,) or None
        How many rows each of these stands for; None stands for ones.
    squares : ndarray of shape (n_rows,) or None
        The sum of their squared weights.
    class_weight : ndarray of shape (n_classes,) or None
        What the weights of the classes' rows are multiplied by in the loss; None for ones.
    convention : ScoreConvention
        How the scores of the fit are related to those that users see.
    """

    X: Any
    y: Array
    classes: Array
    groups: Groups | None
    sample_weight: Array
    reader: Reader | None = None
    query: Queries | None = None
    counts: Array | None = None
    squares: Array | None = field(default=None, kw_only=True)
    class_weight: Array | None = None
    convention: ScoreConvention = field(default_factory=ScoreConvention)

    @property
    def n_rows(self) -> int:
        """The number of rows that these stand for."""
        return len(self.y) if self.counts is None else int(self.counts.sum())

    @property
    def loss_weight(self) -> Array:
        """The weights of the rows in the loss; averages over groups have `sample_weight`."""
        if self.class_weight is None:
            return self.sample_weight
        return self.sample_weight * self.class_weight[self.class_positions]

    @property
    def several_classes(self) -> bool:
        """Whether there are more than two classes."""
        return len(self.classes) > 2

    @property
    def class_positions(self) -> Array:
        """The position among the classes of every row's class."""
        return positions_of(self.y, len(self.classes))

    def one_versus_rest(self, k: int) -> TrainingData:
        """Return the rows with the label +1 for class k of several and -1 for all others."""
        name = self.classes.tolist()[k]
        names = np.array([f"other than {name}", str(name)], dtype=object)
        signs = np.where(self.class_positions == k, 1.0, -1.0)
        return replace(self, y=signs, classes=names, class_weight=None)

    @classmethod
    def check(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike | None,
        sensitive_features: MatrixLike | None,
        sample_weight: ArrayLike | None,
        columns: SensitiveColumns,
        combine: str = "intersection",
        missing: str = "raise",
        query: ArrayLike | None = None,
        pos_label: object = None,
        class_weight: ClassWeight = None,
        several_classes: bool = False,
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
        columns.check_only_source(sensitive_features)
        check_same_rows(
            X=X,
            y=y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            query=query,
        )
        X = columns.table(estimator, X)
        features = columns.features(estimator, X, reset=True)
        n_rows = features.shape[0]
        labels = check_labels("y", y, n_rows)
        values, source = sensitive_features, "sensitive_features"
        if values is None:
            values, source = columns.groups(estimator, X), "sensitive_columns"
            check_same_rows(X=X, sensitive_columns=values)
        groups = None
        if values is not None:
            groups = check_groups(values, n_rows, name=source, combine=combine, missing=missing)
        read = class_labels if several_classes else binary_labels
        classes, labels = read(labels, pos_label)
        queries = None if query is None else Queries.encode(query, n_rows)
        weight = check_weight("sample_weight", sample_weight, n_rows)
        names = getattr(estimator, "feature_names_in_", None)
        seen = columns.kept(estimator)
        if feature_kind(estimator).squared:
            check_squares(features, weight.sum(), seen if names is None else names[seen])
        counted = np.flatnonzero(weight)
        if len(counted) < len(weight):
            features, labels, weight = features[counted], labels[counted], weight[counted]
            groups = None if groups is None else groups.take(counted)
            queries = None if queries is None else queries.take(counted)
        check_classes_counted(classes, labels)
        reader = Reader(estimator, columns, combine, missing=missing)
        by_class = class_weights(class_weight, classes, labels, weight)
        convention = ScoreConvention(1.0 if np.array_equal(classes, np.unique(classes)) else -1.0)
        return cls(
            features,
            labels,
            classes,
            groups,
            weight,
            reader,
            queries,
            class_weight=by_class,
            convention=convention,
        )

    def with_features(
        self, X: Matrix, expand: Callable[[Any, Any], Any] | None = None
    ) -> TrainingData:
        """Return the same rows with other features, and what makes them of other rows."""
        reader = None if self.reader is None else replace(self.reader, expand=expand)
        return replace(self, X=X, reader=reader)

    def others(
        self, X: MatrixLike, groups: MatrixLike | None, name: str, rows: str = "X"
    ) -> tuple[Any, Groups | None]:
        """Return rows that are not the training rows as the model sees them, and their groups.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_rows, n_features)
            The rows, with the columns that X has in `fit`.
        groups : array-like or None
            Their groups; None takes them from the estimator's `sensitive_columns`, if it has any.
        name : str
            What the groups are called in messages.
        rows : str, default="X"
            What the rows are called in messages.

        Raises
        ------
        ValueError
            If the columns are not those of `fit`, or there is not one group per row.
        """
        if self.reader is None:
            raise ValueError("these training data were not made by an estimator's fit.")
        return self.reader.read(X, groups, name, rows)
