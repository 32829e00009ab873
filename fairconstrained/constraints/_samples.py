"""Samples of rows from groups of the population, and groups' shares of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.shards.scores import AtomScores
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows whose rate of an event, a positive or a wrong prediction, is an average over a group.

    Attributes
    ----------
    rows : ndarray of int of shape (n_sample,)
        Their positions.
    weight : ndarray of shape (n_sample,)
        Their weights, which sum to one.
    flipped : ndarray of bool of shape (n_sample,)
        Where the event is a negative prediction.
    """

    rows: Array
    weight: Array
    flipped: Array

    changes_between_points: ClassVar[bool] = False
    """Whether rates may change between the thresholds that `distinct` returns."""

    @classmethod
    def joined(cls, samples: Sequence[Sample], shares: Array) -> Sample:
        """Return the rows of several samples, which have these shares of the weight."""
        weight = [one.weight * share for one, share in zip(samples, shares, strict=True)]
        return cls(
            np.concatenate([one.rows for one in samples]),
            np.concatenate(weight) / np.sum(shares),
            np.concatenate([one.flipped for one in samples]),
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @cached_property
    def size(self) -> float:
        """The number of rows; with weights that differ, the effective sample size."""
        return min(1.0 / float(np.sum(self.weight**2)), float(len(self)))

    @cached_property
    def exact(self) -> bool:
        """Whether the weights are equal, so that counts are binomial."""
        return bool(np.isclose(self.size, len(self)))

    def of_atoms(self, atoms: RowTotals) -> AtomSample:
        """Return the sample with atoms, of which each stands for several rows, as its rows."""
        return AtomSample(self.rows, self.weight, self.flipped, atoms.take(self.rows))

    def distinct(self, scores: Array) -> Array:
        """Return the thresholds at which counts change."""
        return scores[self.rows]

    def rate(self, scores: Array, threshold: float = 0.0) -> float:
        """Return the weighted share of the rows with the event."""
        return float(self.rates(scores, np.array([threshold]))[0])

    def rates(self, scores: Array, thresholds: Array) -> Array:
        """Return the weighted share of the rows with the event for every threshold."""
        own = scores[self.rows]
        return np.array([self.weight @ ((own > t) != self.flipped) for t in thresholds])

    def counts(self, scores: Array, thresholds: Array) -> Array:
        """Return the rows with the event for every threshold, as integers."""
        own = scores[self.rows]
        if not self.flipped.any():
            return len(own) - np.searchsorted(np.sort(own), thresholds, side="right")
        return np.array([int(np.sum((own > t) != self.flipped)) for t in thresholds])


@dataclass(frozen=True, eq=False)
class RowTotals:
    """What atoms stand for: rows that agree in label and groups.

    Attributes
    ----------
    counts : ndarray of int of shape (n_atoms,)
        Their numbers of rows.
    weight : ndarray of shape (n_atoms,)
        The sums of the weights of these.
    squares : ndarray of shape (n_atoms,)
        The sums of the squared weights.
    """

    counts: Array
    weight: Array
    squares: Array

    def take(self, atoms: Array) -> RowTotals:
        """Return the totals of some atoms."""
        return RowTotals(self.counts[atoms], self.weight[atoms], self.squares[atoms])


@dataclass(frozen=True, eq=False)
class AtomSample(Sample):
    """A sample whose `rows` are atoms; its scores are those of rows in shards.

    Attributes
    ----------
    atoms : RowTotals
        What each of them stands for.
    """

    atoms: RowTotals

    changes_between_points: ClassVar[bool] = True

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.atoms.counts.sum())

    @cached_property
    def size(self) -> float:
        """The number of rows; with weights that differ, the effective sample size."""
        squares = (self.weight / self.atoms.weight) ** 2 * self.atoms.squares
        return min(1.0 / float(np.sum(squares)), float(len(self)))

    def of_atoms(self, atoms: RowTotals) -> AtomSample:
        """Return the sample: its rows are atoms."""
        return self

    def distinct(self, scores: AtomScores) -> Array:  # type: ignore[override]
        """Return thresholds between the least and the largest score."""
        return scores.grid

    def rates(self, scores: AtomScores, thresholds: Array) -> Array:  # type: ignore[override]
        """Return the weighted share of the rows with the event for every threshold."""
        above = scores.above(thresholds).weight[self.rows] / self.atoms.weight[:, None]
        return np.asarray(self.weight @ np.where(self.flipped[:, None], 1.0 - above, above))

    def counts(self, scores: AtomScores, thresholds: Array) -> Array:  # type: ignore[override]
        """Return the rows with the event for every threshold, as integers."""
        above, total = scores.above(thresholds).counts[self.rows], self.atoms.counts[:, None]
        return np.where(self.flipped[:, None], total - above, above).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Share:
    """A group's share of the rows, which is estimated.

    Attributes
    ----------
    value : float
        The share found.
    sample : Sample
        The rows.
    """

    value: float
    sample: Sample

    def limits(self, delta: float) -> tuple[float, float]:
        """Return confidence limits with an error of at most delta."""
        size = self.sample.size
        if self.sample.exact:
            _, low, high = clopper_pearson(np.array(self.value), np.array(size), 1.0 - delta)
            return float(low), float(high)
        reach = np.sqrt(np.log(2.0 / delta) / (2.0 * size))
        return max(self.value - reach, 0.0), min(self.value + reach, 1.0)
