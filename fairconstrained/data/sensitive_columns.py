"""The columns of X: what estimators accept as features, and which hold the groups."""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import validate_data

from fairconstrained.data.attributes import in_order, split_strata, with_strata
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_features, check_held, check_same_rows, explain_text
from fairconstrained.utils.arguments import as_frame, is_number
from fairconstrained.utils.arrays import Array


class FeatureKind:
    """What an estimator accepts as features: finite numbers, dense or sparse.

    An estimator that accepts others has an instance of a subclass as `feature_kind`.
    """

    # arguments of scikit-learn's `check_array`
    checks: ClassVar[dict[str, Any]] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
    # whether the features are multiplied by numbers, so that their squares must be finite
    squared: ClassVar[bool] = True
    # what can be done about columns of text
    advice: ClassVar[str] = "Encode text, for instance with sklearn.preprocessing.OneHotEncoder"

    def encode(self, estimator: Any, X: Any, *, reset: bool) -> Any:
        """Return X with numbers in place of values that the estimator turns into numbers."""
        return X


def feature_kind(estimator: object) -> FeatureKind:
    """Return what an estimator accepts as features."""
    return getattr(estimator, "feature_kind", FeatureKind())


def _summed(X: Any) -> Any:
    """Return dense features or a CSR; entries with the same indices are summed, in a copy."""
    if isinstance(X, np.ndarray) or X.has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed if summed.nnz < X.nnz else X


