"""What a user passes to `fit`, checked: features, labels, groups and weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.attributes import in_order
from fairconstrained.data.features import feature_kind, seen_columns
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import (
    check_labels,
    check_squares,
    check_weight,
)
from fairconstrained.data.labels import (
    ScoreConvention,
    binary_labels,
    class_labels,
    class_weights,
    positions_of,
)
from fairconstrained.data.queries import Queries
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.utils.blocks import MANY_ROWS
from fairconstrained.utils.typing import Array, ArrayLike, Matrix, MatrixLike


def check_passed(
    estimator: BaseEstimator,
    columns: SensitiveColumns,
    X: MatrixLike,
    y: ArrayLike | None,
    sensitive_features: MatrixLike | None,
    sample_weight: ArrayLike | None,
    query: ArrayLike | None = None,
) -> None:
    """Check that labels are given, groups are given at most once, and all lengths are those of X.

    Parameters
    ----------
    estimator : estimator
        For messages.
    columns : SensitiveColumns
        The columns of X that hold groups.
    X, y, sensitive_features, sample_weight, query
        What `fit` is passed.

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
        X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight, query=query
    )


def given_groups(
    sensitive_features: MatrixLike | None,
    sensitive_columns: Any,
    n_rows: int,
    combine: str,
    missing: str,
    narrow: bool = False,
) -> Groups | None:
    """Return the groups that were passed or, without them, those in columns of X; None for neither.

    Parameters
    ----------
    sensitive_features : array-like or DataFrame or None
        The groups that were passed.
    sensitive_columns : array-like or DataFrame or None
        The values of the sensitive columns of X.
    n_rows : int
        The number of rows.
    combine, missing : str
        See :class:`Reader`.
    narrow : bool, default=False
        See :meth:`Groups.encode`.

    Raises
    ------
    ValueError
        If lengths differ or a group is missing; the message names the argument.
    """
    given = {"sensitive_features": sensitive_features, "sensitive_columns": sensitive_columns}
    for name, values in given.items():
        if values is not None:
            options: Any = {"combine": combine, "missing": missing}
            return check_groups(values, n_rows, name=name, narrow=narrow, **options)
    return None


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
        self,
        X: MatrixLike,
        groups: MatrixLike | None,
        name: str,
        rows: str,
        titles: tuple[str, ...] = (),
    ) -> tuple[Any, Groups | None]:
        """Return what the model sees of X, and the groups; see :meth:`TrainingData.others`.

        `titles` are the names of the groups' columns in `fit`, if they had any.
        """
        arguments: dict[str, Any] = {rows: X, name: groups}
        check_same_rows(**arguments)
        X = self.columns.table(self.estimator, X, rows)
        features = self.columns.features(self.estimator, X, reset=False, name=rows)
        values, source = groups, name
        if values is None:
            values, source = self.columns.groups(self.estimator, X), "sensitive_columns"
        found = None
        if values is not None:
            options: Any = {"combine": self.combine, "missing": self.missing}
            values = in_order(values, titles, source)
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
    positions : ndarray of int of shape (n_rows,) or None
        The positions of the rows among those passed to `fit`; None if these are all of them, in
        their order.
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
    positions: Array | None = field(default=None, kw_only=True)

    @property
    def n_rows(self) -> int:
        """The number of rows that these stand for."""
        return len(self.y) if self.counts is None else int(self.counts.sum())

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row."""
        return float(self.sample_weight.max())

    @property
    def loss_weight(self) -> Array:
        """The weights of the rows in the loss; averages over groups have `sample_weight`."""
        if self.class_weight is None:
            return self.sample_weight
        return self.sample_weight * self.class_weight[self.class_positions]

    @property
    def narrow(self) -> bool:
        """Whether labels, groups and weights take a byte per row, see `check`."""
        return bool(self.y.dtype.kind == "i")

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
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike | None,
        sensitive_features: MatrixLike | None,
        sample_weight: ArrayLike | None,
        query: ArrayLike | None = None,
        *,
        narrow: bool = False,
    ) -> TrainingData:
        """Check what was passed to `fit`; sets n_features_in_ and feature_names_in_.

        With `narrow`, many dense rows have labels, groups and weights that take a byte per row;
        `widened` returns what can be calculated with.

        Raises
        ------
        ValueError
            With the argument's name, what was found and what to do.
        """
        columns, missing = SensitiveColumns.of(estimator), estimator.groups_missing
        check_passed(estimator, columns, X, y, sensitive_features, sample_weight, query)
        X = columns.table(estimator, X)
        features = columns.features(estimator, X, reset=True)
        n_rows = features.shape[0]
        narrow = narrow and n_rows >= MANY_ROWS and isinstance(features, np.ndarray)
        weight = check_weight("sample_weight", sample_weight, n_rows, narrow=narrow)
        narrow = narrow and int(np.count_nonzero(weight)) >= MANY_ROWS
        labels = check_labels("y", y, n_rows)
        values = None
        if sensitive_features is None:
            values = columns.groups(estimator, X)
            check_same_rows(X=X, sensitive_columns=values)
        groups = given_groups(
            sensitive_features, values, n_rows, estimator.combine, missing, narrow
        )
        read = class_labels if estimator.several_classes else binary_labels
        classes, labels = read(labels, estimator.pos_label, narrow)
        queries = None if query is None else Queries.encode(query, n_rows)
        if feature_kind(estimator).squared:
            kept = columns.kept(estimator)
            check_squares(features, weight.sum(), seen_columns(estimator)[kept])
        reader = Reader(estimator, columns, estimator.combine, missing=missing)
        convention = ScoreConvention(1.0 if np.array_equal(classes, np.unique(classes)) else -1.0)
        rows = cls(features, labels, classes, groups, weight, reader, queries).counted()
        by_class = class_weights(estimator.class_weight, classes, rows.y, rows.sample_weight)
        return replace(rows, class_weight=by_class, convention=convention)

    def widened(self) -> TrainingData:
        """Return the rows with labels, codes and weights of full width, see `check`."""
        if not self.narrow:
            return self
        groups = None if self.groups is None else self.groups.widened()
        weight = np.ascontiguousarray(self.sample_weight)
        return replace(self, y=self.y.astype(float), groups=groups, sample_weight=weight)

    def moved(self, by: float) -> TrainingData:
        """Return the rows with a threshold that is higher by a number."""
        return replace(self, convention=self.convention.moved(by))

    def counted(self) -> TrainingData:
        """Return the rows whose weight is positive."""
        weight = self.sample_weight
        all_count = np.count_nonzero(weight) == len(weight)
        return self if all_count else self.take(np.flatnonzero(weight))

    def take(self, rows: Array) -> TrainingData:
        """Return some rows, in the order of their positions."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            groups=None if self.groups is None else self.groups.take(rows),
            sample_weight=self.sample_weight[rows],
            query=None if self.query is None else self.query.take(rows),
            counts=None if self.counts is None else self.counts[rows],
            squares=None if self.squares is None else self.squares[rows],
            positions=rows if self.positions is None else self.positions[rows],
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
            If the columns of the rows or of the groups are not those of `fit`, or there is not one
            group per row.
        """
        if self.reader is None:
            raise ValueError("these training data were not made by an estimator's fit.")
        titles = () if self.groups is None else self.groups.column_names
        return self.reader.read(X, groups, name, rows, titles)
