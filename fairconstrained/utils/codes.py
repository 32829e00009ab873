"""Distinct values and their positions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairconstrained.utils.typing import Array

_HASHED = (np.bool_, np.integer, np.float32, np.float64, np.str_)


def unique_codes(values: Array) -> tuple[Array, Array]:
    """Return the sorted distinct values and the position of each value among them.

    This is ``np.unique(values, return_inverse=True)`` in linear time, for values without missing
    ones.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers, strings or objects that can be compared.

    Returns
    -------
    distinct : ndarray of shape (n_distinct,)
    codes : ndarray of int of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.utils.codes import unique_codes
    >>> unique_codes(np.array(["no", "yes", "no"]))
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0]))
    """
    if not issubclass(values.dtype.type, _HASHED):
        return np.unique(values, return_inverse=True)
    codes, levels = pd.factorize(values)
    distinct, rank = np.unique(np.asarray(levels, dtype=values.dtype), return_inverse=True)
    return distinct, rank[codes]
