"""The scores of rows in shards, as the shares of atoms above thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairconstrained.shards.distributions import SCORE_BINS
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.places import total
from fairconstrained.shards.rows import Shard
from fairconstrained.shards.sums import Sums
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Above:
    """The rows of every atom whose scores are above thresholds.

    Attributes
    ----------
    weight : ndarray of shape (n_atoms, n_thresholds)
        Their total weight.
    counts : ndarray of int of shape (n_atoms, n_thresholds)
        Their number.
    """

    weight: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class AtomScores:
    """The scores of a model of rows in shards; each question about them is a round.

    Parameters
    ----------
    model : ShardedLinearModel
        The rows.
    w : ndarray of shape (n_parameters,)
        The parameters.
    """

    model: ShardedLinearModel
    w: Array
    _known: dict[bytes, Above] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self.model.score_range(self.w)

    @property
    def least(self) -> float:
        """The least score."""
        return self._ends[0]

    @cached_property
    def grid(self) -> Array:
        """Thresholds between the least and the largest score, in equal steps."""
        return np.linspace(*self._ends, SCORE_BINS + 1)

    def above(self, thresholds: Array) -> Above:
        """Return the rows of every atom of the model with larger scores.

        Parameters
        ----------
        thresholds : ndarray of shape (n_thresholds,)
            In any order.
        """
        key = np.asarray(thresholds, dtype=float).tobytes()
        if key not in self._known:
            order = np.argsort(thresholds, kind="stable")
            asked = thresholds[order], self.model.n_all_atoms
            sums = total(self.model.shards, rows_above, *self.model.place(self.w), *asked)
            back = np.argsort(order, kind="stable")
            positions = self.model.positions
            atoms = slice(None) if positions is None else np.argsort(positions)[-self._n_atoms :]
            self._known[key] = Above(*(one[atoms][:, back] for one in sums))
        return self._known[key]

    @property
    def _n_atoms(self) -> int:
        return len(self.model.totals)


def rows_above(
    shard: Shard, coefficients: Array, intercept: float, thresholds: Array, n_atoms: int
) -> Sums:
    """Return the weight and the number of the rows above sorted thresholds.

    Both have the shape (n_atoms, n_thresholds).
    """
    n = len(thresholds) + 1
    weight, counts = np.zeros(n_atoms * n), np.zeros(n_atoms * n, dtype=np.int64)
    for block in shard.blocks():
        scores = block.scores(coefficients, intercept)
        below = np.searchsorted(thresholds, scores, side="left")
        places = block.atoms.astype(int) * n + below
        weight += np.bincount(places, block.weight, minlength=len(weight))
        counts += np.bincount(places, minlength=len(counts))
    return tuple(_from_the_right(one.reshape(n_atoms, n)) for one in (weight, counts))


def _from_the_right(bins: Array) -> Array:
    """Return, for every threshold, the sum of the bins to its right."""
    return np.asarray(np.cumsum(bins[:, ::-1], axis=1)[:, ::-1][:, 1:])
