"""The rows of a partition on a worker: checked, summed, and read again."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from fairconstrained.dask._reader import Reader
from fairconstrained.data.attributes import group_columns, in_order
from fairconstrained.data.feature_map import FeatureMap
from fairconstrained.data.inputs import check_held, check_labels, check_same_rows, check_weight
from fairconstrained.models.feature_scale import Moments, other_shares
from fairconstrained.shards.rows import Block, Shard, Sums
from fairconstrained.terms.base import Term
from fairconstrained.utils.registry import import_extra
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

_TERMS = 256  # the terms of the last problems, which a worker keeps


def packed(value: Any) -> bytes:
    """Return a value as bytes, for :func:`unpacked` on a worker.

    Schedulers do not look into bytes, which takes longer than a round else. The bytes of a term are
    made once. A worker keeps the terms that it has read, with what they have computed.
    """
    cloudpickle = import_extra("cloudpickle", "dask", "fairconstrained.dask")
    out = BytesIO()
    writer = cloudpickle.Pickler(out)
    writer.persistent_id = _bytes_of_term
    writer.dump(value)
    return out.getvalue()


def unpacked(data: bytes) -> Any:
    """Return the value of :func:`packed`."""
    reader: Any = pickle.Unpickler(BytesIO(data))
    reader.persistent_load = _term
    return reader.load()


@lru_cache(_TERMS)
def _term(data: bytes) -> Term:
    return cast("Term", pickle.loads(data))


_packed_terms: WeakKeyDictionary[Term, bytes] = WeakKeyDictionary()


def _bytes_of_term(value: object) -> bytes | None:
    """Return the bytes of a term, None for other values."""
    if not isinstance(value, Term):
        return None
    if value not in _packed_terms:
        cloudpickle = import_extra("cloudpickle", "dask", "fairconstrained.dask")
        _packed_terms[value] = cloudpickle.dumps(value)
    return _packed_terms[value]


LABEL = "label"


@dataclass(frozen=True, eq=False)
class Prepared:
    """The checked rows of a partition.

    Attributes
    ----------
    table : DataFrame
        The partition's atoms: the distinct combinations of the sensitive attributes and the label.
    X : ndarray or CSR of shape (n_rows, n_features)
        The features that the model sees.
    atoms : ndarray of int of shape (n_rows,)
        Their positions in the table.
    sample_weight : ndarray of shape (n_rows,)
        The weights, > 0.
    n_all : int
        The number of all rows of the partition, those of weight zero included.
    labels : Series
        The distinct labels of all these rows.
    counted : ndarray of int of shape (n_rows,) or None
        The positions of these rows among all; None if no row is left out.
    """

    table: pd.DataFrame
    X: Matrix
    atoms: Array
    sample_weight: Array
    n_all: int
    labels: pd.Series
    counted: Array | None = None

    def take(self, chosen: Array) -> Prepared:
        """Return the rows for which `chosen`, of shape (n_rows,), is True."""
        n_rows, rows = int(np.count_nonzero(chosen)), (self.X[chosen], self.atoms[chosen])
        return Prepared(self.table, *rows, self.sample_weight[chosen], n_rows, self.labels)

    def _by_label(self) -> Iterator[tuple[Any, Array]]:
        """Yield the labels and which rows have them."""
        labels = self.table[LABEL].to_numpy()
        for label in pd.unique(labels):
            rows = (labels == label)[self.atoms]
            if rows.any():
                yield label, rows

    def totals(self) -> Totals:
        """Return the totals of the rows."""
        weight, X = self.sample_weight, self.X
        added = {"counts": None, "weight": weight, "squares": weight**2}
        sums = {
            name: np.bincount(self.atoms, values, len(self.table)) for name, values in added.items()
        }
        return Totals(
            pd.DataFrame(sums),
            {label: Moments.of(X[rows], weight[rows]) for label, rows in self._by_label()},
            X.nbytes if isinstance(X, np.ndarray) else 12 * len(cast("SparseMatrix", X).data),
            float(weight.max(initial=0.0)),
            self.table,
            self.labels,
        )


@dataclass(frozen=True, eq=False)
class Totals:
    """The atoms of a partition, and what is known of its rows without reading them again.

    Attributes
    ----------
    sums : DataFrame
        For each atom the number of its rows `counts`, their `weight`, and the sum of its `squares`.
    moments : dict
        The moments of the features of the rows with each label.
    n_bytes : int
        The size of the features.
    largest : float
        The largest weight, 0 without rows.
    table, labels
        See :class:`Prepared`.
    """

    sums: pd.DataFrame
    moments: dict[Any, Moments]
    n_bytes: int
    largest: float
    table: pd.DataFrame
    labels: pd.Series


def prepare(
    reader: Reader, X: Any, y: Any, sensitive_features: Any, control: Any, sample_weight: Any
) -> Prepared:
    """Return the checked rows of a partition; the reader takes features and groups from X."""
    check_same_rows(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    n_rows = X.shape[0]
    values, source = sensitive_features, "sensitive_features"
    if values is None:
        values, source = reader.groups(X), "sensitive_columns"
    # The columns may have another order in some partitions.
    values = in_order(values, reader.group_names, source)
    table: Any = {}
    for name, part in (("sensitive_features", values), ("control_features", control)):
        table |= {} if part is None else _group_table(part, n_rows, name)
    table[LABEL] = check_labels("y", y, X.shape[0])
    frame = pd.DataFrame(table)
    labels = frame[LABEL].drop_duplicates()
    weight = weight_in_partition(sample_weight, n_rows)
    counted = np.flatnonzero(weight)
    if not len(counted):  # scikit-learn's checks refuse features without rows
        empty, none = np.empty((0, reader.n_features)), np.zeros(0, dtype=int)
        return Prepared(frame.iloc[:0], empty, none, np.zeros(0), n_rows, labels, none)
    features = reader.features(X, weight.sum())
    if len(counted) < n_rows:
        features, weight, frame = features[counted], weight[counted], frame.iloc[counted]
    atoms = frame.groupby(list(frame.columns), dropna=False, sort=False, observed=True).ngroup()
    codes = atoms.to_numpy()
    first = np.unique(codes, return_index=True)[1]
    left_out = counted if len(counted) < n_rows else None
    table = frame.iloc[first].reset_index(drop=True)
    return Prepared(table, features, codes, weight, n_rows, labels, left_out)


def held_out_rows(n_rows: int, share: float, seed: int, partition: int) -> Array:
    """Return which rows of a partition are held out, of shape (n_rows,).

    Each row is drawn on its own, with the probability `share`, by a generator that is seeded with
    the seed and the number of the partition. Labels and groups are left to chance.
    """
    return np.random.default_rng([seed, partition]).random(n_rows) < share


def divide(
    share: float, seed: int, prepared: Prepared, partition: int
) -> tuple[Prepared, Prepared]:
    """Return the training rows of a partition and those held out, see :func:`held_out_rows`."""
    held = held_out_rows(prepared.n_all, share, seed, partition)
    if prepared.counted is not None:
        held = held[prepared.counted]
    return prepared.take(~held), prepared.take(held)


def crossed(feature_map: FeatureMap, prepared: Prepared, group_of_atom: Array) -> Prepared:
    """Return the rows of a partition with their group interactions."""
    return replace(prepared, X=feature_map.expand(prepared.X, group_of_atom[prepared.atoms]))


def shares_of_others(block: Block, factors: Array, values: Array) -> Sums:
    """Return what :func:`~fairconstrained.models.feature_scale.other_shares` does.

    `factors`, (n_atoms,), are what a unit of their weights is of the weight of all rows.
    """
    weight = factors[block.atoms] * block.weight
    return (other_shares(block.X, weight, values),)


def _group_table(values: Any, n_rows: int, name: str) -> dict[str, Any]:
    """Return the columns of groups or strata, by the names "sensitive_features 0", ..."""
    columns = group_columns(values, name)
    lengths = {len(column) for column in columns}
    if lengths != {n_rows}:
        raise ValueError(
            f"{name} has {len(columns[0])} rows in a partition where y has {n_rows}: "
            "give collections with the same partitions."
        )
    return {f"{name} {k}": np.asarray(column, dtype=object) for k, column in enumerate(columns)}


def weight_in_partition(sample_weight: Any, n_rows: int) -> Array:
    """Return checked weights; all of them may be zero in one partition."""
    if sample_weight is None:
        return np.ones(n_rows)
    check_held("sample_weight", sample_weight)
    if not np.any(np.asarray(sample_weight)):
        return np.zeros(n_rows)
    return check_weight("sample_weight", sample_weight, n_rows)


def no_rows_error() -> ValueError:
    """Return the error that no partition has rows of positive weight."""
    return ValueError("X has no rows, or sample_weight is zero for all of them.")


def make_shard(disk: bool, prepared: Prepared, atoms: Array) -> Shard:
    """Return the shard of a partition, whose atoms have positions among all.

    Dense features may be written to a file, which is read in blocks.
    """
    weight, X = prepared.sample_weight, prepared.X
    if disk and isinstance(X, np.ndarray):
        X = _on_disk(X)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:  # it keeps memory for tables to come, where it has read the rows
        arrow.default_memory_pool().release_unused()
    return Shard(X, atoms[prepared.atoms], None if np.all(weight == 1.0) else weight)


def _on_disk(X: Array) -> Array:
    """Return a copy of an array in a file that is removed when the array is."""
    folder = getattr(_worker(), "local_directory", None)
    handle, path = tempfile.mkstemp(suffix=".rows", dir=folder)
    os.close(handle)
    stored = np.memmap(path, dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    # The map keeps the file open; where that is not possible, it goes with the worker's folder.
    with suppress(OSError):
        os.unlink(path)
    return stored


def _worker() -> Any:
    """Return the worker that runs this, None outside of a worker."""
    distributed = import_extra("distributed", "dask", "fairconstrained.dask")
    try:
        return distributed.get_worker()
    except ValueError:
        return None


def on_shards(request: bytes, *shards: Shard) -> tuple[str, list[Any]]:
    """Return the worker that runs this, and :meth:`Shard.total` for its shards.

    It is one task of a round; the request are the arguments, :func:`packed`.
    """
    worker = _worker()
    arguments = unpacked(request)
    address = "" if worker is None else str(worker.address)
    return address, [shard.total(*arguments) for shard in shards]
