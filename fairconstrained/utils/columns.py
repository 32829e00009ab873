"""Minima and maxima of the columns of matrices."""

from __future__ import annotations

import numpy as np

from fairconstrained.utils.typing import Array, SparseMatrix

SIDE_BY_SIDE = 64  # rows taken as one: NumPy is slow on rows of few columns


def column_extremes(extreme: np.ufunc, X: Array) -> Array:
    """Return the minimum or the maximum of every column.

    Where the rows follow each other in memory, 64 of them are taken as one long row first, which
    is faster with few columns.

    Parameters
    ----------
    extreme : {np.minimum, np.maximum}
        What is returned.
    X : ndarray of shape (n_rows, n_columns)
        With one row or more.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.utils.columns import column_extremes
    >>> column_extremes(np.maximum, np.array([[1.0, 5.0], [3.0, 2.0]]))
    array([3., 5.])
    """
    end = len(X) - len(X) % SIDE_BY_SIDE if X.flags.c_contiguous else 0
    if not end:
        return np.asarray(extreme.reduce(X, axis=0))
    wide = extreme.reduce(X[:end].reshape(-1, SIDE_BY_SIDE * X.shape[1]), axis=0)
    found = extreme.reduce(wide.reshape(SIDE_BY_SIDE, -1), axis=0)
    return np.asarray(extreme(found, column_extremes(extreme, X[end:])) if end < len(X) else found)


def column_range(X: Array | SparseMatrix) -> tuple[Array, Array]:
    """Return the minimum and the maximum of every column, of the dtype of X.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_columns)
        With one row or more.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from fairconstrained.utils.columns import column_range
    >>> column_range(sp.csr_array([[1.0, 5.0], [0.0, 2.0]]))
    (array([0., 2.]), array([1., 5.]))
    """
    if isinstance(X, np.ndarray):
        return column_extremes(np.minimum, X), column_extremes(np.maximum, X)
    from sklearn.utils.sparsefuncs import min_max_axis  # workers with dense rows lack it

    low, high = min_max_axis(X.tocsc(), axis=0)  # slow for CSR
    return low, high
