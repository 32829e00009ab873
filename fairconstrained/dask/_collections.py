"""Collections of dask: the partitions that go together, and predictions for them, lazily."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.dask._rows import held_out_rows, weight_in_partition
from fairconstrained.data.inputs import check_labels, check_same_rows, known_labels
from fairconstrained.utils.registry import import_extra
from fairconstrained.utils.typing import Array

Collection = Any  # a dask array, dataframe or series: dask is imported when it is needed


def is_collection(value: object) -> bool:
    """Return whether a value is a dask array, dataframe or series."""
    return type(value).__module__.split(".")[0].startswith("dask") and hasattr(value, "dask")


def is_frame(value: object) -> bool:
    """Return whether a value is a dask dataframe or series."""
    return is_collection(value) and hasattr(value, "npartitions") and hasattr(value, "divisions")


def partitions_of(**collections: Any) -> list[tuple[Any, ...]]:
    """Return the delayed partitions of collections that go together, in the order of the rows.

    Of every partition these are the parts of the collections, by the names of the arguments, the
    first one first; None for a collection that is None.

    Raises
    ------
    TypeError
        If an argument is not a dask collection.
    ValueError
        If two collections differ in the number or in the lengths of their partitions.
    """
    first, X = next(iter(collections.items()))
    columns: list[list[Any] | None] = []
    for name, values in collections.items():
        if values is None:
            columns.append(None)
            continue
        if not is_collection(values):
            raise TypeError(
                f"{name} must be a dask array, dataframe or series with the partitions of "
                f"{first}; got {type(values).__name__}. For data in memory use the estimator "
                "of the same name in fairconstrained."
            )
        columns.append(_delayed(name, values, first, X))
    n_parts = len(columns[0] or ())
    return [tuple(None if c is None else c[k] for c in columns) for k in range(n_parts)]


def _delayed(name: str, values: Any, first: str, X: Any) -> list[Any]:
    """Return the partitions of a collection: those of the first one, where lengths are known."""
    import_extra("dask", "dask", "fairconstrained.dask")
    if is_frame(values):
        # The optimised graph would join small partitions.
        found = values.to_delayed(optimize_graph=False)
    else:
        if values.ndim == 2 and len(values.chunks[1]) > 1:
            values = values.rechunk({1: -1})
        known = not is_frame(X) and _known(values.chunks[0]) and _known(X.chunks[0])
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {values.shape[0]} rows, {first} has {X.shape[0]}.")
        if known and values.chunks[0] != X.chunks[0]:
            values = values.rechunk({0: X.chunks[0]})
        found = values.to_delayed().ravel().tolist()
    wanted = X.npartitions if is_frame(X) else len(X.chunks[0])
    if len(found) != wanted:
        raise ValueError(
            f"{name} has {len(found)} partitions, {first} has {wanted}: rows are matched by "
            f"partition. Make both from one collection, or repartition {name} like {first}."
        )
    return list(found)


def _known(lengths: Sequence[float]) -> bool:
    """Return whether the lengths of chunks are known, not nan."""
    return all(length == length for length in lengths)


def example(X: Collection) -> Any:
    """Return a frame or an array without rows that has the columns of X."""
    if is_frame(X):
        return X._meta
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features; it has {X.ndim}.")
    return np.empty((0, X.shape[1]))


def lazily(local: Any, method: str, X: Collection, dtype: Any, n_columns: int = 0) -> Collection:
    """Return a method of a fitted estimator for data in memory on every partition.

    Parameters
    ----------
    local : estimator
        For data in memory.
    method : str
        The name of the method.
    X : dask array or dask dataframe
        The rows.
    dtype : dtype
        Of the result.
    n_columns : int, default=0
        The number of columns of the result; 0 for a result of one dimension.

    Raises
    ------
    TypeError
        If X is no dask collection.
    """
    _check_collection(X, f"call `to_local().{method}(X)`")
    columns = local.classes_.tolist() if n_columns else None
    if is_frame(X):
        call = partial(_on_frame, local, method, columns)
        meta: Any = pd.Series([], dtype=dtype)
        if n_columns:
            meta = pd.DataFrame(dict.fromkeys(columns or (), meta))
        return X.map_partitions(call, meta=meta)
    array = import_extra("dask.array", "dask", "fairconstrained.dask")
    X = _whole_rows(X)
    call = partial(_on_array, local, method, n_columns)
    if n_columns:
        return array.map_blocks(call, X, dtype=dtype, chunks=(X.chunks[0], (n_columns,)))
    return array.map_blocks(call, X, dtype=dtype, drop_axis=1)


def drawn(X: Collection, share: float, seed: int) -> Collection:
    """Return which rows of the partitions of a collection are held out, lazily.

    Parameters
    ----------
    X : dask array or dask dataframe
        The rows.
    share, seed
        See :func:`~fairconstrained.dask._rows.held_out_rows`.

    Raises
    ------
    TypeError
        If X is no dask collection.
    """
    _check_collection(X, "use the estimator of the same name in fairconstrained")
    if is_frame(X):
        dask = import_extra("dask", "dask", "fairconstrained.dask")
        frames = import_extra("dask.dataframe", "dask", "fairconstrained.dask")
        call = dask.delayed(_drawn_of_frame)
        # Rows were drawn in these partitions; the optimised graph would join small ones.
        found = X.to_delayed(optimize_graph=False)
        parts = [call(one, share, seed, k) for k, one in enumerate(found)]
        return frames.from_delayed(parts, meta=pd.Series([], dtype=bool))
    array = import_extra("dask.array", "dask", "fairconstrained.dask")
    X = _whole_rows(X)
    return array.map_blocks(_drawn_of_array, X, share, seed, dtype=bool, drop_axis=1)


def _drawn_of_array(X: Any, share: float, seed: int, block_id: Any = None) -> Array:
    return held_out_rows(X.shape[0], share, seed, block_id[0])


def _drawn_of_frame(X: pd.DataFrame, share: float, seed: int, partition: int) -> pd.Series:
    return pd.Series(held_out_rows(len(X), share, seed, partition), index=X.index)


def _check_collection(X: Collection, otherwise: str) -> None:
    """Raise a TypeError if X is no dask collection."""
    if not is_collection(X):
        raise TypeError(
            f"X must be a dask array or dask dataframe; got {type(X).__name__}. For data in "
            f"memory {otherwise}."
        )


def _whole_rows(X: Collection) -> Collection:
    """Return a dask array without chunks along the columns."""
    return X.rechunk({1: -1}) if X.ndim == 2 and len(X.chunks[1]) > 1 else X


def _on_array(estimator: Any, method: str, n_columns: int, X: Any) -> Array:
    """Return a method's result for the rows of a block, of which there may be none."""
    if X.shape[0] == 0:
        return np.empty((0, n_columns) if n_columns else 0)
    return np.asarray(getattr(estimator, method)(X))


def _on_frame(estimator: Any, method: str, columns: list[Any] | None, X: pd.DataFrame) -> Any:
    """Return a method's result for the rows of a partition, with their index."""
    values = _on_array(estimator, method, len(columns or ()), X)
    if columns is None:
        return pd.Series(values, index=X.index)
    return pd.DataFrame(values, index=X.index, columns=columns)


def weight_right(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
    """Return the weight of the rows that are predicted correctly, and that of all rows.

    Raises
    ------
    ValueError
        If lengths differ, a label is missing or unknown, a weight is not a finite number >= 0, or
        pandas objects have the same row labels in another order.
    """
    check_same_rows(X=X, y=y, sample_weight=sample_weight)
    predicted = _on_array(estimator, "predict", 0, X)
    labels = check_labels("y", y, len(predicted))
    right = predicted == known_labels("y", labels, estimator.classes_.tolist())
    weight = weight_in_partition(sample_weight, len(predicted))
    return float(weight @ right), float(weight.sum())
