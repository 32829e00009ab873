"""Distinct values and their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fairconstrained.utils.typing import Array

_COUNTED = 1 << 12  # integers within such a range are counted
_LARGE = 1 << 62
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
    if issubclass(values.dtype.type, np.integer) and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < _COUNTED and max(high, -low) < _LARGE:
            offsets = values.astype(np.int64) - low
            present = np.bincount(offsets) > 0
            distinct = (np.flatnonzero(present) + low).astype(values.dtype)
            return distinct, (np.cumsum(present) - 1)[offsets]
    if not issubclass(values.dtype.type, _HASHED):
        return np.unique(values, return_inverse=True)
    codes, levels = pd.factorize(values)
    distinct, rank = np.unique(np.asarray(levels, dtype=values.dtype), return_inverse=True)
    return distinct, rank[codes]


def by_first_row(codes: Array) -> Array:
    """Return the codes renumbered from 0 in the order of their first rows.

    What is drawn code by code then does not depend on what the codes stand for, such as the names
    of groups.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Codes from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.utils.codes import by_first_row
    >>> by_first_row(np.array([3, 0, 3, 1])).tolist()
    [0, 1, 0, 2]
    """
    n = len(codes)
    first = np.full(int(codes.max(initial=-1)) + 1, n)
    first[codes[::-1]] = np.arange(n)[::-1]  # the last assignment counts: the first row
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[codes]


def joint_codes(codes: Sequence[Array]) -> Array:
    """Return codes that are equal where all the given codes, >= 0, are."""
    joint = np.zeros(len(codes[0]), dtype=np.int64)
    for one in codes:
        if not one.any():
            continue
        joint = unique_codes(joint * (int(one.max(initial=0)) + 1) + one)[1]
    return joint
