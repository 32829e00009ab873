"""What estimators accept as features, and their conversion to numbers."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fairconstrained.data.inputs import check_features, check_held, explain_text
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number

NUMERIC: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class FeatureKind:
    """What an estimator accepts as features: finite numbers, dense or sparse.

    An estimator that accepts others has an instance of a subclass as `feature_kind`.

    Attributes
    ----------
    checks : dict
        Arguments of scikit-learn's `check_array`.
    squared : bool
        Whether the features are multiplied by numbers, so that their squares must be finite.
    """

    checks: ClassVar[dict[str, Any]] = NUMERIC
    squared: ClassVar[bool] = True

    def encode(self, estimator: Any, X: Any, *, reset: bool) -> Any:
        """Return X with numbers in place of values that the estimator turns into numbers."""
        return X


_NUMBERS = FeatureKind()


def feature_kind(estimator: object) -> FeatureKind:
    """Return what an estimator accepts as features."""
    return getattr(estimator, "feature_kind", _NUMBERS)


def _summed(X: Any) -> Any:
    """Return dense features or a CSR; entries with the same indices are summed, in a copy."""
    if isinstance(X, np.ndarray) or X.has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed if summed.nnz < X.nnz else X


def seen_columns(estimator: Any) -> Array:
    """Return the names of the columns of X in `fit`, their positions if they had no names."""
    columns: Array = getattr(estimator, "feature_names_in_", np.arange(estimator.n_features_in_))
    return columns


def column_position(argument: str, column: object, names: list[Any], n_columns: int) -> int:
    """Return the position of a column of X given by name or (perhaps negative) position."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if is_number(column, Integral) and -n_columns <= column < n_columns:
        return int(column) % n_columns
    has = f"the columns {names}" if names else f"{n_columns} columns without names"
    raise ValueError(f"{argument}: X has no column {column!r}; it has {has}.")


def _stored(X: Any) -> Any:
    """Return a sparse frame of pandas whose fill value is not 0 as a dense one."""
    kinds = list(X.dtypes) if isinstance(X, pd.DataFrame) else []
    sparse = all(isinstance(one, pd.SparseDtype) for one in kinds)
    if sparse and any(one.fill_value != 0 for one in kinds):  # NaN is not 0
        return X.sparse.to_dense()
    return X


def numeric(X: Any, convert: Callable[[Any], Any], name: str = "X") -> Any:
    """Return features as a float ndarray, or as a CSR in which no index is repeated.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix
        The features as they were passed.
    convert : callable
        scikit-learn's conversion and checks.
    name : str, default="X"
        What X is called in messages.

    Raises
    ------
    ValueError
        The message names the columns that are not numbers.
    """
    from sklearn import config_context  # workers import this module without it

    check_held(name, X)
    check_features(X)
    try:
        with config_context(array_api_dispatch=False):  # tensors become arrays
            return _summed(convert(_stored(X)))
    except (ValueError, TypeError) as error:
        explained = explain_text(X, error)
        if name not in str(explained):
            explained = type(error)(f"{name}: {explained}")
        if explained is error:
            raise
        raise explained from error
