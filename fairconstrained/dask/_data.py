"""Collections of dask: partitions that go together, training data of them, lazy predictions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_random_state

from fairconstrained.constraints import Constraint
from fairconstrained.dask import _rows
from fairconstrained.dask._shards import Part, Workers
from fairconstrained.data.attributes import missing_values_error, with_strata
from fairconstrained.data.groups import Groups
from fairconstrained.data.inputs import check_labels, check_same_rows, known_labels
from fairconstrained.data.labels import ScoreConvention, class_weights, encode_labels
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import claims_on_all, expected_share
from fairconstrained.decisions.population import check_testable
from fairconstrained.estimators.thresholds import score_threshold
from fairconstrained.models.feature_scale import Moments
from fairconstrained.problem import Problem
from fairconstrained.shards.model import ShardedData
from fairconstrained.shards.sums import AtomRows
from fairconstrained.terms.pairs import PairMeans
from fairconstrained.utils.arrays import Array

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
    if is_frame(values):
        # The optimised graph would join small partitions.
        parts = values.to_delayed(optimize_graph=False)
    else:
        values = _whole_rows(values)
        if not is_frame(X) and not np.isnan([values.shape[0], X.shape[0]]).any():
            if values.shape[0] != X.shape[0]:
                raise ValueError(f"{name} has {values.shape[0]} rows, {first} has {X.shape[0]}.")
            if values.chunks[0] != X.chunks[0]:
                values = values.rechunk({0: X.chunks[0]})
        parts = values.to_delayed().ravel().tolist()
    wanted = X.npartitions if is_frame(X) else len(X.chunks[0])
    if len(parts) != wanted:
        raise ValueError(
            f"{name} has {len(parts)} partitions, {first} has {wanted}: rows are matched by "
            f"partition. Make both from one collection, or repartition {name} like {first}."
        )
    return list(parts)


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
    X = _whole_rows(X)
    shape = {"chunks": (X.chunks[0], (len(columns),))} if columns else {"drop_axis": 1}
    return X.map_blocks(call, dtype=dtype, **shape)


def drawn(X: Collection, share: float, seed: int) -> Collection:
    """Return which rows of the partitions of a collection are held out, lazily."""
    _check_collection(X, "use the estimator of the same name in fairconstrained")
    if not is_frame(X):
        return _whole_rows(X).map_blocks(_drawn, share, seed, dtype=bool, drop_axis=1)
    dask, frames = import_module("dask"), import_module("dask.dataframe")
    # Rows were drawn in these partitions; the optimised graph would join small ones.
    parts = X.to_delayed(optimize_graph=False)
    masks = [dask.delayed(_drawn)(part, share, seed, (k,)) for k, part in enumerate(parts)]
    return frames.from_delayed(masks, meta=pd.Series([], dtype=bool))


def _drawn(X: Any, share: float, seed: int, block_id: tuple[int, ...]) -> Any:
    held = _rows.held_out_rows(X.shape[0], share, seed, block_id[0])
    return pd.Series(held, index=X.index) if isinstance(X, pd.DataFrame) else held


def _check_collection(X: Collection, otherwise: str) -> None:
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
    weight = _rows.weight_in_partition(sample_weight, len(predicted))
    return float(weight @ right), float(weight.sum())


class AtomTable:
    """The distinct combinations of groups and label in all partitions.

    Their order does not depend on the partitions. The `titles` are those of the columns of groups,
    and of strata.
    """

    def __init__(self, totals: Sequence[_rows.Totals], *titles: list[Any]):
        every = pd.concat([each.table for each in totals], ignore_index=True)
        self.table, codes = _rows.distinct_rows(every)  # one row per atom
        codes = codes.astype(np.min_scalar_type(max(len(self.table) - 1, 0)))
        ends = np.cumsum([len(each.table) for each in totals])[:-1]
        self.positions = np.split(codes, ends)  # for every partition those of its own atoms
        # the labels of all rows, also of those of weight zero, which are in no atom
        self.labels, self.titles = pd.concat([each.labels for each in totals]), titles

    def added(self, totals: Sequence[_rows.Totals]) -> pd.DataFrame:
        """Return the sums over all partitions, with a row for each atom."""
        sums = pd.concat([each.sums for each in totals])
        return sums.groupby(np.concatenate(self.positions)).sum()

    def groups(self, estimator: Any, counts: Array) -> Groups | None:
        """Return the groups of the atoms, whose numbers of rows are counts, or None."""
        values = self.table.drop(columns=_rows.LABEL)
        if not values.shape[1]:
            return None
        if estimator.groups_missing == "raise":
            missing = values.isna().any(axis=1).to_numpy()
            if missing.any():
                n_missing, n_rows = counts[missing].sum(), counts.sum()
                raise missing_values_error("sensitive_features", n_missing, n_rows)
        titles, of_strata = self.titles
        names, n = pd.Index([*titles, *of_strata], tupleize_cols=False), len(titles)
        frame = values.infer_objects().set_axis(names, axis=1)
        groups = frame.iloc[:, :n] if n > 1 else frame.iloc[:, 0]
        both = with_strata(groups, frame.iloc[:, n:] if of_strata else None)
        return Groups.encode(both, combine=estimator.combine, missing=estimator.groups_missing)


def atom_data(estimator: Any, table: AtomTable, totals: Sequence[_rows.Totals]) -> TrainingData:
    """Return training data with one row per atom, without features."""
    if not any(each.moments for each in totals):
        raise ValueError(_rows.NO_ROWS)
    labels = pd.concat([table.table[_rows.LABEL], table.labels]).to_numpy()
    classes, y = encode_labels(check_labels("y", labels, len(labels)), estimator.pos_label)
    y = y[: len(table.table)]
    sums = table.added(totals)
    counts, weight = sums["counts"].to_numpy(), sums["weight"].to_numpy()
    return TrainingData(
        AtomRows(np.arange(len(y))),
        y,
        classes,
        table.groups(estimator, counts),
        weight,
        counts=counts,
        squares=sums["squares"].to_numpy(),
        class_weight=class_weights(estimator.class_weight, classes, y, weight),
        convention=ScoreConvention.of_classes(classes, score_threshold(estimator)),
    )


def check_rows_are_left(data: TrainingData, part: Part) -> None:
    """Raise a ValueError if a part, which was drawn from partitions, has no rows."""
    if not any(each.moments for each in part[1]):
        raise ValueError(
            f"holdout: of {data.n_rows} rows none are left for training, or none are held out. "
            "Give more rows, or leave confidence at None."
        )


def collected_data(
    data: TrainingData, table: AtomTable, part: Part, workers: Workers
) -> TrainingData:
    """Return the rows of some prepared partitions in this process, in their order.

    `data` has one row per atom of all partitions.
    """
    check_rows_are_left(data, part)
    prepared, positions = workers.gather(part[0]), table.positions
    atoms = [places[each.atoms] for each, places in zip(prepared, positions, strict=True)]
    features = [each.X for each in prepared if len(each.sample_weight)]
    X = sp.vstack(features, "csr") if sp.issparse(features[0]) else np.concatenate(features)
    weight = np.concatenate([each.sample_weight for each in prepared])
    rows = data.take(np.concatenate(atoms))
    no_atoms: Any = {"counts": None, "squares": None, "positions": None}
    return replace(rows, X=X, sample_weight=weight, **no_atoms)


def sharded_data(data: TrainingData, table: AtomTable, part: Part, workers: Workers) -> ShardedData:
    """Return the training data of the rows of some prepared partitions.

    `data` has one row per atom of all partitions.
    """
    check_rows_are_left(data, part)
    totals, factors = part[1], np.ones(len(data.classes))
    if data.class_weight is not None:
        factors = data.class_weight
    in_loss = dict(zip(data.classes.tolist(), factors.tolist(), strict=True))
    moments = [sums.times(in_loss[k]) for each in totals for k, sums in each.moments.items()]
    sums = table.added(totals)
    present = np.flatnonzero(sums["counts"])
    places, sums = np.full(len(sums), -1), sums.iloc[present]
    places[present] = np.arange(len(present))
    kind = np.min_scalar_type(max(len(present) - 1, 0))
    positions = [np.maximum(places[each], 0).astype(kind) for each in table.positions]
    shards = workers.shards(part, positions)
    whole = Moments.merged(moments)
    factors = (data.loss_weight / data.sample_weight)[present] / whole.weight
    scale = whole.scale(lambda values: shards.total(_rows.shares_of_others, (), factors, values)[0])
    return ShardedData.of(
        data,
        present,
        (sums[name].to_numpy() for name in ("counts", "weight", "squares")),
        shards=shards,
        feature_scale=scale,
        largest=max(each.largest for each in totals),
    )


def with_interactions(data: TrainingData, table: AtomTable, part: Part, workers: Workers) -> Part:
    """Return prepared partitions with the features of the model, perhaps group interactions."""
    feature_map = data.feature_map
    if data.groups is None or not feature_map.n_groups:
        return part
    groups = [data.groups.sensitive.codes[atoms] for atoms in table.positions]
    return workers.part(partial(_rows.crossed, feature_map), zip(part[0], groups, strict=True))


def held_out_draw(
    estimator: Any, data: TrainingData, constraints: Sequence[Constraint]
) -> tuple[float, int] | None:
    """Return the probability of a held-out row and the seed, None if all rows are for training.

    Every partition draws its own rows, see :func:`~fairconstrained.dask._rows.held_out_rows`.
    """
    if estimator.confidence is None or not constraints:
        return None
    check_testable(constraints)
    share = estimator.holdout
    if isinstance(share, str):
        share = expected_share(claims_on_all(constraints, data))
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    return float(share), seed


def titles_of(groups: Any) -> list[Any]:
    """Return the names of the sensitive attributes, positions where they have none."""
    if groups is None:
        return []
    if hasattr(groups, "columns"):
        return list(groups.columns)
    if getattr(groups, "ndim", 1) == 2:
        return list(range(groups.shape[1]))
    return [0 if hasattr(groups, "chunks") else getattr(groups, "name", None) or 0]


def check_sums_over_rows(problem: Problem, local: str) -> None:
    """Raise a ValueError if a function of a problem is not a sum over rows."""
    for term in (part.term for part in problem.parts if not part.term.shardable):
        name = type(term).__name__
        why = (
            f"is not a sum over rows (`{name}`), and dask collections do not support it. "
            "Use another one"
        )
        if type(term) is PairMeans:
            why = (
                f"compares pairs of rows (`{name}`), which dask collections support only with "
                "surrogate='quadratic' (for PairwiseLoss, loss='quadratic'). Use it"
            )
        raise ValueError(
            f"The constraint or loss {why}, or fit fairconstrained.{local} to data in memory."
        )
