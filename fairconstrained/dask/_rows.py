"""The rows of a partition on a worker: read, checked as rows in memory are, and summed.

Workers import this module without scikit-learn.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from fairconstrained.data import inputs
from fairconstrained.data.attributes import group_columns, in_order
from fairconstrained.data.inputs import FeatureMap
from fairconstrained.models.feature_scale import Moments, other_shares, row_blocks
from fairconstrained.shards.sums import Block, Sums
from fairconstrained.utils.arguments import import_extra
from fairconstrained.utils.arrays import Array, Matrix, SparseMatrix

if TYPE_CHECKING:
    from fairconstrained.data.sensitive_columns import SensitiveColumns


def packed(value: Any) -> bytes:
    """Return a value as bytes, into which schedulers do not look."""
    return import_extra("cloudpickle", "dask", "fairconstrained.dask").dumps(value)


class Reader:
    """Reads the features and the groups of partitions.

    Partitions of finite numbers, with the expected columns, are read without scikit-learn. Others,
    such as sparse ones and those with an error, are read as the estimator reads rows in memory: a
    worker then imports scikit-learn and the estimators, some 70 MB.
    """

    def __init__(self, columns: SensitiveColumns, group_names: tuple[str, ...] = ()):
        estimator = columns.estimator
        # the names of the columns of X, None for arrays, (n_columns,), and their number
        self.names: Array | None = getattr(estimator, "feature_names_in_", None)
        self.n_columns = estimator.n_features_in_
        self.kept = columns.kept()  # the positions of the model's features, (n_features,)
        # those of the sensitive attributes, none for a function of X; None where X lacks them
        self.sensitive = None if columns.columns is None else columns.positions()
        self.pickled = packed(columns)
        self.group_names = group_names  # of the columns of the groups, if they have names

    @cached_property
    def _full(self) -> SensitiveColumns:
        return pickle.loads(self.pickled)

    def groups(self, X: Any) -> Any:
        """Return the values of the sensitive attributes in a partition, None if X has none."""
        if self.sensitive is None:
            return None
        if self.sensitive and self._has_columns(X):
            return _columns(X, self.sensitive)
        return self._full.groups(X)

    def features(self, X: Any, total: float) -> Matrix:
        """Return the features of a partition as a float ndarray or CSR; `total` is its weight."""
        inputs.check_held("X", X)
        features = self._numbers(X)
        if features is None or not all(
            np.isfinite(features[k]).all() for k in row_blocks(features)
        ):
            features = self._full.features(self._full.table(X), reset=False)
        inputs.check_squares(
            features, total, self.kept if self.names is None else self.names[self.kept]
        )
        return features

    def _has_columns(self, X: Any) -> bool:
        """Return whether X is a frame or an array with the columns that the estimator has seen."""
        if isinstance(X, pd.DataFrame):
            return self.names is not None and list(X.columns) == self.names.tolist()
        dense = isinstance(X, np.ndarray) and X.ndim == 2 and self.names is None
        return dense and X.shape[1] == self.n_columns

    def _numbers(self, X: Any) -> Array | None:
        """Return the features where all of them are numbers, of the estimator's columns."""
        if not self._has_columns(X) or not X.shape[0]:
            return None
        kept = self.kept if len(self.kept) < self.n_columns else slice(None)
        part = _columns(X, kept)
        kinds = set(part.dtypes) if isinstance(part, pd.DataFrame) else {part.dtype}
        if not all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
            return None
        dtype = np.result_type(*kinds)
        return np.asarray(part, dtype if dtype == np.float32 else np.float64)


def _columns(X: Any, positions: Any) -> Any:
    return X.iloc[:, positions] if isinstance(X, pd.DataFrame) else X[:, positions]


LABEL = "label"


@dataclass(frozen=True, eq=False)
class Prepared:
    """The checked rows of a partition."""

    # the partition's atoms: the distinct combinations of the sensitive attributes and the label
    table: pd.DataFrame
    X: Matrix  # the features that the model sees, (n_rows, n_features)
    atoms: Array  # their positions in the table, (n_rows,)
    sample_weight: Array  # the weights, > 0, (n_rows,)
    n_all: int  # the number of all rows of the partition, those of weight zero included
    labels: pd.Series  # the distinct labels of all these rows
    # the positions of these rows among all; None if no row is left out, (n_rows,)
    counted: Array | None = None

    def take(self, chosen: Array) -> Prepared:
        """Return the rows for which `chosen`, of shape (n_rows,), is True."""
        rows, weight = (self.X[chosen], self.atoms[chosen]), self.sample_weight[chosen]
        return Prepared(self.table, *rows, weight, len(weight), self.labels)


