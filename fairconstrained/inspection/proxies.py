"""Columns from each of which alone the group of a row can be guessed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from fairconstrained.data.groups import Groups
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.utils.meta_estimators import final_estimator
from fairconstrained.utils.typing import Array

_ACCURACY = 0.95
_MOST_ROWS, _MOST_COLUMNS = 5000, 1000  # more rows are sampled; more columns are not examined
_N_BINS = 50  # of the numbers of a column


def proxies(
    X: Any, rows: Array, groups: Groups, left_out: Collection[str] = ()
) -> dict[str, float]:
    """Return the columns from each of which alone an attribute can be guessed.

    The guess is the largest group among the other rows with the same value or, of numbers, in the
    same of 50 bins of equally many rows. It must be right for more than 95 percent of the rows, and
    wrong at most half as often as the guess of the largest group of all rows. At most 5,000 rows
    are used, and tables of more than 1,000 columns are not examined.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_rows, n_columns)
        The table. Without columns nothing is examined.
    rows : ndarray of int of shape (n_known,)
        The rows whose groups are given.
    groups : Groups
        Their groups.
    left_out : collection of str, default=()
        Columns that are not examined.

    Returns
    -------
    accuracies : dict of str to float
        The accuracy of the guess, by column; the largest one of several attributes.
    """
    table = X if hasattr(X, "columns") or hasattr(X, "tocsc") else np.asarray(X)
    if len(getattr(table, "shape", ())) != 2 or table.shape[1] > _MOST_COLUMNS:
        return {}
    some = np.arange(len(rows))
    if len(rows) > _MOST_ROWS:
        some = np.random.default_rng(0).choice(some, _MOST_ROWS, replace=False)
    table = _safe_indexing(table, rows[some])
    attributes = [attribute.codes[some] for attribute in groups.columns]
    guessed = {}
    for name, column in _columns(table):
        codings = [] if name in left_out else _codings(column)
        accuracies = [_accuracy(coding, codes) for coding in codings for codes in attributes]
        if max(accuracies, default=0.0) > _ACCURACY:
            guessed[name] = max(accuracies)
    return guessed


def _columns(table: Any) -> Iterator[tuple[str, pd.Series]]:
    """Yield the columns of a table, with their names or positions."""
    table = table.tocsc() if hasattr(table, "tocsc") else table
    names = getattr(table, "columns", [f"column {j}" for j in range(table.shape[1])])
    for j, name in enumerate(names):
        column = _safe_indexing(table, j, axis=1)
        values = column.toarray().ravel() if hasattr(column, "toarray") else column
        yield str(name), pd.Series(values)


def _codings(column: pd.Series) -> list[Array]:
    """Return the values of a column as codes, and those of many numbers as bins."""
    try:
        codes, values = pd.factorize(column, use_na_sentinel=False)
    except TypeError:  # lists and other values that cannot be compared
        return []
    # A value of a single row is guessed by no other one, so that these must be few.
    codings = [codes] if len(values) <= (1.0 - 0.5 * _ACCURACY) * len(codes) else []
    if len(values) > _N_BINS and pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        ends = np.nanquantile(numbers, np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1])
        codings.append(np.searchsorted(ends, numbers, side="right"))
    return codings


def _accuracy(codes: Array, groups: Array) -> float:
    """Return how often the largest group among the others with a row's code is its group.

    It is 0 unless that guess is wrong at most half as often as that of the largest group.
    """
    codes, groups = codes[groups >= 0], groups[groups >= 0]
    if not len(groups):
        return 0.0
    shape = codes.max() + 1, max(groups.max() + 1, 2)
    counts = np.bincount(codes * shape[1] + groups, minlength=shape[0] * shape[1]).reshape(shape)
    second, first = np.partition(counts, -2, axis=1)[:, -2:].T
    accuracy = float(first[first - 1 > second].sum() / len(groups))
    largest = counts.sum(axis=0).max() / len(groups)
    return accuracy if largest < 1.0 and 1.0 - accuracy <= 0.5 * (1.0 - largest) else 0.0


def hidden_columns(models: Sequence[Any]) -> set[str]:
    """Return the sensitive columns of X that no model may see."""
    hidden = []
    for model in models:
        last: Any = final_estimator(model)
        columns = SensitiveColumns.of(last)
        names = getattr(last, "feature_names_in_", None)
        known = not columns.use_sensitive and (model is last or names is not None)
        positions = columns.positions(last) if known else []
        hidden.append({f"column {k}" if names is None else str(names[k]) for k in positions})
    return set.intersection(*hidden)
