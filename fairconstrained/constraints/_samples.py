"""Samples of rows from groups of the population, and groups' shares of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairconstrained.metrics.intervals import clopper_pearson
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

    def events(self, scores: Array, threshold: float = 0.0) -> Array:
        """Return on which rows the event happens."""
        return np.asarray((scores[self.rows] > threshold) != self.flipped)

    def rate(self, scores: Array, threshold: float = 0.0) -> float:
        """Return the weighted share of the rows with the event."""
        return float(self.weight @ self.events(scores, threshold))

    def counts(self, scores: Array, thresholds: Array) -> Array:
        """Return the rows with the event for every threshold, as integers."""
        if not self.flipped.any():
            ordered = np.sort(scores[self.rows])
            return len(ordered) - np.searchsorted(ordered, thresholds, side="right")
        return np.array([int(self.events(scores, t).sum()) for t in thresholds])


@dataclass(frozen=True)
class Share:
    """A group's share of the rows, which is estimated.

    Attributes
    ----------
    value : float
        The share found.
    size : float
        The number of rows.
    exact : bool
        Whether their weights are equal.
    """

    value: float
    size: float
    exact: bool

    def limits(self, delta: float) -> tuple[float, float]:
        """Return confidence limits with an error of at most delta."""
        if self.exact:
            _, low, high = clopper_pearson(np.array(self.value), np.array(self.size), 1.0 - delta)
            return float(low), float(high)
        reach = np.sqrt(np.log(2.0 / delta) / (2.0 * self.size))
        return max(self.value - reach, 0.0), min(self.value + reach, 1.0)
