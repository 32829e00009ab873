"""Means, variances and extremes of features whose rows are in several places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from fairconstrained.models.feature_scale import Features, FeatureScale, feature_moments
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
    """

    weight: float
    mean: Array
    squares: Array
    low: Array
    high: Array

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
        return cls(weight, mean, weight * variance, low, high)

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
            whole = cls(
                weight,
                whole.mean + step * (part.weight / weight),
                whole.squares + part.squares + between,
                np.minimum(whole.low, part.low),
                np.maximum(whole.high, part.high),
            )
        return whole

    @property
    def scale(self) -> FeatureScale:
        """The feature scale of the rows."""
        variance = self.squares / self.weight
        return FeatureScale.of_moments(self.mean, variance, self.low, self.high)