class Totals:
    """The atoms of a partition, and what is known of its rows without reading them again."""

    def __init__(self, prepared: Prepared):
        weight, X, atoms = prepared.sample_weight, prepared.X, prepared.atoms
        self.table, self.labels = prepared.table, prepared.labels
        # for each atom the number of its rows, their weight, and the sum of its squares
        powers = {"counts": None, "weight": weight, "squares": weight**2}.items()
        sums = {name: np.bincount(atoms, power, len(self.table)) for name, power in powers}
        self.sums = pd.DataFrame(sums)
        codes, labels = pd.factorize(self.table[LABEL])
        of_label = {label: (codes == k)[atoms] for k, label in enumerate(labels)}.items()
        # the moments of the features of the rows with each label, and the size of all features
        self.moments = {k: Moments.of(X[rows], weight[rows]) for k, rows in of_label if rows.any()}
        dense = isinstance(X, np.ndarray)
        self.n_bytes = X.nbytes if dense else 12 * len(cast("SparseMatrix", X).data)
        self.largest = float(weight.max(initial=0.0))  # the largest weight, 0 without rows


def prepare(
    reader: Reader, X: Any, y: Any, sensitive_features: Any, control: Any, sample_weight: Any
) -> Prepared:
    """Return the checked rows of a partition; the reader takes features and groups from X."""
    n_rows, values, source = X.shape[0], sensitive_features, "sensitive_features"
    inputs.check_same_rows(X=X, y=y, sensitive_features=values, sample_weight=sample_weight)
    if values is None:
        values, source = reader.groups(X), "sensitive_columns"
    # The columns may have another order in some partitions.
    values = in_order(values, reader.group_names, source)
    table: Any = {}
    for name, part in (("sensitive_features", values), ("control_features", control)):
        table |= {} if part is None else _group_table(part, n_rows, name)
    table[LABEL] = inputs.check_labels("y", y, X.shape[0])
    frame = pd.DataFrame(table)
    labels = frame[LABEL].drop_duplicates()
    weight = weight_in_partition(sample_weight, n_rows)
    counted = np.flatnonzero(weight)
    if not len(counted):  # scikit-learn's checks refuse features without rows
        empty, none = np.empty((0, len(reader.kept))), np.zeros(0, dtype=int)
        return Prepared(frame.iloc[:0], empty, none, np.zeros(0), n_rows, labels, none)
    features = reader.features(X, weight.sum())
    if len(counted) < n_rows:
        features, weight, frame = features[counted], weight[counted], frame.iloc[counted]
    table, codes = distinct_rows(frame)
    left_out = counted if len(counted) < n_rows else None
    return Prepared(table, features, codes, weight, n_rows, labels, left_out)


def distinct_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, Array]:
    """Return the distinct rows of a table, in the order of their first ones, and which each is."""
    columns = list(frame.columns)
    codes = frame.groupby(columns, dropna=False, sort=False, observed=True).ngroup().to_numpy()
    first = np.unique(codes, return_index=True)[1]
    return frame.iloc[first].reset_index(drop=True), codes


def held_out_rows(n_rows: int, share: float, seed: int, partition: int) -> Array:
    """Return which rows of a partition are held out, of shape (n_rows,).

    Each row is drawn on its own, with the probability `share`, by a generator that is seeded with
    the seed and the number of the partition. Labels and groups are left to chance.
    """
    return np.random.default_rng([seed, partition]).random(n_rows) < share


def divide(share: float, seed: int, held: bool, prepared: Prepared, partition: int) -> Prepared:
    """Return the rows of a partition that are `held` out, or the others: :func:`held_out_rows`."""
    drawn = held_out_rows(prepared.n_all, share, seed, partition)
    if prepared.counted is not None:
        drawn = drawn[prepared.counted]
    return prepared.take(drawn == held)


def crossed(feature_map: FeatureMap, prepared: Prepared, group_of_atom: Array) -> Prepared:
    """Return the rows of a partition with their group interactions."""
    return replace(prepared, X=feature_map.expand(prepared.X, group_of_atom[prepared.atoms]))


def shares_of_others(block: Block, factors: Array, values: Array) -> Sums:
    """Return what :func:`~fairconstrained.models.feature_scale.other_shares` does.

    `factors`, (n_atoms,), are what a unit of their weights is of the weight of all rows.
    """
    return (other_shares(block.X, factors[block.atoms] * block.weight, values),)


def _group_table(values: Any, n_rows: int, name: str) -> dict[str, Any]:
    """Return the columns of groups or strata, by the names "sensitive_features 0", ..."""
    columns = group_columns(values, name)
    if {len(column) for column in columns} != {n_rows}:
        raise ValueError(
            f"{name} has {len(columns[0])} rows in a partition where y has {n_rows}: "
            "give collections with the same partitions."
        )
    return {f"{name} {k}": np.asarray(column, dtype=object) for k, column in enumerate(columns)}


def weight_in_partition(sample_weight: Any, n_rows: int) -> Array:
    """Return checked weights; all of them may be zero in one partition."""
    if sample_weight is not None:
        inputs.check_held("sample_weight", sample_weight)
        if not np.any(np.asarray(sample_weight)):
            return np.zeros(n_rows)
    return inputs.check_weight("sample_weight", sample_weight, n_rows)


NO_ROWS = "X has no rows, or sample_weight is zero for all of them."  # in no partition
