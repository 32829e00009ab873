"""Training data whose rows are in the partitions of collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from fairconstrained.dask._rows import LABEL, Summary
from fairconstrained.data.groups import Groups, missing_values_error
from fairconstrained.data.inputs import check_labels
from fairconstrained.data.labels import ScoreConvention, binary_labels, class_weights
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.linear.parametrization import (
    ClassifierParametrization,
    LinearOptions,
    feature_map_of,
    in_solver_units,
)
from fairconstrained.estimators.options import domain_of, penalty_of
from fairconstrained.estimators.thresholds import score_threshold
from fairconstrained.models.linear import FeatureScale, LinearModel
from fairconstrained.shards.model import AtomRows, ShardedLinearModel, Shards
from fairconstrained.shards.moments import Moments
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Training data with one row per atom; the rows of the atoms are in shards.

    Attributes
    ----------
    shards : Shards
        The rows.
    feature_scale : FeatureScale
        Of all rows.
    """

    shards: Shards = field(kw_only=True)
    feature_scale: FeatureScale = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class AtomTable:
    """The distinct combinations of groups and label in all partitions.

    Attributes
    ----------
    table : DataFrame
        One row per atom.
    positions : list of ndarray of int
        For every partition the positions of its own atoms.
    totals : ndarray of shape (n_atoms,)
        The total weight of each.
    counts : ndarray of int of shape (n_atoms,)
        Its number of rows.
    """

    table: pd.DataFrame
    positions: list[Array]
    totals: Array
    counts: Array

    @classmethod
    def merged(cls, summaries: Sequence[Summary]) -> Self:
        """Return the table of all partitions; its order does not depend on the partitions."""
        stacked = pd.concat([one.table for one in summaries], ignore_index=True)
        names = list(stacked.columns)
        codes = stacked.groupby(names, dropna=False, sort=False, observed=True).ngroup().to_numpy()
        first = np.unique(codes, return_index=True)[1]
        ends = np.cumsum([len(one.table) for one in summaries])[:-1]
        weight = np.concatenate([one.weight for one in summaries])
        counts = np.concatenate([one.counts for one in summaries])
        kind = np.min_scalar_type(max(len(first) - 1, 0))
        return cls(
            stacked.iloc[first].reset_index(drop=True),
            [part.astype(kind) for part in np.split(codes, ends)],
            np.bincount(codes, weight),
            np.bincount(codes, counts).astype(int),
        )

    def groups(self, estimator: Any, titles: Sequence[Any]) -> Groups | None:
        """Return the groups of the atoms, None without sensitive features.

        Raises
        ------
        ValueError
            If values are missing and that is an error, or of several types.
        """
        columns = [name for name in self.table.columns if name != LABEL]
        if not columns:
            return None
        values = self.table[columns]
        if estimator.groups_missing == "raise":
            missing = values.isna().any(axis=1).to_numpy()
            if missing.any():
                n_missing, n_rows = self.counts[missing].sum(), self.counts.sum()
                raise missing_values_error("sensitive_features", n_missing, n_rows)
        frame = pd.DataFrame(
            {
                title: values[name].infer_objects()
                for title, name in zip(titles, columns, strict=True)
            }
        )
        return Groups.encode(
            frame if len(columns) > 1 else frame.iloc[:, 0],
            combine=estimator.combine,
            missing=estimator.groups_missing,
        )


def sharded_data(
    estimator: Any, table: AtomTable, moments: Moments, shards: Shards, titles: Sequence[Any]
) -> ShardedData:
    """Return the training data of an estimator.

    Raises
    ------
    ValueError
        If there are not two classes, or groups are not valid.
    """
    labels = check_labels("y", table.table[LABEL].to_numpy(), len(table.table))
    classes, y = binary_labels(labels, estimator.pos_label)
    convention = ScoreConvention(
        1.0 if np.array_equal(classes, np.unique(classes)) else -1.0, score_threshold(estimator)
    )
    return ShardedData(
        AtomRows(np.arange(len(y))),
        y,
        classes,
        table.groups(estimator, titles),
        table.totals,
        counts=table.counts,
        class_weight=class_weights(estimator.class_weight, classes, y, table.totals),
        convention=convention,
        shards=shards,
        feature_scale=moments.scale,
    )


class ShardedParametrization(ClassifierParametrization):
    """Linear scores of rows in shards."""

    @classmethod
    def features(cls, estimator: LinearOptions, data: TrainingData) -> TrainingData:
        """Return the data: there are no group interactions."""
        return data

    @classmethod
    def of(cls, estimator: LinearOptions, data: TrainingData) -> Self:
        """Return the parametrization for an estimator's alpha, domain and fit_intercept."""
        assert isinstance(data, ShardedData)
        n = len(data.feature_scale.mean)
        plain = LinearModel.standardized(
            np.empty((0, n)),
            np.empty(0),
            fit_intercept=estimator.fit_intercept,
            known=data.feature_scale,
        )
        model, penalty, domain = in_solver_units(
            plain, penalty_of(estimator.alpha), domain_of(estimator.domain)
        )
        return cls(
            ShardedLinearModel(model, data.shards, data.sample_weight),
            penalty,
            domain,
            feature_map_of(estimator, data),
            convention=data.convention,
        )
