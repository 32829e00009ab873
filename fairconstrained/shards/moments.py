"""Means, variances, extremes and frequent values of features with rows in several places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from fairconstrained.models.feature_scale import (
    Features,
    FeatureScale,
    feature_moments,
    frequent_values,
    other_shares,
)
from fairconstrained.shards.rows import Shard
from fairconstrained.utils.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class Moments:
    """The weight, the means, the sums of squares about them and the extremes of some rows.

    Attributes
    ----------
    weight : float
        The total weight of the rows.
    mean, squares, low, high : ndarray of shape (n_features,)
        For every feature its weighted mean, its weighted sum of squared differences from the mean,
        its least and its largest value.
    values : ndarray of shape (n_values, n_features)
        The values that may have more than half of the weight in some part of the rows, and so all
        that may have it in all of them; NaN stands for no value.
    """

    weight: float
    mean: Array
    squares: Array
    low: Array
    high: Array
    values: Array

    @classmethod
    def of(cls, X: Matrix, sample_weight: Array) -> Moments:
        """Return the moments of rows, of which there is at least one.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_rows, n_features)
            The features.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.
        """
        features = cast("Features", X)
        weight = float(sample_weight.sum())
        mean, variance, low, high = feature_moments(features, sample_weight)
        values = frequent_values(features, sample_weight)
        return cls(weight, mean, weight * variance, low, high, values)

    def times(self, factor: float) -> Moments:
        """Return the moments of the same rows with weights that are larger by a factor."""
        return replace(self, weight=factor * self.weight, squares=factor * self.squares)

    @classmethod
    def merged(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of all rows from those of parts.

        References
        ----------
        T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", 1983.
        """
        whole = parts[0]
        for part in parts[1:]:
            weight, step = whole.weight + part.weight, part.mean - whole.mean
            between = step**2 * (whole.weight * part.weight / weight)
            values = whole.values
            for more in part.values:
                more = np.where((more == values).any(axis=0), np.nan, more)
                values = values if np.isnan(more).all() else np.vstack([values, more])
            whole = cls(
                weight,
                whole.mean + step * (part.weight / weight),
                whole.squares + part.squares + between,
                np.minimum(whole.low, part.low),
                np.maximum(whole.high, part.high),
                values,
            )
        return whole

    def scale(self, other_shares: Callable[[Array], Array]) -> FeatureScale:
        """Return the feature scale of the rows.

        Parameters
        ----------
        other_shares : callable
            See :meth:`FeatureScale.of_moments`.
        """
        variance, ends = self.squares / self.weight, (self.low, self.high)
        return FeatureScale.of_moments(self.mean, variance, *ends, self.values, other_shares)


def other_shares_in(shard: Shard, factors: Array, values: Array) -> tuple[Array]:
    """Return what :func:`other_shares` does, of the rows of a shard.

    Parameters
    ----------
    shard : Shard
        The rows.
    factors : ndarray of shape (n_atoms,)
        What a unit of their weights is of the weight of all rows.
    values : ndarray of shape (n_values, n_features)
        The values.
    """
    weight = factors[shard.atoms]
    weight = weight if shard.sample_weight is None else weight * shard.sample_weight
    return (other_shares(cast("Features", shard.X), weight, values),)
