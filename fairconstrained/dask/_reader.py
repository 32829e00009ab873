"""What workers take from a partition: features and groups, checked as rows in memory are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from fairconstrained.data.inputs import check_held, check_squares
from fairconstrained.models.feature_scale import row_blocks
from fairconstrained.utils.registry import import_extra
from fairconstrained.utils.typing import Array, Matrix

if TYPE_CHECKING:
    from fairconstrained.data.sensitive_columns import SensitiveColumns


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the features and the groups of partitions.

    Partitions of finite numbers, with the expected columns, are read without scikit-learn. Others,
    such as sparse ones and those with an error, are read as the estimator reads rows in memory. A
    worker then imports scikit-learn and the estimators, which need some 70 MB.

    Attributes
    ----------
    names : ndarray of shape (n_columns,) or None
        The names of the columns of X, None for arrays.
    n_columns : int
        Their number.
    kept : ndarray of int of shape (n_features,)
        The positions of the model's features.
    sensitive : list of int or None
        The positions of the sensitive attributes, none for a function of X; None where X does not
        have them.
    pickled : bytes
        The estimator and its :class:`~fairconstrained.data.sensitive_columns.SensitiveColumns`.
    group_names : tuple of str, default=()
        The names of the columns of the groups, if they have any; see
        :func:`~fairconstrained.data.groups.in_order`.
    """

    names: Array | None
    n_columns: int
    kept: Array
    sensitive: list[int] | None
    pickled: bytes
    group_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, estimator: Any, columns: SensitiveColumns, group_names: tuple[str, ...] = ()
    ) -> Self:
        """Return the reader of an estimator, whose columns and those of the groups have names."""
        cloudpickle = import_extra("cloudpickle", "dask", "fairconstrained.dask")
        return cls(
            getattr(estimator, "feature_names_in_", None),
            estimator.n_features_in_,
            columns.kept(estimator),
            None if columns.columns is None else columns.positions(estimator),
            cloudpickle.dumps((estimator, columns)),
            group_names,
        )

    @cached_property
    def _full(self) -> tuple[Any, SensitiveColumns]:
        cloudpickle = import_extra("cloudpickle", "dask", "fairconstrained.dask")
        estimator, columns = cloudpickle.loads(self.pickled)
        return estimator, columns

    @property
    def n_features(self) -> int:
        """The number of features of the model."""
        return len(self.kept)

    def groups(self, X: Any) -> Any:
        """Return the values of the sensitive attributes in a partition, None if X has none."""
        if self.sensitive is None:
            return None
        if self.sensitive and self._has_columns(X):
            return _columns(X, self.sensitive)
        estimator, columns = self._full
        return columns.groups(estimator, X)

    def features(self, X: Any, total: float) -> Matrix:
        """Return the features of a partition as a float ndarray or CSR; `total` is its weight."""
        check_held("X", X)
        features = self._numbers(X)
        if features is None or not _is_finite(features):
            estimator, columns = self._full
            features = columns.features(estimator, columns.table(estimator, X), reset=False)
        check_squares(features, total, self.kept if self.names is None else self.names[self.kept])
        return features

    def _has_columns(self, X: Any) -> bool:
        """Return whether X is a frame or an array with the columns that the estimator has seen."""
        if isinstance(X, pd.DataFrame):
            return self.names is not None and list(X.columns) == self.names.tolist()
        dense = isinstance(X, np.ndarray) and X.ndim == 2 and self.names is None
        return dense and X.shape[1] == self.n_columns

    def _numbers(self, X: Any) -> Array | None:
        """Return the features where all of them are numbers, of the estimator's columns."""
        if not self._has_columns(X) or not X.shape[0]:
            return None
        kept = self.kept if self.n_features < self.n_columns else slice(None)
        part = _columns(X, kept)
        kinds = set(part.dtypes) if isinstance(part, pd.DataFrame) else {part.dtype}
        if not all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
            return None
        dtype = np.result_type(*kinds)
        return np.asarray(part, dtype if dtype == np.float32 else np.float64)


def _columns(X: Any, positions: Any) -> Any:
    """Return columns of a frame or of an array."""
    return X.iloc[:, positions] if isinstance(X, pd.DataFrame) else X[:, positions]


def _is_finite(X: Array) -> bool:
    """Return whether all features are finite."""
    return all(bool(np.isfinite(X[rows]).all()) for rows in row_blocks(X))
