"""Rows in the memory of this process as one shard: what a fit keeps is a byte for each row."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.models.feature_scale import FeatureScale, feature_scale
from fairconstrained.shards.rows import AtomRows, Shard
from fairconstrained.shards.sums import LocalShards, Shards
from fairconstrained.utils.blocks import blocks, only_ones
from fairconstrained.utils.typing import Array

_MOST_ATOMS = 32  # with more, derivatives by cell cost more than a second read of the rows


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Training data with one row per atom; the rows of the atoms are in shards.

    Attributes
    ----------
    shards : Shards
        The rows.
    feature_scale : FeatureScale
        Of all rows.
    largest : float
        The largest weight of a row.
    """

    shards: Shards = field(kw_only=True)
    feature_scale: FeatureScale = field(kw_only=True)
    largest: float = field(kw_only=True)

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row."""
        return self.largest


def rows_by_atom(data: TrainingData) -> ShardedData | None:
    """Return training data with one row per atom, whose rows stay where they are.

    An evaluation then reads the features once, block by block, and keeps nothing of the length of
    the rows. The fit keeps the features, their weights where they differ, and one byte per row.

    Parameters
    ----------
    data : TrainingData
        Rows with dense features.

    Returns
    -------
    data : ShardedData or None
        None if there are more than a few atoms or several classes, or if rows whose group is not
        known may differ in some of its attributes.
    """
    groups, weight = data.groups, data.sample_weight
    n_codes = 2 if groups is None else 2 * (len(groups) + 1)
    if n_codes > _MOST_ATOMS or data.several_classes:
        return None
    if groups is not None and groups.attributes and groups.codes.min() < 0:
        return None
    ones = only_ones(weight)
    atoms, totals = np.empty(len(data.y), np.uint8), _Totals(n_codes)
    for rows in blocks(len(atoms)):
        codes = data.y[rows] > 0
        if groups is not None:
            codes = codes + 2 * (groups.codes[rows] + 1)
        totals.add(codes, rows.start, None if ones else weight[rows])
        atoms[rows] = codes
    present = np.flatnonzero(totals.counts)
    if len(present) < n_codes:
        places = np.zeros(n_codes, np.uint8)
        places[present] = np.arange(len(present))
        for rows in blocks(len(atoms)):
            atoms[rows] = places[atoms[rows]]
    own = {one.name: getattr(data, one.name) for one in fields(TrainingData)}
    own |= {
        "X": AtomRows(np.arange(len(present))),
        "y": np.where(present % 2 == 1, 1.0, -1.0),
        "groups": None if groups is None else groups.take(totals.first[present]),
        "sample_weight": totals.weight[present],
        "counts": totals.counts[present],
        "squares": totals.squares[present],
    }
    return ShardedData(
        **own,
        shards=LocalShards([Shard(data.X, atoms, None if ones else weight)]),
        feature_scale=feature_scale(data.X, data.loss_weight),
        largest=float(weight.max()),
    )


class _Totals:
    """Counts, weights and squared weights of atoms, and the first row of each.

    Parameters
    ----------
    n_atoms : int
        The number of atoms.
    """

    def __init__(self, n_atoms: int):
        self.counts = np.zeros(n_atoms, int)
        self.weight, self.squares = np.zeros(n_atoms), np.zeros(n_atoms)
        self.first = np.full(n_atoms, -1)

    def add(self, codes: Array, start: int, weight: Array | None) -> None:
        """Add a block of rows.

        Parameters
        ----------
        codes : ndarray of int of shape (n_rows,)
            Their atoms.
        start : int
            The position of the first one among all rows.
        weight : ndarray of shape (n_rows,) or None
            Their weights; None stands for ones.
        """
        counts = np.bincount(codes, minlength=len(self.counts))
        self.counts += counts
        self.weight += counts if weight is None else np.bincount(codes, weight, len(counts))
        self.squares += counts if weight is None else np.bincount(codes, weight**2, len(counts))
        for atom in np.flatnonzero((counts > 0) & (self.first < 0)):
            self.first[atom] = start + int(np.argmax(codes == atom))


def drawn(codes: Array, strata: Array, size: int, least: int) -> tuple[Array, Array]:
    """Return rows from every stratum, in rising order, and one over the share that was drawn.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The atom of every row.
    strata : ndarray of int of shape (n_atoms,)
        The stratum of every atom, from 0.
    size : int
        The number of rows to draw from all strata, in proportion to theirs.
    least : int
        The number of rows of a stratum of which all are drawn.

    Returns
    -------
    rows : ndarray of int of shape (n_drawn,)
    weights : ndarray of shape (n_drawn,)
    """
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
    found, seen = [], np.zeros(len(sizes), int)
    for block in blocks(len(codes)):
        own = strata[codes[block]]
        for stratum, ranks in enumerate(places):
            rows = np.flatnonzero(own == stratum)
            low, high = np.searchsorted(ranks, [seen[stratum], seen[stratum] + len(rows)])
            found.append(block.start + rows[ranks[low:high] - seen[stratum]])
            seen[stratum] += len(rows)
    rows = np.sort(np.concatenate(found))
    return rows, (sizes / counts)[strata[codes[rows]]]
