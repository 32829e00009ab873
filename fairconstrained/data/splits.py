"""The division of training rows: every group and label in proportion, queries as a whole."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.data.labels import Queries
from fairconstrained.data.validation import TrainingData
from fairconstrained.utils.numerics import by_first_row
from fairconstrained.utils.typing import Array, RandomState

FEW_ROWS = 10
"""Smaller groups are not divided separately."""


def split(
    data: TrainingData, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows to train on, other rows, and the positions of the latter.

    The share is taken of every group and label, as nearly as their rows allow; of every label where
    groups and labels have fewer than ten rows each on average. Rows of one query stay together.

    Parameters
    ----------
    data : TrainingData
        All rows.
    share : float
        The share of the other rows, in (0, 1).
    random_state : int, RandomState or None
        Chooses the rows.
    """
    if data.query is not None:
        return _split_queries(data, data.query, share, random_state)
    groups = np.zeros(len(data.y), dtype=int) if data.groups is None else data.groups.codes
    cells = 2 * groups + (data.y > 0)
    if len(np.unique(cells)) * FEW_ROWS > len(cells) and groups.any():
        cells = (data.y > 0).astype(int)
    return divided(data, cells, share, random_state)


def divided(
    data: TrainingData, cells: Array, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows without a share of every cell, that share, and its positions."""
    random, held = check_random_state(random_state), np.zeros(len(cells), dtype=bool)
    cells = by_first_row(cells)
    for cell in range(cells.max(initial=-1) + 1):
        rows = random.permutation(np.flatnonzero(cells == cell))
        held[rows[: min(max(round(share * len(rows)), 1), len(rows) - 1)]] = True
    kept, out = np.flatnonzero(~held), np.flatnonzero(held)
    return data.take(kept), data.take(out), out


def _split_queries(
    data: TrainingData, queries: Queries, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows of most queries, those of a share of the queries, and their positions.

    Queries with rows of both classes are divided on their own, so that both parts have some.
    """
    n = len(queries)
    counts = [np.bincount(queries.codes[side], minlength=n) for side in (data.y > 0, data.y < 0)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if both.sum() < 2:
        raise ValueError(
            "early_stopping and constraint_fraction set queries aside, and fewer than two of them "
            "have rows of both classes: use early_stopping=False and constraint_fraction=None."
        )
    random, held = check_random_state(random_state), np.zeros(n, dtype=bool)
    for kind in (both, ~both):
        shuffled = random.permutation(np.flatnonzero(kind))
        size = len(shuffled)
        held[shuffled[: min(max(round(share * size), 1), max(size - 1, 0))]] = True
    out = held[queries.codes]
    kept, aside = np.flatnonzero(~out), np.flatnonzero(out)
    return data.take(kept), data.take(aside), aside
