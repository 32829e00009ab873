"""Rows in the memory of this process as one shard: what a fit keeps is a byte for each row."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.models.feature_scale import FeatureScale, feature_scale
from fairconstrained.shards.rows import AtomRows, Shard
from fairconstrained.shards.sums import LocalShards, Shards
from fairconstrained.utils.numerics import blocks, only_ones
from fairconstrained.utils.typing import Array

_MOST_ATOMS = 32  # with more, derivatives by cell cost more than a second read of the rows


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Training data with one row per atom; the rows of the atoms are in shards."""

    shards: Shards = field(kw_only=True)  # the rows
    feature_scale: FeatureScale = field(kw_only=True)  # of all rows
    largest: float = field(kw_only=True)  # the largest weight of a row

    @classmethod
    def of(cls, data: TrainingData, **values: Any) -> Self:
        """Return the data of rows in shards, with some new values of the fields of others."""
        return cls(**({each.name: getattr(data, each.name) for each in fields(data)} | values))

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row."""
        return self.largest


def rows_by_atom(data: TrainingData) -> ShardedData | None:
    """Return training data with one row per atom, whose rows stay where they are.

    An evaluation then reads the features once, block by block, and keeps nothing of the length of
    the rows. The fit keeps the features, their weights where they differ, and one byte per row.
    None if there are more than a few atoms or several classes, or if rows whose group is not known
    may differ in some of its attributes.
    """
    groups, weight = data.groups, data.sample_weight
    n_codes = 2 if groups is None else 2 * (len(groups) + 1)
    unlike = groups is not None and groups.attributes and groups.codes.min() < 0
    if unlike or n_codes > _MOST_ATOMS or data.several_classes:
        return None
    ones = only_ones(weight)
    atoms = np.empty(len(data.y), np.uint8)
    totals, first = np.zeros((3, n_codes)), np.full(n_codes, -1)
    for rows in blocks(len(atoms)):
        codes = data.y[rows] > 0
        if groups is not None:
            codes = codes + 2 * (groups.codes[rows] + 1)
        atoms[rows] = codes
        powers = [None] if ones else [None, weight[rows], weight[rows] ** 2]
        totals += [np.bincount(codes, power, minlength=n_codes) for power in powers]
        for atom in np.flatnonzero((totals[0] > 0) & (first < 0)):
            first[atom] = rows.start + int(np.argmax(codes == atom))
    present = np.flatnonzero(totals[0])
    if len(present) < n_codes:
        places = np.zeros(n_codes, np.uint8)
        places[present] = np.arange(len(present))
        for rows in blocks(len(atoms)):
            atoms[rows] = places[atoms[rows]]
    counts, totals, squares = totals[:, present]
    of_atoms = {
        "X": AtomRows(np.arange(len(present))),
        "y": np.where(present % 2 == 1, 1.0, -1.0),
        "groups": None if groups is None else groups.take(first[present]),
        "sample_weight": totals,
        "counts": counts.astype(int),
        "squares": squares,
    }
    return ShardedData.of(
        data,
        **of_atoms,
        shards=LocalShards([Shard(data.X, atoms, None if ones else weight)]),
        feature_scale=feature_scale(data.X, data.loss_weight),
        largest=float(weight.max()),
    )


def drawn(codes: Array, strata: Array, size: int, least: int) -> tuple[Array, Array]:
    """Return rows from every stratum, in rising order, and one over the share that was drawn."""
    sizes = np.zeros(int(strata.max(initial=0)) + 1, int)
    strata = strata.astype(np.min_scalar_type(len(sizes)))  # blocks of short integers
    for block in blocks(len(codes)):
        sizes += np.bincount(strata[codes[block]], minlength=len(sizes))
    counts = np.minimum(np.maximum(np.round(size * sizes / len(codes)).astype(int), least), sizes)
    source = np.random.default_rng(0)
    places = [
        np.sort(source.choice(n, count, replace=False, shuffle=False))
        for n, count in zip(sizes, counts, strict=True)
    ]
    parts, seen = [], np.zeros(len(sizes), int)
    for block in blocks(len(codes)):
        of_rows = strata[codes[block]]
        for stratum, ranks in enumerate(places):
            rows = np.flatnonzero(of_rows == stratum)
            low, high = np.searchsorted(ranks, [seen[stratum], seen[stratum] + len(rows)])
            parts.append(block.start + rows[ranks[low:high] - seen[stratum]])
            seen[stratum] += len(rows)
    rows = np.sort(np.concatenate(parts))
    return rows, (sizes / counts)[strata[codes[rows]]]