def column_position(argument: str, column: object, names: list[Any], n_columns: int) -> int:
    """Return the position of a column of X given by name or (perhaps negative) position."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if is_number(column, Integral) and -n_columns <= column < n_columns:
        return int(column) % n_columns
    has = f"the columns {names}" if names else f"{n_columns} columns whose names are no strings"
    raise ValueError(f"{argument}: X has no column {column!r}; it has {has}.")


def _stored(X: Any) -> Any:
    """Return a sparse frame of pandas whose fill value is not 0 as a dense one."""
    kinds = list(X.dtypes) if isinstance(X, pd.DataFrame) else []
    sparse = all(isinstance(kind, pd.SparseDtype) for kind in kinds)
    if sparse and any(kind.fill_value != 0 for kind in kinds):  # NaN is not 0
        return X.sparse.to_dense()
    return X


def numeric(X: Any, convert: Callable[..., Any], kind: FeatureKind, name: str = "X") -> Any:
    """Return features as a float ndarray, or as a CSR in which no index is repeated."""
    check_held(name, X)
    check_features(X)
    try:
        with config_context(array_api_dispatch=False):  # tensors become arrays
            return _summed(convert(_stored(X), **kind.checks))
    except (ValueError, TypeError) as error:
        explained = explain_text(X, error, kind.advice)
        if name not in str(explained):
            explained = type(error)(f"{name}: {explained}")
        if explained is error:
            raise
        raise explained from error


Columns = str | int | Sequence[str | int] | Callable[[Any], Any] | None


class SensitiveColumns:
    """Which columns of X hold an estimator's sensitive attributes, and which its model may see."""

    def __init__(self, estimator: Any):
        self.estimator = estimator  # it may have no such parameters
        # names or positions of columns, or a function of X that returns the groups
        self.columns: Columns = getattr(estimator, "sensitive_columns", None)
        named = self.columns is not None and not callable(self.columns)
        # whether all columns of X are features of the model
        self.sees_all = not named or bool(getattr(estimator, "use_sensitive", False))

    @property
    def seen(self) -> Array:
        """The names of the columns of X in `fit`, their positions if they had no names."""
        positions = np.arange(self.estimator.n_features_in_)
        return getattr(self.estimator, "feature_names_in_", positions)

    def check_only_source(self, sensitive_features: object) -> None:
        """Raise a ValueError if groups are named here and passed to `fit` as well."""
        if split_strata(sensitive_features)[0] is not None and self.columns is not None:
            raise ValueError(
                "Groups are given twice: by sensitive_features in fit and by sensitive_columns in "
                "the constructor. Give one of them."
            )

    def positions(self) -> list[int]:
        """Return the positions of the columns."""
        if self.columns is None or callable(self.columns):
            return []
        names = list(getattr(self.estimator, "feature_names_in_", []))
        wanted = self._wanted()
        n_columns, name = self.estimator.n_features_in_, "sensitive_columns"
        places = [column_position(name, column, names, n_columns) for column in wanted]
        for k, position in enumerate(places):
            if position in places[:k]:
                first = wanted[places.index(position)]
                raise ValueError(
                    f"sensitive_columns names a column of X twice: {first!r} and {wanted[k]!r} are "
                    f"at position {position}. Leave one of them out."
                )
        return places

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

    def table(self, X: Any, name: str = "X") -> Any:
        """Return X as something that has columns: a frame, else an ndarray or CSR."""
        check_held(name, X)
        if self.columns is None:
            return X
        X = X if callable(self.columns) else as_frame(X)
        if hasattr(X, "columns"):
            self._check_labels(list(X.columns), name)
            return X
        with config_context(array_api_dispatch=False):  # tensors become arrays
            options: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 0}
            return check_array(
                X, accept_sparse="csr", dtype=None, estimator=self.estimator, **options
            )

    def _check_labels(self, labels: list[Any], name: str) -> None:
        """Raise a ValueError if a position is also the label of another column."""
        n_columns = len(labels)
        numbered = [(k, label) for k, label in enumerate(labels) if is_number(label, Real)]
        for column in [] if callable(self.columns) or not numbered else self._wanted():
            if isinstance(column, str) or not -n_columns <= column < n_columns:
                continue
            position = int(column) % n_columns
            for k in (k for k, label in numbered if label == column and k != position):
                raise ValueError(
                    f"sensitive_columns: {column} has two meanings. It may be the column at "
                    f"position {column} of {name}, whose label is {labels[position]!r}, or the "
                    f"column with the label {column}, which is at position {k}. Make the labels "
                    f"strings, `{name}.columns = {name}.columns.astype(str)`, and pass the name of "
                    f"the column: {str(labels[position])!r} or {str(column)!r}."
                )

    def groups(self, X: Any) -> Any:
        """Return the values of the sensitive attributes, None without columns."""
        X = self.table(X)
        if callable(self.columns):
            return self.columns(X)
        positions = self.positions()
        names = getattr(self.estimator, "feature_names_in_", None)
        if positions and names is not None and hasattr(X, "columns"):
            has, wanted = list(X.columns), names[positions].tolist()
            absent = [name for name in wanted if name not in has]
            if absent:
                raise self._absent(f"it has no column {', '.join(map(repr, absent))}")
            positions = [has.index(name) for name in wanted]
        elif positions and X.shape[1] != self.estimator.n_features_in_:
            raise self._absent(
                f"it has {X.shape[1]} columns, and had {self.estimator.n_features_in_} in fit"
            )
        return _safe_indexing(X, positions, axis=1) if positions else None

    def _absent(self, why: str) -> ValueError:
        """Return the error that X lacks sensitive columns."""
        return ValueError(
            f"The groups are in the columns {self.columns!r} of X, which X does not have here: "
            f"{why}. Pass X with them, or the groups as sensitive_features where that is possible."
        )

    def kept(self) -> Array:
        """Return the positions of the model's features; raise a ValueError if there are none."""
        kept = np.arange(self.estimator.n_features_in_)
        if self.sees_all:
            return kept
        kept = np.delete(kept, self.positions())
        if not kept.size:
            raise ValueError(
                f"sensitive_columns={self.columns!r} are all the columns of X, and with "
                "use_sensitive=False the model may not see them: no features are left."
            )
        return kept

    def features(self, X: Any, *, reset: bool, name: str = "X") -> Any:
        """Return what the model sees of X as a float ndarray or CSR.

        Columns that it may not see need not be numeric, and need not be there without `reset`. With
        `reset` the estimator's n_features_in_ and feature_names_in_ are set, else X is compared
        with them.
        """
        kind = feature_kind(self.estimator)
        if self.sees_all:
            X = kind.encode(self.estimator, X, reset=reset)
            return numeric(X, partial(validate_data, self.estimator, reset=reset), kind, name)
        X = kind.encode(self.estimator, self.table(X, name), reset=reset)
        places: Any = None if reset else self._without_sensitive(X)
        if places is None:
            validate_data(self.estimator, X, reset=reset, skip_check_array=True)
            places = self.kept()
        convert = partial(check_array, estimator=self.estimator, input_name=name)
        return numeric(_safe_indexing(X, places, axis=1), convert, kind, name)

    def _without_sensitive(self, X: Any) -> list[int] | None:
        """Return the positions of the model's features in an X that lacks sensitive columns.

        None if X lacks none of them, or other columns than these.
        """
        kept, n_columns = self.kept(), X.shape[1]
        names = getattr(self.estimator, "feature_names_in_", None)
        if not len(kept) <= n_columns < self.estimator.n_features_in_:
            return None
        if names is None or not hasattr(X, "columns"):
            return list(range(n_columns)) if n_columns == len(kept) else None
        has, sensitive = list(X.columns), set(np.delete(names, kept))
        there = [k for k, column in enumerate(has) if column not in sensitive]
        return there if [has[k] for k in there] == names[kept].tolist() else None


def groups_of(
    estimator: Any, X: Any, passed: Any, n_rows: int, columns: tuple[str, ...] = (), **options: Any
) -> Groups | None:
    """Return the groups that are passed or in the sensitive columns of X, None without any.

    `columns` are the names that their columns had in `fit`; `options` are those of `check_groups`.
    """
    passed, strata = split_strata(passed)
    if passed is None:
        options["name"] = "sensitive_columns"
        passed = SensitiveColumns(estimator).groups(X)
        check_same_rows(X=X, sensitive_columns=passed)
    if passed is None and strata is None:
        return None
    passed = in_order(passed, columns, options.get("name", "sensitive_features"))
    options |= {"combine": estimator.combine, "missing": estimator.groups_missing}
    return check_groups(with_strata(passed, strata), n_rows, **options)
