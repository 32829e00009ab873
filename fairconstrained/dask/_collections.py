"""Collections of dask: the partitions that go together, and predictions for them, lazily."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.dask._rows import held_out_rows, weight_in_partition
from fairconstrained.data.inputs import check_labels, check_same_rows, known_labels
from fairconstrained.utils.registry import import_extra

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
    """
    first, X = next(iter(collections.items()))
    columns: list[Iterable[Any]] = []
    for name, values in collections.items():
        if values is None:
            columns.append(repeat(None))
            continue
        if not is_collection(values):
            raise TypeError(
                f"{name} must be a dask array, dataframe or series with the partitions of "
                f"{first}; got {type(values).__name__}. For data in memory use the estimator "
                "of the same name in fairconstrained."
            )
        columns.append(_delayed(name, values, first, X))
    return list(zip(*columns, strict=False))  # some are endless


def _delayed(name: str, values: Any, first: str, X: Any) -> list[Any]:
    """Return the partitions of a collection: those of the first one, where lengths are known."""
    import_extra("dask", "dask", "fairconstrained.dask")
    if is_frame(values):
        # The optimised graph would join small partitions.
        parts = values.to_delayed(optimize_graph=False)
    else:
        values = _whole_rows(values)
        known = not is_frame(X) and _known(values.chunks[0]) and _known(X.chunks[0])
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {values.shape[0]} rows, {first} has {X.shape[0]}.")
        if known and values.chunks[0] != X.chunks[0]:
            values = values.rechunk({0: X.chunks[0]})
        parts = values.to_delayed().ravel().tolist()
    wanted = X.npartitions if is_frame(X) else len(X.chunks[0])
    if len(parts) != wanted:
        raise ValueError(
            f"{name} has {len(parts)} partitions, {first} has {wanted}: rows are matched by "
            f"partition. Make both from one collection, or repartition {name} like {first}."
        )
    return list(parts)


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


def lazily(
    local: Any, method: str, X: Collection, dtype: Any, *, by_class: bool = False
) -> Collection:
    """Return a method of a fitted estimator for data in memory on every partition.

    The result has a column for each class, or one dimension.
    """
    _check_collection(X, f"call `to_local().{method}(X)`")
    columns = local.classes_.tolist() if by_class else None
    call = partial(_of_rows, local, method, columns)
    if is_frame(X):
        meta: Any = pd.Series([], dtype=dtype)
        if columns:
            meta = pd.DataFrame(dict.fromkeys(columns, meta))
        return X.map_partitions(call, meta=meta)
    array = import_extra("dask.array", "dask", "fairconstrained.dask")
    X = _whole_rows(X)
    shape = {"chunks": (X.chunks[0], (len(columns),))} if columns else {"drop_axis": 1}
    return array.map_blocks(call, X, dtype=dtype, **shape)


def drawn(X: Collection, share: float, seed: int) -> Collection:
    """Return which rows of the partitions of a collection are held out, lazily."""
    _check_collection(X, "use the estimator of the same name in fairconstrained")
    array = import_extra("dask.array", "dask", "fairconstrained.dask")
    if not is_frame(X):
        return array.map_blocks(_drawn, _whole_rows(X), share, seed, dtype=bool, drop_axis=1)
    dask = import_extra("dask", "dask", "fairconstrained.dask")
    frames = import_extra("dask.dataframe", "dask", "fairconstrained.dask")
    # Rows were drawn in these partitions; the optimised graph would join small ones.
    parts = X.to_delayed(optimize_graph=False)
    masks = [dask.delayed(_drawn)(part, share, seed, (k,)) for k, part in enumerate(parts)]
    return frames.from_delayed(masks, meta=pd.Series([], dtype=bool))


def _drawn(X: Any, share: float, seed: int, block_id: tuple[int, ...]) -> Any:
    held = held_out_rows(X.shape[0], share, seed, block_id[0])
    return pd.Series(held, index=X.index) if isinstance(X, pd.DataFrame) else held


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


def _of_rows(estimator: Any, method: str, columns: list[Any] | None, X: Any) -> Any:
    """Return a method's result for the rows of a partition, of which there may be none."""
    values = np.empty((0, len(columns)) if columns else 0)
    if X.shape[0]:
        values = np.asarray(getattr(estimator, method)(X))
    if not isinstance(X, pd.DataFrame):
        return values
    if columns is None:
        return pd.Series(values, index=X.index)
    return pd.DataFrame(values, index=X.index, columns=columns)


def weight_right(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
    """Return the weight of the rows that are predicted correctly, and that of all rows."""
    check_same_rows(X=X, y=y, sample_weight=sample_weight)
    predicted = np.asarray(_of_rows(estimator, "predict", None, X))
    labels = check_labels("y", y, len(predicted))
    right = predicted == known_labels("y", labels, estimator.classes_.tolist())
    weight = weight_in_partition(sample_weight, len(predicted))
    return float(weight @ right), float(weight.sum())
