"""Training data whose rows are in the partitions of collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from fairconstrained.constraints import Constraint
from fairconstrained.dask._rows import LABEL, Totals, crossed, no_rows_error, shares_of_others
from fairconstrained.dask._shards import Part, Workers
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import Groups, missing_values_error
from fairconstrained.data.inputs import check_labels
from fairconstrained.data.labels import ScoreConvention, class_weights, encode_labels
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import claims_on_all, expected_share
from fairconstrained.decisions.population import check_testable
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.linear import feature_map_of
from fairconstrained.estimators.thresholds import score_threshold
from fairconstrained.models.feature_scale import FeatureScale, Moments
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.in_memory import ShardedData
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.rows import AtomRows
from fairconstrained.terms.pairs import PairMeans
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class AtomTable:
    """The distinct combinations of groups and label in all partitions.

    Attributes
    ----------
    table : DataFrame
        One row per atom.
    positions : list of ndarray of int
        For every partition the positions of its own atoms.
    labels : Series
        The labels of all rows, also of those of weight zero, which are in no atom.
    """

    table: pd.DataFrame
    positions: list[Array]
    labels: pd.Series

    @classmethod
    def merged(cls, totals: Sequence[Totals]) -> Self:
        """Return the table of all partitions; its order does not depend on the partitions."""
        stacked = pd.concat([one.table for one in totals], ignore_index=True)
        names = list(stacked.columns)
        codes = stacked.groupby(names, dropna=False, sort=False, observed=True).ngroup().to_numpy()
        first = np.unique(codes, return_index=True)[1]
        ends = np.cumsum([len(one.table) for one in totals])[:-1]
        kind = np.min_scalar_type(max(len(first) - 1, 0))
        return cls(
            stacked.iloc[first].reset_index(drop=True),
            [part.astype(kind) for part in np.split(codes, ends)],
            pd.concat([one.labels for one in totals]),
        )

    def added(self, totals: Sequence[Totals]) -> pd.DataFrame:
        """Return the sums over all partitions, with a row for each atom."""
        sums = pd.concat([one.sums for one in totals])
        return sums.groupby(np.concatenate(self.positions)).sum()

    def groups(
        self, estimator: Any, titles: tuple[list[Any], list[Any]], counts: Array
    ) -> Groups | None:
        """Return the groups of the atoms, whose numbers of rows are counts, or None.

        `titles` are those of the columns of groups and of strata.
        """
        columns = [name for name in self.table.columns if name != LABEL]
        if not columns:
            return None
        values = self.table[columns]
        if estimator.groups_missing == "raise":
            missing = values.isna().any(axis=1).to_numpy()
            if missing.any():
                n_missing, n_rows = counts[missing].sum(), counts.sum()
                raise missing_values_error("sensitive_features", n_missing, n_rows)
        frame = values.infer_objects()
        frame.columns = pd.Index([*titles[0], *titles[1]], tupleize_cols=False)
        n = len(titles[0])
        groups = frame.iloc[:, :n] if n > 1 else frame.iloc[:, 0]
        return Groups.encode(
            with_strata(groups, frame.iloc[:, n:] if titles[1] else None),
            combine=estimator.combine,
            missing=estimator.groups_missing,
        )


def atom_data(
    estimator: Any, table: AtomTable, totals: Sequence[Totals], titles: tuple[list[Any], list[Any]]
) -> TrainingData:
    """Return training data with one row per atom, without features."""
    if not any(one.moments for one in totals):
        raise no_rows_error()
    labels = pd.concat([table.table[LABEL], table.labels]).to_numpy()
    classes, y = encode_labels(check_labels("y", labels, len(labels)), estimator.pos_label)
    y = y[: len(table.table)]
    convention = ScoreConvention(
        1.0 if np.array_equal(classes, np.unique(classes)) else -1.0, score_threshold(estimator)
    )
    sums = table.added(totals)
    counts, weight = sums["counts"].to_numpy(), sums["weight"].to_numpy()
    return TrainingData(
        AtomRows(np.arange(len(y))),
        y,
        classes,
        table.groups(estimator, titles, counts),
        weight,
        counts=counts,
        squares=sums["squares"].to_numpy(),
        class_weight=class_weights(estimator.class_weight, classes, y, weight),
        convention=convention,
    )


def sharded_data(
    data: TrainingData,
    table: AtomTable,
    part: Part,
    workers: Workers,
    scale: FeatureScale | None = None,
) -> ShardedData:
    """Return the training data of the rows of some prepared partitions.

    `data` has one row per atom of all partitions. Without feature scales, those of these rows are
    taken.
    """
    totals = part[1]
    moments = _moments(data, totals)
    if not moments:
        raise ValueError(
            f"holdout: of {data.n_rows} rows none are left for training, or none are held out. "
            "Give more rows, or leave confidence at None."
        )
    sums = table.added(totals)
    present = np.flatnonzero(sums["counts"])
    places, sums = np.full(len(sums), -1), sums.iloc[present]
    places[present] = np.arange(len(present))
    kind = np.min_scalar_type(max(len(present) - 1, 0))
    positions = [np.maximum(places[one], 0).astype(kind) for one in table.positions]
    shards = workers.shards(part, positions)
    whole = Moments.merged(moments)
    factors = (data.loss_weight / data.sample_weight)[present] / whole.weight
    if scale is None:
        scale = whole.scale(lambda values: shards.total(shares_of_others, (), factors, values)[0])
    return ShardedData(
        AtomRows(np.arange(len(present))),
        data.y[present],
        data.classes,
        None if data.groups is None else data.groups.take(present),
        sums["weight"].to_numpy(),
        counts=sums["counts"].to_numpy(),
        squares=sums["squares"].to_numpy(),
        class_weight=data.class_weight,
        convention=data.convention,
        shards=shards,
        feature_scale=scale,
        largest=max(one.largest for one in totals),
    )


def _moments(data: TrainingData, totals: Sequence[Totals]) -> list[Moments]:
    """Return the moments of the features of all parts, with the rows' weights in the loss."""
    factors = np.ones(len(data.classes)) if data.class_weight is None else data.class_weight
    of_label = dict(zip(data.classes.tolist(), factors.tolist(), strict=True))
    return [
        moments.times(of_label[label]) for one in totals for label, moments in one.moments.items()
    ]


def with_interactions(
    estimator: Any, data: TrainingData, table: AtomTable, part: Part, workers: Workers
) -> Part:
    """Return prepared partitions with the features of the model, perhaps group interactions."""
    feature_map = feature_map_of(estimator, data)
    if not feature_map.n_groups or data.groups is None:
        return part
    groups = [data.groups.sensitive.codes[atoms] for atoms in table.positions]
    return workers.parts(partial(crossed, feature_map), zip(part[0], groups, strict=True))[0]


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


def tested(fit: Fit, held_out: ShardedData, share: float, seed: int) -> Fit:
    """Return a fit that tests its models on held-out rows, drawn with a probability and a seed."""
    assert isinstance(fit.model, ShardedLinearModel)
    model = ShardedLinearModel.of(fit.model, held_out.shards, held_out.sample_weight)
    attributes = {"holdout_share_": share, "holdout_seed_": seed}
    return fit.tested(held_out, model, attributes)


def titles_of(groups: Any) -> list[Any]:
    """Return the names of the sensitive attributes, positions where they have none."""
    if groups is None:
        return []
    if hasattr(groups, "columns"):
        return list(groups.columns)
    if getattr(groups, "ndim", 1) == 2:
        return list(range(groups.shape[1]))
    return [getattr(groups, "name", None) or 0]


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
