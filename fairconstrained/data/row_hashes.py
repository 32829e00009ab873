"""Hash values of rows, which depend on the values of the features alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.utils.typing import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)  # the odd number next to 2^64 divided by the golden ratio
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def row_hashes(X: Any) -> Array:
    r"""Return a hash value of every row.

    Equal rows have equal hash values, in whichever container, order and split of the data they are.
    The values of other rows are as good as independent and uniform. A row with the values
    :math:`x_j` has the hash value

    .. math::
        h\Big(\sum_{j : x_j \ne 0} h\big(\mathrm{bits}(x_j) + (j + 1)\, c\big)\Big)
        \mod 2^{64},

    with the mixing function h and the constant c of SplitMix64. Zeros do not count, so that sparse
    and dense rows have the same hash values. Numbers of all types count as float64. Other values
    count as text, and all missing values in a column of text are equal.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    hashes : ndarray of uint64 of shape (n_rows,)

    References
    ----------
    G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (2014).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from fairconstrained.data.row_hashes import row_hashes
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> hashes = row_hashes(X)
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    >>> bool(np.all(row_hashes(sp.csr_array(X)) == hashes))
    True
    """
    if hasattr(X, "tocsr"):
        table = X.tocsr(copy=True)
        table.sum_duplicates()
        values = _mixed(_bits(table.data) + _places(table.indices))
        values[table.data == 0.0] = 0
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        total = np.zeros(table.shape[0], dtype=np.uint64)
        np.add.at(total, rows, values)
        return _mixed(total)
    totals: list[Array] = []
    for j, column in enumerate(_columns(X)):
        numbers = _as_numbers(column)
        if numbers is None:
            texts = np.array(["" if pd.isna(one) else f"={one}" for one in column], dtype=object)
            values = _mixed(pd.util.hash_array(texts, categorize=True) + _places(np.array([j])))
        else:
            values = _mixed(_bits(numbers) + _places(np.array([j])))
            values[numbers == 0.0] = 0
        totals = [values + before for before in totals] or [values]
    return _mixed(totals[0]) if totals else np.zeros(len(X), dtype=np.uint64)


def _columns(X: Any) -> Iterator[Array]:
    """Yield the columns of a table."""
    if hasattr(X, "iloc"):
        frame = X if X.ndim == 2 else X.to_frame()
        for j in range(frame.shape[1]):
            yield frame.iloc[:, j].to_numpy()
    elif hasattr(X, "columns"):
        for name in X.columns:
            yield np.asarray(X[name])
    else:
        table = np.asarray(X)
        yield from (table if table.ndim == 2 else table[:, None]).T


def _as_numbers(column: Array) -> Array | None:
    """Return a column as float64, None if it has other values than numbers."""
    if column.dtype.kind in "fiub":
        return column.astype(float)
    if column.dtype.kind != "O" or any(isinstance(value, str | bytes) for value in column):
        return None
    try:
        return pd.to_numeric(pd.Series(column), errors="raise").to_numpy(float, na_value=np.nan)
    except (TypeError, ValueError):
        return None


def _bits(numbers: Array) -> Array:
    """Return the bits of float64 numbers, the same for all values that are not a number."""
    known = np.where(np.isnan(numbers), np.nan, numbers.astype(float))
    return known.view(np.uint64)


def _places(columns: Array) -> Array:
    """Return what is added to the bits of a column."""
    return (columns.astype(np.uint64) + np.uint64(1)) * _STEP


def _mixed(values: Array) -> Array:
    """Return the values after the mixing function of SplitMix64."""
    values = values ^ (values >> np.uint64(30))
    values = values * _FACTORS[0]
    values = values ^ (values >> np.uint64(27))
    values = values * _FACTORS[1]
    return np.asarray(values ^ (values >> np.uint64(31)))
