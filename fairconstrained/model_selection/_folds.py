"""The folds of a cross-validation, checked."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from fairconstrained.utils.splits import splits_of
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike, RandomState
from fairconstrained.utils.validation import is_number

_CV = "an integer >= 2, a splitter, an iterable of splits, or None"


def folds_of(
    cv: Any,
    random_state: RandomState,
    X: MatrixLike,
    y: ArrayLike,
    weight: Array | None,
    params: Mapping[str, Any],
) -> list[tuple[Array, Array]]:
    """Return the rows to train on and the rows to measure on, for every fold.

    All rows of weight zero are among those to train on: the classes are those of all labels.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in scikit-learn; None stands for 5 stratified folds. Folds of a number divide the rows
        of positive weight.
    random_state : int, RandomState or None
        Shuffles the folds if `cv` is a number or None; None does not shuffle.
    X, y : array-like
        The rows.
    weight : ndarray of shape (n_rows,) or None
        Their weights.
    params : mapping
        Further arguments of `split`, such as `groups`.

    Raises
    ------
    ValueError
        If `cv` is not valid, or all rows of a fold have weight zero.
    """
    if isinstance(cv, bool | str) or (isinstance(cv, Real) and not is_number(cv, Integral)):
        raise ValueError(f"cv must be {_CV}; got {cv!r}.")
    if is_number(cv, Integral) and cv < 2:
        raise ValueError(f"cv must be {_CV}; got {cv!r}: at least 2 folds are needed.")
    stratified = cv is None or is_number(cv, int)
    if stratified and random_state is not None:
        cv = StratifiedKFold(cv or 5, shuffle=True, random_state=random_state)
    if stratified and weight is not None:
        rows = np.flatnonzero(weight)
        inside = splits_of(cv, rows, _safe_indexing(y, rows))
        folds = [(rows[training], rows[test]) for training, test in inside]
    else:
        folds = splits_of(cv, X, y, params)
    if weight is None:
        return folds
    _check_weighted(weight, folds)
    absent = np.flatnonzero(weight == 0.0)
    return [(np.union1d(training, absent), test) for training, test in folds]


def _check_weighted(weight: Array, folds: list[tuple[Array, Array]]) -> None:
    """Raise a ValueError if all rows of a fold have weight zero."""
    for k, fold in enumerate(folds):
        for what, rows in zip(("training", "test"), fold, strict=True):
            if not weight[rows].any():
                raise ValueError(
                    f"sample_weight is zero for all {what} rows of fold {k + 1} of {len(folds)}: "
                    "shuffle the rows, pass another cv, or leave rows of weight zero out."
                )
