"""Positions of the members of many groups, without a loop over the groups."""

from __future__ import annotations

import numpy as np

from fairconstrained.utils.typing import Array


def ranges(starts: Array, ends: Array) -> Array:
    """Return the integers of [start, end) for every pair of limits, one range after the other.

    Parameters
    ----------
    starts, ends : ndarray of int of shape (n_ranges,)
        The limits.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.utils.ranges import ranges
    >>> ranges(np.array([3, 10]), np.array([5, 13])).tolist()
    [3, 4, 10, 11, 12]
    """
    lengths = ends - starts
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return np.arange(len(shift)) + shift


def grouped(codes: Array, n_groups: int = 0) -> tuple[Array, Array]:
    """Return the positions sorted by group, and where every group starts and the last one ends.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The group of every position, from 0.
    n_groups : int, default=0
        The least number of groups, where the last ones may have no positions.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.utils.ranges import grouped
    >>> order, starts = grouped(np.array([1, 0, 1]))
    >>> order.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    largest = int(codes.max(initial=0))
    short = codes.astype(np.uint16) if largest < 1 << 16 else codes  # sorted in linear time
    order = np.argsort(short, kind="stable")
    return order, np.append(0, np.cumsum(np.bincount(codes, minlength=n_groups)))
