"""The rows of training and test folds."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import check_cv

from fairconstrained.utils.typing import Array


def splits_of(cv: Any, X: Any, y: Any) -> list[tuple[Array, Array]]:
    """Return the rows of the training fold and of the test fold of every split.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in scikit-learn.
    X, y : array-like
        The rows.

    Raises
    ------
    ValueError
        If a splitter needs groups, which it is not passed; or what it raises.
    """
    try:
        return list(check_cv(cv, y, classifier=True).split(X, y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"cv={cv!r} needs groups to split the rows by, which it is not passed here: pass the "
            f"splits themselves, cv=list({type(cv).__name__}(...).split(X, y, groups))."
        ) from error
