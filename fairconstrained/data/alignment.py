"""Rows of several arguments: the same rows in the same order."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pandas as pd

_FOLDS = 20  # the largest ratio of all rows to the rows of a fold


def check_same_rows(**arguments: object) -> None:
    """Check that the row labels of pandas objects do not contradict each other.

    Rows are matched by position, as in scikit-learn. Where two objects have row labels (an index),
    the labels show whether that is right. A default index (0, 1, 2, ...) carries no information.
    Nor does a part of one in rising order, such as a fold of a cross-validation has, unless both
    objects have such parts without a common label. Objects without an index (arrays, lists, polars,
    sparse matrices) are not looked at.

    Parameters
    ----------
    **arguments : object
        The row-aligned arguments by their public names, the first one first. None is skipped, and
        so are objects of another length: what checks lengths reports them.

    Raises
    ------
    ValueError
        If two objects have the same labels in another order. The message names both.

    Warns
    -----
    InputWarning
        If two objects have different labels, or one has a default index and the other one the same
        labels in another order. Rows are then matched by position.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairconstrained.data.alignment import check_same_rows
    >>> X = pd.DataFrame({"a": [1.0, 2.0]}, index=["u", "v"])
    >>> check_same_rows(X=X, y=pd.Series([0, 1]))
    >>> check_same_rows(X=X, y=pd.Series([0, 1], index=["v", "u"]))
    Traceback (most recent call last):
    ...
    ValueError: X and y have the same row labels in another order, ...
    """
    labelled = [
        (name, value.index)
        for name, value in arguments.items()
        if isinstance(value, pd.Series | pd.DataFrame)
    ]
    for (first, index), (second, other) in combinations(labelled, 2):
        if len(index) != len(other) or index.equals(other):
            continue
        reordered = _reordered(index, other)
        if reordered and not (_is_default(index) or _is_default(other)):
            raise ValueError(
                f"{first} and {second} have the same row labels in another order, and rows are "
                f"matched by position. Reorder {second} (`{second}.loc[{first}.index]`), or pass "
                f"`{second}.to_numpy()` if its rows are in the order of {first}'s."
            )
        if reordered or not (_says_nothing(index, other) or _says_nothing(other, index)):
            from fairconstrained.exceptions import InputWarning  # which imports scikit-learn

            what = "the same row labels in another order" if reordered else "different row labels"
            warnings.warn(
                f"{first} and {second} have {what}; their rows are matched by position. If that is "
                f"meant, pass `{second}.to_numpy()`; otherwise reorder the rows of one of them.",
                InputWarning,
                stacklevel=3,
            )
            return


def _is_default(index: pd.Index) -> bool:
    """Return whether row labels are those that pandas gives where none are given."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _says_nothing(index: pd.Index, other: pd.Index) -> bool:
    """Return whether row labels carry no information beside other labels of the same rows."""
    if _is_default(index):
        return True
    if not _may_be_positions(index):
        return False
    return not _may_be_positions(other) or bool(index.isin(other).any())


def _may_be_positions(index: pd.Index) -> bool:
    """Return whether row labels may be a default index, or what a fold has of one."""
    rising = pd.api.types.is_integer_dtype(index.dtype) and index.is_monotonic_increasing
    return rising and index.is_unique and index[0] >= 0 and index[-1] <= _FOLDS * len(index)


def _reordered(index: pd.Index, other: pd.Index) -> bool:
    """Return whether two different indexes of one length hold the same labels, as often."""
    codes, levels = pd.factorize(index.append(other), use_na_sentinel=False)
    first, second = np.split(codes, [len(index)])
    n = len(levels)
    return bool(np.array_equal(np.bincount(first, minlength=n), np.bincount(second, minlength=n)))
