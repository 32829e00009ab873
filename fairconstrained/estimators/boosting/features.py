"""Features of tree methods: numbers with missing values, sparse matrices, pandas categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from fairconstrained.data.features import FeatureKind, column_position
from fairconstrained.utils.typing import Array, FrameLike


class TreeFeatures(FeatureKind):
    """Numbers, NaN for missing values, and categories as their codes.

    With columns of pandas' category dtype, of text and of other values that are not numbers, the
    codes are positions in the categories seen in `fit`; categories that were not seen there are
    missing values. Other categorical columns hold integers >= 0, which are used as they are.

    Parameters
    ----------
    categorical_features : "from_dtype", None, or list of names, positions or bool
        The categorical columns, see :func:`categorical_mask`.
    """

    checks = FeatureKind.checks | {"ensure_all_finite": "allow-nan"}
    squared = False

    def __init__(self, categorical_features: object = "from_dtype"):
        self.categorical_features = categorical_features

    def encode(self, estimator: Any, X: Any, *, reset: bool) -> Any:
        """Return X with codes in place of pandas categories.

        Parameters
        ----------
        estimator : estimator
            With `reset` its `categories_` are set.
        X : array-like, DataFrame or sparse matrix
            The features as passed.
        reset : bool
            Whether this is `fit`.

        Raises
        ------
        ValueError
            If `categorical_features` does not fit X.
        """
        if not isinstance(X, FrameLike):
            if reset:
                estimator.categories_ = {}
            return X
        if not isinstance(X, pd.DataFrame):  # of another library, such as polars
            X = pd.DataFrame({name: np.asarray(X[name]) for name in X.columns})
        if reset:
            is_category = np.array([_is_category(dtype) for dtype in X.dtypes], dtype=bool)
            mask = categorical_mask(self.categorical_features, list(X.columns), is_category)
            names = X.columns[mask & ~np.array([*map(is_numeric_dtype, X.dtypes)], dtype=bool)]
            columns = {name: pd.Series(X[name]).astype("category") for name in names}
            estimator.categories_ = {k: one.cat.categories.tolist() for k, one in columns.items()}
        encoded = X.copy(deep=False)
        for name, categories in estimator.categories_.items():
            if name in X.columns:
                encoded[name] = _codes(X[name], categories)
        return encoded


def _is_category(dtype: object) -> bool:
    return isinstance(dtype, pd.CategoricalDtype)


def _codes(column: pd.Series, categories: list[Any]) -> Array:
    """Return positions in the categories as floats, NaN for missing and unknown values."""
    codes = pd.Index(categories, tupleize_cols=False).get_indexer(pd.Index(column)).astype(float)
    codes[codes < 0] = np.nan
    return codes


def categorical_mask(
    categorical_features: object, names: Sequence[object], is_category: Array
) -> Array:
    """Return which columns of X are categorical, shape (n_features,).

    Parameters
    ----------
    categorical_features : "from_dtype", None, or list of names, positions or bool
        The estimator's parameter.
    names : sequence
        The names of the columns; empty if there are none.
    is_category : ndarray of bool of shape (n_features,)
        Which columns have pandas' category dtype.

    Raises
    ------
    ValueError
        If it names columns that X does not have, or is none of these.
    """
    n_columns = len(is_category)
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return is_category
    mask = np.zeros(n_columns, dtype=bool)
    if categorical_features is None:
        return mask
    wanted = _entries(categorical_features)
    if wanted and all(isinstance(one, bool | np.bool_) for one in wanted):
        if len(wanted) != n_columns:
            raise ValueError(
                f"categorical_features is a mask of {len(wanted)} columns; X has {n_columns}."
            )
        return np.array(wanted, dtype=bool)
    for one in wanted:
        mask[column_position("categorical_features", one, [*names], n_columns)] = True
    return mask


def _entries(categorical_features: object) -> list[object]:
    if isinstance(categorical_features, Sequence | np.ndarray | pd.Index) and not isinstance(
        categorical_features, str
    ):
        return list(categorical_features)
    raise ValueError(
        "categorical_features must be 'from_dtype', None or a list of names or positions of "
        f"columns of X, or a mask; got {categorical_features!r}."
    )


def check_codes(X: Any, is_categorical: Array, names: Sequence[object]) -> None:
    """Raise if a categorical column holds other numbers than integers >= 0 and NaN.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        The features of the model.
    is_categorical : ndarray of bool of shape (n_features,)
        Which of them are categorical.
    names : sequence
        Their names or positions, for the message.

    Raises
    ------
    ValueError
        The message names the column.
    """
    for k in np.flatnonzero(is_categorical):
        column = X[:, [k]]
        values = column.data if hasattr(column, "indptr") else np.ravel(column)
        values = values[~np.isnan(values)]
        wrong = (values < 0) | (values != np.floor(values)) | (values > np.iinfo(np.int32).max)
        if wrong.any():
            raise ValueError(
                f"categorical_features: the column {names[int(k)]!r} has the value "
                f"{values[wrong][0]:g}. Codes of categories must be integers from 0 to 2**31 - 1; "
                "convert the column with `astype('category')`, or leave it out of "
                "categorical_features."
            )
