"""Rows in blocks: temporary arrays of a block stay in the cache, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fairconstrained.utils.typing import Array

MANY_ROWS = 1 << 16  # from here on rows are read in blocks, and take a byte each where they can
_BLOCK = 1 << 15


def blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices that make up all rows."""
    for start in range(0, n_rows, _BLOCK):
        yield slice(start, min(start + _BLOCK, n_rows))


def codes_in_blocks(
    n_rows: int,
    encode: Callable[[slice], tuple[Array, Array]],
    merge: Callable[[Array], tuple[Array, Array]],
) -> tuple[Array, Array]:
    """Return distinct values and the position of each row's value, as short integers.

    Parameters
    ----------
    n_rows : int
        The number of rows, at least one.
    encode : callable
        From a slice of the rows to the distinct values in it and the positions of its rows' values.
    merge : callable
        From values to the distinct ones among them and the positions of all of them.

    Returns
    -------
    distinct : ndarray of shape (n_distinct,)
        As `merge` orders them.
    codes : ndarray of shape (n_rows,)
        Of the shortest signed integer type.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.utils.blocks import codes_in_blocks
    >>> from fairconstrained.utils.codes import unique_codes
    >>> values = np.array([30, 10, 30])
    >>> codes_in_blocks(3, lambda rows: unique_codes(values[rows]), unique_codes)
    (array([10, 30]), array([1, 0, 1], dtype=int8))
    """
    codes, found = np.empty(n_rows, np.int8), []
    for rows in blocks(n_rows):
        values, part = encode(rows)
        codes = codes.astype(np.promote_types(codes.dtype, _signed(len(values))), copy=False)
        codes[rows] = part
        found.append(values)
    distinct, places = merge(np.concatenate(found))
    codes = codes.astype(_signed(len(distinct)), copy=False)
    ends = np.cumsum([len(values) for values in found])[:-1]
    for rows, own in zip(blocks(n_rows), np.split(places, ends), strict=True):
        if not np.array_equal(own, np.arange(len(own))):
            codes[rows] = own.astype(codes.dtype)[codes[rows]]
    return distinct, codes


def _signed(n: int) -> np.dtype:
    """Return the shortest signed integers that include -1 and all below n."""
    return np.min_scalar_type(-max(n, 1))


def only_ones(weight: Array) -> bool:
    """Return whether all weights are one, without an array of their length."""
    return bool(weight.min(initial=1.0) == 1.0 == weight.max(initial=1.0))
