"""Groups of rows, from whatever a user holds them in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairconstrained.scalar import Array


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each row belongs to.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The position of each row's group in `names`.
    names : ndarray of shape (n_groups,)
        The groups in sorted order: values for one column, tuples for several.

    Examples
    --------
    >>> from fairconstrained.groups import Groups
    >>> groups = Groups.encode(["f", "m", "f"])
    >>> groups.names.tolist(), groups.codes.tolist()
    (['f', 'm'], [0, 1, 0])
    """

    codes: Array
    names: Array

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.names)

    def take(self, rows: Array) -> Groups:
        """Return the groups of some rows; a group that none of them has is forgotten."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Groups(codes, self.names[present])

    @classmethod
    def encode(cls, values: Any, *, name: str = "sensitive_features") -> Groups:
        """Return the groups of an array, Series or DataFrame.

        Parameters
        ----------
        values : array-like of shape (n_rows,) or (n_rows, n_columns)
            Strings, numbers, bools or categories; rows that agree in all columns are one group.
        name : str, default="sensitive_features"
            What the values are called in messages.

        Raises
        ------
        ValueError
            If values are missing, or the array has more than two dimensions.
        """
        if isinstance(values, Groups):
            return values
        columns = _columns(values, name)
        encoded = [_encode_column(column, name) for column in columns]
        if len(encoded) == 1:
            return cls(*encoded[0])
        stacked = np.column_stack([codes for codes, _ in encoded])
        present, codes = np.unique(stacked, axis=0, return_inverse=True)
        names = np.empty(len(present), dtype=object)
        for k, row in enumerate(present):
            names[k] = tuple(levels[i] for (_, levels), i in zip(encoded, row, strict=True))
        return cls(np.ravel(codes), names)


def _columns(values: Any, name: str) -> list[pd.Series]:
    """Return the columns of an array, Series or frame (pandas, polars or nested lists)."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    if isinstance(values, pd.Series):
        return [values]
    if not isinstance(values, pd.DataFrame):
        if hasattr(values, "columns"):  # polars and others: column by column keeps their types
            return [pd.Series(np.asarray(values[column])) for column in values.columns]
        values = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
        if values.ndim not in (1, 2):
            raise ValueError(
                f"{name} must have one dimension, or two with a column per attribute; "
                f"got {values.ndim}."
            )
        if values.ndim == 1:
            return [pd.Series(values).infer_objects()]
        values = pd.DataFrame(values).infer_objects()
    if values.shape[1] == 0:
        raise ValueError(f"{name} has no columns; give at least one attribute.")
    return [values.iloc[:, k] for k in range(values.shape[1])]


def _encode_column(column: pd.Series, name: str) -> tuple[Array, Array]:
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(
            f"{name} has missing values in {missing} of {len(column)} rows. Leave these rows out, "
            "or give them a group of their own, for instance with fillna('missing')."
        )
    try:
        codes, levels = pd.factorize(column.to_numpy())
    except TypeError as error:
        raise ValueError(
            f"{name} must hold strings, numbers, bools or categories: {error}."
        ) from error
    try:
        order = np.argsort(np.asarray(levels))
    except TypeError:  # values that do not compare, such as strings and numbers
        order = np.argsort([f"{type(level).__name__} {level}" for level in levels])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[codes], np.asarray(levels)[order]


def check_groups(
    values: ArrayLike | Groups, n_rows: int, *, name: str = "sensitive_features"
) -> Groups:
    """Return the groups of `n_rows` rows.

    Raises
    ------
    ValueError
        If the number of rows differs or values are missing; the message calls them `name`.
    """
    groups = Groups.encode(values, name=name)
    if len(groups.codes) != n_rows:
        raise ValueError(
            f"{name} has {len(groups.codes)} rows, X has {n_rows}: give one group per row of X, in "
            "the same order."
        )
    return groups
